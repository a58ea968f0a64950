"""The duties of a hub as they are shipped, where everything beside its store is kept in memory."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from dragoman.bootstrap.duties import Outside, all_duties
from dragoman.bootstrap.traces import trace_choices
from dragoman.config import Settings
from dragoman.core.errors import DragomanError, StoreCorrupt
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.rests import Left
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.tree import Tree, root
from dragoman.notify.notice import Notice
from dragoman.protocols import saop
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.clockwork import Duty
from dragoman.services.notifier import Notifier
from dragoman.services.workq import HubWorkq
from dragoman.system.chunk_tails import PATIENCE


class CarryOverInMemory(saop.ShortTails):
    """What chunks of thoughts have held back; it outlives the hub, too."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now
        self._stored_at: dict[str, int] = {}

    def put(self, left: Sequence[Left]) -> None:
        """Keep these for the next ones."""
        super().put(left)
        self._stored_at.update((end.key, self._now()) for end in left)

    def left(self, is_recorded: Callable[[str], bool]) -> list[tuple[str, str]]:
        """What no chunk has come to for minutes."""
        old = self._now() - PATIENCE * 1_000
        keys = [key for key in self._tails if self._stored_at[key] < old]
        texts = [(key, self.get(key, is_recorded)) for key in keys]
        for key, text in texts:
            if not text:
                self.drop(key)
        return [(key, text) for key, text in texts if text]

    def drop(self, key: str) -> None:
        """It was told."""
        self._tails.pop(key, None)


class Disk:
    """What lies beside the database, and outlives the hub."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.delivered: list[Notice] = []
        """What the one who is notified has heard, in its order."""
        self.failed_lines: list[bytes] = []
        self._outbox = b""
        self.tails = CarryOverInMemory(now)

    # Checkpoints

    def last(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """One more; nobody forges them here, so they go without a signature."""
        peaks = tuple(peak.hex() for peak in tree.peaks)
        self.checkpoints.append(Checkpoint(ledger, tree.size, root(tree).hex(), peaks, str(at), ""))

    # The outbox

    def alone(self) -> Any:
        """There is one hub only."""
        return nullcontext(True)

    def load(self) -> bytes:
        """How far each target has come."""
        return self._outbox

    def save(self, data: bytes) -> None:
        """Keep it."""
        self._outbox = data

    def damaged(self) -> DragomanError:
        """It never is."""
        return StoreCorrupt("the outbox is damaged")

    def give_up(self, line: bytes) -> None:
        """What could not be delivered."""
        self.failed_lines.append(line)

    def given_up(self) -> Iterable[bytes]:
        """All of that."""
        return self.failed_lines


def build_services(
    disk: Disk,
    notifier: Notifier[Notice],
    hub: Hub,
    interpreter: Interpreter,
    settings: Settings,
) -> tuple[Duty, ...]:
    """All duties, in their order; there are no files to see to."""
    traces = trace_choices(settings, hub.redaction.redactor, hub, lambda: "")
    outside = Outside(
        workq=HubWorkq(hub),
        tails=disk.tails,
        end_thought=partial(saop.last_chunk, choices=traces),
        checkpointer=Checkpointer(hub, disk),
        notifier=notifier,
    )
    groups = all_duties(hub, settings, interpreter, outside)
    return tuple(service for group in groups for service in group.all)
