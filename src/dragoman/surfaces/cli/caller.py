"""Caller of a command: the process whose files, user and terminal the command works with.

A command runs in the caller's own process, or for it in the hub: for the owner's process beside
the data directory, or for the bearer of any token, from anywhere.
"""

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from dragoman.engine.auth import Principal

# --- caller -----------------------------------------------------------------------------------


class Caller(Struct, frozen=True):
    """A process that waits for a command which runs in the hub."""

    user: int
    """User id."""
    folder: Path
    """Working directory."""
    names_data: bool
    """True if it has named the data directory, rather than found it."""
    environ: Mapping[str, str]
    """Variables that decide how its terminal is written to."""
    read: Callable[[str, int], bytes]
    """Reads up to so many bytes of a file, or of standard input (`-`)."""
    bearer: "Principal | None" = None
    """The bearer of a token, who acts from elsewhere; None: the owner's own process."""
    url: str = ""
    """The hub's address, where the command names it."""


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)

set_caller = _CALLER.set


def remote_caller() -> Caller | None:
    """Caller for whom the hub runs this command; None: the command runs in its own process."""
    return _CALLER.get()


def bearer() -> "Principal | None":
    """Bearer of the token for whom the command runs; None: the person at the keyboard."""
    caller = remote_caller()
    return None if caller is None else caller.bearer


def caller_user() -> int:
    """User id of the caller."""
    caller = remote_caller()
    return os.getuid() if caller is None else caller.user


def absolute_path(path: Path) -> Path:
    """Make a path absolute, in the caller's working directory."""
    caller = remote_caller()
    return path.absolute() if caller is None else caller.folder / path


def terminal_variables() -> dict[str, Any]:
    """Argument for a `rich` console: the variables of the caller's terminal."""
    caller = remote_caller()
    return {} if caller is None else {"_environ": caller.environ}


# --- what the hub cannot do for a caller ------------------------------------------------------


class RunLocally(Exception):
    """The command needs the caller's own process, and the data directory; nothing was done yet."""


class InputWanted(Exception):
    """The command needs a file of the caller or its standard input; nothing was done yet."""

    def __init__(self, source: str, max_bytes: int) -> None:
        super().__init__(source)
        self.source = source
        self.max_bytes = max_bytes


def require_own_process() -> None:
    """End a command that runs in the hub, so that the caller runs it."""
    if remote_caller() is not None:
        raise RunLocally
