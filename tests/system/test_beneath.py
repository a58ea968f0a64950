"""Files beneath a root: no link is followed, nothing is replaced that should not be."""

import errno
import os
from pathlib import Path

import pytest

from dragoman.system.beneath import Beneath
from tests.requirements import proves


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Give a folder that is none of our business, with a canary."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "canary").write_text("alive")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give an empty root."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@proves("FILES-BENEATH")
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_no_operation_goes_through_a_link(root: Path, outside: Path, depth: int) -> None:
    parts = [f"d{number}" for number in range(depth)]
    parent = root.joinpath(*parts[:-1])
    parent.mkdir(parents=True, exist_ok=True)
    (parent / parts[-1]).symlink_to(outside)
    disk, through = Beneath(root), "/".join(parts)
    assert disk.look(f"{through}/canary") is None
    assert disk.read(f"{through}/canary", 100) is None
    assert disk.tail(f"{through}/canary").line == b""
    assert disk.list(through) == []
    seen = disk.look(through)
    assert seen is not None
    assert seen.kind == "link"
    (root / "mine").write_text("mine")
    for change in (
        lambda: disk.write(f"{through}/new", b"x"),
        lambda: disk.append(f"{through}/canary", 0, b"x"),
        lambda: disk.replace("mine", f"{through}/canary"),
        lambda: disk.move("mine", f"{through}/new"),
        lambda: disk.make_folder(f"{through}/new"),
    ):
        with pytest.raises(NotADirectoryError, match="it is a link or a file"):
            change()
    with pytest.raises(NotADirectoryError):
        disk.remove(f"{through}/canary")
    assert [path.name for path in outside.iterdir()] == ["canary"]
    assert (outside / "canary").read_text() == "alive"


@proves("FILES-BENEATH")
def test_a_link_in_the_place_of_a_file_is_not_read_and_is_replaced_itself(
    root: Path, outside: Path
) -> None:
    disk = Beneath(root)
    (root / "a").symlink_to(outside / "canary")
    assert disk.read("a", 100) is None
    with pytest.raises(OSError, match="symbolic") as refused:
        disk.append("a", 0, b"x")
    assert refused.value.errno == errno.ELOOP
    disk.write("a", b"new")
    assert (root / "a").read_bytes() == b"new"
    assert not (root / "a").is_symlink()
    assert (outside / "canary").read_text() == "alive"


@proves("FILES-BENEATH")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/.", "a\0b"])
def test_a_path_that_is_not_plain_is_a_mistake_of_ours(root: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not a path beneath the root"):
        Beneath(root).look(path)


@proves("FILES-BENEATH")
def test_a_pipe_is_neither_read_nor_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    disk = Beneath(root)
    assert disk.read("pipe", 10) is None
    with pytest.raises(OSError, match=r"No such device|not a regular file"):
        disk.append("pipe", 0, b"x")
    seen = disk.look("pipe")
    assert seen is not None
    assert seen.kind == "other"


@proves("FILES-BENEATH")
def test_a_move_never_replaces(root: Path) -> None:
    disk = Beneath(root)
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    (root / "full").mkdir()
    (root / "full" / "x").write_text("x")
    (root / "empty").mkdir()
    assert not disk.move("a", "b")
    assert not disk.move("a", "full")
    assert not disk.move("empty", "a")
    assert not disk.move("empty", "full")
    assert disk.move("full", "empty")
    assert disk.move("a", "c")
    assert (root / "b").read_text() == "b"
    assert (root / "empty" / "x").read_text() == "x"
    assert not (root / "a").exists()


@proves("FILES-BENEATH")
def test_a_move_that_was_cut_in_two_is_finished(root: Path) -> None:
    (root / "a").write_text("a")
    (root / "b").hardlink_to(root / "a")
    assert Beneath(root).move("a", "b")
    assert not (root / "a").exists()
    assert (root / "b").read_text() == "a"


@proves("FILES-BENEATH")
def test_reads_are_bounded(root: Path) -> None:
    (root / "a").write_bytes(b"12345")
    assert Beneath(root).read("a", 5) == b"12345"
    assert Beneath(root).read("a", 4) is None
    assert Beneath(root).read("missing", 4) is None


@proves("FILES-BENEATH")
def test_an_append_cuts_what_was_torn_off(root: Path) -> None:
    disk = Beneath(root)
    disk.append("log", 0, b"one\ntw")
    tail = disk.tail("log")
    assert (tail.end, tail.line) == (4, b"one")
    disk.append("log", tail.end, b"two\n")
    assert (root / "log").read_bytes() == b"one\ntwo\n"
    assert disk.tail("log").line == b"two"


@proves("FILES-BENEATH")
def test_folders_are_made_and_removed_only_when_empty(root: Path) -> None:
    disk = Beneath(root)
    disk.make_folder("a/b/c")
    disk.make_folder("a/b/c")
    assert (root / "a" / "b" / "c").is_dir()
    disk.settle()
    assert not disk.remove_folder("a/b")
    assert disk.remove_folder("a/b/c")
    assert disk.remove_folder("a/b/c")
    disk.remove("a/missing")
    disk.settle()


@proves("FILES-BENEATH")
def test_a_folder_that_was_moved_meanwhile_is_no_fault_when_names_are_made_durable(
    root: Path,
) -> None:
    disk = Beneath(root)
    disk.make_folder("a/b/c")
    disk.write("a/b/c/x", b"x")
    disk.keep("a/b/c/x")
    (root / "a" / "b" / "c").rename(root / "a" / "d")
    disk.settle()
    assert (root / "a" / "d" / "x").read_bytes() == b"x"


@proves("FILES-BENEATH")
def test_descriptors_are_given_back(root: Path) -> None:
    disk = Beneath(root)
    before = len([*Path("/proc/self/fd").iterdir()])
    for number in range(50):
        disk.make_folder(f"a/b/{number}/deep")
        disk.write(f"a/b/{number}/deep/x", b"x")
        assert disk.read(f"a/b/{number}/deep/x", 1) == b"x"
        assert disk.look("a/b/none") is None
    disk.settle()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@proves("FILES-BENEATH")
def test_many_files_are_synced_together_and_all_are_there(root: Path) -> None:
    disk = Beneath(root)
    for number in range(300):
        disk.write(f"{number}", b"%d" % number)
    disk.replace("0", "first")
    disk.settle()
    assert (root / "first").read_bytes() == b"0"
    assert all((root / f"{n}").read_bytes() == b"%d" % n for n in range(1, 300))


@proves("FILES-BENEATH")
def test_where_files_cannot_be_linked_they_are_moved_to_free_names_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    disk = Beneath(root)
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    assert not disk.move("a", "b")
    assert disk.move("a", "c")
    assert (root / "b").read_text() == "b"
    assert (root / "c").read_text() == "a"
