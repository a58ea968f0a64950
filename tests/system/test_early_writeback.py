"""File with early writeback: chunks of any size are written in order."""

import os
from pathlib import Path

import pytest

from dragoman.system.safe_fs import EarlyWritebackFile
from tests.requirements import proves

pytestmark = proves("ACP-ARTIFACTS")

CHUNK = 1 << 20


@pytest.mark.parametrize(
    "sizes", [(), (1,), (CHUNK,), (CHUNK - 1, CHUNK, CHUNK + 1), (3, 2 * CHUNK, 5)]
)
def test_written_chunks_are_in_order(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    chunks = [os.urandom(size) for size in sizes]
    with EarlyWritebackFile(tmp_path / "file", "wb") as file:
        assert [file.write(memoryview(chunk)) for chunk in chunks] == list(sizes)
        assert file.tell() == sum(sizes)
    assert (tmp_path / "file").read_bytes() == b"".join(chunks)


def test_full_disk_raises_os_error() -> None:
    with (
        EarlyWritebackFile("/dev/full", "wb") as file,
        pytest.raises(OSError, match="No space left"),
    ):
        file.write(bytes(CHUNK))
