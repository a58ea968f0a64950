"""Artifacts on a real disk: kept as they were hashed, whatever is swapped or written meanwhile."""

import hashlib
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from dragoman.engine.artifacts import Expected, Kept, NotKept
from dragoman.files.handoffs.artifacts import ArtifactShelf
from dragoman.system.beneath import Beneath
from dragoman.system.ids import CountingIds
from dragoman.system.openat import Seen
from tests.requirements import proves

pytestmark = proves("ACP-ARTIFACTS")

ANY = Expected()
LARGE = (1 << 20) + 7
"""More than is read into memory at once."""
PIECE = 2 << 20
"""So much of a large file is copied at once."""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Room:
    """A data directory with a shelf, and a second root."""

    def __init__(
        self,
        data: Path,
        open_disk: Callable[[Path], Any] = Beneath,
        most_bytes: int = 2 * LARGE,
    ) -> None:
        self.data = data
        self.usual = data / "teamspaces" / "default" / "artifacts"
        self.more = data / "builds"
        for folder in (self.usual, self.more):
            folder.mkdir(parents=True)
        self.shelf = ArtifactShelf(data, open_disk, CountingIds(), (self.more,), most_bytes)

    def take(self, path: str, expected: Expected = ANY) -> Kept | NotKept:
        return self.shelf.take("default", path, expected)

    def trouble(self, path: str, expected: Expected = ANY) -> str:
        found = self.take(path, expected)
        assert isinstance(found, NotKept), found
        return found.trouble

    def copies(self) -> list[str]:
        return sorted(path.name for path in (self.data / "artifacts").rglob("*") if path.is_file())


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Give an empty data directory with a shelf."""
    return Room(tmp_path / "data")


def test_a_file_is_found_by_every_way_that_leads_beneath_a_root(room: Room) -> None:
    (room.usual / "sub").mkdir()
    (room.usual / "sub" / "a").write_bytes(b"a")
    (room.more / "b").write_bytes(b"bb")
    for path in ("sub/a", "./sub/a", f"{room.usual}/sub/a", "sub/./a"):
        assert room.take(path) == Kept(digest(b"a"), 1), path
    for path in ("b", f"{room.more}/b"):
        assert room.take(path) == Kept(digest(b"bb"), 2), path
    assert room.copies() == sorted([digest(b"a"), digest(b"bb")])
    assert room.shelf.check(digest(b"a")) is None


def test_a_root_may_itself_be_reached_by_a_link(room: Room, tmp_path: Path) -> None:
    (room.usual / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to(room.data)
    linked = ArtifactShelf(tmp_path / "link", Beneath, CountingIds())
    for start in (tmp_path / "link", room.data):
        path = f"{start}/teamspaces/default/artifacts/a"
        assert linked.take("default", path, ANY) == Kept(digest(b"a"), 1)


def test_another_teamspace_is_another_root(room: Room) -> None:
    (room.usual / "a").write_bytes(b"a")
    assert isinstance(room.shelf.take("other", "a", ANY), NotKept)


@pytest.mark.parametrize(
    "path",
    [
        "../artifacts/a",
        "sub/../../secret",
        "/etc/passwd",
        "/dev/null",
        "/proc/self/environ",
        "",
        "/",
        ".",
        "a\x00b",
        "x" * 300,
        "nothing",
        "a/b",
        "a\\b",
    ],
)
def test_what_leads_nowhere_is_missing(room: Room, path: str) -> None:
    (room.usual / "a").write_bytes(b"a")
    assert room.trouble(path) == "missing"
    assert room.copies() == []


def test_links_pipes_devices_and_folders_are_no_files(room: Room, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for you")
    (room.usual / "link").symlink_to(secret)
    (room.usual / "in").symlink_to("a")
    (room.usual / "a").write_text("a")
    (room.usual / "way").symlink_to(tmp_path)
    (room.usual / "folder").mkdir()
    (room.usual / "zero").symlink_to("/dev/zero")
    os.mkfifo(room.usual / "pipe")
    for path in ("link", "in", "way/secret", "folder", "zero", "pipe"):
        assert room.trouble(path) == "missing", path
    assert room.copies() == []


def test_a_teamspace_that_is_a_link_leads_nowhere(room: Room, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "artifacts").mkdir(parents=True)
    (outside / "artifacts" / "a").write_text("a")
    (room.data / "teamspaces" / "evil").symlink_to(outside)
    assert isinstance(room.shelf.take("evil", "a", ANY), NotKept)


def test_a_file_beyond_the_bound_is_not_read(room: Room) -> None:
    with (room.usual / "huge").open("wb") as file:
        file.truncate(10 << 30)
    assert room.trouble("huge") == "too_large"
    assert room.copies() == []


def test_what_is_stated_must_be_so_and_a_wrong_copy_is_not_kept(room: Room) -> None:
    (room.usual / "a").write_bytes(b"abc")
    good = digest(b"abc")
    assert room.trouble("a", Expected(digest(b"abd"))) == "different"
    assert room.trouble("a", Expected(good, 4)) == "different"
    assert room.copies() == []
    assert room.take("a", Expected(good, 3)) == Kept(good, 3)
    assert room.take("a", Expected(good, 3)) == Kept(good, 3)
    (room.usual / "a").write_bytes(b"xyz")
    assert room.trouble("a", Expected(good, 3)) == "different"
    assert room.copies() == [good]


def test_an_empty_file_is_a_file(room: Room) -> None:
    (room.usual / "a").touch()
    assert room.take("a") == Kept(digest(b""), 0)


def test_a_copy_that_was_changed_or_is_gone_is_noticed(room: Room) -> None:
    (room.usual / "a").write_bytes(b"abc")
    kept = digest(b"abc")
    room.take("a")
    copy = room.data / "artifacts" / "sha256" / kept[:2] / kept
    copy.write_bytes(b"abd")
    wrong = room.shelf.check(kept)
    assert wrong is not None
    assert wrong.trouble == "different"
    copy.unlink()
    gone = room.shelf.check(kept)
    assert gone is not None
    assert gone.trouble == "missing"
    room.take("a")
    assert room.shelf.check(kept) is None


class Meddled(Beneath):
    """A disk on which somebody does something while a file is open."""

    def __init__(self, root: Path, meddle: Callable[[], object]) -> None:
        super().__init__(root)
        self._meddle = meddle

    @contextmanager
    def opened(self, path: str) -> Generator[tuple[FileIO, Seen] | None]:
        with super().opened(path) as found:
            if found is not None:
                self._meddle()
            yield found


class Meddling:
    """What is done while a file is open; nothing at first."""

    def __init__(self) -> None:
        self.now: Callable[[], object] = int

    def open(self, root: Path) -> Meddled:
        """A disk on which that is done."""
        return Meddled(root, self._do)

    def _do(self) -> None:
        self.now()


def test_a_link_that_is_swapped_in_after_the_file_was_opened_changes_nothing(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    meddling = Meddling()
    room = Room(tmp_path / "data", meddling.open)
    file = room.usual / "a"
    file.write_bytes(b"abc")

    def swap() -> None:
        file.unlink()
        file.symlink_to(secret)

    meddling.now = swap
    assert room.take("a", Expected(digest(b"abc"))) == Kept(digest(b"abc"), 3)
    assert room.trouble("a") == "missing"


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_file_that_grows_or_shrinks_while_it_is_read_can_be_tried_again(
    tmp_path: Path, size: int
) -> None:
    meddling = Meddling()
    room = Room(tmp_path / "data", meddling.open)
    file = room.usual / "a"
    for later in (size + 5, size - 2):
        file.write_bytes(bytes(size))

        def change(length: int = later) -> None:
            os.truncate(file, length)

        meddling.now = change
        assert room.trouble("a") == "passing"
    assert room.copies() == []


def test_a_disk_that_cannot_be_read_is_passing_trouble(tmp_path: Path) -> None:
    meddling = Meddling()
    room = Room(tmp_path / "data", meddling.open)
    (room.usual / "a").write_bytes(b"abc")
    room.take("a")

    def fail() -> None:
        raise OSError(5, "Input/output error")

    meddling.now = fail
    assert room.trouble("a") == "passing"
    wrong = room.shelf.check(digest(b"abc"))
    assert wrong is not None
    assert (wrong.trouble, "Input/output" in wrong.detail) == ("passing", True)


def test_a_large_file_is_hashed_while_it_is_copied(room: Room) -> None:
    content = os.urandom(LARGE)
    (room.usual / "a").write_bytes(content)
    kept = digest(content)
    assert room.trouble("a", Expected("0" * 64)) == "different"
    assert room.copies() == []
    assert room.take("a") == Kept(kept, LARGE)
    assert room.shelf.check(kept) is None
    assert room.take("a", Expected(kept, LARGE)) == Kept(kept, LARGE)
    (room.usual / "a").write_bytes(bytes(LARGE))
    assert room.trouble("a", Expected(kept)) == "different"
    assert room.copies() == [kept]


class Filling(Beneath):
    """A disk that is full after so many pieces of a copy."""

    pieces = 99

    @contextmanager
    def created(self, path: str) -> Generator[FileIO]:
        with super().created(path) as file:
            yield Bounded(file.fileno(), self.pieces)


class Bounded(FileIO):
    """A file that takes so many pieces."""

    def __init__(self, descriptor: int, pieces: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._left = pieces

    def write(self, b: Any, /) -> int:
        if self._left == 0:
            raise OSError(ENOSPC, "No space left on device")
        self._left -= 1
        return super().write(b)


@pytest.mark.parametrize("size", [PIECE, 2 * PIECE - 1, 4 * PIECE + 7])
def test_a_copy_of_many_pieces_has_every_byte_in_its_place(tmp_path: Path, size: int) -> None:
    room = Room(tmp_path / "data", most_bytes=size)
    content = os.urandom(size)
    (room.usual / "a").write_bytes(content)
    assert room.take("a") == Kept(digest(content), size)
    assert [path.read_bytes() for path in room.data.glob("artifacts/sha256/*/*")] == [content]


@pytest.mark.parametrize("pieces", range(5))
def test_a_disk_that_is_full_at_any_piece_keeps_no_copy(tmp_path: Path, pieces: int) -> None:
    class Full(Filling):
        """Full after that many."""

    Full.pieces = pieces
    room = Room(tmp_path / "data", Full, 5 * PIECE)
    (room.usual / "a").write_bytes(os.urandom(4 * PIECE + 7))
    found = room.take("a")
    assert isinstance(found, NotKept)
    assert (found.trouble, "No space left" in found.detail) == ("passing", True)
    assert room.copies() == []


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("is_stated", [False, True])
def test_a_copy_that_was_damaged_is_made_good_when_the_file_comes_again(
    room: Room, size: int, *, is_stated: bool
) -> None:
    content = bytes(size)
    (room.usual / "a").write_bytes(content)
    kept = digest(content)
    room.take("a")
    copy = room.data / "artifacts" / "sha256" / kept[:2] / kept
    copy.write_bytes(b"x" + content[1:])
    expected = Expected(kept, size) if is_stated else ANY
    assert room.take("a", expected) == Kept(kept, size)
    assert room.shelf.check(kept) is None


def test_what_has_a_second_name_is_not_read_and_copies_are_for_nobody_else(
    room: Room, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    (room.usual / "a").hardlink_to(secret)
    for found in (room.take("a"), room.shelf.size("default", "a")):
        assert isinstance(found, NotKept)
        assert (found.trouble, "hard links" in found.detail) == ("missing", True)
    assert room.copies() == []
    (room.usual / "b").write_bytes(b"b")
    room.take("b")
    copy = room.data / "artifacts" / "sha256" / digest(b"b")[:2] / digest(b"b")
    assert copy.stat().st_mode & 0o777 == 0o600


def test_the_size_of_a_file_is_known_before_it_is_read(room: Room) -> None:
    (room.usual / "a").write_bytes(b"abc")
    assert room.shelf.size("default", "a") == 3
    assert isinstance(room.shelf.size("default", "b"), NotKept)
    assert room.copies() == []


def test_it_is_said_why_something_is_no_file(room: Room) -> None:
    (room.usual / "in").symlink_to("a")
    (room.usual / "folder").mkdir()
    os.mkfifo(room.usual / "pipe")
    for path, why in (("in", "link"), ("folder", "folder"), ("pipe", "pipe"), ("b", "no file")):
        found = room.take(path)
        assert isinstance(found, NotKept)
        assert why in found.detail
    (room.more / "folder").write_bytes(b"it is one in another root")
    assert isinstance(room.take("folder"), Kept)


def test_what_a_crash_has_left_of_a_copy_is_removed_once_it_is_old(room: Room) -> None:
    assert room.shelf.sweep(0) == 0
    incoming = room.data / "artifacts" / "incoming"
    incoming.mkdir(parents=True)
    for name, seconds in (("old", 1_000), ("new", 5_000)):
        (incoming / name).write_bytes(b"half of it")
        os.utime(incoming / name, (seconds, seconds))
    assert room.shelf.sweep(5_000_000) == 1
    assert [path.name for path in incoming.iterdir()] == ["new"]
    assert room.shelf.sweep(5_000_000) == 0


def test_whoever_swaps_files_and_links_all_the_time_never_gets_a_wrong_one_accepted(
    room: Room, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    (room.usual / "a").write_bytes(b"abc")
    stop = Event()

    def swapper() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            beside = room.usual / f"beside-{number % 2}"
            if number % 2:
                beside.symlink_to(secret)
            else:
                beside.write_bytes(b"xyz")
            beside.replace(room.usual / "a")

    thread = Thread(target=swapper)
    thread.start()
    try:
        found = [room.take("a") for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert {one.sha256 for one in found if isinstance(one, Kept)} <= {
        digest(b"abc"),
        digest(b"xyz"),
    }
    assert digest(b"not for you") not in room.copies()
    for name in room.copies():
        assert room.shelf.check(name) is None
