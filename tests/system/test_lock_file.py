"""Lock files: waited for where nothing can be created; readers need none there."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.system.safe_fs import SafeDisk
from tests.requirements import proves

pytestmark = proves("STORE-READ-STILL")

_open = os.open


def refuse_writing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Refuse opening for writing, as such a file system would."""

    def open_or_refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(code, os.strerror(code))
        return _open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", open_or_refuse)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_existing_lock_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    (tmp_path / "x.lock").touch()
    refuse_writing(monkeypatch, code)
    with SafeDisk(tmp_path).lock_nested("x.lock"):
        pass


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EIO])
def test_uncreatable_lock_is_an_error_where_others_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    refuse_writing(monkeypatch, code)
    with pytest.raises(OSError, match=os.strerror(code)), SafeDisk(tmp_path).lock_nested("x.lock"):
        pass


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_reader_needs_no_uncreatable_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    refuse_writing(monkeypatch, code)
    with SafeDisk(tmp_path).lock_to_read("x.lock"):
        assert list(tmp_path.iterdir()) == []


def test_unlocked_read_is_discarded_when_writer_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writing(monkeypatch, errno.EACCES)
    with (
        pytest.raises(StoreUnavailable, match=r"it made .*x\.lock"),
        SafeDisk(tmp_path).lock_to_read("x.lock"),
    ):
        (tmp_path / "x.lock").touch()


def test_reader_waits_for_existing_lock(tmp_path: Path) -> None:
    with (
        SafeDisk(tmp_path).lock_to_read("x.lock"),
        (tmp_path / "x.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_read_only_file_system_needs_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writing(monkeypatch, errno.EROFS)
    with SafeDisk(tmp_path).lock_nested("x.lock"):
        assert list(tmp_path.iterdir()) == []
