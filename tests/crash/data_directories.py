"""Data directories for tests of backups: opened for a moment, killed, compared."""

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import apsw

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import Actor
from dragoman.engine.verify import Finding, check_ledger, check_stored_states
from dragoman.ledger.checkpoint import Checkpoint, read_checkpoint_lines
from dragoman.surfaces.cli.data_directory import DataDirectory
from tests.forked import fork

PERSON = Actor("human", "lea")
ADA = Actor("agent", "ada")
_STEPS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "fcntl.flock"}
)
"""Operations of a process on the disk, as Python's audit events name them."""


def no_progress(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Ignore the progress."""
    del what, total
    return nullcontext(lambda _: None)


@contextmanager
def open_new_directory(data: Path, store: str = "") -> Generator[DataDirectory]:
    """Open a data directory, created on first use; its files are up to date at the end."""
    directory = open_directory(data, store, None, create=True)
    try:
        yield directory
        assert list(directory.catch_up()) == []
    finally:
        directory.hub.close()


def valid_checkpoints(directory: DataDirectory) -> list[Checkpoint]:
    """Checkpoints of the directory; every one must be valid."""
    valid, invalid = read_checkpoint_lines(
        directory.checkpoints.lines(), directory.checkpoints.public
    )
    assert invalid == []
    return valid


def findings(directory: DataDirectory) -> list[Finding]:
    """Findings of `verify` in the ledger, its checkpoints and its views."""
    store = directory.hub.store
    return [
        *check_ledger(store, valid_checkpoints(directory), lambda _: None),
        *check_stored_states(store, lambda _: None),
    ]


def run_killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed before its n-th disk operation; true: it was killed.

    An operation is one of Python on a file, or a statement of SQLite.
    """

    def count(*_: object) -> bool:
        nonlocal step
        step -= 1
        if step <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def arm(connection: Any) -> None:
        connection.set_exec_trace(count)

    def counted() -> None:
        apsw.connection_hooks.append(arm)
        sys.addaudithook(lambda event, _: event not in _STEPS or count())
        work()

    _, status = os.waitpid(fork(counted), 0)
    assert status in (0, signal.SIGKILL), f"it ended by itself, at step {step}: {status}"
    return status != 0
