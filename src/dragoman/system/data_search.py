"""Search for the data directory: from the working directory upwards, as git finds a repository.

The thin client searches, too, so that hardly anything is imported here.
"""

import os
import stat

FOLDER = ".dragoman"
"""Name of a data directory that is found without being named."""


def find_data() -> tuple[str, str]:
    """Path of the nearest data directory, and of a nearer one that belongs to another user.

    Each is empty if there is none. In the working directory itself the path is relative. A
    directory of another user is used only if it is named, because its settings start programs.
    """
    if _is_own(FOLDER):
        return FOLDER, ""
    foreign, folder = "", _working_directory()
    while folder:
        path = os.path.join(folder, FOLDER)
        if _is_own(path):
            return path, foreign
        if not foreign and os.path.isdir(path):
            foreign = path
        above = os.path.dirname(folder)
        folder = "" if above == folder else above
    return "", foreign


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _is_own(path: str) -> bool:
    """Tell whether a directory is there, and it and a link to it belong to this user."""
    try:
        found = os.lstat(path)
        target = os.stat(path) if stat.S_ISLNK(found.st_mode) else found
    except OSError:
        return False
    return stat.S_ISDIR(target.st_mode) and found.st_uid == target.st_uid == os.geteuid()
