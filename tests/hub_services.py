"""Background services of a hub as shipped, with everything but the store kept in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from dragoman.bootstrap.dialects import trace_choices
from dragoman.bootstrap.services import ServicePorts, service_groups
from dragoman.config import Settings
from dragoman.core.backoff import Backoff
from dragoman.core.check_state import CheckResult
from dragoman.core.errors import DragomanError, StoreCorrupt
from dragoman.engine.hub import Hub
from dragoman.engine.redaction_carry_over import StoredCarryOver
from dragoman.engine.router import Router
from dragoman.ledger.checkpoint import Checkpoint, Tree, tree_root
from dragoman.notify.notification import Notification
from dragoman.protocols import saop
from dragoman.services.check_runner import CheckRunner
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.deliverer import Deliverer
from dragoman.services.notifier import Notifier
from dragoman.services.scheduler import Service
from dragoman.system.redaction_carry_over_file import STALE_SECONDS


class CarryOverInMemory(saop.MemoryCarryOver):
    """Carry-over of thought chunks in memory; it outlives the hub."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now
        self._stored_at: dict[str, int] = {}

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        """Store carry-over for the next chunks."""
        super().put(updates)
        self._stored_at.update((end.key, self._now()) for end in updates)

    def find_stale(self, is_recorded: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Carry-over that no chunk has followed for minutes."""
        old = self._now() - STALE_SECONDS * 1_000
        keys = [key for key in self._tails if self._stored_at[key] < old]
        return [(key, self.get(key, is_recorded)) for key in keys]

    def drop(self, key: str) -> None:
        """Drop a carry-over that has been recorded."""
        self._tails.pop(key, None)


class MemoryCursor:
    """Cursor of the deliverer, in memory."""

    def __init__(self) -> None:
        self.data = b""

    def load(self) -> bytes:
        """Return the saved data."""
        return self.data

    def save(self, data: bytes) -> None:
        """Save the data."""
        self.data = data


class Disk:
    """Files beside the database, in memory; they outlive the hub."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.delivered: list[Notification] = []
        """Notifications in the order of their delivery."""
        self.failed_lines: list[bytes] = []
        self._outbox = b""
        self.delivery_cursor = MemoryCursor()
        self.delivery_files: dict[str, bytes] = {}
        self.tails = CarryOverInMemory(now)

    def write_delivery(self, agent: str, name: str, content: bytes) -> None:
        """Write a delivered message."""
        self.delivery_files[f"{agent}/{name}"] = content

    # Checkpoints

    def last(self) -> Checkpoint | None:
        """Return the newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Append a checkpoint, without a signature: no test here forges one."""
        peaks = tuple(peak.hex() for peak in tree.peaks)
        self.checkpoints.append(
            Checkpoint(ledger, tree.size, tree_root(tree).hex(), peaks, str(at), "")
        )

    def find_removal(self, issued: Mapping[str, str]) -> str:
        """Find out whether there are fewer checkpoints than were issued."""
        is_whole = f"{len(self.checkpoints)}" == issued.get("memory", "0")
        return "" if is_whole else "checkpoints are missing"

    def measure(self, issued: Mapping[str, str]) -> tuple[str, str]:
        """Number of checkpoints."""
        del issued
        return "memory", f"{len(self.checkpoints)}"

    # The outbox

    def try_lock(self) -> Any:
        """Lock of the outbox; always acquired, as there is one hub only."""
        return nullcontext(True)

    def load(self) -> bytes:
        """Load the saved cursors of the targets."""
        return self._outbox

    def save(self, data: bytes) -> None:
        """Save the cursors of the targets."""
        self._outbox = data

    def damaged_error(self) -> DragomanError:
        """Error for a damaged outbox; never used here."""
        return StoreCorrupt("the outbox is damaged")

    def record_failed(self, line: bytes) -> None:
        """Save a notification that could not be delivered."""
        self.failed_lines.append(line)

    def read_failed(self) -> Iterable[bytes]:
        """Lines of all notifications that could not be delivered."""
        return self.failed_lines


def _run_no_check(*_: object) -> CheckResult:
    raise AssertionError("no task here has checks")


def build_services(
    disk: Disk,
    notifier: Notifier,
    hub: Hub,
    router: Router,
    settings: Settings,
) -> tuple[Service, ...]:
    """Build all services in their order, without those for plain files."""
    traces = trace_choices(settings, hub.redaction.redactor, hub, lambda: "")
    outside = ServicePorts(
        carry_over=disk.tails,
        close_stream=partial(saop.final_chunk, choices=traces),
        checkpointer=Checkpointer(hub, disk),
        notifier=notifier,
        check_runner=CheckRunner(hub, _run_no_check, 1, lambda _: False, Backoff()),
        owner_notifier=Notifier(hub, disk, lambda _: None, (), float, "owner-inbox"),
        deliverer=Deliverer(hub, router.dialects, disk.delivery_cursor, disk.write_delivery),
    )
    groups = service_groups(hub, settings, router, outside)
    return tuple(service for group in groups for service in group.all)
