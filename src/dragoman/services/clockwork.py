"""The clockwork: duties in the background, each group in a thread of its own.

A group runs all of its duties at its own pace, and those that follow the ledger also whenever
something was committed. A duty that fails or hangs holds up only its own group.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Protocol, runtime_checkable

from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.engine.trouble import NONE, Trouble, trouble_of

_BREATH_SECONDS = 0.05
"""Delay after a hint: commits of that time are followed in one go."""
_LONGEST_REST_SECONDS = 10.0
"""Longest pause after a slow round: the next one may have to recover somebody's work."""


class Duty(Protocol):
    """A background service."""

    @property
    def name(self) -> str:
        """Name, as shown by `tick` and in health reports."""
        ...

    def run_once(self, now: int) -> int:
        """Run once; the number of things done."""
        ...


@runtime_checkable
class Lagging(Protocol):
    """A service that does what it can, and reports the rest."""

    @property
    def undone(self) -> Trouble:
        """Problem of the last run."""
        ...


class Group(Struct, frozen=True):
    """Services that share a thread: they wait for one another, and for no others."""

    name: str
    duties: tuple[Duty, ...] = ()
    """Run at intervals only."""
    followers: tuple[Duty, ...] = ()
    """Run at intervals, and after every commit."""
    rest_seconds: float = 1.0
    """Shortest pause between two rounds."""
    rest_share: int = 20
    """The pause is this many times as long as the round took, so that an idle hub stays idle."""
    hangs_after_seconds: float = 300.0
    """A service that runs longer counts as hanging. It may only have much to do, like a first round
    over very many tasks; but then that is not done yet, either."""
    is_awaited: bool = False
    """True if somebody waits for the next round: then a long round does not lengthen the pause,
    because more work may have come meanwhile."""

    @property
    def all(self) -> tuple[Duty, ...]:
        """All services of a round."""
        return (*self.duties, *self.followers)


class Wheel:
    """One group of services in a thread of its own."""

    def __init__(self, group: Group, now: Callable[[], int]) -> None:
        self._group = group
        self._now = now
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.name = group.name
        self._under_way: tuple[str, float] | None = None
        """The running service, and its start time."""
        self._troubles: dict[str, Trouble] = {duty.name: NONE for duty in group.all}

    def start(self) -> None:
        """Start the thread."""
        name = f"duty-{self._group.name}"
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def hint(self, streams: Collection[str]) -> None:
        """Wake up after a commit. (An `OnCommit`.)"""
        del streams
        if self._group.followers:
            self._woken.set()

    def stop(self, seconds: float) -> bool:
        """Run a last round and end; whether the thread ended in time."""
        self._stopping.set()
        self._woken.set()
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def health(self) -> Mapping[str, Trouble]:
        """Problem of each service; one that hangs is reported for itself and those behind it."""
        under_way, longest = self._under_way, self._group.hangs_after_seconds
        if under_way is None or monotonic() - under_way[1] < longest:
            return self._troubles
        at = f"at work for more than {longest:g} s: it hangs, or has very much to do"
        behind = Trouble(f"waits for {under_way[0]}, which is {at}")
        late = {name: wrong if wrong.words else behind for name, wrong in self._troubles.items()}
        return {**late, under_way[0]: Trouble(at)}

    def _turn(self) -> None:
        next_round, group = 0.0, self._group
        while not self._stopping.is_set():
            begun = monotonic()
            if begun >= next_round:
                done = self._run(group.all)
                now = monotonic()
                next_round = now + rest_of_round(group, now - begun, done)
            else:
                self._run(group.followers)
            self._stopping.wait(_BREATH_SECONDS)
            self._woken.wait(max(0.0, next_round - monotonic()))
            self._woken.clear()
        # The last commits are followed before the hub is gone.
        self._run(group.followers)

    def _run(self, duties: Sequence[Duty]) -> int | None:
        """Number of things done; None: a service failed."""
        done = 0
        for duty in duties:
            self._under_way = duty.name, monotonic()
            try:
                done += duty.run_once(self._now())
            except (DragomanError, OSError) as error:
                self._troubles[duty.name] = trouble_of(error)
            except Exception as error:  # noqa: BLE001  one faulty service must not end the others
                self._troubles[duty.name] = Trouble(f"{type(error).__name__}: {error}")
            else:
                self._troubles[duty.name] = duty.undone if isinstance(duty, Lagging) else NONE
        self._under_way = None
        return None if any(self._troubles[duty.name].words for duty in duties) else done


def rest_of_round(group: Group, took: float, done: int | None) -> float:
    """Pause after a round. A failed one (`processed` is None) says nothing about the amount of
    work, and is retried at the usual interval.
    """
    is_costly = done is not None and not (done and group.is_awaited)
    share = min(group.rest_share * took, _LONGEST_REST_SECONDS) if is_costly else 0.0
    return max(group.rest_seconds, share)


class Clockwork:
    """All groups together."""

    def __init__(self, wheels: Sequence[Wheel]) -> None:
        self._wheels = wheels

    def start(self) -> None:
        """Start all threads."""
        for wheel in self._wheels:
            wheel.start()

    def hint(self, streams: Collection[str]) -> None:
        """Wake up after a commit. (An `OnCommit`.)"""
        for wheel in self._wheels:
            wheel.hint(streams)

    def stop(self, seconds: float) -> Sequence[str]:
        """Stop all groups; the names of those that did not end in time."""
        give_up_at = monotonic() + seconds
        for wheel in self._wheels:  # all at once: none waits for one that hangs
            wheel.stop(0.0)
        wait = (wheel.stop(max(0.0, give_up_at - monotonic())) for wheel in self._wheels)
        return [wheel.name for wheel, ended in zip(self._wheels, wait, strict=True) if not ended]

    def health(self) -> Mapping[str, Trouble]:
        """Problem of each service."""
        return {name: wrong for wheel in self._wheels for name, wrong in wheel.health().items()}
