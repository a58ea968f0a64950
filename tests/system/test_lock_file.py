"""Locks are waited for also where nothing can be made; whoever only reads needs none there."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.system.beneath import Beneath
from tests.requirements import proves

pytestmark = proves("STORE-READ-STILL")

_open = os.open


def refuse_to_make(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """What opens a file to write to it is answered as such a file system would."""

    def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(code, os.strerror(code))
        return _open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_lock_that_is_there_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "x.lock").touch()
    refuse_to_make(monkeypatch, code)
    with Beneath(tmp_path).hold("x.lock"):
        pass


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EIO])
def test_one_that_cannot_be_made_is_refused_where_others_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    refuse_to_make(monkeypatch, code)
    with pytest.raises(OSError, match=os.strerror(code)), Beneath(tmp_path).hold("x.lock"):
        pass


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_whoever_only_reads_needs_none_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    refuse_to_make(monkeypatch, code)
    with Beneath(tmp_path).still("x.lock"):
        assert list(tmp_path.iterdir()) == []


def test_what_was_read_without_a_lock_is_thrown_away_when_somebody_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_make(monkeypatch, errno.EACCES)
    with (
        pytest.raises(StoreUnavailable, match=r"x\.lock now"),
        Beneath(tmp_path).still("x.lock"),
    ):
        (tmp_path / "x.lock").touch()


def test_whoever_reads_waits_for_a_lock_that_is_there(tmp_path: Path) -> None:
    with (
        Beneath(tmp_path).still("x.lock"),
        (tmp_path / "x.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_where_nothing_can_change_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_make(monkeypatch, errno.EROFS)
    with Beneath(tmp_path).hold("x.lock"):
        assert list(tmp_path.iterdir()) == []
