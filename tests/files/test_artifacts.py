"""Artifacts on a real disk: copied as they were hashed, in spite of concurrent changes."""

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

from dragoman.engine.ports import ArtifactMismatch, ExpectedArtifact, StoredArtifact
from dragoman.files.artifacts import FileArtifactStore
from dragoman.system.clock import SequentialIds
from dragoman.system.safe_fs import FileStat, SafeDisk
from tests.requirements import proves

pytestmark = proves("ACP-ARTIFACTS")

ANY = ExpectedArtifact()
LARGE = (1 << 20) + 7
"""More than is read into memory at once."""
CHUNK = 2 << 20
"""Bytes of a large file that are copied at once."""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class ArtifactFolders:
    """Data directory with an artifact store, and a second root."""

    def __init__(
        self,
        data: Path,
        open_disk: Callable[[Path], Any] = SafeDisk,
        most_bytes: int = 2 * LARGE,
    ) -> None:
        self.data = data
        self.default_root = data / "teamspaces" / "default" / "artifacts"
        self.second_root = data / "builds"
        for folder in (self.default_root, self.second_root):
            folder.mkdir(parents=True)
        self.store = FileArtifactStore(
            data, open_disk, SequentialIds(), (self.second_root,), most_bytes
        )

    def take(
        self, path: str, expected: ExpectedArtifact = ANY
    ) -> StoredArtifact | ArtifactMismatch:
        return self.store.store_file("default", path, expected)

    def failure_code(self, path: str, expected: ExpectedArtifact = ANY) -> str:
        found = self.take(path, expected)
        assert isinstance(found, ArtifactMismatch), found
        return found.problem

    def copies(self) -> list[str]:
        return sorted(path.name for path in (self.data / "artifacts").rglob("*") if path.is_file())


@pytest.fixture
def folders(tmp_path: Path) -> ArtifactFolders:
    """Empty data directory with an artifact store."""
    return ArtifactFolders(tmp_path / "data")


def test_artifact_is_found_by_any_path_beneath_a_root(folders: ArtifactFolders) -> None:
    (folders.default_root / "sub").mkdir()
    (folders.default_root / "sub" / "a").write_bytes(b"a")
    (folders.second_root / "b").write_bytes(b"bb")
    for path in ("sub/a", "./sub/a", f"{folders.default_root}/sub/a", "sub/./a"):
        assert folders.take(path) == StoredArtifact(digest(b"a"), 1), path
    for path in ("b", f"{folders.second_root}/b"):
        assert folders.take(path) == StoredArtifact(digest(b"bb"), 2), path
    assert folders.copies() == sorted([digest(b"a"), digest(b"bb")])
    assert folders.store.verify_copy(digest(b"a")) is None


def test_root_may_be_reached_through_a_symlink(folders: ArtifactFolders, tmp_path: Path) -> None:
    (folders.default_root / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to(folders.data)
    linked = FileArtifactStore(tmp_path / "link", SafeDisk, SequentialIds())
    for start in (tmp_path / "link", folders.data):
        path = f"{start}/teamspaces/default/artifacts/a"
        assert linked.store_file("default", path, ANY) == StoredArtifact(digest(b"a"), 1)


def test_teamspace_has_its_own_root(folders: ArtifactFolders) -> None:
    (folders.default_root / "a").write_bytes(b"a")
    assert isinstance(folders.store.store_file("other", "a", ANY), ArtifactMismatch)


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
        *("..", "../", "../..", "sub/..", "sub/../..", "..//secret", "./../secret", "..\\secret"),
        *("...", "....//secret", "../../../../../../../../etc/passwd", "a/..", "a/../../secret"),
        *("//etc/passwd", "///", "/dev/zero", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"),
        *("/proc/self/root/etc/passwd", "/proc/1/environ", "/sys/kernel/notes"),
        *("~/a", "~root/.ssh/id_rsa", "$HOME/a", "${HOME}/a", "`pwd`/a", "$(pwd)/a"),
        *("%2e%2e/secret", "..%2fsecret", "..%252fsecret", "%00", "file:///etc/passwd", "file:a"),
        *("C:\\a", "C:a", "a:stream", "\\\\host\\share\\a", "a\n", "\na", " a", "a ", "a\t"),
        *("a\u202e", "\uff0e\uff0e/secret", "\u2025/secret", "sub\x00/../secret", "a\u2215b"),
        *("x/" * 200, "a" * 5_000, "../" * 1_000 + "etc/passwd", "-rf", "*", "?", "[a]", "{a,b}"),
    ],
)
def test_unresolvable_path_is_missing(folders: ArtifactFolders, path: str) -> None:
    (folders.default_root / "a").write_bytes(b"a")
    assert folders.failure_code(path) == "missing"
    assert folders.copies() == []


def test_links_pipes_devices_and_folders_are_missing(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for you")
    (folders.default_root / "link").symlink_to(secret)
    (folders.default_root / "in").symlink_to("a")
    (folders.default_root / "a").write_text("a")
    (folders.default_root / "way").symlink_to(tmp_path)
    (folders.default_root / "folder").mkdir()
    (folders.default_root / "zero").symlink_to("/dev/zero")
    os.mkfifo(folders.default_root / "pipe")
    for path in ("link", "in", "way/secret", "folder", "zero", "pipe"):
        assert folders.failure_code(path) == "missing", path
    assert folders.copies() == []


def test_symlinked_teamspace_is_not_followed(folders: ArtifactFolders, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "artifacts").mkdir(parents=True)
    (outside / "artifacts" / "a").write_text("a")
    (folders.data / "teamspaces" / "evil").symlink_to(outside)
    assert isinstance(folders.store.store_file("evil", "a", ANY), ArtifactMismatch)


def test_file_above_size_limit_is_not_read(folders: ArtifactFolders) -> None:
    with (folders.default_root / "huge").open("wb") as file:
        file.truncate(10 << 30)
    assert folders.failure_code("huge") == "too_large"
    assert folders.copies() == []


def test_mismatch_with_expected_hash_or_size_keeps_no_copy(folders: ArtifactFolders) -> None:
    (folders.default_root / "a").write_bytes(b"abc")
    good = digest(b"abc")
    assert folders.failure_code("a", ExpectedArtifact(digest(b"abd"))) == "different"
    assert folders.failure_code("a", ExpectedArtifact(good, 4)) == "different"
    assert folders.copies() == []
    assert folders.take("a", ExpectedArtifact(good, 3)) == StoredArtifact(good, 3)
    assert folders.take("a", ExpectedArtifact(good, 3)) == StoredArtifact(good, 3)
    (folders.default_root / "a").write_bytes(b"xyz")
    assert folders.failure_code("a", ExpectedArtifact(good, 3)) == "different"
    assert folders.copies() == [good]


def test_empty_file_is_accepted(folders: ArtifactFolders) -> None:
    (folders.default_root / "a").touch()
    assert folders.take("a") == StoredArtifact(digest(b""), 0)


def test_check_detects_changed_or_missing_copy(folders: ArtifactFolders) -> None:
    (folders.default_root / "a").write_bytes(b"abc")
    sha256 = digest(b"abc")
    folders.take("a")
    copy = folders.data / "artifacts" / "sha256" / sha256[:2] / sha256
    copy.write_bytes(b"abd")
    wrong = folders.store.verify_copy(sha256)
    assert wrong is not None
    assert wrong.problem == "different"
    copy.unlink()
    missing = folders.store.verify_copy(sha256)
    assert missing is not None
    assert missing.problem == "missing"
    folders.take("a")
    assert folders.store.verify_copy(sha256) is None


class DiskWithHook(SafeDisk):
    """Disk that calls a hook while a file is open."""

    def __init__(self, root: Path, hook: Callable[[], object]) -> None:
        super().__init__(root)
        self._hook = hook

    @contextmanager
    def open(self, path: str) -> Generator[tuple[FileIO, FileStat] | None]:
        with super().open(path) as found:
            if found is not None:
                self._hook()
            yield found


class Hook:
    """Action while a file is open; none at first."""

    def __init__(self) -> None:
        self.action: Callable[[], object] = int

    def open_disk(self, root: Path) -> DiskWithHook:
        """Open a disk that runs the action."""
        return DiskWithHook(root, self._run)

    def _run(self) -> None:
        self.action()


def test_symlink_swapped_in_after_open_is_ignored(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    hook = Hook()
    folders = ArtifactFolders(tmp_path / "data", hook.open_disk)
    file = folders.default_root / "a"
    file.write_bytes(b"abc")

    def swap() -> None:
        file.unlink()
        file.symlink_to(secret)

    hook.action = swap
    assert folders.take("a", ExpectedArtifact(digest(b"abc"))) == StoredArtifact(digest(b"abc"), 3)
    assert folders.failure_code("a") == "missing"


@pytest.mark.parametrize("size", [3, LARGE])
def test_file_resized_while_read_is_a_transient_failure(tmp_path: Path, size: int) -> None:
    hook = Hook()
    folders = ArtifactFolders(tmp_path / "data", hook.open_disk)
    file = folders.default_root / "a"
    for later in (size + 5, size - 2):
        file.write_bytes(bytes(size))

        def change(length: int = later) -> None:
            os.truncate(file, length)

        hook.action = change
        assert folders.failure_code("a") == "passing"
    assert folders.copies() == []


def test_read_error_is_a_transient_failure(tmp_path: Path) -> None:
    hook = Hook()
    folders = ArtifactFolders(tmp_path / "data", hook.open_disk)
    (folders.default_root / "a").write_bytes(b"abc")
    folders.take("a")

    def fail() -> None:
        raise OSError(5, "Input/output error")

    hook.action = fail
    assert folders.failure_code("a") == "passing"
    wrong = folders.store.verify_copy(digest(b"abc"))
    assert wrong is not None
    assert (wrong.problem, "Input/output" in wrong.detail) == ("passing", True)


def test_large_file_is_hashed_while_copied(folders: ArtifactFolders) -> None:
    content = os.urandom(LARGE)
    (folders.default_root / "a").write_bytes(content)
    sha256 = digest(content)
    assert folders.failure_code("a", ExpectedArtifact("0" * 64)) == "different"
    assert folders.copies() == []
    assert folders.take("a") == StoredArtifact(sha256, LARGE)
    assert folders.store.verify_copy(sha256) is None
    assert folders.take("a", ExpectedArtifact(sha256, LARGE)) == StoredArtifact(sha256, LARGE)
    (folders.default_root / "a").write_bytes(bytes(LARGE))
    assert folders.failure_code("a", ExpectedArtifact(sha256)) == "different"
    assert folders.copies() == [sha256]


class FillingDisk(SafeDisk):
    """Disk that is full after so many chunks of a copy."""

    chunks = 99

    @contextmanager
    def create(self, path: str, mode: int = 0o600) -> Generator[FileIO]:
        with super().create(path, mode) as file:
            yield BoundedFile(file.fileno(), self.chunks)


class BoundedFile(FileIO):
    """File that accepts so many chunks."""

    def __init__(self, descriptor: int, chunks: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._chunks_left = chunks

    def write(self, b: Any, /) -> int:
        if self._chunks_left == 0:
            raise OSError(ENOSPC, "No space left on device")
        self._chunks_left -= 1
        return super().write(b)


@pytest.mark.parametrize("size", [CHUNK, 2 * CHUNK - 1, 4 * CHUNK + 7])
def test_chunked_copy_equals_its_source(tmp_path: Path, size: int) -> None:
    folders = ArtifactFolders(tmp_path / "data", most_bytes=size)
    content = os.urandom(size)
    (folders.default_root / "a").write_bytes(content)
    assert folders.take("a") == StoredArtifact(digest(content), size)
    assert [path.read_bytes() for path in folders.data.glob("artifacts/sha256/*/*")] == [content]


@pytest.mark.parametrize("chunks", range(5))
def test_full_disk_at_any_chunk_keeps_no_copy(tmp_path: Path, chunks: int) -> None:
    class Full(FillingDisk):
        """Disk that is full after that many."""

    Full.chunks = chunks
    folders = ArtifactFolders(tmp_path / "data", Full, 5 * CHUNK)
    (folders.default_root / "a").write_bytes(os.urandom(4 * CHUNK + 7))
    found = folders.take("a")
    assert isinstance(found, ArtifactMismatch)
    assert (found.problem, "No space left" in found.detail) == ("passing", True)
    assert folders.copies() == []


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("is_stated", [False, True])
def test_damaged_copy_is_replaced_when_artifact_is_taken_again(
    folders: ArtifactFolders, size: int, *, is_stated: bool
) -> None:
    content = bytes(size)
    (folders.default_root / "a").write_bytes(content)
    sha256 = digest(content)
    folders.take("a")
    copy = folders.data / "artifacts" / "sha256" / sha256[:2] / sha256
    copy.write_bytes(b"x" + content[1:])
    expected = ExpectedArtifact(sha256, size) if is_stated else ANY
    assert folders.take("a", expected) == StoredArtifact(sha256, size)
    assert folders.store.verify_copy(sha256) is None


def test_hard_linked_file_is_not_read_and_copies_are_private(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    (folders.default_root / "a").hardlink_to(secret)
    for found in (folders.take("a"), folders.store.file_size("default", "a")):
        assert isinstance(found, ArtifactMismatch)
        assert (found.problem, "hard links" in found.detail) == ("missing", True)
    assert folders.copies() == []
    (folders.default_root / "b").write_bytes(b"b")
    folders.take("b")
    copy = folders.data / "artifacts" / "sha256" / digest(b"b")[:2] / digest(b"b")
    assert copy.stat().st_mode & 0o777 == 0o600


def test_size_is_reported_without_copying(folders: ArtifactFolders) -> None:
    (folders.default_root / "a").write_bytes(b"abc")
    assert folders.store.file_size("default", "a") == 3
    assert isinstance(folders.store.file_size("default", "b"), ArtifactMismatch)
    assert folders.copies() == []


def test_failure_names_the_kind_of_file(folders: ArtifactFolders) -> None:
    (folders.default_root / "in").symlink_to("a")
    (folders.default_root / "folder").mkdir()
    os.mkfifo(folders.default_root / "pipe")
    for path, why in (("in", "link"), ("folder", "folder"), ("pipe", "pipe"), ("b", "no file")):
        found = folders.take(path)
        assert isinstance(found, ArtifactMismatch)
        assert why in found.detail
    (folders.second_root / "folder").write_bytes(b"it is one in another root")
    assert isinstance(folders.take("folder"), StoredArtifact)


def test_old_partial_copies_are_removed(folders: ArtifactFolders) -> None:
    assert folders.store.remove_stale_incoming(0) == 0
    incoming = folders.data / "artifacts" / "incoming"
    incoming.mkdir(parents=True)
    for name, seconds in (("old", 1_000), ("new", 5_000)):
        (incoming / name).write_bytes(b"half of it")
        os.utime(incoming / name, (seconds, seconds))
    assert folders.store.remove_stale_incoming(5_000_000) == 1
    assert [path.name for path in incoming.iterdir()] == ["new"]
    assert folders.store.remove_stale_incoming(5_000_000) == 0


def test_concurrent_swaps_never_get_a_wrong_file_accepted(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    (folders.default_root / "a").write_bytes(b"abc")
    stop = Event()

    def swap_repeatedly() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            beside = folders.default_root / f"beside-{number % 2}"
            if number % 2:
                beside.symlink_to(secret)
            else:
                beside.write_bytes(b"xyz")
            beside.replace(folders.default_root / "a")

    thread = Thread(target=swap_repeatedly)
    thread.start()
    try:
        found = [folders.take("a") for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert {one.sha256 for one in found if isinstance(one, StoredArtifact)} <= {
        digest(b"abc"),
        digest(b"xyz"),
    }
    assert digest(b"not for you") not in folders.copies()
    for name in folders.copies():
        assert folders.store.verify_copy(name) is None
