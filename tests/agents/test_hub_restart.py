"""A hub that is killed while agents work: leftovers are killed, every attempt is recovered."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ClaimTask
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.system import process
from dragoman.system.clock import new_id
from dragoman.system.process import PidFiles, start_identity
from dragoman.system.state_files import load_or_create_hub_id
from tests.agents.running_hub import FAST, PERSON, RunningHub, agent_section, run, running_hub
from tests.requirements import proves
from tests.traces import Trace

ROOT = Path(__file__).parents[2]
COUNT = 20
QUICK_RETRY = "[retry]\nbase_ms = 1\ncap_ms = 2\n"


def ignore(_: int) -> None:
    """Progress callback that does nothing."""


def check_ledger_and_views(hub: RunningHub) -> None:
    """Verify the ledger and its views."""
    assert list(check_ledger(hub.store, (), ignore)) == []
    assert list(check_stored_states(hub.store, ignore)) == []


def start_hub_process(data: Path, event: str) -> subprocess.Popen[bytes]:
    """Start a hub in its own process that prints a line when its ledger has the event."""
    words = [sys.executable, "-m", "tests.agents.hub_process", str(data), event]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)


@proves("DISPATCH-RESTART")
def test_killed_hub_recovers_every_attempt_once(tmp_path: Path, trace: Trace) -> None:
    data = tmp_path / "data"
    busy = FAST.replace("[dispatch]\n", f"[dispatch]\nconcurrency = {COUNT}\n") + QUICK_RETRY
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    busy_settings = busy + f"[agents.ada]\nconcurrency = {COUNT}\n"
    busy_settings += f"command = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"

    async def before_kill() -> list[str]:
        async with running_hub(data, busy_settings, start=False) as hub:
            return [hub.make(str(number)) for number in range(COUNT)]

    tasks = asyncio.run(before_kill())
    with start_hub_process(data, "task.claimed") as killed:
        output = b""
        while output.count(b"up\n") < COUNT:
            output += trace.read()
        killed.send_signal(signal.SIGKILL)
    assert len([*(data / "agents").glob("*.json")]) == COUNT

    async def after_restart() -> None:
        settings = busy + agent_section("ada", "report()", concurrency=4)
        async with running_hub(data, settings) as hub:
            for task in tasks:
                await hub.until_status(task, "review")
            # No agent of the dead hub is running.
            assert await asyncio.to_thread(trace.read_to_end) == b""
            events = Counter((line.stream, line.event) for line in hub.lines())
            for task in tasks:
                assert hub.task(task).attempts == 2
                assert events[f"task:{task}", "task.claimed"] == 2
                assert events[f"task:{task}", "task.requeued"] == 1
                assert events[f"task:{task}", "task.transitioned"] == 1
            await hub.until_idle()
            assert not [*(data / "agents").iterdir()]
            check_ledger_and_views(hub)

    run(after_restart())


@proves("DISPATCH-RESTART")
def test_claimed_task_that_never_started_goes_back_to_its_queue(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "report()")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            task, others, removed = hub.make("1"), hub.make("2"), hub.make("3", assignee="ben")
            name = load_or_create_hub_id(hub.data, new_id)
            assert name == load_or_create_hub_id(hub.data, new_id)
            hub.do(ClaimTask(task, "ada", f"{name}.1"), actor=HUB_ACTOR)
            hub.do(ClaimTask(others, "ada", "another-hub.1"), actor=HUB_ACTOR)
            hub.do(ClaimTask(removed, "ben", f"{name}.2"), actor=HUB_ACTOR)
        async with running_hub(tmp_path / "data", settings) as hub:
            done = await hub.until_status(task, "review")
            assert (done.attempts, done.failures) == (2, 0)
            assert hub.task(others).status == "in-progress"
            assert (hub.task(removed).status, hub.task(removed).failures) == ("ready", 0)

    run(scenario())


@proves("DISPATCH-RESTART")
def test_report_before_the_kill_takes_effect(tmp_path: Path, trace: Trace) -> None:
    data = tmp_path / "data"
    program = f"""
import signal
report()
pipe = open({str(trace.path)!r}, "w")
pipe.write("up"); pipe.flush()
signal.pause()
"""
    settings = FAST + agent_section("ada", program)

    async def before_kill() -> str:
        async with running_hub(data, settings, start=False) as hub:
            return hub.make()

    task = asyncio.run(before_kill())
    with start_hub_process(data, "task.reported") as killed:
        assert trace.read() == b"up"
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"task.reported\n"
        killed.send_signal(signal.SIGKILL)

    async def after_restart() -> None:
        async with running_hub(data, settings) as hub:
            done = await hub.until_status(task, "review")
            assert (done.attempts, done.failures) == (1, 0)
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(after_restart())


@proves("DISPATCH-RESTART", "DISPATCH-IDLE")
def test_hub_without_agents_settles_orphaned_attempts(tmp_path: Path, trace: Trace) -> None:
    data = tmp_path / "data"
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    busy_settings = f"[agents.ada]\ncommand = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"

    async def before_kill() -> str:
        async with running_hub(data, FAST + busy_settings, start=False) as hub:
            return hub.make("running")

    running = asyncio.run(before_kill())
    with start_hub_process(data, "task.claimed") as killed:
        assert trace.read() == b"up\n"
        killed.send_signal(signal.SIGKILL)

    async def after_restart() -> None:
        async with running_hub(data, FAST, start=False) as hub:
            kept_task = hub.make("kept")
            hub.do(
                ClaimTask(kept_task, "ada", f"{load_or_create_hub_id(data, new_id)}.1"),
                actor=HUB_ACTOR,
            )
        async with running_hub(data, FAST) as hub:
            assert (await hub.until_status(running, "ready")).failures == 1
            assert (await hub.until_status(kept_task, "ready")).failures == 0
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(after_restart())


class LeftoverGroup:
    """A process group started by another process: only its pid is known here."""

    def __init__(self, script: str, session: str) -> None:
        self.program = subprocess.Popen(
            ["sh", "-c", script],
            env={"PATH": os.defpath, "DRAGOMAN_SESSION": session},
            start_new_session=True,
        )
        self.pid = self.program.pid


@pytest.fixture
def marks(tmp_path: Path) -> PidFiles:
    return PidFiles(tmp_path)


CHILDREN = pytest.mark.parametrize(
    "child", ["(while :; do sleep 100; done)", "timeout 100 sleep 100"], ids=["group", "session"]
)
"""A child in the process group of its starter, and one in its own."""


@proves("RUN-LEFTOVERS")
@CHILDREN
def test_leftover_group_is_killed_by_pid_and_start_time(
    marks: PidFiles, trace: Trace, child: str
) -> None:
    leftover = LeftoverGroup(f"exec 3>{trace.path}; {child} & echo up >&3; wait", "s-1")
    assert trace.read() == b"up\n"
    marks.write("s-1")
    marks.write("s-1", leftover.pid, start_identity(leftover.pid))
    assert marks.kill_leftovers() == {"s-1"}
    assert trace.read_to_end() == b""
    assert leftover.program.wait() == -signal.SIGKILL
    assert marks.kill_leftovers() == {"s-1"}, "whoever sweeps may be killed before it is on record"
    marks.remove("s-1")
    assert marks.kill_leftovers() == frozenset()


@proves("RUN-LEFTOVERS")
@CHILDREN
def test_children_of_an_exited_leftover_are_killed(
    marks: PidFiles, trace: Trace, child: str
) -> None:
    leftover = LeftoverGroup(f"exec 3>{trace.path}; {child} & echo up >&3", "s-1")
    started = start_identity(leftover.pid)
    assert trace.read() == b"up\n"
    assert leftover.program.wait() == 0
    marks.write("s-1", leftover.pid, started)
    assert marks.kill_leftovers() == {"s-1"}
    assert trace.read_to_end() == b""


@proves("RUN-LEFTOVERS")
def test_leftover_that_is_executing_a_new_program_is_checked_again(
    marks: PidFiles, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftover = LeftoverGroup(f"exec 3>{trace.path}; echo up >&3; wait; sleep 100", "s-1")
    assert trace.read() == b"up\n"
    # During exec the kernel shows no environment, which no test can reproduce.
    kernel = tmp_path / "proc" / str(leftover.pid)
    kernel.mkdir(parents=True)
    (kernel / "environ").touch()
    (kernel / "stat").write_text(Path(f"/proc/{leftover.pid}/stat").read_text())
    monkeypatch.setattr(process, "_PROC", kernel.parent)
    sleeps = list[float]()

    def record_sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 2:
            (kernel / "environ").write_bytes(b"DRAGOMAN_SESSION=s-1\0")

    monkeypatch.setattr(process, "sleep", record_sleep)
    marks.write("s-1")
    assert marks.kill_leftovers() == {"s-1"}
    assert leftover.program.wait() == -signal.SIGKILL
    assert trace.read_to_end() == b""


@proves("RUN-LEFTOVERS")
def test_leftover_without_a_recorded_pid_is_found_by_its_session(
    marks: PidFiles, trace: Trace
) -> None:
    leftover = LeftoverGroup(
        f"exec 3>{trace.path}; (while :; do sleep 100; done) & echo up >&3; wait", "s-1"
    )
    assert trace.read() == b"up\n"
    marks.write("s-1")
    assert marks.kill_leftovers() == {"s-1"}
    assert trace.read_to_end() == b""
    assert leftover.program.wait() == -signal.SIGKILL


@proves("RUN-LEFTOVERS")
@pytest.mark.parametrize("other", ["start", "boot", "session", "nothing"])
def test_unrelated_process_with_the_recorded_pid_is_not_killed(
    marks: PidFiles, trace: Trace, other: str
) -> None:
    script = f"exec 3>{trace.path}; echo up >&3; read line; echo alive >&3"
    unrelated = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, start_new_session=True
    )
    assert trace.read() == b"up\n"
    boot, _, ticks = start_identity(unrelated.pid).partition(" ")
    marked = {
        "start": (unrelated.pid, f"{boot} {int(ticks) - 1}"),
        "boot": (unrelated.pid, f"another-start-of-the-machine {ticks}"),
        "session": (unrelated.pid + 1_000_000, f"{boot} {ticks}"),
        "nothing": (0, ""),
    }
    marks.write("s-1", *marked[other])
    assert marks.kill_leftovers() == {"s-1"}
    unrelated.communicate(b"\n")
    assert unrelated.returncode == 0
    assert trace.read_to_end() == b"alive\n"


@proves("RUN-LEFTOVERS")
def test_truncated_mark_is_removed(tmp_path: Path, marks: PidFiles) -> None:
    assert marks.kill_leftovers() == frozenset()
    marks.write("s-1")
    (tmp_path / "agents/s-1.json").write_bytes(b'{"session":"s-')
    assert marks.kill_leftovers() == {"s-1"}
    marks.remove("s-1")
    assert not [*(tmp_path / "agents").iterdir()]


@proves("DISPATCH-RESTART", "CCOS-RESEND")
def test_request_of_a_program_killed_with_the_hub_is_sent_again(
    tmp_path: Path, trace: Trace
) -> None:
    data = tmp_path / "data"
    ccos = 'speaks = ["ccos"]\ntakes_unassigned = false\n'
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    hangs = f"[agents.ada]\n{ccos}command = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"
    answers = f'[agents.ada]\n{ccos}function = "tests.agents.function_agents:answer_in_capitals"\n'

    async def before_kill() -> None:
        async with running_hub(data, FAST + hangs, start=False) as hub:
            call = hub.directory.router.call
            call("ccos.register", {"agent_id": "ada", "skills": ["sum"]}, PERSON)
            call("ccos.delegate", {"goal": "sum it up", "intent_id": "i-1"}, PERSON)

    asyncio.run(before_kill())
    with start_hub_process(data, "task.claimed") as killed:
        assert trace.read() == b"up\n"
        killed.send_signal(signal.SIGKILL)

    async def after_restart() -> None:
        async with running_hub(data, FAST + answers) as hub:
            await hub.until_status("i-1", "done")
            events = [line.event for line in hub.lines() if line.stream == "intent:i-1"]
            assert (events.count("intent.dispatched"), events.count("intent.completed")) == (1, 1)
            await hub.until_idle()

    run(after_restart())
