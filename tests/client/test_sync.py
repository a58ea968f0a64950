"""Synchronous SDK: the same for programs without an event loop."""

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
from dragoman.core.task_state import MoveTask
from tests.client.backend import HEARTBEAT_MS, Backend
from tests.requirements import proves

pytestmark = proves("SDK-SYNC")


def _connect(backend: Backend, agent: str = "ada") -> SyncHub:
    return connect_sync(backend.relay.url, backend.tokens[agent], patience=30)


@pytest.mark.parametrize(("sync_class", "async_class"), [(SyncHub, Hub), (SyncWork, Work)])
def test_sync_classes_have_all_methods_of_async_ones(sync_class: type, async_class: type) -> None:
    async_only = {"leave", "lost"}
    names = {name for name in vars(async_class) if not name.startswith("_")} - async_only
    assert names <= set(vars(sync_class))
    for name in names:
        sync_method, async_method = getattr(sync_class, name), getattr(async_class, name)
        if callable(sync_method):
            assert (
                inspect.signature(sync_method).parameters
                == inspect.signature(async_method).parameters
            ), name


def test_task_lifecycle_from_creation_to_done(backend: Backend) -> None:
    with _connect(backend, "owner") as owner_hub, _connect(backend) as hub:
        created = owner_hub.create("Made here", review_required=True)
        for work in hub.work("ada", stop_when_idle=True):
            assert (work.task.id, work.agent, work.attempt, work.fence) == (created.id, "ada", 1, 1)
            work.check()
            work.progress("half way")
            work.note("a line")
            work.hand_off("bob", "A part", due_by=datetime(2026, 2, 10, tzinfo=UTC))
            assert work.call("aof_task_update", {"taskId": created.id, "notes": "x"})["taskId"]
            assert [one.task for one in hub.status().working] == [created.id]
            assert work.complete("well done").status == "review"
        assert owner_hub.move(created.id, "done").status == "done"
        subtask, parent = owner_hub.tasks()
        assert parent.id == created.id
        assert owner_hub.task(subtask.id).parent == created.id
        kinds = [event.type for event in islice(owner_hub.events(0, task=created.id), 3)]
        assert kinds == ["task.created", "task.claimed", "task.progressed"]
        assert hub.call("session_end", {"sessionId": "none"}) == {"sessionId": "none", "tasks": []}
        with pytest.raises(Refused, match="not_recognized"):
            hub.send({"hello": "hub"})
        assert hub.send_all([]) == []


def test_block_fail_and_release_end_the_work(backend: Backend) -> None:
    for title in ("Blocked", "Failed", "Released"):
        backend.create_task(title)
    with _connect(backend) as hub:
        works = hub.work("ada")
        with next(works) as work:
            assert work.block("no access").status == "blocked"
        with next(works) as work:
            with pytest.raises(Refused, match="not_recognized"):
                work.send({"hello": "hub"})
            assert work.fail("the build is broken").status == "ready"
        with next(works) as work:
            assert work.release().status == "ready"
    assert len(backend.streams_with("task.requeued")) == 1
    assert len(backend.streams_with("task.claimed")) == 3


def test_lost_lease_is_raised_by_the_next_call(backend: Backend) -> None:
    task = backend.create_task("Taken away")
    with _connect(backend) as hub:
        work = next(hub.work("ada", beat_ms=HEARTBEAT_MS))
        backend.server.submit(MoveTask(task, "cancelled"))
        with pytest.raises(LeaseLost), work:
            work.progress("half way")
    assert backend.streams_with("task.reported") == []


def test_lost_lease_is_raised_at_the_end_of_the_block(backend: Backend) -> None:
    task = backend.create_task("Taken away")
    with _connect(backend) as hub:
        work = next(hub.work("ada", beat_ms=HEARTBEAT_MS))
        backend.server.submit(MoveTask(task, "cancelled"))
        with pytest.raises(LeaseLost), work:
            _spin(work)


def _spin(work: SyncWork) -> None:
    while work.is_open:
        continue


def test_no_thread_is_left(backend: Backend) -> None:
    before = set(threading.enumerate())
    with _connect(backend, "owner") as hub:
        events = hub.events(0)
        next(events)
    events.close()
    backend.relay.target = 0
    with pytest.raises(HubUnreachable), _connect(backend):
        raise AssertionError("nobody answers")
    remaining = {thread.name for thread in set(threading.enumerate()) - before}
    assert "dragoman-client" not in remaining


def test_closed_hub_cannot_be_used(backend: Backend) -> None:
    backend.create_task("Done late")
    hub = _connect(backend)
    with pytest.raises(RuntimeError, match="with connect_sync"):
        hub.task("T-1")
    with hub:
        work = next(hub.work("ada"))
        work.release()
    for late in (lambda: list(hub.tasks()), lambda: work.note("too late")):
        with pytest.raises(RuntimeError, match="with connect_sync"):
            late()


@pytest.fixture
def default_interrupts() -> Generator[None]:
    """Install the default handler of SIGINT, which may be ignored in this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_interrupts")
def test_interrupt_while_waiting_raises_only_keyboard_interrupt(backend: Backend) -> None:
    with _connect(backend) as hub:
        events = hub.events(0)
        next(events)
        thread_id = threading.get_ident()
        timer = threading.Timer(0.05, lambda: signal.pthread_kill(thread_id, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the signal may come anywhere in it
            timer.start()
            for _ in events:
                pass
        timer.join()
        assert hub.tasks() is not None
