"""Sandboxes of bubblewrap: a program sees the system's programs and the folders that are named.

The sandbox has processes of its own and ends with its program, and with the hub. Its program gets
SIGTERM as any other: the sandbox itself ignores it, because its end would be a kill.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from dragoman.core.errors import SettingsError
from dragoman.system.agent_user import AgentUser
from dragoman.system.process import run_program

_PROGRAM: Final = "bwrap"
_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")
"""Folders of the system's programs: to read, as far as the program's user may."""
_RESOLVER: Final = Path("/etc/resolv.conf")
_ENV: Final = "/usr/bin/env"
_NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_PROBE_FOLDER: Final = Path("/")


class Sandbox(Struct, frozen=True):
    """A sandbox, apart from the command that runs in it."""

    readable: Sequence[Path]
    """Files and folders besides the system's own."""
    writable: Sequence[Path]
    hidden_files: Sequence[Path]
    """Secrets that may lie in folders that are shown."""
    hidden_folder: Path
    """The data directory: it is empty, but for the next two."""
    shown: Sequence[Path]
    """Folders in it, or of a repository, to read."""
    given: Sequence[Path]
    """Folders to write to; they may lie within `shown`."""
    locked: Sequence[Path]
    """Files within `given`, to read."""
    home: str
    has_network: bool
    user: AgentUser | None
    """The user that the program runs as; none: the hub's."""

    def wrap(self, command: Sequence[str], folder: Path) -> list[str]:
        """The command that runs another one in the sandbox, in a folder."""
        return [
            *(_ENV, "--ignore-signal=TERM", _PROGRAM, "--die-with-parent"),
            *_isolate(self.user, has_network=self.has_network),
            *_show_system(),
            *("--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108
            *(("--perms", "1777", "--tmpfs", self.home) if self.home not in ("", "/") else ()),
            *_bind("--ro-bind", self.readable),
            *_bind("--bind", self.writable),
            *_hide(self.hidden_files),
            *self._data(),
            *_bind("--ro-bind", self._find_program(command[0])),
            "--",
            *_switch_to(self.user),
            # The folder may be closed to everybody but the user.
            *(_ENV, "--default-signal=TERM", f"--chdir={folder}", *command),
        ]

    def _find_program(self, name: str) -> Sequence[Path]:
        """Find a program that no folder shows; one that is shown may be a link in there."""
        program = Path(name)
        shown = (*map(Path, _SYSTEM_FOLDERS), *self.readable, *self.writable)
        if not program.is_absolute() or any(map(program.is_relative_to, shown)):
            return []
        return [program] if program.is_file() else []

    def _data(self) -> Iterator[str]:
        # A folder that is shown under another name would show what is in it.
        for place in dict.fromkeys((self.hidden_folder.resolve(), self.hidden_folder)):
            yield from ("--perms", "0755", "--tmpfs", f"{place}")
        yield from _bind("--ro-bind", self.shown)
        yield from _bind("--bind", self.given)
        yield from _bind("--ro-bind", self.locked)
        for place in dict.fromkeys((self.hidden_folder.resolve(), self.hidden_folder)):
            yield from ("--remount-ro", f"{place}")


def check_sandbox(
    label: str, environ: Mapping[str, str], user: AgentUser | None, *, has_network: bool
) -> None:
    """Raise SettingsError, which names the setting, where no sandbox can be made."""
    if shutil.which(_PROGRAM, path=environ.get("PATH")) is None:
        raise SettingsError(
            f"{label}: there is no {_PROGRAM} on the PATH: install it (Debian: `apt-get install "
            "bubblewrap`), or leave the sandbox out"
        )
    problem = _probe(environ.get("PATH", os.defpath), user, has_network)
    if problem:
        raise SettingsError(
            f"{label}: this machine lets {_PROGRAM} make no sandbox: {problem}. It needs "
            "unprivileged user namespaces (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; in a "
            "container, its seccomp profile); allow them, or leave the sandbox out"
        )


@cache
def _probe(path: str, user: AgentUser | None, has_network: bool) -> str:
    """Make a sandbox and end it; the problem, or nothing."""
    words = (
        *(_PROGRAM, *_isolate(user, has_network=has_network), *_show_system()),
        *("--", *_switch_to(user), _ENV, "true"),
    )
    try:
        code, output = run_program(words, b"", {"PATH": path}, _PROBE_FOLDER)
    except OSError as error:
        return f"{error}"
    said = output.decode(errors="replace").strip()
    return (said.splitlines() or [f"exit code {code}"])[-1] if code else ""


def _isolate(user: AgentUser | None, *, has_network: bool) -> Iterator[str]:
    yield from _NAMESPACES
    if not has_network:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL")
    if user is None:
        yield "--unshare-user"
    else:  # the sandbox is made by root, and its program is started by `setpriv`
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")


def _switch_to(user: AgentUser | None) -> Sequence[str]:
    if user is None:
        return ()
    ids = ("--reuid", f"{user.uid}", "--regid", f"{user.gid}")
    return ("setpriv", *ids, "--init-groups", "--inh-caps=-all")


def _show_system() -> Iterator[str]:
    for folder in map(Path, _SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", f"{folder.readlink()}", f"{folder}")
        elif folder.is_dir():
            yield from _bind("--ro-bind", [folder])
    resolver = _RESOLVER.resolve()
    if resolver != _RESOLVER and resolver.is_file():
        yield from _bind("--ro-bind", [resolver])
    yield from ("--proc", "/proc", "--dev", "/dev")


def _hide(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        if file.is_file():
            yield from ("--ro-bind", os.devnull, f"{file.resolve()}")


def _bind(how: str, paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        # Otherwise they were as closed as the path itself, and belonged to the hub's user.
        for parent in reversed(path.parents[:-1]):
            yield from ("--dir", f"{parent}")
        yield from (how, f"{path}", f"{path}")
