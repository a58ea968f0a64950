"""Hub in memory with its files beneath a temporary folder, and disks that fail on purpose."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.files.projector import Projector
from dragoman.ledger.entry import Entry, read_line
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import ALICE, HUMAN, Lab


class Killed(Exception):
    """The process was killed."""


class CrashingDisk:
    """Disk whose process is killed before its n-th changing operation."""

    changing: tuple[str, ...] = (
        *(
            "write",
            "append",
            "replace",
            "replace_if_unchanged",
            "move",
            "remove",
            "remove_if_unchanged",
            "remove_folder",
            "make_folder",
            "make_folders",
            "sync",
        ),
    )

    def __init__(self, disk: SafeDisk, operations: int) -> None:
        self._disk = disk
        self.operations_left = operations

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._disk, verb)
        if verb not in self.changing:
            return method

        def counted(*arguments: Any) -> Any:
            if not self.operations_left:
                raise Killed
            self.operations_left -= 1
            return method(*arguments)

        return counted


def render(
    entry: Entry, aof_id_of: Callable[[str], str], task_of: Callable[[Entry], str]
) -> list[bytes]:
    """Render two event lines for each entry of a task: enough to see what is written, and how
    often."""
    del task_of
    kind, _, name = entry.stream.partition(":")
    if kind != "task":
        return []
    line = read_line(entry.line)
    return [
        msgspec.json.encode(
            {
                "eventId": entry.position * 10 + number,
                "type": line.event,
                "taskId": aof_id_of(name),
            }
        )
        for number in range(2)
    ]


class FilesLab(Lab):
    """Lab of the engine, with a projector."""

    def __init__(self, data: Path, *, trust_moves: bool = False) -> None:
        super().__init__()
        self.data = data
        self.trust_moves = trust_moves
        self.warnings: list[str] = []

    def projector(self, disk: Any = None, data: Path | None = None) -> Projector:
        """Make a projector, as in a new process."""
        return Projector(
            self.hub,
            disk or SafeDisk(data or self.data),
            render,
            self.warnings.append,
            trust_moves=self.trust_moves,
        )

    def catch_up(self) -> None:
        """Bring the files up to date, as a command does at its end."""
        self.projector().catch_up()

    def scan(self) -> int:
        """Scan the files, as a tick does."""
        return self.projector().scan()

    def create(self, title: str = "Fix it", **more: Any) -> str:
        """Make a ready task, and project it; returns its AOF id."""
        receipt = self.do(HUMAN, CreateTask(title, ready=True, **more))
        self.catch_up()
        return self.task(receipt.task).aof_id

    def claim_only(self, task: str) -> None:
        """Claim a task as alice."""
        self.do(ALICE, ClaimTask(task, "alice"))

    def claim(self, task: str) -> None:
        """Claim a task as alice, and project it."""
        self.claim_only(task)
        self.catch_up()

    def path(self, status: str, task: str) -> Path:
        """Path of a task's file."""
        return self.data / "tasks" / status / f"{task}.md"

    def edit(self, status: str, task: str, old: str, new: str) -> None:
        """Edit the task's file in place, as a person does."""
        path = self.path(status, task)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def differences(self) -> list[tuple[str, str]]:
        """Differences that `verify` would find."""
        found = self.projector().compare(lambda _: None)
        return [(difference.path, difference.problem) for difference in found]


def read_tree(folder: Path) -> dict[str, bytes]:
    """Contents of all files beneath a folder, except locks."""
    return dict(_files(folder, folder))


def _files(root: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _files(root, path)
        elif path.suffix != ".lock":
            yield str(path.relative_to(root)), path.read_bytes()


def list_statuses(lab: FilesLab, task: str) -> list[str]:
    """Statuses in whose folders the task has a file."""
    return sorted(path.parent.name for path in lab.data.glob(f"tasks/*/{task}.md"))
