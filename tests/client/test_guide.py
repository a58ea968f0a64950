"""The programs of the SDK's guide run as they stand, against a real hub."""

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
from dragoman.core.commands import ClaimTask, MoveTask
from tests.client.stage import Stage
from tests.e2e.program import restore_signal_handlers
from tests.requirements import proves

pytestmark = proves("SDK-GUIDE")

PAGE = (DOCS / "sdk.md").read_text(encoding="utf-8")
PROGRAMS: dict[str, str] = dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL))


@contextmanager
def _running(
    stage: Stage, name: str, by: str = "owner", **more: str
) -> Generator[subprocess.Popen[str]]:
    environment = {
        "DRAGOMAN_URL": stage.url,
        "DRAGOMAN_TOKEN": stage.tokens[by],
        "PATH": "",
        **more,
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


def _ran(stage: Stage, name: str, **more: str) -> str:
    with _running(stage, name, **more) as program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    return out


@proves("SDK-ASSIGNED")
def test_a_started_program_works_on_its_task(stage: Stage) -> None:
    task = stage.create("For ada")
    got = stage.house.hub.do(stage.owner, ClaimTask(task, "ada", "s-1")).receipts[0]
    token = stage.house.identity.attempt_token("ada", got.task, got.fence, 60_000)
    _ran(stage, "started.py", DRAGOMAN_TOKEN=token, DRAGOMAN_TASK=task, DRAGOMAN_AGENT="ada")
    assert stage.status(task) == "review"


def _boss(stage: Stage) -> SyncHub:
    return connect_sync(stage.url, stage.tokens["owner"])


def _until(hub: SyncHub, kind: str) -> str:
    """The task to which something of this kind happens first."""
    return next(hub.events(0, type=kind)).task


def test_every_program_of_the_page_is_run() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(PROGRAMS) == PAGE.count("```python")
    assert [name for name in PROGRAMS if f'"{name}"' not in tests] == []


def test_the_worker_works_until_it_is_stopped(stage: Stage) -> None:
    task = stage.create("Fix the login")
    stage.house.welcome("swe-backend")
    with _running(stage, "worker.py", "swe-backend") as worker, _boss(stage) as hub:
        assert _until(hub, "task.reported") == task
        worker.send_signal(signal.SIGINT)
        assert worker.wait(60) != 0
        shown = hub.task(task)
    assert shown.status == "review"
    assert shown.report is not None
    assert shown.report.notes == "done: Fix the login"


def test_a_lost_lease_stops_the_work_and_not_the_worker(stage: Stage) -> None:
    first, second = stage.create("Taken away"), stage.create("Next")
    with _running(stage, "patient_worker.py") as worker, _boss(stage) as hub:
        assert _until(hub, "task.progressed") == first
        stage.house.do(MoveTask(first, "cancelled"))
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith(f"stopped: nobody holds {first} now")
        begun = [event.task for event in islice(hub.events(0, type="task.progressed"), 2)]
        assert begun == [first, second]
        worker.send_signal(signal.SIGINT)
        worker.wait(60)
        assert hub.task(second).status == "ready"


def test_several_loops_share_what_there_is(stage: Stage) -> None:
    tasks = {stage.create(f"Number {n}") for n in range(12)}
    _ran(stage, "pool.py")
    assert {stage.status(task) for task in tasks} == {"review"}
    assert len(stage.happened("task.claimed")) == 12


def test_a_part_is_handed_off(stage: Stage) -> None:
    task = stage.create("Fix the login")
    _ran(stage, "delegate.py")
    with _boss(stage) as hub:
        part = next(hub.tasks(status="ready"))
        assert (part.title, part.parent, part.reserved_for) == (
            "Test: Fix the login",
            task,
            "swe-qa",
        )


def test_the_boss_makes_waits_and_approves(stage: Stage) -> None:
    with _running(stage, "boss.py") as boss, _boss(stage) as hub:
        task = _until(hub, "task.created")
        with _running(stage, "worker.py") as worker:
            out, err = boss.communicate(timeout=60)
            worker.send_signal(signal.SIGINT)
            worker.wait(60)
        assert boss.returncode == 0, err
        assert hub.task(task).status == "done"
    kinds = [line.split()[1] for line in out.splitlines()]
    assert kinds == ["task.created", "task.claimed", "task.progressed", "task.reported"]
    assert len(stage.happened("task.created")) == 1


def test_messages_and_operations(stage: Stage) -> None:
    task = stage.create("Talked about")
    said = f"{{'taskId': '{task}', 'status': 'in-progress'}}\n"
    assert _ran(stage, "speak.py") == said * 2
    assert stage.status(task) == "review"


def test_the_program_without_a_loop(stage: Stage) -> None:
    task = stage.create("Step by step")
    _ran(stage, "plain.py")
    assert stage.status(task) == "review"
    assert len(stage.happened("task.progressed")) == 3


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_without_a_hub_says_what_to_do(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]],
        env={"DRAGOMAN_DATA": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "start one with `dragoman up`" in done.stderr.splitlines()[-1]
