"""Power cuts: contents and names that were not synced are gone, and the projection is repaired."""

import os
import shutil
import stat
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Self

import pytest

from dragoman.core.task_state import MoveTask, NoteTask
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import ALICE
from tests.files.lab import CrashingDisk, FilesLab, Killed, read_tree
from tests.requirements import proves


class SyncedFolder:
    """Synced state of a folder: each file and folder as it was at its last fsync.

    Every file that was ever synced is kept open, so that its inode number is not reused.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._contents: dict[int, tuple[bytes, int]] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open_files: dict[int, int] = {}
        self._lock = Lock()
        self._sync = os.fsync

    def __enter__(self) -> Self:
        """Record all files, and watch fsync."""
        for path in (self._root, *self._root.rglob("*")):
            descriptor = os.open(path, os.O_RDONLY)
            self._remember(descriptor)
            os.close(descriptor)
        os.fsync = self._on_fsync
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        os.fsync = self._sync
        for descriptor in self._open_files.values():
            os.close(descriptor)

    def _on_fsync(self, descriptor: int) -> None:
        with self._lock:
            self._remember(descriptor)

    def _remember(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            names = {name: os.stat(name, dir_fd=descriptor) for name in os.listdir(descriptor)}
            self._names[found.st_ino] = {name: inner.st_ino for name, inner in names.items()}
            for name, inner in names.items():
                self._hold(inner.st_ino, os.open(name, os.O_RDONLY, dir_fd=descriptor))
                if stat.S_ISDIR(inner.st_mode):
                    self._names.setdefault(inner.st_ino, {})
        else:
            self._hold(found.st_ino, os.dup(descriptor))
            path = f"/proc/self/fd/{descriptor}"
            self._contents[found.st_ino] = (Path(path).read_bytes(), found.st_mtime_ns)

    def _hold(self, inode: int, descriptor: int) -> None:
        os.close(self._open_files.pop(inode)) if inode in self._open_files else None
        self._open_files[inode] = descriptor

    def cut(self, target: Path) -> None:
        """Write the synced state to another folder, as it is found after a power cut."""
        shutil.rmtree(target, ignore_errors=True)
        self._restore(self._root.stat().st_ino, target)

    def _restore(self, folder: int, target: Path) -> None:
        target.mkdir()
        for name, inode in self._names[folder].items():
            if inode in self._names:
                self._restore(inode, target / name)
            else:
                content, mtime = self._contents.get(inode, (b"", 0))
                (target / name).write_bytes(content)
                os.utime(target / name, ns=(mtime, mtime))


def claim_task(data: Path) -> tuple[FilesLab, str]:
    """Claim a task whose files are up to date."""
    data.mkdir()
    lab = FilesLab(data)
    task = lab.create()
    lab.claim(task)
    return lab, task


@proves("FILES-CRASH")
def test_acknowledged_files_survive_power_cut(tmp_path: Path) -> None:
    lab, task = claim_task(tmp_path / "data")
    with SyncedFolder(lab.data) as synced:
        lab.do(ALICE, NoteTask(task, "half"))
        lab.catch_up()
        lab.do(ALICE, MoveTask(task, "review"))
        lab.catch_up()
        synced.cut(tmp_path / "after")
    assert read_tree(tmp_path / "after") == read_tree(lab.data)


@proves("FILES-CRASH")
@pytest.mark.parametrize("step", ["note", "move", "all anew"])
def test_power_cut_between_operations_is_repaired(tmp_path: Path, step: str) -> None:
    operations, ended = 0, False
    while not ended:
        lab, task = claim_task(tmp_path / f"data{operations}")
        if step == "note":
            lab.do(ALICE, NoteTask(task, "half"))
        elif step == "move":
            lab.do(ALICE, MoveTask(task, "review"))
        else:
            (lab.data / "projection.json").unlink()
            lab.do(ALICE, NoteTask(task, "half"))
        after = tmp_path / f"after{operations}"
        with SyncedFolder(lab.data) as synced:
            try:
                lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
                ended = True
            except Killed:
                operations += 1
            synced.cut(after)
        lab.catch_up()
        expected = read_tree(lab.data)
        lab.projector(data=after).catch_up()
        found = read_tree(after)
        assert found == expected, f"after {operations} operations"
        assert list(partial(lab.projector(data=after).compare, lambda _: None)()) == []
    assert operations > 5
