"""Copies that nobody needs: removed when they are old, and never from under somebody's hands."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import RejectHandoff
from dragoman.engine.artifacts import Expected, Kept
from dragoman.engine.reads.handoffs import copies_needed
from dragoman.files.handoffs.artifacts import ArtifactShelf
from dragoman.files.handoffs.audit import check_handoff
from dragoman.files.handoffs.copies import Copies
from dragoman.system.beneath import Beneath
from dragoman.system.ids import CountingIds
from tests.engine.handoffs import accept, make, offer, state
from tests.engine.lab import BOB, Lab
from tests.requirements import proves

pytestmark = proves("ACP-COPIES")

DAY = 86_400
NOW = 2_000_000_000
LARGE = b"x" * 3_000_000


class Shelf:
    """A shelf with one file to take, and who removes copies of it."""

    def __init__(self, data: Path, needed: Any = frozenset, disk: Any = Beneath) -> None:
        self.data = data
        self.source = data / "teamspaces" / "default" / "artifacts" / "a"
        self.source.parent.mkdir(parents=True, exist_ok=True)
        self.shelf = ArtifactShelf(data, disk, CountingIds(), (), 10_000_000)
        self.copies = Copies(lambda: Beneath(data), needed, lambda: NOW * 1_000)

    def take(self, content: bytes = b"abc") -> Path:
        """Keep a copy; where it lies."""
        self.source.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        assert isinstance(self.shelf.take("default", "a", Expected(sha256)), Kept)
        return self.data / "artifacts" / "sha256" / sha256[:2] / sha256


def aged(path: Path, days: float) -> Path:
    """The file as if it had last been taken so many days ago."""
    then = NOW - days * DAY
    os.utime(path, (then, then))
    return path


def test_what_is_old_and_needed_by_nobody_is_removed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.copies.sweep() == 0
    new, old = aged(shelf.take(b"new"), 6), aged(shelf.take(b"old"), 8)
    assert shelf.copies.sweep() == 1
    assert (new.exists(), old.exists()) == (True, False)


def test_what_a_handoff_needs_stays_until_it_is_rejected(tmp_path: Path) -> None:
    lab = Lab()
    make(lab)
    offer(lab)
    shelf = Shelf(tmp_path, lambda: copies_needed(lab.store))
    copy = aged(shelf.take(), 100)
    accept(lab, artifacts={"a": copy.name})
    assert copies_needed(lab.store) == {copy.name}
    assert shelf.copies.sweep() == 0
    lab.do(BOB, RejectHandoff("h1", "other", "not now"))
    aged(tmp_path / "artifacts.lock", 2)
    assert shelf.copies.sweep() == 1
    proofs = {
        one.check: one for one in check_handoff(lab.store, Beneath(tmp_path), state(lab, "h1"))
    }
    assert (proofs["artifact"].ok, copy.exists()) == (True, False)
    assert "not kept" in proofs["artifact"].detail


def test_all_are_looked_through_once_a_day(tmp_path: Path) -> None:
    looked = list[int]()

    def needed() -> frozenset[str]:
        looked.append(1)
        return frozenset((kept.name,))

    shelf = Shelf(tmp_path, needed)
    kept = aged(shelf.take(), 8)
    aged(shelf.take(b"other"), 8)
    assert shelf.copies.sweep() == 1
    for days, times in ((0.5, 1), (1.5, 2)):
        aged(tmp_path / "artifacts.lock", days)
        assert shelf.copies.sweep() == 0
        assert len(looked) == times


@pytest.mark.parametrize("content", [b"abc", LARGE], ids=["small", "large"])
def test_whoever_takes_it_while_copies_are_looked_through_keeps_it(
    tmp_path: Path, content: bytes
) -> None:
    def needed() -> frozenset[str]:
        shelf.take(content)
        os.utime(copy, (NOW, NOW))  # the test's day is not today
        return frozenset()

    shelf = Shelf(tmp_path, needed)
    copy = aged(shelf.take(content), 8)
    assert shelf.copies.sweep() == 0
    assert copy.read_bytes() == content


@pytest.mark.parametrize("content", [b"abc", LARGE], ids=["small", "large"])
def test_what_is_removed_while_somebody_looks_at_it_is_copied_again(
    tmp_path: Path, content: bytes
) -> None:
    class Sweeping(Beneath):
        """Somebody removes copies between two looks."""

        def hold(self, path: str) -> Any:
            assert copies.sweep() == 1
            return super().hold(path)

    first = Shelf(tmp_path)
    copy, copies = aged(first.take(content), 8), first.copies
    assert Shelf(tmp_path, disk=Sweeping).take(content) == copy
    assert copy.read_bytes() == content
