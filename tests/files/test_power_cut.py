"""A power cut forgets whatever was not synced: contents and names. Nothing that counts is lost."""

import os
import shutil
import stat
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Self

import pytest

from dragoman.core.commands import MoveTask, NoteTask
from dragoman.system.beneath import Beneath
from tests.engine.lab import ALICE
from tests.files.lab import Died, FilesLab, MortalDisk, tree
from tests.requirements import proves


class Platter:
    """What of a folder is on the disk for good: each file and folder as it was last synced.

    Every file that was ever synced is kept open, so that no other takes over its number.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._contents: dict[int, tuple[bytes, int]] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._held: dict[int, int] = {}
        self._lock = Lock()
        self._sync = os.fsync

    def __enter__(self) -> Self:
        """Begin with all that there is, and listen."""
        for path in (self._root, *self._root.rglob("*")):
            descriptor = os.open(path, os.O_RDONLY)
            self._take(descriptor)
            os.close(descriptor)
        os.fsync = self._heard
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        os.fsync = self._sync
        for descriptor in self._held.values():
            os.close(descriptor)

    def _heard(self, descriptor: int) -> None:
        with self._lock:
            self._take(descriptor)

    def _take(self, descriptor: int) -> None:
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
        os.close(self._held.pop(inode)) if inode in self._held else None
        self._held[inode] = descriptor

    def cut(self, target: Path) -> None:
        """What is found when the power comes back."""
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


def lived(data: Path) -> tuple[FilesLab, str]:
    """A task whose files are level, and what happens to it next."""
    data.mkdir()
    lab = FilesLab(data)
    task = lab.create()
    lab.claim(task)
    return lab, task


@proves("FILES-CRASH")
def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    lab, task = lived(tmp_path / "data")
    with Platter(lab.data) as platter:
        lab.do(ALICE, NoteTask(task, "half"))
        lab.level()
        lab.do(ALICE, MoveTask(task, "review"))
        lab.level()
        platter.cut(tmp_path / "after")
    assert tree(tmp_path / "after") == tree(lab.data)


@proves("FILES-CRASH")
@pytest.mark.parametrize("step", ["note", "move", "all anew"])
def test_a_power_cut_between_any_two_operations_is_made_good(tmp_path: Path, step: str) -> None:
    operations, ended = 0, False
    while not ended:
        lab, task = lived(tmp_path / f"data{operations}")
        if step == "note":
            lab.do(ALICE, NoteTask(task, "half"))
        elif step == "move":
            lab.do(ALICE, MoveTask(task, "review"))
        else:
            (lab.data / "projection.json").unlink()
            lab.do(ALICE, NoteTask(task, "half"))
        after = tmp_path / f"after{operations}"
        with Platter(lab.data) as platter:
            try:
                lab.projector(MortalDisk(Beneath(lab.data), operations)).level()
                ended = True
            except Died:
                operations += 1
            platter.cut(after)
        lab.level()
        expected = tree(lab.data)
        lab.projector(data=after).level()
        found = tree(after)
        assert found == expected, f"after {operations} operations"
        assert list(partial(lab.projector(data=after).compare, lambda _: None)()) == []
    assert operations > 5
