"""Lines of started programs as events of their traces: each once, without secrets, and bounded."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from dragoman.agents.output import Pulse
from dragoman.agents.pulses import Pulses
from dragoman.core.errors import StoreError
from dragoman.engine.reads.traces import Told, events_of
from tests.agents.running_hub import FAST, RunningHub, agent_section, run, running_hub
from tests.requirements import proves

AT = "2026-02-09T14:30:00.000Z"
TOKEN = "ghp_" + "a1B2" * 9


def lines_told(hub: RunningHub, task: str) -> list[Told]:
    """The lines in the trace of a task."""
    page = events_of(hub.store, task=task, limit=500)
    return [told for told in page.events if told.type == "SANDBOX_PULSE"]


@proves("SAOP-PULSES")
def test_what_a_started_program_prints_is_in_its_trace_without_secrets(tmp_path: Path) -> None:
    program = f"""
print("12 passed")
print("\\x1b[31mtoken", "{TOKEN}", "\\x1b[0m", file=sys.stderr, flush=True)
report()
"""

    async def story() -> None:
        async with running_hub(tmp_path / "data", FAST + agent_section("ada", program)) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            told = lines_told(hub, task)
            payloads = [one.event["payload"] for one in told]
            plain = next(one for one in payloads if one["line"] == "12 passed")
            masked = next(one for one in payloads if "token" in one["line"])
            assert (plain["masked"], masked["masked"]) == (False, True)
            assert TOKEN not in str(told)
            assert "\x1b" not in masked["line"]
            (session,) = {one.event["session_id"] for one in told}
            assert session == hub.task(task).session
            assert {one.task for one in told} == {task}

    run(story())


@proves("SAOP-PULSES")
def test_only_so_many_lines_are_told_and_the_last_says_so(tmp_path: Path) -> None:
    program = "print('\\n'.join(map(str, range(1000)))); report()"
    settings = FAST + agent_section("ada", program, trace_lines=150)

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            *told, last = (one.event["payload"]["line"] for one in lines_told(hub, task))
            assert told == [str(number) for number in range(149)]
            assert last.startswith("[dragoman] ")
            assert "out 999\n" in hub.log(task)

    run(story())


@proves("SAOP-PULSES")
def test_none_are_told_where_none_are_wanted(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "print('a line'); report()", trace_lines=0)

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            assert lines_told(hub, task) == []

    run(story())


class Disk:
    """A trace that cannot be written for a while."""

    def __init__(self) -> None:
        self.is_full = True
        self.told = list[str]()

    async def tell(self, pulses: Sequence[Pulse]) -> None:
        """Take lines, if there is room."""
        if self.is_full:
            raise StoreError("the disk is full")
        self.told += [pulse.line for pulse in pulses]


@proves("SAOP-PULSES", "SAOP-FULL")
def test_what_a_full_disk_has_cost_is_said_when_there_is_room_again() -> None:
    disk = Disk()

    async def story() -> None:
        pulses = Pulses(disk.tell, 1_000)
        pulses.add(Pulse(f"{number}", False, AT) for number in range(250))
        await pulses.end()
        disk.is_full = False
        pulses.add([Pulse("after", False, AT)])
        await pulses.end()
        pulses.add([Pulse("and on", False, AT)])
        await pulses.end()

    asyncio.run(story())
    missing, *rest = disk.told
    assert missing.startswith("[dragoman] 250 lines are missing")
    assert rest == ["after", "and on"]
