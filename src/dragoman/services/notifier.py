"""Notifications: follows the ledger for each target, and tells it in order, at least once (S-OUT).

The ledger and a cursor are the outbox. A target that fails is asked again after a rest that
doubles; after TRIES the notice is written down as given up and the target goes on with the next.
Every target has a cursor of its own, so that none waits for another.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.errors import DragomanError
from dragoman.core.moments import to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import entries
from dragoman.engine.trouble import NONE, Trouble
from dragoman.ledger.entry import Entry

TRIES = 10
"""A notice is given up after this many failures."""

REST = Backoff(base_ms=5_000, cap_ms=3_600_000)
"""Delay before a target is tried again."""

BUDGET_SECONDS = 5.0
"""After this time a run begins no further delivery, beyond the first to each target."""


class Notice(Protocol):
    """A notice that is delivered."""

    @property
    def id(self) -> str:
        """Id of the notice, the same in every delivery."""
        ...

    @property
    def body(self) -> bytes:
        """Content as JSON."""
        ...


N = TypeVar("N", bound=Notice)
N_contra = TypeVar("N_contra", bound=Notice, contravariant=True)


class Target(Protocol[N_contra]):
    """Port: a target of notices."""

    @property
    def name(self) -> str:
        """Name of its cursor."""
        ...

    def deliver(self, notice: N_contra, now: int) -> str:
        """Deliver a notice; "" when it has arrived, else what went wrong."""
        ...


class Outbox(Protocol):
    """Port: durable storage of cursors and failed notices."""

    def alone(self) -> AbstractContextManager[bool]:
        """Hold the lock while no other process delivers; False: another one does."""
        ...

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None:
        """Save the data."""
        ...

    def damaged(self) -> DragomanError:
        """Error for saved data that cannot be read."""
        ...

    def give_up(self, line: bytes) -> None:
        """Add a notice that could not be delivered."""
        ...

    def given_up(self) -> Iterable[bytes]:
        """All notices that could not be delivered."""
        ...


class Progress(Struct, frozen=True, omit_defaults=True):
    """Cursor of a target, and its failures at the next notice."""

    after: int
    tries: int = 0
    next_try: int = 0
    problem: str = ""


class Saved(Struct, omit_defaults=True):
    """Content of the outbox."""

    ledger: str = ""
    targets: dict[str, Progress] = {}


class GivenUp(Struct, frozen=True):
    """A notice that was given up."""

    target: str
    id: str
    at: str
    tries: int
    problem: str
    notice: msgspec.Raw


class Standing(Struct, frozen=True):
    """Delivery status of a target, for people."""

    target: str
    progress: Progress
    given_up: int
    """Number of notices that it never got."""

    @property
    def trouble(self) -> str:
        """Current problem; empty: none."""
        progress = self.progress
        if not progress.tries:
            return ""
        return (
            f"{self.target}: {progress.problem} (tried {progress.tries} of {TRIES} times, "
            f"again after {to_rfc3339(progress.next_try)})"
        )

    @property
    def loss(self) -> str:
        """Lost notices; empty: none."""
        notices = "1 notice was" if self.given_up == 1 else f"{self.given_up} notices were"
        return f"{self.target}: {notices} given up" if self.given_up else ""


class Notifier(Generic[N]):
    """Delivers notices of new entries to all targets."""

    name = "notify"

    def __init__(
        self,
        hub: Hub,
        outbox: Outbox,
        news: Callable[[Entry], N | None],
        targets: Sequence[Target[N]],
        stopwatch: Callable[[], float],
    ) -> None:
        self._store = hub.store
        self._clock = hub.clock
        self._outbox = outbox
        self._news = news
        self._targets = targets
        self._stopwatch = stopwatch
        self.undone = NONE
        """Targets that cannot be reached; nothing else waits for them, so the hub can be relied
        on."""

    def begin(self) -> None:
        """Set the cursor of new targets to the end of the ledger, so that they get only later
        notices.

        Called before a command runs, so it never fails: `run_once` reports what cannot be read or
        written.
        """
        if self._targets:
            with suppress(OSError, DragomanError), self._outbox.alone() as is_alone:
                if is_alone:
                    self._load()

    def run_once(self, now: int) -> int:
        """Deliver to every target; the number of notices that have arrived."""
        if not self._targets:
            return 0
        with self._outbox.alone() as is_alone:
            if not is_alone:  # another process delivers just now; the next run delivers the rest
                return 0
            saved, started = self._load(), self._stopwatch()
            arrived = sum(self._serve(target, saved, now, started) for target in self._targets)
            self.undone = Trouble("; ".join(self._not_told(saved)), is_partial=True)
            return arrived

    def _not_told(self, saved: Saved) -> Iterator[str]:
        """Each failing target, in words that stay the same between tries."""
        for target in self._targets:
            progress = saved.targets[target.name]
            if progress.tries:
                yield f"{target.name} cannot be notified, retrying: {progress.problem}"

    def standings(self) -> list[Standing]:
        """Delivery status of each target; nothing is delivered or changed."""
        if not self._targets:
            return []
        saved, lost = self._saved(), Counter(map(_target_of, self._outbox.given_up()))
        return [
            Standing(target.name, saved.targets.get(target.name, Progress(0)), lost[target.name])
            for target in self._targets
        ]

    def trouble(self) -> str:
        """Current problems of the targets; `run_once` reports what cannot be read."""
        with suppress(OSError, DragomanError):
            return "; ".join(filter(None, (each.trouble for each in self.standings())))
        return ""

    def _saved(self) -> Saved:
        stored, ledger = self._outbox.load(), self._store.ledger_id()
        try:
            saved = msgspec.json.decode(stored, type=Saved) if stored else Saved()
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._outbox.damaged() from None
        return saved if saved.ledger == ledger else Saved(ledger)

    def _load(self) -> Saved:
        """Read the cursors; a target without one starts at the end of the ledger."""
        saved, head = self._saved(), self._store.head()
        for target in self._targets:
            known = saved.targets.get(target.name)
            # Beyond the end: the ledger was restored from a backup.
            if known is None or known.after > head:
                self._keep(saved, target, Progress(head))
        return saved

    def _keep(self, saved: Saved, target: Target[N], progress: Progress) -> None:
        saved.targets[target.name] = progress
        self._outbox.save(msgspec.json.encode(saved))

    def _serve(self, target: Target[N], saved: Saved, now: int, started: float) -> int:
        """Deliver to one target until it has caught up, fails, or the time is up."""
        progress = saved.targets[target.name]
        if not _is_due(progress, now):
            return 0
        arrived, seen = 0, progress.after
        for entry in entries(self._store, progress.after):
            notice = self._news(entry)
            if notice is not None:
                if arrived and self._stopwatch() - started > BUDGET_SECONDS:
                    break
                problem = target.deliver(notice, now)
                if problem:
                    progress = replace(progress, after=seen, problem=problem)
                    # One that hangs has taken as long as the first delay: it is delayed all the
                    # same.
                    failed = self._failed(target, notice, progress, entry, self._clock.now())
                    self._keep(saved, target, failed)
                    return arrived
                arrived += 1
                progress = Progress(entry.position)
                self._keep(saved, target, progress)
            seen = entry.position
        if seen > progress.after:
            self._keep(saved, target, Progress(seen))
        return arrived

    def _failed(
        self, target: Target[N], notice: N, before: Progress, entry: Entry, now: int
    ) -> Progress:
        """Progress after a failure: the same notice later, or the next one."""
        tries = before.tries + 1
        if tries < TRIES:
            return replace(before, tries=tries, next_try=now + rest_after(tries, REST))
        body, at = msgspec.Raw(notice.body), to_rfc3339(now)
        given_up = GivenUp(target.name, notice.id, at, tries, before.problem, body)
        self._outbox.give_up(msgspec.json.encode(given_up))
        return Progress(entry.position)


class _Addressed(Struct):
    target: str = ""


def _target_of(line: bytes) -> str:
    """Target of a failed notice; empty for a line that a crash cut off."""
    try:
        return msgspec.json.decode(line, type=_Addressed).target
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _is_due(progress: Progress, now: int) -> bool:
    # A delay that is longer than the maximum was set by a clock that has been set back since.
    return not now < progress.next_try <= now + REST.cap_ms
