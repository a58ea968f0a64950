"""What a chunk holds back reaches the next process, and nobody else."""

import stat
from pathlib import Path

from dragoman.protocols.saop import Tail
from dragoman.system import chunk_tails
from dragoman.system.chunk_tails import ChunkTails
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")


def tails(folder: Path, *, is_shared: bool = True) -> ChunkTails[Tail]:
    """As a process has them."""
    return ChunkTails(folder, Tail, lambda tail: bool(tail.held), is_shared=is_shared)


def test_another_process_takes_over_and_the_last_one_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    first = tails(folder)
    assert first.get("k") is None
    first.put("k", Tail("e-1", "", "ghp_12"))
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = tails(folder)
    assert second.get("k") == Tail("e-1", "", "ghp_12")
    second.put("k", Tail("e-2", "ghp_12", ""))
    assert list(folder.iterdir()) == []
    assert second.get("k") == Tail("e-2", "ghp_12", "")


def test_a_hub_keeps_them_to_itself_until_it_stops(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    hub = tails(folder, is_shared=False)
    hub.put("k", Tail("e-1", "", "half"))
    assert not folder.exists()
    assert hub.get("k") == Tail("e-1", "", "half")
    hub.close()
    assert tails(folder).get("k") == Tail("e-1", "", "half")
    next(folder.iterdir()).write_text("no JSON")
    assert tails(folder).get("k") is None


def test_there_is_an_end_to_what_is_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    hub = tails(folder, is_shared=False)
    for number in range(chunk_tails.MOST_KEPT + 1):
        hub.put(f"k-{number}", Tail("e", "", "half"))
    assert len(list(folder.iterdir())) == 1
    assert hub.get("k-0") == Tail("e", "", "half")
