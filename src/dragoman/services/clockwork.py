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
"""After a hint: what is committed meanwhile is followed in one go."""
_LONGEST_REST_SECONDS = 10.0
"""However slow a round was: it must not keep the next from recovering somebody's work."""


class Duty(Protocol):
    """Something that is done when time passes."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def run_once(self, now: int) -> int:
        """Do it; how much there was to do."""
        ...


@runtime_checkable
class Lagging(Protocol):
    """A duty that does what it can, and says what it could not do."""

    @property
    def undone(self) -> Trouble:
        """What could not be done the last time."""
        ...


class Group(Struct, frozen=True):
    """Duties that wait for one another, and for no others."""

    name: str
    duties: tuple[Duty, ...] = ()
    """Those that only time asks for."""
    followers: tuple[Duty, ...] = ()
    """Those that every commit asks for, too."""
    rest_seconds: float = 1.0
    """Between two rounds, at least."""
    rest_share: int = 20
    """It rests so many times as long as its round took: an idle hub stays idle."""
    hangs_after_seconds: float = 300.0
    """A duty that takes longer than this counts as one that hangs. It may only have much to do: a
    first round over very many tasks; but then that is not done yet, either."""
    is_awaited: bool = False
    """Whether somebody waits for its next round: then one that had much to do is no reason for a
    longer rest, because more may have come meanwhile."""

    @property
    def all(self) -> tuple[Duty, ...]:
        """One round."""
        return (*self.duties, *self.followers)


class Wheel:
    """One group of duties in a thread of its own."""

    def __init__(self, group: Group, now: Callable[[], int]) -> None:
        self._group = group
        self._now = now
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.name = group.name
        self._under_way: tuple[str, float] | None = None
        """The duty that is being done, and since when."""
        self._troubles: dict[str, Trouble] = {duty.name: NONE for duty in group.all}

    def start(self) -> None:
        """Begin to turn."""
        name = f"duty-{self._group.name}"
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def hint(self, streams: Collection[str]) -> None:
        """Something was committed. (An `OnCommit`.)"""
        del streams
        if self._group.followers:
            self._woken.set()

    def stop(self, seconds: float) -> bool:
        """Turn a last time and end; whether it ended within so many seconds."""
        self._stopping.set()
        self._woken.set()
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def health(self) -> Mapping[str, Trouble]:
        """Each duty, and what is wrong with it; of one that hangs, and of those behind it, that."""
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
        # What was committed last is level before the hub is gone.
        self._run(group.followers)

    def _run(self, duties: Sequence[Duty]) -> int | None:
        """How much there was to do; None: not all of it could be done."""
        done = 0
        for duty in duties:
            self._under_way = duty.name, monotonic()
            try:
                done += duty.run_once(self._now())
            except (DragomanError, OSError) as error:
                self._troubles[duty.name] = trouble_of(error)
            except Exception as error:  # noqa: BLE001  a fault of one duty must not end the others
                self._troubles[duty.name] = Trouble(f"{type(error).__name__}: {error}")
            else:
                self._troubles[duty.name] = duty.undone if isinstance(duty, Lagging) else NONE
        self._under_way = None
        return None if any(self._troubles[duty.name].words for duty in duties) else done


def rest_of_round(group: Group, took: float, done: int | None) -> float:
    """How long a group rests after a round of so many seconds in which so much was done; a failed
    one (None) says nothing about how much there is to do, and is tried again at the usual pace."""
    is_costly = done is not None and not (done and group.is_awaited)
    share = min(group.rest_share * took, _LONGEST_REST_SECONDS) if is_costly else 0.0
    return max(group.rest_seconds, share)


class Clockwork:
    """All groups together."""

    def __init__(self, wheels: Sequence[Wheel]) -> None:
        self._wheels = wheels

    def start(self) -> None:
        """Let everything turn."""
        for wheel in self._wheels:
            wheel.start()

    def hint(self, streams: Collection[str]) -> None:
        """Something was committed. (An `OnCommit`.)"""
        for wheel in self._wheels:
            wheel.hint(streams)

    def stop(self, seconds: float) -> Sequence[str]:
        """Let every group come to its end; which have not within so many seconds."""
        give_up_at = monotonic() + seconds
        for wheel in self._wheels:  # all of them at once: none waits for one that hangs
            wheel.stop(0.0)
        wait = (wheel.stop(max(0.0, give_up_at - monotonic())) for wheel in self._wheels)
        return [wheel.name for wheel, ended in zip(self._wheels, wait, strict=True) if not ended]

    def health(self) -> Mapping[str, Trouble]:
        """Each duty, and what is wrong with it."""
        return {name: wrong for wheel in self._wheels for name, wrong in wheel.health().items()}
