"""Running of checks: the command of a task, in its worktree, in the sandbox of its agent."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final

from dragoman.bootstrap.separation import Separation, list_secret_files, open_separation
from dragoman.config import AgentSettings, Settings, environment
from dragoman.core.check_state import MAX_CHECK_OUTPUT, CheckResult
from dragoman.core.task_state import Task
from dragoman.engine.hub import Hub
from dragoman.engine.ports import SESSION_VARIABLE
from dragoman.files.atomic_write import force_folder
from dragoman.files.layout import FOLDERS_LOCK, check_log_path, task_folder_path
from dragoman.files.task_work_folder import gather_task_folder
from dragoman.services.check_runner import CheckRunner
from dragoman.system.data_search import FOLDER as PROJECT_DATA
from dragoman.system.process import LimitExceeded, PidFiles, Timeouts, kill_leftover, run_program
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.safe_text import safe_text

_SHELL: Final = ("/bin/sh", "-c")


def open_check_runner(settings: Settings, data: Path, hub: Hub) -> CheckRunner:
    """Open the service that runs checks."""
    run = partial(_run_check, settings, data.absolute(), hub)
    return CheckRunner(hub, run, settings.checks.concurrency, PidFiles(data).has, settings.retry)


def _run_check(
    settings: Settings,
    data: Path,
    hub: Hub,
    task: Task,
    number: int,
    is_over: Callable[[], bool],
) -> CheckResult:
    """Run a check of a task, and keep its output."""
    command, begun = task.required_checks[number - 1], monotonic()
    code: int | None = None
    problem, output = "", b""
    path = check_log_path(task.aof_id, task.attempts, number)
    session = f"{data / path}"  # by which all of its processes are known
    try:
        agent = settings.agents.get(task.assignee)
        folder = _find_folder(settings, data, agent, task)
        variables = _variables(agent, task)
        kill_leftover(0, "", f"{SESSION_VARIABLE}={session}")  # of a hub that was killed meanwhile
        wrap = _open_wrap(settings, data, task.assignee, agent, variables)
        limits = Timeouts(settings.checks.timeout_ms / 1_000, is_over=is_over)
        before = _describe_work(folder, variables, wrap)
        code, output = run_program(
            wrap((*_SHELL, command), folder),
            b"",
            {**variables, SESSION_VARIABLE: session},
            folder,
            limits,
            settings.checks.output_bytes,
        )
        if _describe_work(folder, variables, wrap) != before:
            problem = "files that git tracks changed while it ran"
    except InterruptedError:
        raise
    except LimitExceeded as error:
        problem, output = f"{error}", error.output
    except OSError as error:
        problem = f"{error.strerror or error}"
    finally:
        kill_leftover(0, "", f"{SESSION_VARIABLE}={session}")  # what has left its process group
    duration_ms = round((monotonic() - begun) * 1_000)
    text = hub.redaction.redactor.text(output.decode(errors="replace")).text
    log = text.encode()
    try:
        with closing(SafeDisk(data)) as disk:
            force_folder(disk, path.rpartition("/")[0])
            disk.write(path, log)
    except OSError as error:
        if code == 0:
            problem = problem or f"its output could not be kept: {error.strerror or error}"
    return CheckResult(
        command,
        code,
        problem,
        duration_ms,
        sha256(log).hexdigest(),
        safe_text(text)[-MAX_CHECK_OUTPUT:],
    )


def _find_folder(settings: Settings, data: Path, agent: AgentSettings | None, task: Task) -> Path:
    """Find the folder with the work: the worktree of the task, the project, or its own folder."""
    if agent is not None and agent.repository:
        from dragoman.system.worktree import find_worktree

        at = data / "worktrees" / task.aof_id
        return find_worktree(data / agent.repository, at, _variables(agent, task))
    if settings.checks.folder:
        return data / settings.checks.folder
    if agent is None and data.name == PROJECT_DATA:  # it works in the project, as `connect` has it
        return data.parent
    with closing(SafeDisk(data)) as disk, disk.lock_nested(FOLDERS_LOCK):
        gather_task_folder(disk, task.aof_id, task.status)
    return data / task_folder_path(task.status, task.aof_id) / "work"


def _open_wrap(
    settings: Settings,
    data: Path,
    name: str,
    agent: AgentSettings | None,
    variables: Mapping[str, str],
) -> Callable[[Sequence[str], Path], Sequence[str]]:
    """Open what separates an agent's programs from the hub; nothing, if nothing does."""
    if agent is None or not agent.command:
        return lambda command, _: command
    secret_files = list_secret_files(settings, data, None)
    separation: Separation = open_separation(name, agent, data, secret_files, "", variables)
    return separation.wrap_check


def _variables(agent: AgentSettings | None, task: Task) -> dict[str, str]:
    from dragoman.agents.program_runner import INHERITED_VARIABLES

    environ = environment()
    names = (*INHERITED_VARIABLES, *(agent.environment if agent else ()))
    inherited = {name: environ[name] for name in names if name in environ}
    return {**inherited, "DRAGOMAN_TASK": task.aof_id}


def _describe_work(
    folder: Path,
    variables: Mapping[str, str],
    wrap: Callable[[Sequence[str], Path], Sequence[str]],
) -> str:
    """Describe the commit and the changes of a worktree; empty where there is none."""
    from dragoman.system.worktree import describe_work

    if not (folder / ".git").exists():
        return ""
    return describe_work(folder, variables, lambda words: wrap(words, folder))
