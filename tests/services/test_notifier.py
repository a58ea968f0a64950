"""The notifier: in order, at least once, without delaying anything else."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.core.base import Status
from dragoman.core.errors import StoreCorrupt
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.service_health import HealthProblem
from dragoman.notify.command_target import CommandTarget
from dragoman.notify.notification import Notification, NotificationBuilder
from dragoman.notify.webhook import WebhookTarget
from dragoman.services.notifier import MAX_TRIES, RETRY_BACKOFF, RUN_SECONDS, Notifier, Target
from dragoman.services.scheduler import ReportsProblem
from dragoman.system.http_client import SafeHttpClient
from dragoman.system.process import run_program
from dragoman.system.state_files import OutboxFiles
from tests.engine.lab import HUMAN, Lab, OpenStore
from tests.notify.receiver import receiving, status
from tests.requirements import proves

STATUSES: tuple[Status, ...] = ("review", "blocked", "done")


class RecordingTarget:
    """A target that records notifications, and fails with the listed problems."""

    def __init__(self, name: str = "listener") -> None:
        self.name = name
        self.delivered: list[Notification] = []
        self.problems: list[str] = []
        self.attempts = 0
        self.before_delivery: Callable[[], None] = lambda: None

    def deliver(self, notification: Notification, now: int) -> str:
        """Record the notification, or fail."""
        self.attempts += 1
        self.before_delivery()
        problem = self.problems.pop(0) if self.problems else ""
        if not problem:
            self.delivered.append(notification)
        return problem

    @property
    def titles(self) -> list[str]:
        """Titles of the tasks of all delivered notifications."""
        return [msgspec.json.decode(notification.body)["title"] for notification in self.delivered]


class NotifierLab:
    """A hub, the files of the notifier, and its targets."""

    def __init__(self, folder: Path, *targets: Target) -> None:
        self.lab = Lab()
        self.folder = folder
        self.targets = targets
        self.stopwatch: Callable[[], float] = lambda: 0.0
        self.outbox = OutboxFiles(folder)

    def notifier(self) -> Notifier:
        """Create the notifier as a freshly started process does."""
        hub = self.lab.hub
        news = NotificationBuilder(hub.store, STATUSES)
        return Notifier(hub, self.outbox, news, self.targets, self.stopwatch)

    def run(self, *, after: int = 0) -> int:
        """Run a freshly created notifier once, some time later."""
        self.lab.clock.advance(after)
        return self.notifier().run_once(self.lab.clock.now())

    def block(self, *titles: str) -> None:
        """Create tasks and block them."""
        for title in titles:
            task = self.lab.do(HUMAN, CreateTask(title, ready=True)).task
            self.lab.do(HUMAN, MoveTask(task, "blocked", "stuck"))

    def saved_cursor(self) -> dict[str, Any]:
        """The content of the cursor file."""
        return msgspec.json.decode((self.folder / "notify.cursor").read_bytes())

    def failed_notifications(self) -> list[dict[str, Any]]:
        """Notifications that were given up."""
        path = self.folder / "notify.failed.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def target() -> RecordingTarget:
    return RecordingTarget()


@pytest.fixture
def notifier_lab(tmp_path: Path, target: RecordingTarget) -> NotifierLab:
    """Give a lab whose notifier has started."""
    notifier_lab = NotifierLab(tmp_path, target)
    notifier_lab.notifier().register_targets()
    return notifier_lab


@proves("NOTIFY-NEWS")
class TestStartPosition:
    """Position at which delivery starts."""

    def test_entries_before_the_start_are_not_delivered(
        self, tmp_path: Path, target: RecordingTarget
    ) -> None:
        notifier_lab = NotifierLab(tmp_path, target)
        notifier_lab.block("old")
        assert notifier_lab.run() == 0
        notifier_lab.block("new")
        assert notifier_lab.run() == 1
        assert target.titles == ["new"]

    def test_entries_after_the_start_are_delivered_by_the_first_run(
        self, tmp_path: Path, target: RecordingTarget
    ) -> None:
        notifier_lab = NotifierLab(tmp_path, target)
        notifier_lab.block("old")
        notifier_lab.notifier().register_targets()
        notifier_lab.block("new")
        notifier_lab.notifier().register_targets()
        assert notifier_lab.run() == 1
        assert target.titles == ["new"]

    def test_target_added_later_starts_where_it_was_added(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one")
        late = RecordingTarget("late")
        notifier_lab.targets = (target, late)
        notifier_lab.notifier().register_targets()
        notifier_lab.block("two")
        assert notifier_lab.run() == 3
        assert (target.titles, late.titles) == (["one", "two"], ["two"])

    def test_another_ledger_starts_at_its_own_end(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one")
        notifier_lab.lab = Lab(OpenStore("another"))
        notifier_lab.block("old", "older")
        assert notifier_lab.run() == 0
        notifier_lab.block("new")
        assert notifier_lab.run() == 1
        assert target.delivered[-1].id.startswith("another:")

    def test_ledger_from_a_backup_starts_at_its_end(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one", "two", "three")
        notifier_lab.run()
        notifier_lab.lab = Lab()
        notifier_lab.block("back")
        assert notifier_lab.run() == 0
        notifier_lab.block("new")
        assert notifier_lab.run() == 1
        assert target.titles[-1] == "new"

    def test_no_files_are_created_without_targets(self, tmp_path: Path) -> None:
        notifier_lab = NotifierLab(tmp_path)
        notifier_lab.notifier().register_targets()
        notifier_lab.block("one")
        assert notifier_lab.run() == 0
        assert list(tmp_path.iterdir()) == []


@proves("NOTIFY-AT-LEAST-ONCE")
class TestDelivery:
    """In order, once if all goes well, again if not."""

    def test_notifications_are_delivered_once_and_in_order(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one", "two")
        assert notifier_lab.run() == 2
        notifier_lab.block("three")
        assert notifier_lab.run() == 1
        assert notifier_lab.run() == 0
        assert target.titles == ["one", "two", "three"]

    def test_entries_without_a_notification_move_the_cursor(
        self, notifier_lab: NotifierLab
    ) -> None:
        notifier_lab.lab.do(HUMAN, CreateTask("quiet"))
        assert notifier_lab.run() == 0
        assert notifier_lab.saved_cursor() == {
            "ledger": "lab",
            "targets": {"listener": {"position": 1}},
        }

    def test_crash_between_delivery_and_cursor_redelivers_under_the_same_id(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        class Crash(Exception):
            """The process ends here."""

        class CrashingOutbox(OutboxFiles):
            """An outbox whose process dies on save."""

            def save(self, data: bytes) -> None:
                raise Crash

        notifier_lab.block("one", "two")
        notifier_lab.outbox = CrashingOutbox(notifier_lab.folder)
        with pytest.raises(Crash):
            notifier_lab.run()
        notifier_lab.outbox = OutboxFiles(notifier_lab.folder)
        assert notifier_lab.run() == 2
        assert target.titles == ["one", "one", "two"]
        assert target.delivered[0] == target.delivered[1]

    def test_failed_delivery_is_retried_with_a_doubling_backoff(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one", "two")
        target.problems = ["down", "still down"]
        assert notifier_lab.run() == 0
        assert notifier_lab.run(after=4_999) == 0
        assert target.attempts == 1
        assert notifier_lab.run(after=1) == 0
        assert target.attempts == 2
        assert notifier_lab.run(after=9_999) == 0
        assert target.attempts == 2
        assert notifier_lab.saved_cursor()["targets"]["listener"]["problem"] == "still down"
        assert notifier_lab.run(after=1) == 2
        assert target.titles == ["one", "two"]
        assert "problem" not in notifier_lab.saved_cursor()["targets"]["listener"]

    def test_failing_target_is_reported_until_it_recovers_as_a_partial_problem(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier = notifier_lab.notifier()
        assert isinstance(notifier, ReportsProblem)
        notifier_lab.block("one")
        target.problems = ["down", "down"]
        now = notifier_lab.lab.clock.now()
        for at in (now, now + 1, now + 5_000):
            notifier.run_once(at)
            words = "listener cannot be notified, retrying: down"
            assert notifier.last_problem == HealthProblem(words, is_partial=True)
        notifier.run_once(now + 15_000)
        assert notifier.last_problem.message == ""

    def test_notification_is_saved_as_failed_after_max_tries_and_the_next_is_delivered(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("lost", "next")
        target.problems = ["down"] * MAX_TRIES
        for _ in range(MAX_TRIES):
            assert notifier_lab.run(after=RETRY_BACKOFF.cap_ms) == 0
        (lost,) = notifier_lab.failed_notifications()
        assert (lost["target"], lost["tries"], lost["problem"]) == ("listener", MAX_TRIES, "down")
        assert lost["notification"]["title"] == "lost"
        assert lost["id"] == lost["notification"]["id"]
        assert notifier_lab.run() == 1
        assert target.titles == ["next"]

    def test_clock_set_back_does_not_stop_delivery(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one")
        target.problems = ["down"]
        notifier_lab.lab.clock.advance(50 * 365 * 86_400_000)
        notifier_lab.run()
        assert notifier_lab.run(after=-50 * 365 * 86_400_000) == 1

    def test_concurrent_notifiers_do_not_deliver_twice(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        notifier_lab.block("one")
        with OutboxFiles(notifier_lab.folder).try_lock() as is_alone:
            assert is_alone
            assert notifier_lab.run() == 0
            notifier_lab.notifier().register_targets()
        assert notifier_lab.run() == 1
        assert target.titles == ["one"]


@proves("NOTIFY-NOT-IN-THE-WAY")
class TestIsolation:
    """Failing targets, slow targets, damaged files."""

    @pytest.mark.parametrize("order", [1, -1])
    def test_failing_target_does_not_delay_another(self, tmp_path: Path, order: int) -> None:
        failing, healthy = RecordingTarget("broken"), RecordingTarget("well")
        failing.problems = ["down"] * 3
        notifier_lab = NotifierLab(tmp_path, *(failing, healthy)[::order])
        notifier_lab.notifier().register_targets()
        notifier_lab.block("one", "two")
        assert notifier_lab.run() == 2
        notifier_lab.block("three")
        assert notifier_lab.run() == 1
        assert healthy.titles == ["one", "two", "three"]
        assert failing.attempts == 1

    def test_run_ends_at_its_time_budget_and_the_next_continues(self, tmp_path: Path) -> None:
        slow, other = RecordingTarget("slow"), RecordingTarget("other")
        notifier_lab = NotifierLab(tmp_path, slow, other)
        # Each delivery takes half of the budget, without real waiting.
        notifier_lab.stopwatch = lambda: (slow.attempts + other.attempts) * (RUN_SECONDS / 2)
        notifier_lab.notifier().register_targets()
        notifier_lab.block("one", "two", "three", "four", "five")
        assert notifier_lab.run() == 4
        assert (slow.titles, other.titles) == (["one", "two", "three"], ["one"])
        while notifier_lab.run():
            pass
        assert slow.titles == other.titles == ["one", "two", "three", "four", "five"]

    def test_backoff_of_a_hanging_target_starts_at_the_end_of_the_try(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        target.problems = ["there was no answer within 5 s"]
        target.before_delivery = lambda: notifier_lab.lab.clock.advance(5_000)
        notifier_lab.block("one")
        assert notifier_lab.run() == 0
        assert notifier_lab.run() == 0, "that is when it was given up to wait"
        assert notifier_lab.run(after=4_999) == 0
        assert target.attempts == 1
        assert notifier_lab.run(after=1) == 1

    def test_damaged_cursor_fails_the_run_but_no_command(
        self, notifier_lab: NotifierLab, target: RecordingTarget
    ) -> None:
        (notifier_lab.folder / "notify.cursor").write_bytes(b'{"ledger": \xff')
        notifier_lab.notifier().register_targets()
        notifier_lab.block("one")
        with pytest.raises(StoreCorrupt, match=r"notify\.cursor is damaged.*move it away"):
            notifier_lab.run()
        (notifier_lab.folder / "notify.cursor").unlink()
        notifier_lab.notifier().register_targets()
        notifier_lab.block("two")
        assert notifier_lab.run() == 1
        assert target.titles == ["two"]

    def test_missing_folder_fails_no_command(self, tmp_path: Path) -> None:
        NotifierLab(tmp_path / "gone", RecordingTarget()).notifier().register_targets()


@proves("NOTIFY-AT-LEAST-ONCE", "NOTIFY-WEBHOOK", "NOTIFY-COMMAND", "NOTIFY-SECRETS")
def test_webhook_and_command_are_notified_and_no_file_holds_the_secret(tmp_path: Path) -> None:
    secret, data = "s3cr3t-of-the-test", tmp_path / "data"
    data.mkdir()
    with receiving() as receiver:
        receiver.answers = [status(500)]
        url = receiver.url(path="/s3cr3t")
        notifier_lab = NotifierLab(
            data,
            WebhookTarget(secret, SafeHttpClient(url, "notify.webhook_url", ("127.0.0.1",)).post),
            CommandTarget(
                ("sh", "-c", "cat >> heard; echo >> heard"),
                {"PATH": "/usr/bin:/bin"},
                partial(run_program, folder=tmp_path),
            ),
        )
        notifier_lab.notifier().register_targets()
        notifier_lab.block("one", "two")
        assert notifier_lab.run() == 2
        outbox_bytes = b"".join(path.read_bytes() for path in data.iterdir())
        assert notifier_lab.run(after=5_000) == 2
        posted = [request.body for request in receiver.requests]
    assert (tmp_path / "heard").read_bytes().splitlines() == posted[1:]
    assert posted[0] == posted[1]
    assert b"it answered 500" in outbox_bytes
    assert b"s3cr3t" not in outbox_bytes


@proves("NOTIFY-AT-LEAST-ONCE", "FILES-BENEATH")
@pytest.mark.parametrize("name", ["notify.lock", "notify.cursor", "notify.failed.jsonl"])
def test_outbox_files_are_not_opened_through_a_symlink(tmp_path: Path, name: str) -> None:
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
        with outbox.try_lock():
            pass
    else:
        outbox.record_failed(b"line")
