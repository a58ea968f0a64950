"""Agents as programs: what they receive, how their output is read, and how they are stopped."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as ThreadEvent

import pytest

from dragoman.agents.program_output import MessageFormat, Pulse
from dragoman.agents.program_runner import ProgramPorts, ProgramRunner, WorkingFolder
from dragoman.config import AgentSettings
from dragoman.core.actor import Actor
from dragoman.core.agent import Pause, ResumeAgent
from dragoman.core.attempt import LIMIT_MARGIN_MS, CheckpointTask, ReleaseTask
from dragoman.core.errors import SettingsError
from dragoman.core.task_state import MoveTask, NoteTask
from dragoman.engine.auth import Principal
from dragoman.engine.ports import Assignment
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.request import Accepted
from dragoman.files.task_work_folder import WorkingFolders
from dragoman.system.process import Process
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.redact import Redactor
from tests.agents.running_hub import FAST, PATIENCE, RunningHub, agent_section, run, running_hub
from tests.conftest import LONG_RUN
from tests.protocols.acp.hub import offer
from tests.requirements import proves
from tests.traces import Trace


@proves("RUN-PROGRAM", "RUN-SESSION-END")
def test_program_gets_prompt_and_variables_and_its_exit_ends_the_session(
    tmp_path: Path,
) -> None:
    program = """
prompt = sys.stdin.read()
json.dump({"prompt": prompt, "variables": dict(os.environ), "folder": os.getcwd()},
          open("seen.json", "w"))
report()
"""
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make("Count the stars", body="All of them.")
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert (done.reported.agent, done.reported.outcome) == ("ada", "done")
            folder = hub.data / "tasks/review" / done.aof_id
            found = [*hub.data.glob(f"tasks/*/{done.aof_id}/work/seen.json")]
            seen = json.loads(found[0].read_text())
            assert "Count the stars" in seen["prompt"]
            assert "All of them." in seen["prompt"]
            assert folder.name in seen["folder"]
            variables = seen["variables"]
            assert variables["DRAGOMAN_TASK"] == done.aof_id
            assert variables["DRAGOMAN_URL"] == "http://hub"
            principal = hub.identity.authenticate(variables["DRAGOMAN_TOKEN"], "http")
            assert isinstance(principal, Principal)
            assert (principal.actor.name, principal.task, principal.fence) == ("ada", task, 1)
            assert Path(variables["DRAGOMAN_PROMPT"]).name == "prompt.md"
            events = [line.event for line in hub.lines(task)]
            assert events == ["task.created", "task.claimed", "task.reported", "task.transitioned"]

    run(scenario())


@proves("RUN-ENVIRONMENT")
def test_program_gets_only_the_named_variables_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "wanted")
    monkeypatch.setenv("DATABASE_PASSWORD", "canary")
    settings = FAST + agent_section(
        "ada", "print(*sorted(os.environ)); report()", environment=["API_KEY"]
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            log = hub.log(task)
            assert "API_KEY" in log
            assert "DATABASE_PASSWORD" not in log
        for path in (tmp_path / "data").rglob("*"):
            assert path.is_dir() or b"canary" not in path.read_bytes()

    run(scenario())


@proves("RUN-PROGRAM")
def test_prompt_may_be_passed_as_a_file_only(tmp_path: Path) -> None:
    program = """
assert sys.stdin.read() == ""
assert "find me" in open(os.environ["DRAGOMAN_PROMPT"]).read()
report()
"""
    settings = FAST + agent_section("ada", program, prompt="file")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            await hub.until_status(hub.make("find me"), "review")

    run(scenario())


@proves("RUN-PROMPT", "ACP-OWNER")
def test_prompt_of_a_handed_over_task_includes_the_package(tmp_path: Path) -> None:
    program = "open('seen.md', 'w').write(sys.stdin.read()); report()"
    ada = Actor("agent", "ada")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + agent_section("ada", program)) as hub:
            offered = hub.directory.router.call("acp_handoff", offer("ada"), Actor("agent", "bob"))
            assert isinstance(offered, Accepted)
            id = offered.reply["handoff_id"]
            for action in ("accept", "activate"):
                action_call = {"action": action, "handoff_id": id}
                assert isinstance(
                    hub.directory.router.call("acp_handoff", action_call, ada), Accepted
                )
            hub.do(ReleaseTask("t-1"), actor=ada)
            done = await hub.until_status("t-1", "review")
            (seen,) = hub.data.glob(f"tasks/*/{done.aof_id}/work/seen.md")
            assert f"## What bob has handed over as {id}\n" in seen.read_text()
            assert "Half of it is there." in seen.read_text()
            assert done.chain == ("bob", "ada")

    run(scenario())


@proves("RUN-SESSION-END", "RUN-UNREPORTED")
@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("sys.exit(3)", "ready", "exit code 3, without a report"),
        ("os.kill(os.getpid(), 9)", "ready", "ended by signal 9, without a report"),
        ("pass", "review", "exited with code 0, without a report"),
        ("report('blocked', blockers=['no key']); sys.exit(1)", "blocked", "said by a program"),
    ],
    ids=["exit code", "signal", "silent", "reported"],
)
def test_exit_of_the_program_decides_the_task_status(
    tmp_path: Path, program: str, status: str, words: str
) -> None:
    settings = "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n" + FAST
    settings += agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            ended = hub.task(task)
            assert ended.status == status
            assert ended.reported is not None
            assert words in ended.reported.notes
            assert ended.failures == (1 if status == "ready" else 0)
            # A report that the hub makes up is never attributed to the agent.
            is_agents = "said by" in words
            assert ended.reported.by == ("" if is_agents else "hub")
            actors = [line.actor for line in hub.lines(task) if line.event == "task.reported"]
            assert actors == ["agent:ada" if is_agents else "system:hub"]
            assert not list(hub.directory.catch_up())
            runs = hub.data / "runs" / ended.aof_id
            assert (runs / "run_result.json").exists() == is_agents
            run_file = json.loads((runs / "run.json").read_text())
            assert (run_file.get("notes") == ended.reported.notes) != is_agents
            log = "".join(file.read_text() for file in (hub.data / "events").iterdir())
            assert ('"task.completed"' in log) == is_agents

    run(scenario())


def find_pause(hub: RunningHub) -> Pause | None:
    """Pause of ada."""
    record = find_agent(hub.store, "ada")
    return record and record.pause


_LIMIT = "Claude AI usage limit reached|4102444800"
"""The end is at the beginning of 2100."""


@proves("USAGE-LIMIT")
@pytest.mark.parametrize(
    ("program", "until"),
    [
        (f"print({_LIMIT!r}); sys.exit(1)", 4_102_444_800_000),
        (f"sys.stderr.write({_LIMIT!r}); sys.exit(1)", 4_102_444_800_000),
        ("sys.exit(75)", None),
    ],
    ids=["output", "error output", "exit code"],
)
def test_program_that_meets_a_usage_limit_has_not_failed(
    tmp_path: Path, program: str, until: int | None
) -> None:
    settings = FAST + agent_section("ada", program, limit_exit_code=75)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: find_pause(hub) is not None)
            limited = hub.task(task)
            assert (limited.status, limited.failures, limited.attempts) == ("ready", 0, 1)
            pause = find_pause(hub)
            assert pause is not None
            assert pause.reason.startswith("usage limit of ada")
            assert pause.until is not None
            assert until is None or pause.until == until + LIMIT_MARGIN_MS
            hub.do(ResumeAgent("ada"))
            await hub.until(lambda: hub.task(task).attempts == 2)

    run(scenario())


@proves("USAGE-LIMIT")
@pytest.mark.parametrize(
    ("program", "status"),
    [
        (f"print({_LIMIT!r}); sys.exit(0)", "review"),
        (f"print({_LIMIT!r}); [print('and on') for _ in range(30)]; sys.exit(1)", "ready"),
        (f"print({_LIMIT!r}); report('blocked', blockers=['no key']); sys.exit(1)", "blocked"),
    ],
    ids=["good exit", "long ago", "reported"],
)
def test_program_that_only_speaks_of_a_limit_ends_as_any_other(
    tmp_path: Path, program: str, status: str
) -> None:
    settings = "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n" + FAST
    settings += agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            assert hub.task(task).status == status
            assert hub.task(task).failures == (status == "ready")
            assert find_pause(hub) is None

    run(scenario())


@proves("USAGE-LIMIT")
def test_usage_limits_can_be_switched_off(tmp_path: Path) -> None:
    settings = "[attempts]\npauses_limited = false\n[retry]\nbase_ms = 3600000\n"
    settings += "cap_ms = 3600000\n" + FAST
    settings += agent_section("ada", f"print({_LIMIT!r}); sys.exit(1)")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).failures == 1)
            assert find_pause(hub) is None

    run(scenario())


@proves("USAGE-LIMIT")
def test_another_agent_gets_the_task_of_a_limited_one(tmp_path: Path) -> None:
    limited = agent_section("ada", f"print({_LIMIT!r}); sys.exit(1)", capabilities=["python"])
    other = agent_section("bob", "report()", capabilities=["python"])

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + limited + other) as hub:
            tasks = [hub.make(assignee="python") for _ in range(4)]
            await hub.until(lambda: all(hub.task(one).status == "review" for one in tasks))
            assert {hub.task(one).assignee for one in tasks} == {"bob"}
            assert sum(hub.task(one).failures for one in tasks) == 0

    run(scenario())


@proves("RUN-MESSAGES")
def test_message_lines_are_routed_in_order_and_refusals_are_logged(
    tmp_path: Path,
) -> None:
    program = """
say("status.update", taskId=os.environ["DRAGOMAN_TASK"], agentId="ada", progress="half way")
print("AOF/1 this is no JSON", flush=True)
say("status.update", taskId=os.environ["DRAGOMAN_TASK"], agentId="bob", progress="as another")
print(' AOF/1 {"protocol":"aof"} does not begin the line')
sys.stderr.write("AOF/1 {} on the other way\\n")
report()
"""
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            events = [line.event for line in hub.lines(task)]
            assert events == [
                "task.created",
                "task.claimed",
                "task.progressed",
                "task.reported",
                "task.transitioned",
            ]
            refused = [line for line in hub.lines() if line.event == "command.refused"]
            assert [line.actor for line in refused] == ["agent:ada"] * 2
            assert all(line.via == "agent-output" for line in refused)
            log = hub.log(task)
            assert "hub refused, invalid_json" in log
            assert "hub refused, identity_mismatch" in log

    run(scenario())


APPLY_IMMEDIATELY = '[aof]\napply_completion = "immediately"\n'


@proves("RUN-LEAVE")
def test_program_may_finish_after_its_report_took_effect(tmp_path: Path, trace: Trace) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    program = f"""
import signal
signal.signal(signal.SIGTERM, lambda *_: os.write(pipe, b"told to end;"))
pipe = os.open({str(trace.path)!r}, os.O_WRONLY)
report()
open({str(go)!r}).read()
os.write(pipe, b"pushed;")
"""
    settings = APPLY_IMMEDIATELY + FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            for number in range(20):  # each of them makes the attempt check its status
                hub.do(NoteTask(task, f"seen {number}"))
                await asyncio.sleep(0)
            hub.do(MoveTask(task, "done"))
            assert hub.state("ada").running_tasks == (task,)
            await asyncio.to_thread(go.write_text, "")
            assert await asyncio.to_thread(trace.read_to_end) == b"pushed;"
            await hub.until_idle()
            assert (hub.task(task).status, hub.task(task).attempts) == ("done", 1)
            assert not [line for line in hub.lines() if line.event == "command.refused"]

    run(scenario())


@proves("AOF-REPEAT")
@pytest.mark.parametrize("settings", ["", APPLY_IMMEDIATELY])
def test_identical_output_of_a_later_attempt_counts_for_that_attempt(
    tmp_path: Path, settings: str
) -> None:
    async def scenario() -> None:
        section = agent_section("ada", "report('partial')")
        async with running_hub(tmp_path / "data", settings + FAST + section) as hub:
            task = hub.make()
            for attempt in (1, 2):
                await hub.until_status(task, "review")
                await hub.until_idle()
                reported = hub.task(task).reported
                assert reported is not None
                assert (hub.task(task).attempts, reported.outcome) == (attempt, "partial")
                if attempt == 1:
                    hub.do(MoveTask(task, "ready"))

    run(scenario())


@proves("RUN-LEAVE")
def test_released_task_is_not_dispatched_until_its_program_has_ended(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    program = f"""
if not os.path.exists("tried"):
    open("tried", "w").close()
    task, agent = os.environ["DRAGOMAN_TASK"], os.environ["DRAGOMAN_AGENT"]
    say("status.update", taskId=task, agentId=agent, status="ready")
    open({str(go)!r}).read()
else:
    report()
"""
    settings = APPLY_IMMEDIATELY + "[retry]\nbase_ms = 0\n" + FAST
    settings += agent_section("ada", program, concurrency=2)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(
                lambda: [hub.task(task).attempts, hub.task(task).status] == [1, "ready"]
            )
            for number in range(20):  # each of them makes the dispatcher look for work
                hub.do(NoteTask(task, f"seen {number}"))
                await asyncio.sleep(0)
            assert hub.state("ada").running_tasks == (task,)
            assert hub.task(task).attempts == 1
            await asyncio.to_thread(go.write_text, "")
            assert (await hub.until_status(task, "review")).attempts == 2

    run(scenario())


@proves("RUN-LEAVE")
def test_program_that_stays_after_its_report_is_stopped(tmp_path: Path) -> None:
    program = "import signal; report(); signal.pause()"
    settings = APPLY_IMMEDIATELY + FAST.replace("[dispatch]\n", "[dispatch]\nexit_grace_ms = 0\n")
    settings += agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            done = await hub.until_status(task, "review")
            await hub.until_idle()
            assert (done.attempts, done.failures) == (1, 0)
            assert not [line for line in hub.lines() if line.event == "command.refused"]

    run(scenario())


@proves("RUN-OUTPUT")
def test_output_is_logged_by_line_without_escapes_and_token(tmp_path: Path) -> None:
    program = r"""
print("plain \x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \u202e end")
print("token", os.environ["DRAGOMAN_TOKEN"])
sys.stderr.write("a complaint\r\nno newline at the end")
sys.stderr.buffer.write(b" \xff\xfe")
report()
"""
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            log = hub.log(task)
            lines = [line.split(" ", 1)[1] for line in log.splitlines()]
            assert "out plain red  � end" in lines
            assert any(line.startswith("out token [REDACTED:dragoman_token:") for line in lines)
            assert "err a complaint" in lines
            assert "err no newline at the end ��" in lines
            assert "drga_" not in log
            assert "\x1b" not in log
            assert lines[0].startswith("hub attempt 1 of ada")
            assert lines[-1].endswith("has ended")

    run(scenario())


@proves("RUN-OUTPUT")
def test_endless_output_is_bounded_and_messages_are_still_parsed(tmp_path: Path) -> None:
    blocks = 16_384 if os.environ.get(LONG_RUN) else 160
    program = f"""
block = b"y\\n" * 32768
for _ in range({blocks}):
    sys.stdout.buffer.write(block)
sys.stdout.buffer.write(b"x" * 5_000_000)
sys.stdout.buffer.write(b"\\n")
sys.stdout.flush()
report()
"""
    settings = FAST + agent_section("ada", program, output_bytes=20_000)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            await hub.until_idle()
            log = hub.log(task)
            assert len(log) < 25_000
            assert "the limit is reached" in log
            assert hub.state("ada").usage.output_bytes > blocks * 65_536 + 5_000_000

    run(scenario())


@proves("RUN-OUTPUT")
def test_too_long_message_is_refused_not_truncated(tmp_path: Path) -> None:
    program = "print('AOF/1 {' + 'x' * 400_000); report()"
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            assert "refused, message_too_large" in hub.log(task)
            assert len(hub.log(task)) < 20_000

    run(scenario())


@proves("RUN-OUTPUT")
def test_output_of_an_earlier_attempt_is_kept(tmp_path: Path) -> None:
    program = """
print("attempt", len(os.listdir(".")))
open(str(len(os.listdir("."))), "w")
sys.exit(1) if len(os.listdir(".")) < 2 else report()
"""
    settings = "[retry]\nbase_ms = 1\n" + FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            done = await hub.until_status(task, "review")
            assert "out attempt 1" in hub.log(task)
            earlier = hub.data / "runs" / done.aof_id / "attempts/1/output.log"
            assert "out attempt 0" in earlier.read_text()

    run(scenario())


@proves("RUN-STOP", "RUN-OUTPUT")
def test_lost_lease_kills_a_process_group_that_ignores_sigterm(
    tmp_path: Path, trace: Trace
) -> None:
    script = (
        "trap '' TERM; exec 3>$0; (trap '' TERM; while :; do sleep 100; done) & echo up >&3; wait"
    )
    settings = FAST + f"[agents.ada]\ncommand = {json.dumps(['sh', '-c', script, str(trace.path)])}"

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            assert await asyncio.to_thread(trace.read) == b"up\n"
            hub.do(MoveTask(task, "cancelled", "changed my mind"))
            assert await asyncio.to_thread(trace.read_to_end) == b""
            await hub.until_idle()
            assert hub.task(task).status == "cancelled"
            assert hub.task(task).failures == 0
            *_, reason, end = hub.log(task).splitlines()
            assert reason.endswith("hub stopping the program: it no longer holds the task")
            assert end.endswith("hub sh: ended by signal 9")

    run(scenario())


@proves("RUN-STOP", "RUN-OUTPUT")
def test_process_that_left_its_session_is_ignored_and_noted_in_the_log(
    tmp_path: Path, trace: Trace
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    daemon = f"exec 3> {trace.path}; read go < {gate}; echo lives on >&3"
    program = f"""
import subprocess
subprocess.Popen(["sh", "-c", {daemon!r}], start_new_session=True)
"""
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            *_, note, end = hub.log(task).splitlines()
            assert note.endswith(
                "hub a process has left its session: it still runs, and its output is not read"
            )
            assert end.endswith("has ended")
            await asyncio.to_thread(gate.write_text, "go\n")
            assert await asyncio.to_thread(trace.read_to_end) == b"lives on\n"

    run(scenario())


@proves("RUN-STOP")
def test_children_in_the_process_group_end_with_the_program(tmp_path: Path, trace: Trace) -> None:
    program = f"""
import subprocess
subprocess.Popen(["sh", "-c", "exec 3>{trace.path}; echo up >&3; while :; do sleep 100; done"])
open({str(trace.path)!r}, "w").write("me\\n")
report()
"""
    settings = FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            assert b"me\n" in await asyncio.to_thread(trace.read_to_end)

    run(scenario())


class FullDiskMarks:
    """Run marks on a disk that has no space for a pid."""

    def __init__(self) -> None:
        self.pid = 0
        self.sessions = set[str]()

    def write(self, session: str, pid: int = 0, started: str = "") -> None:
        """Store the session, and fail when there is a pid."""
        self.sessions.add(session)
        self.pid = pid
        if pid:
            raise OSError(28, "No space left on device")

    def remove(self, session: str) -> None:
        """Remove the session."""
        self.sessions.discard(session)


async def ignore_pulses(_: Assignment, __: Sequence[Pulse]) -> None:
    """Drop pulses."""


async def ignore_message(_: bytes) -> str:
    """Drop a message."""
    return ""


def runner_with_folder(
    open_folder: Callable[[Assignment], WorkingFolder], marks: FullDiskMarks
) -> ProgramRunner:
    """A runner of an idle program, with a function that opens its work folder."""
    tools = ProgramPorts(
        start=Process.start,
        open_folder=open_folder,
        worktree=None,
        separate=lambda command, _, __: command,
        variables={},
        blocking_pool=ThreadPoolExecutor(1),
        pids=marks,
        token=lambda _: "token",
        url="",
        certificate="",
        environ=os.environ,
        now=lambda: 0,
        redactor=Redactor(),
        messages=MessageFormat((b"AOF/1 ",), 1_000, 1_000),
        record_lines=ignore_pulses,
    )
    words = (sys.executable, "-c", "import signal; signal.pause()")
    return ProgramRunner("ada", AgentSettings(command=words), tools)


WORK = Assignment("ada", "T", "TASK-2026-02-09-001", "t", 1, 1, "s-1", 1_000, "do it")


@proves("RUN-DESK", "BACKUP-ONLINE")
def test_work_folder_opened_during_a_backup_does_not_block_readers() -> None:
    has_read = ThreadEvent()

    async def scenario() -> None:
        loop, is_waiting = asyncio.get_running_loop(), asyncio.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))

        def open_folder(_: Assignment) -> WorkingFolder:
            loop.call_soon_threadsafe(is_waiting.set)
            raise OSError("read" if has_read.wait(PATIENCE) else "held up")

        starting = asyncio.create_task(
            runner_with_folder(open_folder, FullDiskMarks()).start(WORK, ignore_message)
        )
        await is_waiting.wait()
        await asyncio.to_thread(has_read.set)
        with pytest.raises(OSError, match="read"):
            await starting

    run(scenario())


@proves("RUN-STOP", "RUN-NOT-STARTED")
def test_program_whose_pid_cannot_be_recorded_is_stopped_immediately(tmp_path: Path) -> None:
    marks, workplace = FullDiskMarks(), WorkingFolders(tmp_path, lambda: SafeDisk(tmp_path))
    runner = runner_with_folder(
        lambda of: workplace.open(of.aof_id, of.attempt, of.prompt.encode()), marks
    )

    async def scenario() -> None:
        with pytest.raises(OSError, match="No space left"):
            await runner.start(WORK, ignore_message)

    run(scenario())
    assert marks.pid > 0
    assert not Path(f"/proc/{marks.pid}").exists()
    assert marks.sessions == set()


@proves("RUN-STOP")
def test_program_that_exceeds_its_time_is_stopped_and_fails(tmp_path: Path, trace: Trace) -> None:
    program = f"""
import signal
pipe = open({str(trace.path)!r}, "w")
pipe.write("up"); pipe.flush()
signal.pause()
"""
    settings = "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n" + FAST
    settings += agent_section("ada", program, attempt_ms=700)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).failures == 1)
            await asyncio.to_thread(trace.read_to_end)
            ended = hub.task(task)
            assert ended.reported is not None
            assert "longer than an attempt may" in ended.reported.notes
            reason = "stopping the program: it took longer than an attempt may"
            assert f"hub {reason}" in hub.log(task)

    run(scenario())


@proves("RUN-BEATS")
def test_running_program_renews_its_lease(tmp_path: Path) -> None:
    program = """
import select
select.select([], [], [], 1.7)
say("status.update", taskId=os.environ["DRAGOMAN_TASK"], agentId="ada", progress="still here")
select.select([], [], [], 1.7)
report()
"""
    settings = "[leases]\nttl_ms = 1000\n" + FAST + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).notes == 1)
            lease = hub.view(task).lease
            assert lease is not None
            assert lease.heartbeats >= 4
            await hub.until_status(task, "review")
            assert hub.task(task).attempts == 1

    run(scenario())


@proves("RUN-NOT-STARTED")
def test_agent_that_cannot_be_started_is_paused_without_failing_the_task(tmp_path: Path) -> None:
    settings = FAST + '[agents.ada]\ncommand = ["/no/such/program"]\n'

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            await hub.until_idle()
            assert "/no/such/program" in hub.state("ada").idle_reason
            ended = hub.task(task)
            assert (ended.status, ended.failures) == ("ready", 0)
            assert not [*(hub.data / "agents").iterdir()]

    run(scenario())


@proves("RUN-NOT-STARTED")
def test_start_failure_is_logged_once_and_shown_in_the_agent_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = FAST + '[agents.ada]\ncommand = ["./no-such-agent", "--quiet"]\n'
    missing = str(Path("no-such-agent").absolute())

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 2 and hub.view(task).lease is None)
            await hub.until_idle()
            (ada,) = hub.dispatcher.agent_states()
            reason = f"ada could not be started: {missing}: No such file or directory"
            assert ada.idle_reason == reason
            assert hub.dispatcher.problem.message == "", "the others go on"
            assert caplog.text.count("ada could not be started") == 1

    run(scenario())


@proves("RUN-PROGRAM")
def test_relative_command_is_resolved_from_the_directory_of_the_hub(tmp_path: Path) -> None:
    program = tmp_path / "my-agent"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    relative = os.path.relpath(program)
    assert relative.startswith("..")
    settings = FAST + f"[agents.ada]\ncommand = [{json.dumps(relative)}]\n"

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            await hub.until_status(hub.make(), "review")

    run(scenario())


@proves("RUN-WORKTREE")
def test_task_gets_its_own_worktree_and_reuses_it(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for words in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), "config", "user.email", "a@example.org"],
        ["-C", str(repository), "config", "user.name", "A"],
        ["-C", str(repository), "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *words], check=True)
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    program = """
import subprocess
print(subprocess.run(["git", "branch", "--show-current"], capture_output=True, text=True).stdout)
tried = os.path.exists("tried")
open("tried", "w")
report() if tried else sys.exit(1)
"""
    settings = "[retry]\nbase_ms = 1\n" + FAST
    settings += agent_section("ada", program, repository=str(repository))

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            done = await hub.until_status(task, "review")
            assert f"out dragoman/{done.aof_id}" in hub.log(task)
            assert (hub.data / "worktrees" / done.aof_id / "tried").exists()
            assert not (tmp_path / "hooked").exists()

    run(scenario())


@proves("RUN-WORKTREE", "DISPATCH-STOP")
def test_stop_aborts_a_checkout_and_starts_no_program(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace")
    repository = tmp_path / "repository"
    slow = f"exec 3> {trace.path}; echo begun >&3; sleep 99"
    for words in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), "config", "user.email", "a@example.org"],
        ["-C", str(repository), "config", "user.name", "A"],
        ["-C", str(repository), "config", "filter.slow.smudge", slow],
    ):
        subprocess.run(["git", *words], check=True)
    (repository / "file").write_text("text")
    (repository / ".git/info/attributes").write_text("file filter=slow\n")
    for words in (["add", "file"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(repository), *words], check=True)
    settings = FAST + agent_section("ada", "report()", repository=str(repository))

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            assert await asyncio.to_thread(trace.read) == b"begun\n"
            hub.dispatcher.stop()
            await hub.until_idle()
            assert trace.read_to_end() == b""
            stopped = hub.task(task)
            assert (stopped.status, stopped.failures) == ("ready", 0)
            assert not (hub.data / "worktrees" / stopped.aof_id).exists()
            assert list((hub.data / "agents").glob("*")) == []

    run(scenario())
    trace.close()


@proves("RUN-WORKTREE", "MAIL-CHECKPOINT")
def test_successor_starts_at_the_checkpoint_commit_or_gets_a_warning(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for words in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), "config", "user.email", "a@example.org"],
        ["-C", str(repository), "config", "user.name", "A"],
        ["-C", str(repository), "commit", "-q", "--allow-empty", "-m", "first"],
        ["-C", str(repository), "commit", "-q", "--allow-empty", "-m", "half"],
        ["-C", str(repository), "branch", "half"],
        ["-C", str(repository), "reset", "-q", "--hard", "HEAD~1"],
    ):
        subprocess.run(["git", *words], check=True)
    rev_parse = ["git", "-C", str(repository), "rev-parse", "half"]
    half = subprocess.run(rev_parse, check=True, capture_output=True, text=True).stdout.strip()
    program = """
import subprocess
print(subprocess.run(["git", "log", "-1", "--format=%s"], capture_output=True, text=True).stdout)
report()
"""
    settings = FAST + agent_section("ada", program, repository=str(repository))

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            known, unknown = hub.make("1"), hub.make("2")
            for task, commit in ((known, half[:9]), (unknown, "0" * 40)):
                hub.do(CheckpointTask(task, "RESUME", commit))
            async with asyncio.TaskGroup() as group:
                group.create_task(hub.dispatcher.run())
                for task in (known, unknown):
                    await hub.until_status(task, "review")
                hub.dispatcher.stop()
            assert "out half" in hub.log(known)
            assert "out first" in hub.log(unknown)
            assert (hub.task(known).warnings, hub.task(unknown).warnings) == (0, 1)

    run(scenario())


@proves("RUN-PROGRAM")
def test_agent_section_needs_a_command_or_a_url(tmp_path: Path) -> None:
    async def scenario(settings: str, words: str) -> None:
        with pytest.raises(SettingsError, match=words):
            async with running_hub(tmp_path / "data", settings, start=False):
                pass

    run(scenario("[agents.ada]\nconcurrency = 2\n", "needs a command, a url, or"))
    run(scenario(f'[agents.ada]\ncommand = ["{sys.executable}"]\nurl = "http://x"\n', "keep one"))
    run(scenario('[agents.ada]\ncommand = [""]\n', "agents.ada.command"))
