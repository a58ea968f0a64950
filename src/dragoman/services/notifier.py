"""The notifier: delivers notifications of ledger entries to each target, at least once (S-OUT).

The ledger plus a cursor is the outbox. A target that fails is retried with a backoff that doubles;
after MAX_TRIES the notification is written to the file of failed ones, and the target goes on with
the next. Every target has a cursor of its own, so that none waits for another.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.errors import DragomanError
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.service_health import HEALTHY, HealthProblem
from dragoman.ledger.entry import Entry

# --- limits -----------------------------------------------------------------------------------

MAX_TRIES = 10
"""A notification is given up after this many failures."""

RETRY_BACKOFF = Backoff(base_ms=5_000, cap_ms=3_600_000)
"""Delay before a target is tried again."""

RUN_SECONDS = 5.0
"""After this time a run begins no further delivery, beyond the first to each target."""


# --- ports ------------------------------------------------------------------------------------


class Notification(Protocol):
    """A notification that is delivered."""

    @property
    def id(self) -> str:
        """Id of the notification, the same in every delivery."""
        ...

    @property
    def body(self) -> bytes:
        """Content as JSON."""
        ...


class Target(Protocol):
    """Port: a target of notifications."""

    @property
    def name(self) -> str:
        """Name of its cursor."""
        ...

    def deliver(self, notification: Any, now: int) -> str:
        """Deliver a notification; "" when it has arrived, else what went wrong."""
        ...


class Outbox(Protocol):
    """Port: durable storage of cursors and failed notifications."""

    def try_lock(self) -> AbstractContextManager[bool]:
        """Hold the lock while no other process delivers; False: another one does."""
        ...

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None: ...

    def damaged_error(self) -> DragomanError:
        """Error for saved data that cannot be read."""
        ...

    def record_failed(self, line: bytes) -> None:
        """Add a notification that could not be delivered."""
        ...

    def read_failed(self) -> Iterable[bytes]:
        """All notifications that could not be delivered."""
        ...


# --- saved state ------------------------------------------------------------------------------


class Progress(Struct, frozen=True, omit_defaults=True):
    """Cursor of a target, and its failures at the next notification."""

    position: int
    failed_tries: int = 0
    retry_at: int = 0
    problem: str = ""


class OutboxState(Struct, omit_defaults=True):
    """Content of the outbox."""

    ledger: str = ""
    targets: dict[str, Progress] = {}


class FailedNotice(Struct, frozen=True):
    """A notification that was given up."""

    target: str
    id: str
    failed_at: str
    tries: int
    problem: str
    notification: msgspec.Raw


class DeliveryStatus(Struct, frozen=True):
    """Delivery status of a target, for people."""

    target: str
    progress: Progress
    failed_notifications: int
    """Number of notifications that it never got."""

    @property
    def problem(self) -> str:
        """Current problem; empty: none."""
        progress = self.progress
        if not progress.failed_tries:
            return ""
        return (
            f"{self.target}: {progress.problem} (tried {progress.failed_tries} of {MAX_TRIES} "
            f"times, again after {to_rfc3339(progress.retry_at)})"
        )

    @property
    def loss(self) -> str:
        """Lost notifications; empty: none."""
        notifications = (
            "1 notification was"
            if self.failed_notifications == 1
            else f"{self.failed_notifications} notifications were"
        )
        return f"{self.target}: {notifications} given up" if self.failed_notifications else ""


# --- service ----------------------------------------------------------------------------------


class Notifier:
    """Delivers notifications of new entries to all targets."""

    def __init__(
        self,
        hub: Hub,
        outbox: Outbox,
        make_notification: Callable[[Entry], Notification | None],
        targets: Sequence[Target],
        monotonic: Callable[[], float],
        name: str = "notifier",
    ) -> None:
        self.name = name
        self._store = hub.store
        self._clock = hub.clock
        self._outbox = outbox
        self._make_notification = make_notification
        self._targets = targets
        self._monotonic = monotonic
        self.last_problem = HEALTHY
        """Targets that cannot be reached; nothing else waits for them, so the hub can be relied
        on."""

    def register_targets(self) -> None:
        """Set the cursor of new targets to the end of the ledger, so that they get only later
        notifications.

        Called before a command runs, so it never fails: `run_once` reports what cannot be read or
        written.
        """
        if self._targets:
            with suppress(OSError, DragomanError), self._outbox.try_lock() as is_alone:
                if is_alone:
                    self._load_state()

    def run_once(self, now: int) -> int:
        """Deliver to every target; the number of notifications that have arrived."""
        if not self._targets:
            return 0
        with self._outbox.try_lock() as is_alone:
            if not is_alone:  # another process delivers just now; the next run delivers the rest
                return 0
            state, started = self._load_state(), self._monotonic()
            delivered = sum(
                self._deliver_pending(target, state, now, started) for target in self._targets
            )
            self.last_problem = HealthProblem(
                "; ".join(self._failing_targets(state)), is_partial=True
            )
            return delivered

    def _failing_targets(self, saved: OutboxState) -> Iterator[str]:
        """Each failing target, in words that stay the same between tries."""
        for target in self._targets:
            progress = saved.targets[target.name]
            if progress.failed_tries:
                yield f"{target.name} cannot be notified, retrying: {progress.problem}"

    def delivery_statuses(self) -> list[DeliveryStatus]:
        """Delivery status of each target; nothing is delivered or changed."""
        if not self._targets:
            return []
        state, failed_counts = (
            self._read_state(),
            Counter(map(_target_name, self._outbox.read_failed())),
        )
        return [
            DeliveryStatus(
                target.name, state.targets.get(target.name, Progress(0)), failed_counts[target.name]
            )
            for target in self._targets
        ]

    def problem_summary(self) -> str:
        """Current problems of the targets; `run_once` reports what cannot be read."""
        with suppress(OSError, DragomanError):
            return "; ".join(filter(None, (each.problem for each in self.delivery_statuses())))
        return ""

    def _read_state(self) -> OutboxState:
        data, ledger = self._outbox.load(), self._store.ledger_id()
        try:
            state = msgspec.json.decode(data, type=OutboxState) if data else OutboxState()
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._outbox.damaged_error() from None
        return state if state.ledger == ledger else OutboxState(ledger)

    def _load_state(self) -> OutboxState:
        """Read the cursors; a target without one starts at the end of the ledger."""
        state, head = self._read_state(), self._store.head()
        for target in self._targets:
            known = state.targets.get(target.name)
            # Beyond the end: the ledger was restored from a backup.
            if known is None or known.position > head:
                self._save_progress(state, target, Progress(head))
        return state

    def _save_progress(self, state: OutboxState, target: Target, progress: Progress) -> None:
        state.targets[target.name] = progress
        self._outbox.save(msgspec.json.encode(state))

    def _deliver_pending(self, target: Target, state: OutboxState, now: int, started: float) -> int:
        """Deliver to one target until it has caught up, fails, or the time is up."""
        progress = state.targets[target.name]
        if not _is_due(progress, now):
            return 0
        delivered, read_up_to = 0, progress.position
        for entry in all_entries(self._store, progress.position):
            notification = self._make_notification(entry)
            if notification is not None:
                if delivered and self._monotonic() - started > RUN_SECONDS:
                    break
                problem = target.deliver(notification, now)
                if problem:
                    progress = replace(progress, position=read_up_to, problem=problem)
                    # One that hangs has taken as long as the first delay: it is delayed all the
                    # same.
                    retried = self._record_failure(
                        target, notification, progress, entry, self._clock.now()
                    )
                    self._save_progress(state, target, retried)
                    return delivered
                delivered += 1
                progress = Progress(entry.position)
                self._save_progress(state, target, progress)
            read_up_to = entry.position
        if read_up_to > progress.position:
            self._save_progress(state, target, Progress(read_up_to))
        return delivered

    def _record_failure(
        self, target: Target, notification: Notification, progress: Progress, entry: Entry, now: int
    ) -> Progress:
        """Progress after a failure: the same notification later, or the next one."""
        tries = progress.failed_tries + 1
        if tries < MAX_TRIES:
            return replace(
                progress, failed_tries=tries, retry_at=now + backoff_delay(tries, RETRY_BACKOFF)
            )
        body, at = msgspec.Raw(notification.body), to_rfc3339(now)
        failed = FailedNotice(
            target.name,
            notification.id,
            failed_at=at,
            tries=tries,
            problem=progress.problem,
            notification=body,
        )
        self._outbox.record_failed(msgspec.json.encode(failed))
        return Progress(entry.position)


class _NoticeTarget(Struct):
    target: str = ""


def _target_name(line: bytes) -> str:
    """Target of a failed notification; empty for a line that a crash cut off."""
    try:
        return msgspec.json.decode(line, type=_NoticeTarget).target
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _is_due(progress: Progress, now: int) -> bool:
    # A delay that is longer than the maximum was set by a clock that has been set back since.
    return not now < progress.retry_at <= now + RETRY_BACKOFF.cap_ms
