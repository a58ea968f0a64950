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
    """How long the door waits for whom; in seconds, where nothing else is said."""

    head: float = 10.0
    """For the head of a request, from its first byte (or from the start of the connection) on."""
    body_pause: float = 10.0
    """For the next part of a body."""
    body: float = 120.0
    """For a whole body."""
    taking: float = 60.0
    """Until a caller takes some more of its answer; the reader of a stream may take its time."""
    beat: float = 15.0
    """Between two signs of life to the reader of a stream."""
    look: float = 1.0
    """Between two looks at the ledger when there was no hint: another process may have written."""
    retry: float = 2.0
    """Between two tries of somebody who waits for work: a task's rest may be over."""
    token: float = 15.0
    """Between two looks at the tokens of those who wait, when nothing was heard of their agents."""
    checkup: float = 1.0
    """For which an answer of /readyz is good."""
    write: float = 5.0
    """After the last write, until /readyz tries one."""
    inspection: float = 600.0
    """Between two times that the database looks for damage in itself, when /readyz is asked."""
    behind: int = 20_000
    """In entries: the reader of a stream that was level once and is further behind than this skips
    ahead, and is told so."""


def _all_well() -> Mapping[str, Trouble]:
    return {}


def _nobody() -> Sequence[AgentState]:
    return ()


def _is_not_stopping() -> bool:
    return False


class Door(Struct, frozen=True):
    """Everything that the door needs; put together by `bootstrap`."""

    hub: Hub
    interpreter: Interpreter
    identity: Identity
    settings: Settings
    hints: Hints
    """Told by the engine after every commit."""
    duties: Callable[[], Mapping[str, Trouble]] = _all_well
    """Each duty of the hub by name, and what is wrong with it."""
    fleet: Callable[[], Sequence[AgentState]] = _nobody
    """How each agent stands that the hub starts."""
    is_stopping: Callable[[], bool] = _is_not_stopping
    """Whether the hub gives out no more work."""
    patience: Patience = Patience()
    monotonic: Callable[[], float] = monotonic
    """Seconds that only ever grow, for rates and waits."""
