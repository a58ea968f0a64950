"""What a git repository has checked out, read from its own files: no program is started for it.

Every transition of a task asks for it, so it is remembered until one of the files changes.
"""

import re
from pathlib import Path
from typing import Final

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_REF: Final = "ref: "
_DIRECTORY: Final = "gitdir: "
_LINKS: Final = 5
"""Limit of symbolic refs that are followed."""

Mark = tuple[int, int, int] | None
"""Inode, size and modification time of a file that was read."""


class GitHead:
    """Reads HEAD of a repository or worktree."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository.resolve()
        self._read: dict[Path, Mark] = {}
        self._commit = ""

    def __call__(self) -> str:
        """Commit of HEAD; empty when there is no repository, or no commit in it yet."""
        if not self._read or any(_mark(path) != mark for path, mark in self._read.items()):
            self._read = {}
            self._commit = self._find()
        return self._commit

    def _find(self) -> str:
        own = self._directory()
        common = own / self._text(own / "commondir") if (own / "commondir").exists() else own
        named = self._text(own / "HEAD")
        for _ in range(_LINKS):
            if not named.startswith(_REF):
                break
            ref = named.removeprefix(_REF)
            named = self._text(own / ref) or self._text(common / ref) or self._packed(common, ref)
        return named if _COMMIT.fullmatch(named) else ""

    def _directory(self) -> Path:
        """The `.git` folder, or the one that a worktree's `.git` file points at.

        As git does, it is looked for in parent folders, too.
        """
        for folder in (self._repository, *self._repository.parents):
            at = folder / ".git"
            self._read[at] = _mark(at)
            if at.is_file():
                return folder / self._text(at).removeprefix(_DIRECTORY)
            if at.is_dir():
                return at
            if (folder / "HEAD").is_file() or not folder.is_dir():
                return folder
        return self._repository

    def _packed(self, common: Path, ref: str) -> str:
        for line in self._text(common / "packed-refs").splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return commit
        return ""

    def _text(self, path: Path) -> str:
        """Text of a file, empty when it is missing; its next change is noticed."""
        # Marked before it is read, so that a change during the read is noticed.
        self._read.setdefault(path, _mark(path))
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return ""


def _mark(path: Path) -> Mark:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
