"""Regular files: anything else in the data directory is refused at once."""

import os
from pathlib import Path

import pytest

from dragoman.system.hub_lock import HubLock, find_lock_holder
from dragoman.system.safe_fs import (
    append_line,
    open_regular,
    read_lines,
    read_lines_reversed,
    read_regular,
)
from tests.requirements import proves

pytestmark = proves("STORE-CORRUPT")


def test_pipe_in_place_of_file_is_refused_without_blocking(tmp_path: Path) -> None:
    for name in ("hub.lock", "lines"):
        os.mkfifo(tmp_path / name)

    for use in (
        lambda: read_regular(tmp_path / "lines"),
        lambda: read_lines(tmp_path / "lines"),
        lambda: list(read_lines_reversed(tmp_path / "lines")),
        lambda: append_line(tmp_path / "lines", b"one"),
        lambda: find_lock_holder(tmp_path),
        lambda: HubLock.acquire(tmp_path, "up"),
    ):
        with pytest.raises(OSError, match="it is not a regular file"):
            use()


def test_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = len([*Path("/proc/self/fd").iterdir()])

    with pytest.raises(OSError, match="pipe"):
        open_regular(tmp_path / "pipe", os.O_RDONLY)

    assert len([*Path("/proc/self/fd").iterdir()]) == before
