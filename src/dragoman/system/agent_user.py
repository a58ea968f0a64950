"""Users of the system that agents run as, and the files that are theirs.

A hub that may switch users opens a way through its data directory to the folders of such agents,
and closes everything else. Files that the hub makes there are closed to others (mode 0640), but
belong to the agent's group where its folder says so (set-group-ID): so the agent reads what comes
later.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from dragoman.core.errors import SettingsError

_WAY_MODE: Final = 0o711
"""Mode of a folder that others may pass through, and not list."""
_OTHERS: Final = stat.S_IRWXO
_ROOT: Final = 0


class AgentUser(Struct, frozen=True):
    """A user of the system, with its groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def variables(self) -> dict[str, str]:
        """Variables by which programs know who they are."""
        return {
            "HOME": self.home,
            "USER": self.name,
            "LOGNAME": self.name,
            "SHELL": self.shell or "/bin/sh",
        }


def find_user(name: str, label: str) -> AgentUser:
    """Find a user that agents may run as; SettingsError, which names the setting, if none."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise SettingsError(
            f"{label}: this machine has no user {name!a}; make one (`useradd --system --user-group "
            "--create-home NAME`), or name another"
        ) from None
    if os.geteuid() != _ROOT:
        raise SettingsError(
            f"{label}: this hub runs as {_name_of(os.geteuid())}, who may not start programs as "
            f'{name}: start the hub as root, or use sandbox = "bwrap" instead'
        )
    groups = tuple(os.getgrouplist(name, found.pw_gid))
    if found.pw_uid == _ROOT:
        raise SettingsError(f"{label}: {name} may do everything; name a user without rights")
    if os.getegid() in groups:
        raise SettingsError(
            f"{label}: {name} is in the group {_group_name(os.getegid())}, which is the hub's and "
            "can read its files: take the user out of it, or name another"
        )
    return AgentUser(name, found.pw_uid, found.pw_gid, groups, found.pw_dir, found.pw_shell)


def check_way(user: AgentUser, data: Path, label: str) -> None:
    """Raise SettingsError if a folder above the data directory keeps the user out."""
    for folder in reversed(data.absolute().parents):
        found = folder.stat()
        if found.st_uid == user.uid:
            may_pass = found.st_mode & stat.S_IXUSR
        elif found.st_gid in user.groups:
            may_pass = found.st_mode & stat.S_IXGRP
        else:
            may_pass = found.st_mode & stat.S_IXOTH
        if not may_pass:
            raise SettingsError(
                f"{label}: {user.name} cannot pass through {folder} to its folders in the data "
                f"directory: move that elsewhere, or run `chmod o+x {folder}`"
            )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"{gid}"


# --- files of the data directory --------------------------------------------------------------


def open_way(data: Path, ways: Iterable[str]) -> None:
    """Let others pass through these folders, and close all that stands beside them in their
    parents."""
    passed = [data, *(data / way for way in ways)]
    for folder in passed:
        folder.mkdir(mode=_WAY_MODE, exist_ok=True)
        for entry in os.scandir(folder):
            if Path(entry.path) not in passed:
                _close_to_others(entry)
    for folder in passed:
        folder.chmod(_WAY_MODE)


def _close_to_others(entry: os.DirEntry[str]) -> None:
    with suppress(FileNotFoundError):
        mode = entry.stat(follow_symlinks=False).st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            Path(entry.path).chmod(stat.S_IMODE(mode) & ~_OTHERS)


def give_folder(folder: Path, user: AgentUser) -> None:
    """Make a folder and all in it the user's own; what others put there later is its group's."""
    _change_tree(folder, user.uid, user.gid, stat.S_IRWXU | stat.S_ISGID)


def show_folder(folder: Path, user: AgentUser) -> None:
    """Let a user read a folder and all in it, also what is put there later."""
    readable = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_ISGID
    _change_tree(folder, -1, user.gid, readable)


def _change_tree(top: Path, uid: int, gid: int, folder_mode: int) -> None:
    """Change the owner of a tree, following no link: agents have written in it."""
    for _, _, files, descriptor in os.fwalk(top):
        for name in files:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if found.st_nlink == 1:  # another name of it may stand elsewhere
                    os.chown(name, uid, gid, dir_fd=descriptor, follow_symlinks=False)
        os.chown(descriptor, uid, gid)
        os.fchmod(descriptor, folder_mode)
