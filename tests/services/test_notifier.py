"""Notifications: in order, at least once, and never in anybody's way."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.core.commands import CreateTask, MoveTask
from dragoman.core.errors import StoreCorrupt
from dragoman.core.events import Status
from dragoman.engine.trouble import Trouble
from dragoman.notify.command import Command
from dragoman.notify.notice import News, Notice
from dragoman.notify.webhook import Webhook
from dragoman.services.clockwork import Lagging
from dragoman.services.notifier import BUDGET_SECONDS, REST, TRIES, Notifier, Target
from dragoman.system.fetch import Endpoint
from dragoman.system.outbox import OutboxFiles
from dragoman.system.spawn import run
from tests.engine.lab import HUMAN, Lab, OpenStore
from tests.notify.receiver import receiving, status
from tests.requirements import proves

STATUSES: tuple[Status, ...] = ("review", "blocked", "done")


class Listener:
    """A target that keeps what it hears, and fails when it is told to."""

    def __init__(self, name: str = "listener") -> None:
        self.name = name
        self.heard: list[Notice] = []
        self.problems: list[str] = []
        self.tried = 0
        self.hang: Callable[[], None] = lambda: None

    def deliver(self, notice: Notice, now: int) -> str:
        """Hear it, or fail."""
        self.tried += 1
        self.hang()
        problem = self.problems.pop(0) if self.problems else ""
        if not problem:
            self.heard.append(notice)
        return problem

    @property
    def titles(self) -> list[str]:
        """The titles of the tasks that it has heard of."""
        return [msgspec.json.decode(notice.body)["title"] for notice in self.heard]


class Desk:
    """A hub, the notifier's files, and a target or more."""

    def __init__(self, folder: Path, *targets: Target[Notice]) -> None:
        self.lab = Lab()
        self.folder = folder
        self.targets = targets
        self.stopwatch: Callable[[], float] = lambda: 0.0
        self.outbox = OutboxFiles(folder)

    def notifier(self) -> Notifier[Notice]:
        """The duty, as a process that has just started has it."""
        hub = self.lab.hub
        news = News(hub.store, STATUSES)
        return Notifier(hub, self.outbox, news, self.targets, self.stopwatch)

    def run(self, *, after: int = 0) -> int:
        """A new process runs the duty once, some time later."""
        self.lab.clock.advance(after)
        return self.notifier().run_once(self.lab.clock.now())

    def block(self, *titles: str) -> None:
        """Tasks that go to blocked."""
        for title in titles:
            task = self.lab.do(HUMAN, CreateTask(title, ready=True)).task
            self.lab.do(HUMAN, MoveTask(task, "blocked", "stuck"))

    def saved(self) -> dict[str, Any]:
        """The content of the cursor file."""
        return msgspec.json.decode((self.folder / "notify.cursor").read_bytes())

    def given_up(self) -> list[dict[str, Any]]:
        """What was given up."""
        path = self.folder / "notify.failed.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def listener() -> Listener:
    """Give one."""
    return Listener()


@pytest.fixture
def desk(tmp_path: Path, listener: Listener) -> Desk:
    """Give one whose notifier has begun."""
    desk = Desk(tmp_path, listener)
    desk.notifier().begin()
    return desk


@proves("NOTIFY-NEWS")
class TestBeginning:
    """What is told first."""

    def test_old_news_is_not_told(self, tmp_path: Path, listener: Listener) -> None:
        desk = Desk(tmp_path, listener)
        desk.block("old")
        assert desk.run() == 0
        desk.block("new")
        assert desk.run() == 1
        assert listener.titles == ["new"]

    def test_what_follows_the_beginning_is_told_even_by_the_first_run(
        self, tmp_path: Path, listener: Listener
    ) -> None:
        desk = Desk(tmp_path, listener)
        desk.block("old")
        desk.notifier().begin()
        desk.block("new")
        desk.notifier().begin()
        assert desk.run() == 1
        assert listener.titles == ["new"]

    def test_a_target_that_is_added_later_begins_where_it_was_added(
        self, desk: Desk, listener: Listener
    ) -> None:
        desk.block("one")
        late = Listener("late")
        desk.targets = (listener, late)
        desk.notifier().begin()
        desk.block("two")
        assert desk.run() == 3
        assert (listener.titles, late.titles) == (["one", "two"], ["two"])

    def test_another_ledger_begins_at_its_own_end(self, desk: Desk, listener: Listener) -> None:
        desk.block("one")
        desk.lab = Lab(OpenStore("another"))
        desk.block("old", "older")
        assert desk.run() == 0
        desk.block("new")
        assert desk.run() == 1
        assert listener.heard[-1].id.startswith("another:")

    def test_a_ledger_from_a_backup_begins_at_its_end(self, desk: Desk, listener: Listener) -> None:
        desk.block("one", "two", "three")
        desk.run()
        desk.lab = Lab()
        desk.block("back")
        assert desk.run() == 0
        desk.block("new")
        assert desk.run() == 1
        assert listener.titles[-1] == "new"

    def test_without_targets_nothing_is_made(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        desk.notifier().begin()
        desk.block("one")
        assert desk.run() == 0
        assert list(tmp_path.iterdir()) == []


@proves("NOTIFY-AT-LEAST-ONCE")
class TestDelivery:
    """In order, once if all goes well, again if not."""

    def test_everything_is_told_once_and_in_order(self, desk: Desk, listener: Listener) -> None:
        desk.block("one", "two")
        assert desk.run() == 2
        desk.block("three")
        assert desk.run() == 1
        assert desk.run() == 0
        assert listener.titles == ["one", "two", "three"]

    def test_what_is_no_news_moves_the_cursor_too(self, desk: Desk) -> None:
        desk.lab.do(HUMAN, CreateTask("quiet"))
        assert desk.run() == 0
        assert desk.saved() == {"ledger": "lab", "targets": {"listener": {"after": 1}}}

    def test_a_crash_between_delivery_and_cursor_tells_it_again_under_the_same_id(
        self, desk: Desk, listener: Listener
    ) -> None:
        class Crash(Exception):
            """The process ends here."""

        class Crashing(OutboxFiles):
            """Never saves again."""

            def save(self, data: bytes) -> None:
                raise Crash

        desk.block("one", "two")
        desk.outbox = Crashing(desk.folder)
        with pytest.raises(Crash):
            desk.run()
        desk.outbox = OutboxFiles(desk.folder)
        assert desk.run() == 2
        assert listener.titles == ["one", "one", "two"]
        assert listener.heard[0] == listener.heard[1]

    def test_a_failure_is_tried_again_after_a_rest_that_doubles(
        self, desk: Desk, listener: Listener
    ) -> None:
        desk.block("one", "two")
        listener.problems = ["down", "still down"]
        assert desk.run() == 0
        assert desk.run(after=4_999) == 0
        assert listener.tried == 1
        assert desk.run(after=1) == 0
        assert listener.tried == 2
        assert desk.run(after=9_999) == 0
        assert listener.tried == 2
        assert desk.saved()["targets"]["listener"]["problem"] == "still down"
        assert desk.run(after=1) == 2
        assert listener.titles == ["one", "two"]
        assert "problem" not in desk.saved()["targets"]["listener"]

    def test_who_cannot_be_told_is_named_until_it_can_and_the_hub_stays_in_service(
        self, desk: Desk, listener: Listener
    ) -> None:
        notifier = desk.notifier()
        assert isinstance(notifier, Lagging)
        desk.block("one")
        listener.problems = ["down", "down"]
        now = desk.lab.clock.now()
        for at in (now, now + 1, now + 5_000):
            notifier.run_once(at)
            words = "listener cannot be told, and is tried again: down"
            assert notifier.undone == Trouble(words, is_partial=True)
        notifier.run_once(now + 15_000)
        assert notifier.undone.words == ""

    def test_after_so_many_failures_it_is_written_down_and_the_next_is_told(
        self, desk: Desk, listener: Listener
    ) -> None:
        desk.block("lost", "next")
        listener.problems = ["down"] * TRIES
        for _ in range(TRIES):
            assert desk.run(after=REST.cap_ms) == 0
        (lost,) = desk.given_up()
        assert (lost["target"], lost["tries"], lost["problem"]) == ("listener", TRIES, "down")
        assert lost["notice"]["title"] == "lost"
        assert lost["id"] == lost["notice"]["id"]
        assert desk.run() == 1
        assert listener.titles == ["next"]

    def test_a_clock_that_was_set_back_does_not_stop_it(
        self, desk: Desk, listener: Listener
    ) -> None:
        desk.block("one")
        listener.problems = ["down"]
        desk.lab.clock.advance(50 * 365 * 86_400_000)
        desk.run()
        assert desk.run(after=-50 * 365 * 86_400_000) == 1

    def test_two_at_once_do_not_tell_it_twice(self, desk: Desk, listener: Listener) -> None:
        desk.block("one")
        with OutboxFiles(desk.folder).alone() as is_alone:
            assert is_alone
            assert desk.run() == 0
            desk.notifier().begin()
        assert desk.run() == 1
        assert listener.titles == ["one"]


@proves("NOTIFY-NOT-IN-THE-WAY")
class TestInNobodysWay:
    """Failing targets, slow targets, damaged files."""

    @pytest.mark.parametrize("order", [1, -1])
    def test_one_that_fails_does_not_hold_up_another(self, tmp_path: Path, order: int) -> None:
        broken, well = Listener("broken"), Listener("well")
        broken.problems = ["down"] * 3
        desk = Desk(tmp_path, *(broken, well)[::order])
        desk.notifier().begin()
        desk.block("one", "two")
        assert desk.run() == 2
        desk.block("three")
        assert desk.run() == 1
        assert well.titles == ["one", "two", "three"]
        assert broken.tried == 1

    def test_a_run_ends_when_its_time_is_up_and_the_next_goes_on(self, tmp_path: Path) -> None:
        slow, other = Listener("slow"), Listener("other")
        desk = Desk(tmp_path, slow, other)
        # The time of each delivery: nobody waits for it here.
        desk.stopwatch = lambda: (slow.tried + other.tried) * (BUDGET_SECONDS / 2)
        desk.notifier().begin()
        desk.block("one", "two", "three", "four", "five")
        assert desk.run() == 4
        assert (slow.titles, other.titles) == (["one", "two", "three"], ["one"])
        while desk.run():
            pass
        assert slow.titles == other.titles == ["one", "two", "three", "four", "five"]

    def test_one_that_hangs_rests_from_the_end_of_a_try_on(
        self, desk: Desk, listener: Listener
    ) -> None:
        listener.problems = ["there was no answer within 5 s"]
        listener.hang = lambda: desk.lab.clock.advance(5_000)
        desk.block("one")
        assert desk.run() == 0
        assert desk.run() == 0, "that is when it was given up to wait"
        assert desk.run(after=4_999) == 0
        assert listener.tried == 1
        assert desk.run(after=1) == 1

    def test_a_damaged_cursor_is_told_by_the_run_and_stops_no_command(
        self, desk: Desk, listener: Listener
    ) -> None:
        (desk.folder / "notify.cursor").write_bytes(b'{"ledger": \xff')
        desk.notifier().begin()
        desk.block("one")
        with pytest.raises(StoreCorrupt, match=r"notify\.cursor is damaged.*move it away"):
            desk.run()
        (desk.folder / "notify.cursor").unlink()
        desk.notifier().begin()
        desk.block("two")
        assert desk.run() == 1
        assert listener.titles == ["two"]

    def test_a_folder_that_is_gone_stops_no_command(self, tmp_path: Path) -> None:
        Desk(tmp_path / "gone", Listener()).notifier().begin()


@proves("NOTIFY-AT-LEAST-ONCE", "NOTIFY-WEBHOOK", "NOTIFY-COMMAND", "NOTIFY-SECRETS")
def test_both_real_targets_are_told_and_no_file_holds_the_secret(tmp_path: Path) -> None:
    secret, data = "s3cr3t-of-the-test", tmp_path / "data"
    data.mkdir()
    with receiving() as receiver:
        receiver.answers = [status(500)]
        url = receiver.url(path="/s3cr3t")
        desk = Desk(
            data,
            Webhook(secret, Endpoint(url, "notify.webhook_url", ("127.0.0.1",)).post),
            Command(
                ("sh", "-c", "cat >> heard; echo >> heard"),
                {"PATH": "/usr/bin:/bin"},
                partial(run, folder=tmp_path),
            ),
        )
        desk.notifier().begin()
        desk.block("one", "two")
        assert desk.run() == 2
        kept = b"".join(path.read_bytes() for path in data.iterdir())
        assert desk.run(after=5_000) == 2
        posted = [request.body for request in receiver.requests]
    assert (tmp_path / "heard").read_bytes().splitlines() == posted[1:]
    assert posted[0] == posted[1]
    assert b"it answered 500" in kept
    assert b"s3cr3t" not in kept


@proves("NOTIFY-AT-LEAST-ONCE", "FILES-BENEATH")
@pytest.mark.parametrize("name", ["notify.lock", "notify.cursor", "notify.failed.jsonl"])
def test_no_file_of_the_outbox_is_reached_through_a_link(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    data = tmp_path / "data"
    data.mkdir()
    (data / name).symlink_to(outside)
    outbox = OutboxFiles(data)

    with pytest.raises(OSError, match="symbolic links"):
        _touch(outbox, name)
    assert not outside.exists()


def _touch(outbox: OutboxFiles, name: str) -> None:
    if name == "notify.cursor":
        outbox.load()
    elif name == "notify.lock":
        with outbox.alone():
            pass
    else:
        outbox.give_up(b"line")
