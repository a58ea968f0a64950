"""Lock files: held until their context ends."""

import fcntl
from pathlib import Path

import pytest

from dragoman.system.safe_fs import SafeDisk
from tests.requirements import proves

pytestmark = proves("STORE-SECOND-HUB")


def test_others_wait_for_the_lock(tmp_path: Path) -> None:
    with (
        SafeDisk(tmp_path).lock("x.lock"),
        (tmp_path / "x.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
