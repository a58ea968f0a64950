"""Files beneath a root: no symlink is followed, nothing is replaced unexpectedly."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.system import safe_fs
from dragoman.system.safe_fs import SafeDisk
from tests.files.lab import read_tree
from tests.requirements import proves
from tests.system.child_processes import child, next_line


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Folder outside of the root, with a canary."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "canary").write_text("alive")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Empty root."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@proves("FILES-BENEATH")
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_operations_do_not_follow_symlinked_folder(root: Path, outside: Path, depth: int) -> None:
    parts = [f"d{number}" for number in range(depth)]
    parent = root.joinpath(*parts[:-1])
    parent.mkdir(parents=True, exist_ok=True)
    (parent / parts[-1]).symlink_to(outside)
    disk, link = SafeDisk(root), "/".join(parts)
    assert disk.stat(f"{link}/canary") is None
    assert disk.read(f"{link}/canary", 100) is None
    assert disk.tail(f"{link}/canary").line == b""
    assert disk.list(link) == []
    seen = disk.stat(link)
    assert seen is not None
    assert seen.kind == "link"
    (root / "mine").write_text("mine")
    for change in (
        lambda: disk.write(f"{link}/new", b"x"),
        lambda: disk.append(f"{link}/canary", 0, b"x"),
        lambda: disk.replace("mine", f"{link}/canary"),
        lambda: disk.move("mine", f"{link}/new"),
        lambda: disk.make_folder(f"{link}/new"),
    ):
        with pytest.raises(NotADirectoryError, match="it is a link or a file"):
            change()
    with pytest.raises(NotADirectoryError):
        disk.remove(f"{link}/canary")
    assert [path.name for path in outside.iterdir()] == ["canary"]
    assert (outside / "canary").read_text() == "alive"


@proves("FILES-BENEATH")
def test_symlink_in_place_of_file_is_replaced_and_not_followed(root: Path, outside: Path) -> None:
    disk = SafeDisk(root)
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
def test_unsafe_path_raises_value_error(root: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not a path beneath the root"):
        SafeDisk(root).stat(path)


@proves("FILES-BENEATH")
def test_pipe_is_neither_read_nor_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    disk = SafeDisk(root)
    assert disk.read("pipe", 10) is None
    with pytest.raises(OSError, match=r"No such device|not a regular file"):
        disk.append("pipe", 0, b"x")
    seen = disk.stat("pipe")
    assert seen is not None
    assert seen.kind == "other"


@proves("FILES-BENEATH")
def test_move_never_overwrites(root: Path) -> None:
    disk = SafeDisk(root)
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


@proves("FILES-BENEATH", "FILES-CRASH")
def test_move_is_atomic(root: Path) -> None:
    (root / "a").write_text("a")
    inode = (root / "a").stat().st_ino
    assert SafeDisk(root).move("a", "b")
    assert (root / "b").stat().st_ino == inode
    assert (root / "b").stat().st_nlink == 1
    (root / "a").hardlink_to(root / "b")
    assert not SafeDisk(root).move("a", "b")


@proves("FILES-EDITS")
def test_swap_replaces_only_the_expected_file(root: Path) -> None:
    disk = SafeDisk(root)
    (root / "a").write_text("old")
    seen = disk.stat("a")
    disk.write("next", b"new")
    assert disk.replace_if_unchanged("next", "a", seen)
    assert read_tree(root) == {"a": b"new"}
    disk.write("next", b"newer")
    assert not disk.replace_if_unchanged("next", "a", seen)
    assert not disk.replace_if_unchanged("next", "a", None)
    assert not disk.replace_if_unchanged("next", "missing", seen)
    assert read_tree(root) == {"a": b"new", "next": b"newer"}
    assert disk.replace_if_unchanged("next", "b", None)
    assert not disk.replace_if_unchanged("next", "c", None)
    assert read_tree(root) == {"a": b"new", "b": b"newer"}


@proves("FILES-EDITS")
@pytest.mark.parametrize("knows_exchange", [True, False])
def test_swap_keeps_file_written_during_sync(
    root: Path, monkeypatch: pytest.MonkeyPatch, knows_exchange: bool
) -> None:
    sync = os.fsync
    if not knows_exchange:
        monkeypatch.setattr(safe_fs, "_renameat2", lambda: None)

    def write_during_sync(descriptor: int) -> None:
        (root / "a").write_text("typed meanwhile")
        sync(descriptor)

    disk = SafeDisk(root)
    (root / "a").write_text("old")
    seen = disk.stat("a")
    disk.write("next", b"new")
    monkeypatch.setattr(os, "fsync", write_during_sync)
    assert not disk.replace_if_unchanged("next", "a", seen)
    assert (root / "a").read_text() == "typed meanwhile"


@proves("FILES-EDITS")
def test_swap_restores_file_written_before_exchange(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SafeDisk(root)
    (root / "a").write_text("old")
    seen, stat, calls = disk.stat("a"), os.stat, list[object]()

    def stat_then_edit(*arguments: Any, **named: Any) -> os.stat_result:
        found = stat(*arguments, **named)
        if not calls:
            (root / "a").write_text("typed meanwhile")
        calls.append(found)
        return found

    disk.write("next", b"new")
    monkeypatch.setattr(os, "stat", stat_then_edit)
    assert not disk.replace_if_unchanged("next", "a", seen)
    monkeypatch.undo()
    assert read_tree(root) == {"a": b"typed meanwhile", "next": b"new"}


@proves("FILES-EDITS")
@pytest.mark.parametrize("knows_exchange", [True, False])
def test_discard_removes_only_the_expected_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, knows_exchange: bool
) -> None:
    if not knows_exchange:
        monkeypatch.setattr(safe_fs, "_renameat2", lambda: None)
    disk = SafeDisk(root)
    (root / "a").write_text("old")
    seen = disk.stat("a")
    (root / "a").write_text("typed meanwhile")
    assert not disk.remove_if_unchanged("a", "aside", seen)
    assert read_tree(root) == {"a": b"typed meanwhile"}
    (root / "taken").write_text("x")
    assert not disk.remove_if_unchanged("a", "taken", disk.stat("a"))
    assert disk.remove_if_unchanged("a", "aside", disk.stat("a"))
    assert not disk.remove_if_unchanged("a", "aside", seen)
    assert read_tree(root) == {"taken": b"x"}


@proves("FILES-EDITS")
def test_discard_keeps_both_concurrent_saves(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SafeDisk(root)
    (root / "a").write_text("old")
    seen, stat = disk.stat("a"), os.stat
    (root / "a").write_text("typed")

    def save_then_stat(*arguments: Any, **named: Any) -> os.stat_result:
        (root / "a").write_text("typed again")
        return stat(*arguments, **named)

    monkeypatch.setattr(os, "stat", save_then_stat)
    assert not disk.remove_if_unchanged("a", "aside", seen)
    monkeypatch.undo()
    assert read_tree(root) == {"a": b"typed again", "aside": b"typed"}


@proves("FILES-BENEATH")
def test_file_is_read_in_chunks(root: Path) -> None:
    (root / "a").write_bytes(b"12345")
    disk = SafeDisk(root)
    assert disk.read_at("a", 1, 3) == b"234"
    assert disk.read_at("a", 4, 3) == b"5"
    assert disk.read_at("missing", 0, 3) == b""


FEW_FILES = """
import resource, sys
from pathlib import Path
from dragoman.system.safe_fs import SafeDisk
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
disk = SafeDisk(Path(sys.argv[1]))
for number in range(1_000):
    disk.make_folder(f"runs/{number}")
    disk.write(f"runs/{number}/.run.json.next", b"x")
    disk.replace(f"runs/{number}/.run.json.next", f"runs/{number}/run.json")
    assert disk.stat(f"runs/{number}/run.json")
disk.sync()
print("done")
"""


@proves("FILES-BENEATH")
def test_thousand_folders_stay_below_descriptor_limit(root: Path) -> None:
    with child(FEW_FILES, root) as process:
        assert next_line(process) == "done"
    assert len(list(root.glob("runs/*/run.json"))) == 1_000


@proves("FILES-BENEATH")
def test_read_is_bounded(root: Path) -> None:
    (root / "a").write_bytes(b"12345")
    assert SafeDisk(root).read("a", 5) == b"12345"
    assert SafeDisk(root).read("a", 4) is None
    assert SafeDisk(root).read("missing", 4) is None


@proves("FILES-BENEATH")
def test_append_cuts_torn_line(root: Path) -> None:
    disk = SafeDisk(root)
    disk.append("log", 0, b"one\ntw")
    tail = disk.tail("log")
    assert (tail.end, tail.line) == (4, b"one")
    disk.append("log", tail.end, b"two\n")
    assert (root / "log").read_bytes() == b"one\ntwo\n"
    assert disk.tail("log").line == b"two"


@proves("FILES-BENEATH")
def test_only_empty_folder_is_removed(root: Path) -> None:
    disk = SafeDisk(root)
    disk.make_folder("a/b/c")
    disk.make_folder("a/b/c")
    assert (root / "a" / "b" / "c").is_dir()
    disk.sync()
    assert not disk.remove_folder("a/b")
    assert disk.remove_folder("a/b/c")
    assert disk.remove_folder("a/b/c")
    disk.remove("a/missing")
    disk.sync()


@proves("FILES-BENEATH")
def test_sync_tolerates_moved_folder(
    root: Path,
) -> None:
    disk = SafeDisk(root)
    disk.make_folder("a/b/c")
    disk.write("a/b/c/x", b"x")
    disk.sync_later("a/b/c/x")
    (root / "a" / "b" / "c").rename(root / "a" / "d")
    disk.sync()
    assert (root / "a" / "d" / "x").read_bytes() == b"x"


@proves("FILES-BENEATH")
def test_descriptors_are_closed(root: Path) -> None:
    disk = SafeDisk(root)
    before = len([*Path("/proc/self/fd").iterdir()])
    for number in range(50):
        disk.make_folder(f"a/b/{number}/deep")
        disk.write(f"a/b/{number}/deep/x", b"x")
        assert disk.read(f"a/b/{number}/deep/x", 1) == b"x"
        assert disk.stat("a/b/none") is None
    disk.sync()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@proves("FILES-BENEATH")
def test_many_files_are_synced_together(root: Path) -> None:
    disk = SafeDisk(root)
    for number in range(300):
        disk.write(f"{number}", b"%d" % number)
    disk.replace("0", "first")
    disk.sync()
    assert (root / "first").read_bytes() == b"0"
    assert all((root / f"{n}").read_bytes() == b"%d" % n for n in range(1, 300))


@proves("FILES-BENEATH")
def test_move_and_swap_work_without_renameat2(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_fs, "_renameat2", lambda: None)
    disk = SafeDisk(root)
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    assert not disk.move("a", "b")
    assert disk.move("a", "c")
    seen = disk.stat("b")
    assert disk.replace_if_unchanged("c", "b", seen)
    assert (root / "b").read_text() == "a"
    assert not (root / "c").exists()
