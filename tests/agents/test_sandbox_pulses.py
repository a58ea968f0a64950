"""Output lines of programs as trace events: each once, without secrets, and bounded."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from dragoman.agents.program_output import LineRecorder, Pulse
from dragoman.core.errors import StoreError
from dragoman.engine.queries.traces import TraceEvent, trace_page
from tests.agents.running_hub import FAST, RunningHub, agent_section, run, running_hub
from tests.requirements import proves

AT = "2026-02-09T14:30:00.000Z"
TOKEN = "ghp_" + "a1B2" * 9


def trace_pulses(hub: RunningHub, task: str) -> list[TraceEvent]:
    """Sandbox pulses in the trace of a task."""
    page = trace_page(hub.store, task=task, limit=500)
    return [event for event in page.events if event.type == "SANDBOX_PULSE"]


@proves("SAOP-PULSES")
def test_program_output_is_in_the_trace_without_secrets(tmp_path: Path) -> None:
    program = f"""
print("12 passed")
print("\\x1b[31mtoken", "{TOKEN}", "\\x1b[0m", file=sys.stderr, flush=True)
report()
"""

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + agent_section("ada", program)) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            pulses = trace_pulses(hub, task)
            payloads = [pulse.event["payload"] for pulse in pulses]
            plain = next(pulse for pulse in payloads if pulse["line"] == "12 passed")
            masked = next(pulse for pulse in payloads if "token" in pulse["line"])
            assert (plain["masked"], masked["masked"]) == (False, True)
            assert TOKEN not in str(pulses)
            assert "\x1b" not in masked["line"]
            (session,) = {pulse.event["session_id"] for pulse in pulses}
            assert session == hub.task(task).session
            assert {pulse.task for pulse in pulses} == {task}

    run(scenario())


@proves("SAOP-PULSES")
def test_pulses_stop_at_the_line_limit_and_the_last_reports_it(tmp_path: Path) -> None:
    program = "print('\\n'.join(map(str, range(1000)))); report()"
    settings = FAST + agent_section("ada", program, max_trace_lines=150)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            *lines, last = (pulse.event["payload"]["line"] for pulse in trace_pulses(hub, task))
            assert lines == [str(number) for number in range(149)]
            assert last.startswith("[dragoman] ")
            assert "out 999\n" in hub.log(task)

    run(scenario())


@proves("SAOP-PULSES")
def test_no_pulses_are_recorded_when_the_limit_is_zero(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "print('a line'); report()", max_trace_lines=0)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            assert trace_pulses(hub, task) == []

    run(scenario())


class FullDisk:
    """A trace that cannot be written for a while."""

    def __init__(self) -> None:
        self.is_full = True
        self.lines = list[str]()

    async def write(self, pulses: Sequence[Pulse]) -> None:
        """Write lines, if there is space."""
        if self.is_full:
            raise StoreError("the disk is full")
        self.lines += [pulse.line for pulse in pulses]


@proves("SAOP-PULSES", "SAOP-FULL")
def test_lines_lost_to_a_full_disk_are_counted_when_there_is_room_again() -> None:
    disk = FullDisk()

    async def scenario() -> None:
        pulses = LineRecorder(disk.write, 1_000)
        pulses.add(Pulse(f"{number}", False, AT) for number in range(250))
        await pulses.flush()
        disk.is_full = False
        pulses.add([Pulse("after", False, AT)])
        await pulses.flush()
        pulses.add([Pulse("and on", False, AT)])
        await pulses.flush()

    asyncio.run(scenario())
    missing, *rest = disk.lines
    assert missing.startswith("[dragoman] 250 lines are missing")
    assert rest == ["after", "and on"]
