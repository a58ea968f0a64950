"""The face for programs without an event loop does the same."""

import inspect
import signal
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from itertools import islice

import pytest

from dragoman.client import (
    Hub,
    HubUnreachable,
    LeaseLost,
    Refused,
    SyncHub,
    SyncWork,
    Work,
    connect_sync,
)
from dragoman.core.commands import MoveTask
from tests.client.stage import BEAT_MS, Stage
from tests.requirements import proves

pytestmark = proves("SDK-SYNC")


def _connect(stage: Stage, agent: str = "ada") -> SyncHub:
    return connect_sync(stage.relay.url, stage.tokens[agent], patience=30)


@pytest.mark.parametrize(("face", "behind"), [(SyncHub, Hub), (SyncWork, Work)])
def test_it_can_say_everything_that_the_other_can(face: type, behind: type) -> None:
    own = {"leave", "lost"}
    names = {name for name in vars(behind) if not name.startswith("_")} - own
    assert names <= set(vars(face))
    for name in names:
        said, meant = getattr(face, name), getattr(behind, name)
        if callable(said):
            assert inspect.signature(said).parameters == inspect.signature(meant).parameters, name


def test_a_task_from_its_beginning_to_its_end(stage: Stage) -> None:
    with _connect(stage, "owner") as boss, _connect(stage) as hub:
        made = boss.create("Made here", review_required=True)
        for work in hub.work("ada", stop_when_idle=True):
            assert (work.task.id, work.agent, work.attempt, work.fence) == (made.id, "ada", 1, 1)
            work.check()
            work.progress("half way")
            work.note("a line")
            work.hand_off("bob", "A part", due_by=datetime(2026, 2, 10, tzinfo=UTC))
            assert work.call("aof_task_update", {"taskId": made.id, "notes": "x"})["taskId"]
            assert work.complete("well done").status == "review"
        assert boss.move(made.id, "done").status == "done"
        part, whole = boss.tasks()
        assert whole.id == made.id
        assert boss.task(part.id).parent == made.id
        kinds = [event.type for event in islice(boss.events(0, task=made.id), 3)]
        assert kinds == ["task.created", "task.claimed", "task.progressed"]
        assert hub.call("session_end", {"sessionId": "none"}) == {"sessionId": "none", "tasks": []}
        with pytest.raises(Refused, match="not_recognized"):
            hub.send({"hello": "hub"})
        assert hub.send_all([]) == []


def test_the_other_ends(stage: Stage) -> None:
    for title in ("Blocked", "Failed", "Released"):
        stage.create(title)
    with _connect(stage) as hub:
        works = hub.work("ada")
        with next(works) as work:
            assert work.block("no access").status == "blocked"
        with next(works) as work:
            with pytest.raises(Refused, match="not_recognized"):
                work.send({"hello": "hub"})
            assert work.fail("the build is broken").status == "ready"
        with next(works) as work:
            assert work.release().status == "ready"
    assert len(stage.happened("task.requeued")) == 1
    assert len(stage.happened("task.claimed")) == 3


def test_a_lost_lease_is_told_by_the_next_thing_that_is_said(stage: Stage) -> None:
    task = stage.create("Taken away")
    with _connect(stage) as hub:
        work = next(hub.work("ada", beat_ms=BEAT_MS))
        stage.house.do(MoveTask(task, "cancelled"))
        with pytest.raises(LeaseLost), work:
            work.progress("half way")
    assert stage.happened("task.reported") == []


def test_a_block_that_never_asked_is_told_at_its_end(stage: Stage) -> None:
    task = stage.create("Taken away")
    with _connect(stage) as hub:
        work = next(hub.work("ada", beat_ms=BEAT_MS))
        stage.house.do(MoveTask(task, "cancelled"))
        with pytest.raises(LeaseLost), work:
            _work_on(work)


def _work_on(work: SyncWork) -> None:
    while work.is_open:
        continue


def test_nothing_stays_behind(stage: Stage) -> None:
    before = set(threading.enumerate())
    with _connect(stage, "owner") as hub:
        events = hub.events(0)
        next(events)
    events.close()
    stage.relay.target = 0
    with pytest.raises(HubUnreachable), _connect(stage):
        raise AssertionError("nobody answers")
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert "dragoman-client" not in left


def test_before_and_after_its_block_it_is_not_open(stage: Stage) -> None:
    stage.create("Done late")
    hub = _connect(stage)
    with pytest.raises(RuntimeError, match="with connect_sync"):
        hub.task("T-1")
    with hub:
        work = next(hub.work("ada"))
        work.release()
    for late in (lambda: list(hub.tasks()), lambda: work.note("too late")):
        with pytest.raises(RuntimeError, match="with connect_sync"):
            late()


@pytest.fixture
def hears_interrupts() -> Generator[None]:
    """Let an interrupt be heard, though whoever began the tests may have them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_interrupts")
def test_whoever_is_interrupted_while_he_waits_is_told_of_nothing_else(stage: Stage) -> None:
    with _connect(stage) as hub:
        events = hub.events(0)
        next(events)
        here = threading.get_ident()
        ready = threading.Timer(0.05, lambda: signal.pthread_kill(here, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the signal may come anywhere in it
            ready.start()
            for _ in events:
                pass
        ready.join()
        assert hub.tasks() is not None
