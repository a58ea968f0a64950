"""Durable files: whole or not there; a torn line never reaches a reader."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.system.safe_fs import (
    append_line,
    create_atomically,
    read_lines,
    write_atomically,
)
from tests.requirements import proves
from tests.system.child_processes import child, next_line, resume

# A process whose files may not grow past 4096 bytes: to it, the disk is full there.
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from dragoman.system.safe_fs import append_line, write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    {"write": write_atomically, "append": append_line}[sys.argv[1]](Path(sys.argv[2]), b"x" * 9000)
except OSError as error:
    print(type(error).__name__, flush=True)
"""

APPENDER = """
import sys
from pathlib import Path
from dragoman.system.safe_fs import append_line
print("there", flush=True)
sys.stdin.readline()
for number in range(50):
    append_line(Path(sys.argv[1]), f"{sys.argv[2]} {number}".encode())
"""


def list_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@proves("SYSTEM-FILES")
def test_write_replaces_file_and_leaves_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list_names(tmp_path) == ["file"]


@proves("SYSTEM-FILES")
def test_file_is_created_with_its_mode(tmp_path: Path) -> None:
    write_atomically(tmp_path / "own", b"", mode=0o600)
    write_atomically(tmp_path / "open", b"", mode=0o644)
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) & 0o600 == 0o600


@proves("SYSTEM-FILES")
def test_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    link = tmp_path / "link"
    link.symlink_to(outside)
    write_atomically(link, b"new")
    assert not link.is_symlink()
    assert outside.read_bytes() == b"untouched"


@proves("SYSTEM-FILES")
def test_reader_sees_old_or_new_content_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [letter * 200_000 for letter in (b"a", b"b")]
    write_atomically(path, contents[0])

    def write() -> None:
        for number in range(40):
            write_atomically(path, contents[number % 2])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = {path.read_bytes()}
        while not writing.done():
            seen.add(path.read_bytes())
        writing.result()
    assert seen <= set(contents)


@proves("SYSTEM-FILES")
def test_full_disk_keeps_old_file_and_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with child(FULL_DISK, "write", path) as process:
        assert next_line(process) == "OSError"
    assert path.read_bytes() == b"old"
    assert list_names(tmp_path) == ["file"]


@proves("SYSTEM-FILES")
def test_create_never_replaces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_atomically(path, b"first")
    assert not create_atomically(path, b"second")
    assert path.read_bytes() == b"first"
    assert list_names(tmp_path) == ["file"]


@proves("SYSTEM-FILES")
def test_one_of_many_creators_wins(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def create(number: int) -> tuple[bool, bytes]:
        return create_atomically(path, str(number).encode()), path.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(32)))
    assert sum(won for won, _ in outcomes) == 1
    assert len({content for _, content in outcomes}) == 1


@proves("LEDGER-CHECKPOINT")
@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)))
def test_appended_lines_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines"
    for line in lines:
        append_line(path, line)
    assert read_lines(path) == lines


@proves("LEDGER-CHECKPOINT")
def test_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "none") == []


@proves("LEDGER-CHECKPOINT")
def test_line_with_newline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot hold a newline"):
        append_line(tmp_path / "lines", b"one\ntwo")
    assert list_names(tmp_path) == []


@proves("LEDGER-CHECKPOINT")
@pytest.mark.parametrize(
    ("left_by_a_crash", "kept"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"to", [], id="a torn first line"),
        pytest.param(b"one\nto", [b"one"], id="a torn second line"),
        pytest.param(b"one\n\n", [b"one", b""], id="whole lines"),
        pytest.param(b"one\n" + b"t" * 200_000, [b"one"], id="a long torn line"),
        pytest.param(b"t" * 200_000, [], id="a long torn first line"),
        pytest.param(b"o" * 65_535 + b"\n" + b"t" * 65_536, [b"o" * 65_535], id="at a block's end"),
    ],
)
def test_torn_line_is_ignored_and_cut_by_next_append(
    tmp_path: Path, left_by_a_crash: bytes, kept: list[bytes]
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(left_by_a_crash)
    assert read_lines(path) == kept
    append_line(path, b"next")
    assert read_lines(path) == [*kept, b"next"]


@proves("LEDGER-CHECKPOINT")
def test_line_torn_by_full_disk_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_line(path, b"one")
    with child(FULL_DISK, "append", path) as process:
        assert next_line(process) == "OSError"
    assert path.stat().st_size == 4096
    assert read_lines(path) == [b"one"]
    append_line(path, b"two")
    assert read_lines(path) == [b"one", b"two"]


@proves("LEDGER-CHECKPOINT")
def test_concurrent_appends_lose_and_mix_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with child(APPENDER, path, "a") as one, child(APPENDER, path, "b") as other:
        assert [next_line(one), next_line(other)] == ["there", "there"]
        resume(one)
        resume(other)
        assert [one.wait(), other.wait()] == [0, 0]
    lines = read_lines(path)
    for name in ("a", "b"):
        mine = [line for line in lines if line.startswith(name.encode())]
        assert mine == [f"{name} {number}".encode() for number in range(50)]
    assert len(lines) == 100
