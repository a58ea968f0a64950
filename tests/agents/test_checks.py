"""Checks of work that was reported done, as the hub runs them: in worktrees, in sandboxes."""

import asyncio
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.bootstrap.preflight import check_settings
from dragoman.config import AgentSettings, Settings
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.errors import SettingsError
from dragoman.core.task_state import Task
from dragoman.engine.ports import SESSION_VARIABLE
from dragoman.services.check_runner import CheckRunner
from dragoman.services.scheduler import idle_seconds
from dragoman.system.process import PidFiles
from tests.agents.running_hub import FAST, PATIENCE, RunningHub, agent_section, run, running_hub
from tests.agents.test_separation import REPORT, make_repository, shell_agent
from tests.requirements import proves

pytestmark = proves("EVIDENCE-CHECKS")

WORK = REPORT + "echo 42 > answer && git add answer && git commit -qm work && report\n"


def check_runner(hub: RunningHub) -> CheckRunner:
    """The service of this hub."""
    (service,) = (one for one in hub.directory.services if one.name == "checks")
    assert isinstance(service, CheckRunner)
    return service


def check_in_worktree(
    tmp_path: Path, *checks: str, more: str = "", work: str = WORK, **settings: Any
) -> Task:
    """Run checks of an agent that has committed `answer` in its worktree; the task afterwards."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    make_repository(tmp_path / "app")
    agent = shell_agent(
        "ada", work, repository=str(tmp_path / "app"), checks=list(checks), **settings
    )
    found: list[Task] = []

    async def scenario() -> None:
        async with running_hub(data, FAST + more + agent) as hub:
            task = hub.make()
            assert (await hub.until_status(task, "review")).awaits_checks
            await hub.until_idle()
            hub.dispatcher.stop()  # work that goes back is not begun again here
            assert await asyncio.to_thread(check_runner(hub).run_once, 0) == 1
            found.append(hub.task(task))

    run(scenario())
    return found[0]


def log_of(tmp_path: Path, task: Task, number: int = 1) -> bytes:
    """Output of a check, as the hub has kept it."""
    return (tmp_path / "data/runs" / task.aof_id / f"checks/1-{number}.log").read_bytes()


@pytest.mark.parametrize("sandbox", [{}, {"sandbox": "bwrap"}], ids=["plain", "sandbox"])
def test_checks_run_in_the_worktree_and_their_output_is_kept(
    tmp_path: Path, sandbox: dict[str, str]
) -> None:
    checks = ("cat answer && git log -1 --format=%s", 'test "$(cat answer)" = 42')
    task = check_in_worktree(tmp_path, *checks, **sandbox)

    assert task.is_proven, task.evidence
    assert task.evidence is not None
    first, second = task.evidence.results
    assert (first.output, first.exit_code) == ("42\nwork\n", 0)
    assert log_of(tmp_path, task) == b"42\nwork\n"
    assert first.output_sha256 == hashlib.sha256(b"42\nwork\n").hexdigest()
    assert (second.output, log_of(tmp_path, task, 2)) == ("", b"")


def test_sandboxed_check_reads_no_secret_of_the_hub(tmp_path: Path) -> None:
    spy = f"cat {tmp_path}/data/keys/secret; ls {tmp_path}/data"
    task = check_in_worktree(tmp_path, spy, sandbox="bwrap")

    assert task.evidence is not None
    (result,) = task.evidence.results
    assert "No such file" in result.output
    assert "dragoman.db" not in result.output


@pytest.mark.parametrize(
    ("check", "settings", "problem"),
    [
        ("echo no; exit 3", "", "exit code 3"),
        ("sleep 600", "timeout_ms = 1_000", "it had not ended after 1 s"),
        ("yes", "output_bytes = 10_000", "it wrote more than 10000 bytes of output"),
        ("echo 43 > answer", "", "files that git tracks changed while it ran"),
        ("git commit -q --allow-empty -m mine", "", "files that git tracks changed while it ran"),
        ("kill -9 $$", "", "exit code -9"),
    ],
)
def test_failed_check_sends_the_work_back(
    tmp_path: Path, check: str, settings: str, problem: str
) -> None:
    task = check_in_worktree(tmp_path, check, "touch never", more=f"[checks]\n{settings}\n")

    assert (task.status, task.reserved_for) == ("ready", "ada")
    assert task.feedback[-1].text.startswith(f"the check `{check}` failed: {problem}")
    assert task.evidence is not None
    assert len(task.evidence.results) == 1, "the first failure ends the checks"


@pytest.mark.parametrize(
    "hang",
    ["sleep 600 & echo $! > {pid}; sleep 600", "setsid sh -c 'echo $$ > {pid}; sleep 600'"],
    ids=["its group", "a session of its own"],
)
def test_children_of_a_check_that_hangs_end_with_it(tmp_path: Path, hang: str) -> None:
    pid = tmp_path / "pid"
    limit = "[checks]\ntimeout_ms = 1_000\n"
    check_in_worktree(tmp_path, hang.format(pid=pid), more=limit)

    command = Path("/proc", pid.read_text().strip(), "cmdline")
    assert not command.exists() or not command.read_bytes()


def leave_running(session: str) -> subprocess.Popen[bytes]:
    """Start what a hub has left behind."""
    command = ("/bin/sleep", "600")
    return subprocess.Popen(command, env={SESSION_VARIABLE: session}, start_new_session=True)


def test_check_that_a_killed_hub_has_left_running_ends_before_it_runs_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "", start=False) as hub:
            task = make_finished(hub, "true")
            log = hub.data / "runs" / hub.task(task).aof_id / "checks/1-1.log"
            left = leave_running(f"{log}")
            assert check_runner(hub).run_once(0) == 1
            assert left.wait(PATIENCE) == -9

    run(scenario())


@pytest.mark.parametrize(
    ("check", "settings", "printed"),
    [
        ("echo so far; sleep 600", "timeout_ms = 1_000", b"so far\n"),
        ("echo so far; yes", "output_bytes = 1_000", b"y\ny\n"),
    ],
    ids=["time", "output"],
)
def test_output_of_a_check_that_is_ended_is_kept(
    tmp_path: Path, check: str, settings: str, printed: bytes
) -> None:
    task = check_in_worktree(tmp_path, check, more=f"[checks]\n{settings}\n")

    assert printed in log_of(tmp_path, task)
    assert printed.decode().strip() in task.feedback[-1].text
    assert task.evidence is not None
    (result,) = task.evidence.results
    assert result.output_sha256 == hashlib.sha256(log_of(tmp_path, task)).hexdigest()
    assert result.exit_code is None


def test_work_of_a_program_that_reports_nothing_is_checked(tmp_path: Path) -> None:
    silent = WORK.replace("&& report", "")
    for number, (check, status) in enumerate((("true", "review"), ("false", "ready"))):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        task = check_in_worktree(folder, check, work=silent)
        assert task.status == status
        assert task.is_proven == (check == "true")


def test_check_whose_output_cannot_be_kept_has_failed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "", start=False) as hub:
            task = make_finished(hub, "echo why")
            (hub.data / "runs" / hub.task(task).aof_id / "checks/1-1.log/x").mkdir(parents=True)
            check_runner(hub).run_once(0)
            (result,) = (hub.task(task).evidence or pytest.fail("no evidence")).results
            assert (result.exit_code, result.output) == (0, "why\n")
            assert result.problem.startswith("its output could not be kept: ")

    run(scenario())


def test_secret_that_a_check_prints_is_masked_before_it_is_hashed(tmp_path: Path) -> None:
    task = check_in_worktree(tmp_path, "echo password=Tr0ub4dor-3x9Kq")

    assert b"Tr0ub4dor" not in log_of(tmp_path, task)
    assert b"[REDACTED:" in log_of(tmp_path, task)
    assert task.evidence is not None
    (result,) = task.evidence.results
    assert result.output_sha256 == hashlib.sha256(log_of(tmp_path, task)).hexdigest()


def make_finished(hub: RunningHub, *checks: str) -> str:
    """Have an agent that the hub did not start report a task with checks done."""
    task = hub.make(checks=checks)
    hub.do(ClaimTask(task, "bob", "s-1"))
    hub.do(ReportOutcome(task, "done", apply=True, fence=1), actor=Actor("agent", "bob"))
    return task


def test_checks_of_other_agents_run_in_the_configured_folder(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    settings = f'[checks]\nfolder = "{tmp_path}/app"\n'

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            task = make_finished(hub, "pwd")
            check_runner(hub).run_once(0)
            evidence = hub.task(task).evidence
            assert evidence is not None
            assert evidence.results[0].output == f"{tmp_path}/app\n"

    run(scenario())


def test_checks_of_a_connected_agent_run_in_its_project(tmp_path: Path) -> None:
    """One that the settings do not know works in the project that has the data directory."""

    async def scenario() -> None:
        async with running_hub(tmp_path / ".dragoman", "", start=False) as hub:
            task = make_finished(hub, "pwd")
            check_runner(hub).run_once(0)
            evidence = hub.task(task).evidence
            assert evidence is not None
            assert evidence.results[0].output == f"{tmp_path}\n"

    run(scenario())


def test_folder_that_is_not_there_fails_the_check(tmp_path: Path) -> None:
    settings = '[checks]\nfolder = "/nowhere/at/all"\n'

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            task = make_finished(hub, "true")
            check_runner(hub).run_once(0)
            assert "No such file or directory" in hub.task(task).feedback[-1].text

    run(scenario())


def test_stopped_hub_breaks_a_check_off_and_runs_it_again_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "", start=False) as hub:
            task = make_finished(hub, "sleep 600")
            service = check_runner(hub)
            service.stop()
            assert await asyncio.to_thread(service.run_once, 0) == 0
            assert hub.task(task).awaits_checks

    (tmp_path / "data").mkdir()
    (tmp_path / "data/tasks").mkdir()
    run(scenario())


def test_checks_wait_for_the_end_of_the_program(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "", start=False) as hub:
            task = make_finished(hub, "true")
            pid_file = hub.data / "agents" / "s-1.json"
            pid_file.parent.mkdir(exist_ok=True)
            pid_file.write_text("{}")
            assert check_runner(hub).run_once(0) == 0
            pid_file.unlink()
            assert check_runner(hub).run_once(0) == 1
            assert not hub.task(task).awaits_checks

    run(scenario())


def test_checks_begin_when_work_is_reported_and_its_program_has_ended(tmp_path: Path) -> None:
    """Every commit wakes them, and so does the end of a program."""
    found: list[bool] = []

    async def scenario() -> None:
        settings = FAST + agent_section("ada", "report()")
        async with running_hub(tmp_path / "data", settings) as hub:
            pids = PidFiles(hub.data)
            task = hub.make()
            hub.directory.hints.subscribe(lambda _: found.append(pids.has(hub.task(task).session)))
            await hub.until_status(task, "review")
            await hub.until_idle()
            (group,) = (one for one in hub.directory.parts.service_groups if one.name == "checks")
            assert group.commit_driven == (check_runner(hub),)
            assert idle_seconds(group, 600.0, 1) == idle_seconds(group, 600.0, 0) == 1.0

    run(scenario())
    assert not found[-1], "they are woken when nothing of the program is left"


def test_slow_check_keeps_no_later_one_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "", start=False) as hub:
            slow = make_finished(hub, f"until test -e {tmp_path}/go; do sleep 0.02; done")
            service = check_runner(hub)
            checking = asyncio.create_task(asyncio.to_thread(service.run_once, 0))
            later = make_finished(hub, "true")
            await hub.until(lambda: hub.task(later).is_proven)
            assert hub.task(slow).awaits_checks
            (tmp_path / "go").touch()
            assert await checking == 2

    run(scenario())


def test_checks_of_a_program_with_a_user_of_its_own_need_a_sandbox() -> None:
    agent = AgentSettings(command=("x",), user="nobody", checks=("true",))
    with pytest.raises(SettingsError, match=r"agents\.ada\.checks: .*bwrap"):
        check_settings(Settings(agents={"ada": agent}), Path("/tmp"))  # noqa: S108
