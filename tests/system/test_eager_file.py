"""A file that the disk begins with early: it has what was written, in pieces of any size."""

import os
from pathlib import Path

import pytest

from dragoman.system.eager_file import EagerFile
from tests.requirements import proves

pytestmark = proves("ACP-ARTIFACTS")

PIECE = 1 << 20


@pytest.mark.parametrize(
    "sizes", [(), (1,), (PIECE,), (PIECE - 1, PIECE, PIECE + 1), (3, 2 * PIECE, 5)]
)
def test_what_was_written_is_there_in_its_order(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    pieces = [os.urandom(size) for size in sizes]
    with EagerFile(tmp_path / "file", "wb") as file:
        assert [file.write(memoryview(piece)) for piece in pieces] == list(sizes)
        assert file.tell() == sum(sizes)
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_a_disk_that_is_full_says_so() -> None:
    with EagerFile("/dev/full", "wb") as file, pytest.raises(OSError, match="No space left"):
        file.write(bytes(PIECE))
