"""Packing while files move or disappear: each is copied whole, or left out."""

import fcntl
import io
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.bootstrap.stores import open_store
from dragoman.files.archive import BACKUP, ArchiveSource, ArchiveWriter, write_archive
from dragoman.files.layout import FOLDERS_LOCK
from dragoman.system.safe_fs import FileStat, SafeDisk
from tests.crash.data_directories import no_progress
from tests.engine.lab import START
from tests.requirements import proves

CONTENT = b"precious"
READY, IN_PROGRESS = "tasks/ready", "tasks/in-progress"
MOVES = {
    READY: (FOLDERS_LOCK, f"{READY}/T-1", f"{IN_PROGRESS}/T-1"),
    f"{READY}/T-2": (FOLDERS_LOCK, f"{READY}/T-2", f"{IN_PROGRESS}/T-2"),
    "inbox": ("inbox.lock", "inbox/letter.json", "inbox/.taken-letter.json"),
    "imported": ("none.lock", "imported/gone.txt", "gone.txt"),
}
"""Folder -> move of another process right after it was listed, and the lock that prevents it."""


class MovingDisk(SafeDisk):
    """Disk on which files are moved whenever no lock prevents it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._top = root

    def list(self, folder: str) -> list[FileStat]:
        found = super().list(folder)
        if folder in MOVES:
            lock, old, new = MOVES[folder]
            with (self._top / lock).open("w") as lock_file:
                try:
                    fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return found
                (self._top / old).rename(self._top / new)
        return found


@proves("BACKUP-ONLINE")
def test_moves_wait_for_packing_and_removed_file_is_omitted(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    kept = [f"{READY}/T-1/a", f"{READY}/T-2/b", "inbox/letter.json", "imported/stays.txt"]
    for name in (*kept, "imported/gone.txt", f"{IN_PROGRESS}/T-3/c"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(CONTENT)
    store = open_store("", data, new_ledger_id=lambda: "ledger")
    target = tmp_path / "all.tar"

    source = ArchiveSource(store, MovingDisk(data), "1", START)
    write_archive(source, BACKUP, target, no_progress)

    store.close()
    with tarfile.open(target) as tar:
        packed = {info.name: info.size for info in tar if "files/" in info.name}
    assert packed == {f"files/{name}": len(CONTENT) for name in (*kept, f"{IN_PROGRESS}/T-3/c")}


class RacingDisk(SafeDisk):
    """Disk on which a task's folder moves right before a lock is taken."""

    def __init__(self, root: Path, moves: dict[int, tuple[str, str]]) -> None:
        super().__init__(root)
        self.locks_taken = 0
        self._top, self._moves = root, moves

    @contextmanager
    def lock(self, path: str) -> Generator[None]:
        self.locks_taken += 1
        old, new = self._moves.get(self.locks_taken, ("", ""))
        if (self._top / old).exists() and old:
            (self._top / old).rename(self._top / new)
        with super().lock(path):
            yield


TASK_FOLDERS = ("tasks/backlog/T-1", "tasks/done/T-2", "tasks/ready/T-3")


@proves("BACKUP-ONLINE")
@pytest.mark.parametrize("task_folder", TASK_FOLDERS)
@pytest.mark.parametrize("route", ["there", "there and back", "on and on"])
def test_task_moved_at_any_moment_is_packed_once(
    tmp_path: Path, task_folder: str, route: str
) -> None:
    name = task_folder.rpartition("/")[2]
    waypoints = [f"tasks/{status}/{name}" for status in ("aside", "blocked", "review")]
    moves = {
        "there": [(task_folder, waypoints[0])],
        "there and back": [(task_folder, waypoints[2]), (waypoints[2], task_folder)],
        "on and on": [
            (task_folder, waypoints[2]),
            (waypoints[2], waypoints[1]),
            (waypoints[1], waypoints[0]),
        ],
    }[route]
    for first in range(1, 7):
        data = tmp_path / str(first)
        for folder in (*TASK_FOLDERS, *waypoints):
            (data / folder).parent.mkdir(parents=True, exist_ok=True)
        for folder in TASK_FOLDERS:
            (data / folder).mkdir()
            (data / folder / "notes").write_bytes(CONTENT)
        (data / "tasks/ready/same").touch()
        (data / "tasks/done/same").touch()
        disk = RacingDisk(data, dict(enumerate(moves, first)))
        with tarfile.open(fileobj=io.BytesIO(), mode="w") as tar:
            packer = ArchiveWriter(tar, disk)
            packer.add_tasks()
            names = tar.getnames()

        packed = sorted(name.split("/", 3)[3] for name in names)
        assert packed == ["T-1/notes", "T-2/notes", "T-3/notes", "same", "same"], first
        assert disk.locks_taken > len(TASK_FOLDERS)


@proves("BACKUP-WHOLE")
def test_symlink_is_listed_as_omitted_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("dragoman.toml", "keys", "tasks", "teamspaces"):
        (data / name).symlink_to(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(), mode="w") as tar:
        packer = ArchiveWriter(tar, SafeDisk(data))
        for name in ("dragoman.toml", "keys/ledger.key", "keys/secret", "token"):
            packer.add_file(name)
        packer.add_tasks()
        packer.add_tree("teamspaces")
        assert tar.getnames() == []

    assert packer.omitted == ["dragoman.toml", "keys", "tasks", "teamspaces"]
