"""Head commit of a transition: read outside the write lock."""

from pathlib import Path

from dragoman.core.task_state import CreateTask, MoveTask, TaskTransitioned
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import all_entries, decode_event
from dragoman.system.clock import ManualClock, SequentialIds
from tests.engine.lab import HUMAN, START
from tests.requirements import proves
from tests.store.sqlite.files import connect, open_store


@proves("SAOP-COMMIT")
def test_head_commit_is_read_outside_the_write_lock(tmp_path: Path) -> None:
    path, commits = tmp_path / "hub.db", iter("abcdef")
    hub = Hub(Engine(open_store(path), ManualClock(START), bytes(32)), SequentialIds())

    def head() -> str:
        other = connect(path)
        other.set_busy_timeout(0)
        other.execute("BEGIN IMMEDIATE").fetchall()  # The writer's lock would refuse this.
        other.execute("ROLLBACK").fetchall()
        other.close()
        return next(commits) * 40

    hub.engine.current_commit = head
    task = hub.submit(HUMAN, CreateTask("a task", ready=True)).receipts[0].task
    hub.submit(HUMAN, MoveTask(task, "blocked"))
    hub.submit(HUMAN, MoveTask(task, "ready"))
    events = map(decode_event, all_entries(hub.store))
    moves = [event for event in events if isinstance(event, TaskTransitioned)]
    assert [move.commit for move in moves] == ["b" * 40, "c" * 40]
    hub.close()
