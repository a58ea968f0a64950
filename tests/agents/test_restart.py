"""A hub that is killed while agents work: what it leaves is ended, everything is recovered."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import ClaimTask
from dragoman.engine.verifying.verify import check_ledger, check_views
from dragoman.system import process
from dragoman.system.hub_name import hub_name
from dragoman.system.ids import new_id
from dragoman.system.process import started_at
from dragoman.system.run_marks import RunMarks
from tests.agents.running_hub import FAST, PERSON, RunningHub, agent_section, run, running_hub
from tests.requirements import proves
from tests.traces import Trace

ROOT = Path(__file__).parents[2]
COUNT = 20
QUICK_RETRY = "[retry]\nbase_ms = 1\ncap_ms = 2\n"


def ignore(_: int) -> None:
    """Nobody watches the progress."""


def check_sound(hub: RunningHub) -> None:
    """The ledger and its views hold."""
    assert list(check_ledger(hub.store, (), ignore)) == []
    assert list(check_views(hub.store, ignore)) == []


def hub_process(data: Path, event: str) -> subprocess.Popen[bytes]:
    """A hub of its own that says when its ledger has the event."""
    words = [sys.executable, "-m", "tests.agents.hub_process", str(data), event]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)


@proves("DISPATCH-RESTART")
def test_a_hub_killed_while_agents_work_recovers_everything_and_doubles_nothing(
    tmp_path: Path, trace: Trace
) -> None:
    data = tmp_path / "data"
    busy = FAST.replace("[dispatch]\n", f"[dispatch]\nconcurrency = {COUNT}\n") + QUICK_RETRY
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    at_work = busy + f"[agents.ada]\nconcurrency = {COUNT}\n"
    at_work += f"command = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"

    async def before() -> list[str]:
        async with running_hub(data, at_work, start=False) as hub:
            return [hub.make(str(number)) for number in range(COUNT)]

    tasks = asyncio.run(before())
    with hub_process(data, "task.claimed") as killed:
        said = b""
        while said.count(b"up\n") < COUNT:
            said += trace.read()
        killed.send_signal(signal.SIGKILL)
    assert len([*(data / "agents").glob("*.json")]) == COUNT

    async def after() -> None:
        settings = busy + agent_section("ada", "report()", concurrency=4)
        async with running_hub(data, settings) as hub:
            for task in tasks:
                await hub.until_status(task, "review")
            # Nobody of the dead hub's agents lives on.
            assert await asyncio.to_thread(trace.read_to_end) == b""
            events = Counter((line.stream, line.event) for line in hub.lines())
            for task in tasks:
                assert hub.task(task).attempts == 2
                assert events[f"task:{task}", "task.claimed"] == 2
                assert events[f"task:{task}", "task.requeued"] == 1
                assert events[f"task:{task}", "task.transitioned"] == 1
            await hub.until_idle()
            assert not [*(data / "agents").iterdir()]
            check_sound(hub)

    run(after())


@proves("DISPATCH-RESTART")
def test_what_was_claimed_and_never_started_begins_in_the_same_attempt(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "report()")

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            task, others, gone = hub.make("1"), hub.make("2"), hub.make("3", assignee="ben")
            name = hub_name(hub.data, new_id)
            assert name == hub_name(hub.data, new_id)
            hub.do(ClaimTask(task, "ada", f"{name}.1"), actor=SYSTEM)
            hub.do(ClaimTask(others, "ada", "another-hub.1"), actor=SYSTEM)
            hub.do(ClaimTask(gone, "ben", f"{name}.2"), actor=SYSTEM)
        async with running_hub(tmp_path / "data", settings) as hub:
            done = await hub.until_status(task, "review")
            assert done.attempts == 1
            assert hub.task(others).status == "in-progress"
            assert (hub.task(gone).status, hub.task(gone).failures) == ("ready", 0)

    run(story())


@proves("DISPATCH-RESTART")
def test_a_report_that_was_made_before_the_kill_counts(tmp_path: Path, trace: Trace) -> None:
    data = tmp_path / "data"
    program = f"""
import signal
report()
pipe = open({str(trace.path)!r}, "w")
pipe.write("up"); pipe.flush()
signal.pause()
"""
    settings = FAST + agent_section("ada", program)

    async def before() -> str:
        async with running_hub(data, settings, start=False) as hub:
            return hub.make()

    task = asyncio.run(before())
    with hub_process(data, "task.reported") as killed:
        assert trace.read() == b"up"
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"task.reported\n"
        killed.send_signal(signal.SIGKILL)

    async def after() -> None:
        async with running_hub(data, settings) as hub:
            done = await hub.until_status(task, "review")
            assert (done.attempts, done.failures) == (1, 0)
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(after())


@proves("DISPATCH-RESTART", "DISPATCH-IDLE")
def test_a_hub_that_has_no_agents_any_more_settles_what_was_left(
    tmp_path: Path, trace: Trace
) -> None:
    data = tmp_path / "data"
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    at_work = f"[agents.ada]\ncommand = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"

    async def before() -> str:
        async with running_hub(data, FAST + at_work, start=False) as hub:
            return hub.make("running")

    running = asyncio.run(before())
    with hub_process(data, "task.claimed") as killed:
        assert trace.read() == b"up\n"
        killed.send_signal(signal.SIGKILL)

    async def after() -> None:
        async with running_hub(data, FAST, start=False) as hub:
            kept = hub.make("kept")
            hub.do(ClaimTask(kept, "ada", f"{hub_name(data, new_id)}.1"), actor=SYSTEM)
        async with running_hub(data, FAST) as hub:
            assert (await hub.until_status(running, "ready")).failures == 1
            assert (await hub.until_status(kept, "ready")).failures == 0
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(after())


class Leftover:
    """A group whose starter is somebody else: this process knows only its number."""

    def __init__(self, script: str, session: str) -> None:
        self.program = subprocess.Popen(
            ["sh", "-c", script],
            env={"PATH": os.defpath, "DRAGOMAN_SESSION": session},
            start_new_session=True,
        )
        self.pid = self.program.pid


@pytest.fixture
def marks(tmp_path: Path) -> RunMarks:
    return RunMarks(tmp_path)


CHILDREN = pytest.mark.parametrize(
    "child", ["(while :; do sleep 100; done)", "timeout 100 sleep 100"], ids=["group", "session"]
)
"""In the group of its starter, and in one of its own."""


@proves("RUN-LEFTOVERS")
@CHILDREN
def test_a_leftover_is_ended_by_its_number_and_start_with_its_session(
    marks: RunMarks, trace: Trace, child: str
) -> None:
    left = Leftover(f"exec 3>{trace.path}; {child} & echo up >&3; wait", "s-1")
    assert trace.read() == b"up\n"
    marks.put("s-1")
    marks.put("s-1", left.pid, started_at(left.pid))
    assert marks.sweep() == {"s-1"}
    assert trace.read_to_end() == b""
    assert left.program.wait() == -signal.SIGKILL
    assert marks.sweep() == {"s-1"}, "whoever sweeps may be killed before it is on record"
    marks.remove("s-1")
    assert marks.sweep() == frozenset()


@proves("RUN-LEFTOVERS")
@CHILDREN
def test_children_of_one_that_has_ended_itself_are_ended_too(
    marks: RunMarks, trace: Trace, child: str
) -> None:
    left = Leftover(f"exec 3>{trace.path}; {child} & echo up >&3", "s-1")
    started = started_at(left.pid)
    assert trace.read() == b"up\n"
    assert left.program.wait() == 0
    marks.put("s-1", left.pid, started)
    assert marks.sweep() == {"s-1"}
    assert trace.read_to_end() == b""


@proves("RUN-LEFTOVERS")
def test_one_that_becomes_another_program_at_that_moment_is_looked_at_again(
    marks: RunMarks, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Leftover(f"exec 3>{trace.path}; echo up >&3; wait; sleep 100", "s-1")
    assert trace.read() == b"up\n"
    # Between two programs the kernel shows no variables; no test can stop one there.
    kernel = tmp_path / "proc" / str(left.pid)
    kernel.mkdir(parents=True)
    (kernel / "environ").touch()
    (kernel / "stat").write_text(Path(f"/proc/{left.pid}/stat").read_text())
    monkeypatch.setattr(process, "_PROC", kernel.parent)
    moments = list[float]()

    def pass_by(moment: float) -> None:
        moments.append(moment)
        if len(moments) == 2:
            (kernel / "environ").write_bytes(b"DRAGOMAN_SESSION=s-1\0")

    monkeypatch.setattr(process, "sleep", pass_by)
    marks.put("s-1")
    assert marks.sweep() == {"s-1"}
    assert left.program.wait() == -signal.SIGKILL
    assert trace.read_to_end() == b""


@proves("RUN-LEFTOVERS")
def test_one_whose_number_was_not_written_down_in_time_is_found_by_its_session(
    marks: RunMarks, trace: Trace
) -> None:
    left = Leftover(
        f"exec 3>{trace.path}; (while :; do sleep 100; done) & echo up >&3; wait", "s-1"
    )
    assert trace.read() == b"up\n"
    marks.put("s-1")
    assert marks.sweep() == {"s-1"}
    assert trace.read_to_end() == b""
    assert left.program.wait() == -signal.SIGKILL


@proves("RUN-LEFTOVERS")
@pytest.mark.parametrize("other", ["start", "boot", "session", "nothing"])
def test_a_stranger_who_has_the_number_now_is_left_alone(
    marks: RunMarks, trace: Trace, other: str
) -> None:
    script = f"exec 3>{trace.path}; echo up >&3; read line; echo alive >&3"
    stranger = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, start_new_session=True)
    assert trace.read() == b"up\n"
    boot, _, ticks = started_at(stranger.pid).partition(" ")
    marked = {
        "start": (stranger.pid, f"{boot} {int(ticks) - 1}"),
        "boot": (stranger.pid, f"another-start-of-the-machine {ticks}"),
        "session": (stranger.pid + 1_000_000, f"{boot} {ticks}"),
        "nothing": (0, ""),
    }
    marks.put("s-1", *marked[other])
    assert marks.sweep() == {"s-1"}
    stranger.communicate(b"\n")
    assert stranger.returncode == 0
    assert trace.read_to_end() == b"alive\n"


@proves("RUN-LEFTOVERS")
def test_a_mark_that_was_cut_off_is_taken_away(tmp_path: Path, marks: RunMarks) -> None:
    assert marks.sweep() == frozenset()
    marks.put("s-1")
    (tmp_path / "agents/s-1.json").write_bytes(b'{"session":"s-')
    assert marks.sweep() == {"s-1"}
    marks.remove("s-1")
    assert not [*(tmp_path / "agents").iterdir()]


@proves("DISPATCH-RESTART", "CCOS-RESEND")
def test_a_request_whose_program_died_with_the_hub_is_handed_over_again(
    tmp_path: Path, trace: Trace
) -> None:
    data = tmp_path / "data"
    ccos = 'speaks = ["ccos"]\ntakes_any = false\n'
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    hangs = f"[agents.ada]\n{ccos}command = {json.dumps(['sh', '-c', script, str(trace.path)])}\n"
    answers = f'[agents.ada]\n{ccos}function = "tests.agents.answering:works"\n'

    async def before() -> None:
        async with running_hub(data, FAST + hangs, start=False) as hub:
            ask = hub.directory.interpreter.call
            ask("ccos.register", {"agent_id": "ada", "skills": ["sum"]}, PERSON)
            ask("ccos.delegate", {"goal": "sum it up", "intent_id": "i-1"}, PERSON)

    asyncio.run(before())
    with hub_process(data, "task.claimed") as killed:
        assert trace.read() == b"up\n"
        killed.send_signal(signal.SIGKILL)

    async def after() -> None:
        async with running_hub(data, FAST + answers) as hub:
            await hub.until_status("i-1", "done")
            events = [line.event for line in hub.lines() if line.stream == "intent:i-1"]
            assert (events.count("intent.dispatched"), events.count("intent.completed")) == (1, 1)
            await hub.until_idle()

    run(after())
