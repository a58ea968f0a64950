"""Simulated disk after a power cut: all synced changes, and any selection of the others.

Writes that were not synced are kept, dropped, torn between sectors and reordered; a file that grew
may have its new length and none of its new bytes; names come and go with their folder.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeVar

SECTOR = 512
"""Number of bytes that a disk writes whole, or not at all."""

Files = dict[str, bytes]
"""Name -> content, of one folder."""

Write = tuple[int, bytes]
"""Offset, and the bytes written there."""

T = TypeVar("T")


class Inode:
    """File, independent of its name."""

    def __init__(self, content: bytes = b"") -> None:
        self.synced = content
        self.pending: list[Write | int] = []
        """Writes and truncations since the last sync."""

    def after(self, outcome: "CutOutcome", rng: Random) -> bytes:
        """Content after a power cut."""
        if not self.pending or outcome is keep_synced_only:
            return self.synced
        content = bytearray(self.synced)
        outcome(content, self.pending, rng)
        return bytes(content)


class SimulatedDisk:
    """Folder on a disk."""

    def __init__(self, files: Files) -> None:
        self._names: dict[str, Inode | None] = {
            name: Inode(content) for name, content in files.items()
        }
        self._renamed: list[tuple[str, Inode | None]] = []
        """Names changed since the last sync of the folder, and their new files."""
        self._inodes: dict[int, Inode] = {}
        self._verbs: dict[str, Callable[..., None]] = {
            "open": self._open,
            "create": self._create,
            "delete": self._delete,
            "write": self._write,
            "truncate": self._truncate,
            "sync": self._sync,
            "sync_folder": self._sync_folder,
            "fail_to_sync": self._fail_to_sync,
            "notice_nothing": self._ignore,
        }

    def do(self, verb: str, *arguments: Any) -> None:
        """Do one recorded operation."""
        self._verbs[verb](*arguments)

    def _open(self, inode: int, name: str) -> None:
        """Bind the number to the file of this name."""
        found = self._visible_names().get(name)
        assert found is not None, f"nobody has made {name}"
        self._inodes[inode] = found

    def _create(self, inode: int, name: str) -> None:
        """Create a file."""
        self._inodes[inode] = Inode()
        self._renamed.append((name, self._inodes[inode]))

    def _delete(self, name: str) -> None:
        """Delete a name; its file may come back until the folder is synced."""
        self._renamed.append((name, None))

    def _write(self, inode: int, offset: int, data: bytes) -> None:
        """Write bytes, not yet synced."""
        self._inodes[inode].pending.append((offset, data))

    def _truncate(self, inode: int, size: int) -> None:
        """Truncate, not yet synced."""
        self._inodes[inode].pending.append(size)

    def _sync(self, inode: int) -> None:
        """Make all changes of a file durable."""
        file = self._inodes[inode]
        content = bytearray(file.synced)
        _apply(content, file.pending)
        file.synced = bytes(content)
        file.pending.clear()

    def _sync_folder(self) -> None:
        """Make all names durable."""
        self._names = {
            name: inode for name, inode in self._visible_names().items() if inode is not None
        }
        self._renamed.clear()

    def _fail_to_sync(self, inode: int) -> None:
        """Drop what was to be synced; no later sync brings it back, as on Linux."""
        self._inodes[inode].pending.clear()

    def _ignore(self, *_: object) -> None:
        """Ignore what is no operation of a disk: another failure, or the end of a process."""

    def is_settled(self) -> bool:
        """A power cut has only one outcome."""
        files = (file for file in self._visible_names().values() if file is not None)
        return not self._renamed and not any(file.pending for file in files)

    def cut(self, outcome: "CutOutcome", rng: Random) -> Files:
        """Files after a power cut."""
        names = self._names | {name: None for name, _ in self._renamed if name not in self._names}
        found: Files = {}
        for name, before in names.items():
            later = [inode for renamed, inode in self._renamed if renamed == name]
            inode = _choose_target([before, *later], outcome, rng)
            if inode is not None:
                found[name] = inode.after(outcome, rng)
        return found

    def _visible_names(self) -> dict[str, Inode | None]:
        """Names as every process sees them."""
        return self._names | dict(self._renamed)


CutOutcome = Callable[[bytearray, list[Write | int], Random], None]
"""Applies to the synced content what a cut leaves of the unsynced changes."""


def keep_synced_only(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep no unsynced change."""


def keep_everything(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep every change."""
    _apply(content, pending)


def keep_first_changes(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep the first changes; the last of them is torn."""
    count = rng.randint(0, len(pending))
    _apply(content, pending[:count])
    _apply(content, _tear(pending[count : count + 1], rng, 0.5))


def keep_last_changes(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep the last changes, and drop the first."""
    _apply(content, pending[rng.randint(0, len(pending)) :])


def drop_one_change(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Drop one change, or a sector of it."""
    at = rng.randrange(len(pending)) if pending else 0
    _apply(content, [*pending[:at], *_tear(pending[at : at + 1], rng, 0.9), *pending[at + 1 :]])


def keep_random_changes(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep or drop each change."""
    _apply(content, [change for change in pending if rng.random() < 0.5])


def keep_random_sectors(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep or drop each sector; of one that was written twice, either may be the last."""
    writes = _tear(pending, rng, rng.choice((0.1, 0.5, 0.9)))
    rng.shuffle(writes)
    _apply(content, writes)


def keep_length_only(content: bytearray, pending: list[Write | int], rng: Random) -> None:
    """Keep the length, with zeros for bytes that did not arrive."""
    whole = bytearray(content)
    _apply(whole, pending)
    _apply(content, _tear(pending, rng, 0.5))
    content.extend(bytes(max(0, len(whole) - len(content))))


DETERMINISTIC_OUTCOMES: tuple[CutOutcome, ...] = (keep_synced_only, keep_everything)
"""Outcomes without chance."""

RANDOM_OUTCOMES: tuple[CutOutcome, ...] = (
    keep_first_changes,
    keep_last_changes,
    drop_one_change,
    keep_random_changes,
    keep_random_sectors,
    keep_length_only,
)


def _choose_target(states: list[T], outcome: CutOutcome, rng: Random) -> T:
    """Choose the file of a name: that of the last sync of its folder, or any since."""
    if len(states) == 1 or outcome is keep_synced_only:
        return states[0]
    return states[-1] if outcome is keep_everything else rng.choice(states)


def _apply(content: bytearray, changes: Iterable[Write | int]) -> None:
    for change in changes:
        if isinstance(change, int):
            del content[change:]
            content.extend(bytes(change - len(content)))
        else:
            offset, data = change
            if offset > len(content):
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data


def _tear(changes: Iterable[Write | int], rng: Random, share: float) -> list[Write | int]:
    """Split the changes into sectors; about this share of them is kept."""
    return [
        write
        for change in changes
        for write in ([change] if isinstance(change, int) else _split_sectors(*change))
        if rng.random() < share
    ]


def _split_sectors(offset: int, data: bytes) -> list[Write]:
    ends = range(SECTOR - offset % SECTOR, len(data) + SECTOR, SECTOR)
    starts = [0, *ends]
    return [(offset + start, data[start:end]) for start, end in zip(starts, ends, strict=False)]
