"""Programs of the SDK guide, run as they are printed, against a real hub."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from docs.generate import DOCS
from dragoman.client import SyncHub, connect_sync
from dragoman.core.attempt import ClaimTask
from dragoman.core.question_state import AnswerQuestion
from dragoman.core.task_state import MoveTask
from tests.client.backend import Backend
from tests.e2e.program import restore_signal_handlers
from tests.requirements import proves

pytestmark = proves("SDK-GUIDE")

PAGE = (DOCS / "sdk.md").read_text(encoding="utf-8")
PROGRAMS: dict[str, str] = dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL))


@contextmanager
def _running_program(
    backend: Backend, name: str, by: str = "owner", **variables: str
) -> Generator[subprocess.Popen[str]]:
    environment = {
        "DRAGOMAN_URL": backend.url,
        "DRAGOMAN_TOKEN": backend.tokens[by],
        "PATH": "",
        **variables,
    }
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAMS[name]],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_signal_handlers,  # noqa: PLW1509  it calls no lock
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def _run_program(backend: Backend, name: str, **variables: str) -> str:
    with _running_program(backend, name, **variables) as program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    return out


@proves("SDK-ASSIGNED")
def test_started_program_works_on_its_task(backend: Backend) -> None:
    task = backend.create_task("For ada")
    receipt = backend.server.hub.submit(backend.owner, ClaimTask(task, "ada", "s-1")).receipts[0]
    token = backend.server.identity.issue_attempt_token("ada", receipt.task, receipt.fence, 60_000)
    _run_program(
        backend, "started.py", DRAGOMAN_TOKEN=token, DRAGOMAN_TASK=task, DRAGOMAN_AGENT="ada"
    )
    assert backend.status(task) == "review"


def _connect_as_owner(backend: Backend) -> SyncHub:
    return connect_sync(backend.url, backend.tokens["owner"])


def _first_task_with(hub: SyncHub, kind: str) -> str:
    """Return the task of the first event of this type."""
    return next(hub.events(0, type=kind)).task


def test_every_program_of_the_page_has_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(PROGRAMS) == PAGE.count("```python")
    assert [name for name in PROGRAMS if f'"{name}"' not in tests] == []


def test_worker_works_until_stopped(backend: Backend) -> None:
    task = backend.create_task("Fix the login")
    backend.server.add_agent("swe-backend")
    with (
        _running_program(backend, "worker.py", "swe-backend") as worker,
        _connect_as_owner(backend) as hub,
    ):
        assert _first_task_with(hub, "task.reported") == task
        worker.send_signal(signal.SIGINT)
        assert worker.wait(60) != 0
        shown = hub.task(task)
    assert shown.status == "review"
    assert shown.report is not None
    assert shown.report.notes == "done: Fix the login"


def test_lost_lease_stops_the_work_but_not_the_worker(backend: Backend) -> None:
    first, second = backend.create_task("Taken away"), backend.create_task("Next")
    with (
        _running_program(backend, "patient_worker.py") as worker,
        _connect_as_owner(backend) as hub,
    ):
        assert _first_task_with(hub, "task.progressed") == first
        backend.server.submit(MoveTask(first, "cancelled"))
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith(f"stopped: nobody holds {first} now")
        task_ids = [event.task for event in islice(hub.events(0, type="task.progressed"), 2)]
        assert task_ids == [first, second]
        worker.send_signal(signal.SIGINT)
        worker.wait(60)
        assert hub.task(second).status == "ready"


def test_pool_of_workers_shares_the_tasks(backend: Backend) -> None:
    tasks = {backend.create_task(f"Number {n}") for n in range(12)}
    _run_program(backend, "pool.py")
    assert {backend.status(task) for task in tasks} == {"review"}
    assert len(backend.streams_with("task.claimed")) == 12


def test_subtask_is_handed_off(backend: Backend) -> None:
    task = backend.create_task("Fix the login")
    _run_program(backend, "delegate.py")
    with _connect_as_owner(backend) as hub:
        subtask = next(hub.tasks(status="ready"))
        assert (subtask.title, subtask.parent, subtask.reserved_for) == (
            "Test: Fix the login",
            task,
            "swe-qa",
        )


def test_question_is_answered_while_the_program_waits(backend: Backend) -> None:
    backend.create_task("Show the time")
    with _running_program(backend, "asks.py") as asking, _connect_as_owner(backend) as hub:
        task = _first_task_with(hub, "question.asked")
        backend.server.submit(AnswerQuestion(task, "UTC"))
        _, err = asking.communicate(timeout=60)
        assert asking.returncode == 0, err
        report = hub.task(task).report
    assert report is not None
    assert report.notes == "used UTC; known before: 0"


def test_boss_creates_waits_and_approves(backend: Backend) -> None:
    with _running_program(backend, "boss.py") as boss, _connect_as_owner(backend) as hub:
        task = _first_task_with(hub, "task.created")
        with _running_program(backend, "worker.py") as worker:
            out, err = boss.communicate(timeout=60)
            worker.send_signal(signal.SIGINT)
            worker.wait(60)
        assert boss.returncode == 0, err
        assert hub.task(task).status == "done"
    kinds = [line.split()[1] for line in out.splitlines()]
    assert kinds == ["task.created", "task.claimed", "task.progressed", "task.reported"]
    assert len(backend.streams_with("task.created")) == 1


def test_messages_and_operations_are_sent(backend: Backend) -> None:
    task = backend.create_task("Talked about")
    printed = f"{{'taskId': '{task}', 'status': 'in-progress'}}\n"
    assert _run_program(backend, "speak.py") == printed * 2
    assert backend.status(task) == "review"


def test_synchronous_program_completes_its_task(backend: Backend) -> None:
    task = backend.create_task("Step by step")
    _run_program(backend, "plain.py")
    assert backend.status(task) == "review"
    assert len(backend.streams_with("task.progressed")) == 3


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_without_a_hub_says_how_to_start_one(name: str, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]],
        env={"DRAGOMAN_DATA": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "start one with `dragoman up`" in process.stderr.splitlines()[-1]
