"""What the HTTP door is handed: the hub and who may speak to it, settings, patience, health."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from msgspec import Struct

from dragoman.config import Settings
from dragoman.engine.hints import Hints
from dragoman.engine.hub import Hub
from dragoman.engine.identity import Identity
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.trouble import Trouble
from dragoman.services.desk import AgentState


class Patience(Struct, frozen=True):
    """Timeouts and intervals of the HTTP surface; in seconds, where nothing else is said."""

    head: float = 10.0
    """For the head of a request, from its first byte (or from the start of the connection) on."""
    body_pause: float = 10.0
    """For the next part of a body."""
    body: float = 120.0
    """For a whole body."""
    taking: float = 60.0
    """Until a client reads some more of its response; the reader of a stream may take its time."""
    beat: float = 15.0
    """Between two keep-alive comments to the reader of a stream."""
    look: float = 1.0
    """Between two reads of the ledger without a commit hint: another process may have written."""
    retry: float = 2.0
    """Between two attempts of a long poll to claim a task: a cooldown may be over."""
    token: float = 15.0
    """Between two checks of the tokens of open streams, when nothing happened to their agents."""
    checkup: float = 1.0
    """Time for which a result of /readyz is cached."""
    write: float = 5.0
    """After the last write, until /readyz tries one."""
    inspection: float = 600.0
    """Between two inspections of the database for damage, when /readyz is called."""
    behind: int = 20_000
    """In entries: the reader of a stream that had caught up and is now further behind than this
    skips ahead, with a gap event."""


def _all_well() -> Mapping[str, Trouble]:
    return {}


def _nobody() -> Sequence[AgentState]:
    return ()


def _is_not_stopping() -> bool:
    return False


class Door(Struct, frozen=True):
    """Dependencies of the HTTP surface, put together by `bootstrap`."""

    hub: Hub
    interpreter: Interpreter
    identity: Identity
    settings: Settings
    hints: Hints
    """Notified by the engine after every commit."""
    duties: Callable[[], Mapping[str, Trouble]] = _all_well
    """Returns each background service by name, and its trouble."""
    fleet: Callable[[], Sequence[AgentState]] = _nobody
    """Returns the state of each agent that the hub starts."""
    is_stopping: Callable[[], bool] = _is_not_stopping
    """Returns whether the hub gives out no more work."""
    patience: Patience = Patience()
    monotonic: Callable[[], float] = monotonic
    """Monotonic seconds, for rates and waits."""
