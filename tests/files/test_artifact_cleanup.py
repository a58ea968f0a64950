"""Cleanup of artifact copies: old and unneeded ones are removed, never one that is in use."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.handoff.state import RejectHandoff
from dragoman.engine.ports import ExpectedArtifact, StoredArtifact
from dragoman.engine.queries.handoffs import needed_artifact_hashes
from dragoman.files.artifacts import ArtifactCleanup, FileArtifactStore
from dragoman.system.clock import SequentialIds
from dragoman.system.safe_fs import SafeDisk
from tests.engine.handoffs import accept, make, offer
from tests.engine.lab import BOB, Lab
from tests.requirements import proves

pytestmark = proves("ACP-COPIES")

DAY = 86_400
NOW = 2_000_000_000
LARGE = b"x" * 3_000_000


class ArtifactSetup:
    """Artifact store with one file to take, and the cleanup of its copies."""

    def __init__(self, data: Path, needed: Any = frozenset, disk: Any = SafeDisk) -> None:
        self.data = data
        self.source = data / "teamspaces" / "default" / "artifacts" / "a"
        self.source.parent.mkdir(parents=True, exist_ok=True)
        self.store = FileArtifactStore(data, disk, SequentialIds(), (), 10_000_000)
        self.cleanup = ArtifactCleanup(lambda: SafeDisk(data), needed, lambda: NOW * 1_000)

    def take(self, content: bytes = b"abc") -> Path:
        """Take the artifact; returns the path of the copy."""
        self.source.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        assert isinstance(
            self.store.store_file("default", "a", ExpectedArtifact(sha256)), StoredArtifact
        )
        return self.data / "artifacts" / "sha256" / sha256[:2] / sha256


def set_age(path: Path, days: float) -> Path:
    """Set the time of last use to so many days ago."""
    timestamp = NOW - days * DAY
    os.utime(path, (timestamp, timestamp))
    return path


def test_old_unneeded_copy_is_removed(tmp_path: Path) -> None:
    setup = ArtifactSetup(tmp_path)
    assert setup.cleanup.remove_old() == 0
    new, old = set_age(setup.take(b"new"), 6), set_age(setup.take(b"old"), 8)
    assert setup.cleanup.remove_old() == 1
    assert (new.exists(), old.exists()) == (True, False)


def test_copy_stays_until_its_handoff_is_rejected(tmp_path: Path) -> None:
    lab = Lab()
    make(lab)
    offer(lab)
    setup = ArtifactSetup(tmp_path, lambda: needed_artifact_hashes(lab.store))
    copy = set_age(setup.take(), 100)
    accept(lab, artifacts={"a": copy.name})
    assert needed_artifact_hashes(lab.store) == {copy.name}
    assert setup.cleanup.remove_old() == 0
    lab.do(BOB, RejectHandoff("h1", "other", "not now"))
    set_age(tmp_path / "artifacts.lock", 2)
    assert setup.cleanup.remove_old() == 1
    assert not copy.exists()
    assert copy.name not in needed_artifact_hashes(lab.store), "verify does not miss it"


def test_cleanup_scans_once_a_day(tmp_path: Path) -> None:
    scans = list[int]()

    def needed() -> frozenset[str]:
        scans.append(1)
        return frozenset((needed_copy.name,))

    setup = ArtifactSetup(tmp_path, needed)
    needed_copy = set_age(setup.take(), 8)
    set_age(setup.take(b"other"), 8)
    assert setup.cleanup.remove_old() == 1
    for days, times in ((0.5, 1), (1.5, 2)):
        set_age(tmp_path / "artifacts.lock", days)
        assert setup.cleanup.remove_old() == 0
        assert len(scans) == times


@pytest.mark.parametrize("content", [b"abc", LARGE], ids=["small", "large"])
def test_copy_taken_during_cleanup_stays(tmp_path: Path, content: bytes) -> None:
    def needed() -> frozenset[str]:
        setup.take(content)
        os.utime(copy, (NOW, NOW))  # not today's date, but the test's
        return frozenset()

    setup = ArtifactSetup(tmp_path, needed)
    copy = set_age(setup.take(content), 8)
    assert setup.cleanup.remove_old() == 0
    assert copy.read_bytes() == content


@pytest.mark.parametrize("content", [b"abc", LARGE], ids=["small", "large"])
def test_copy_removed_during_take_is_copied_again(tmp_path: Path, content: bytes) -> None:
    class CleaningDisk(SafeDisk):
        """Disk on which copies are removed between two checks."""

        def lock_nested(self, path: str) -> Any:
            assert cleanup.remove_old() == 1
            return super().lock_nested(path)

    first = ArtifactSetup(tmp_path)
    copy, cleanup = set_age(first.take(content), 8), first.cleanup
    assert ArtifactSetup(tmp_path, disk=CleaningDisk).take(content) == copy
    assert copy.read_bytes() == content
