"""What a chunk holds back reaches the next process, and nobody else."""

import os
import stat
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.system.chunk_tails import MOST_AGE, PATIENCE, ChunkTails
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

SECRET = b"0" * 32


class Tails(ChunkTails):
    """The same, beside a record in which everything is but what is lost."""

    def __init__(self, folder: Path, secret: bytes = SECRET) -> None:
        super().__init__(folder, secret)
        self.lost = set[str]()

    def keep(self, key: str, held: str, event: str = "e", before: str = "") -> None:
        self.put(key, held, event=event, before=before)

    def now(self, key: str) -> str:
        return self.get(key, self._is_there)

    def ending(self) -> list[tuple[str, str]]:
        return list(self.left(self._is_there))

    def _is_there(self, event: str) -> bool:
        return event not in self.lost


def left_alone(folder: Path) -> None:
    """No chunk comes for as long as one may be waited for."""
    for path in folder.iterdir():
        at = path.stat().st_mtime - PATIENCE - 1
        os.utime(path, (at, at))


def test_another_process_takes_over_and_the_last_one_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    first = Tails(folder)
    assert first.now("k") == ""
    first.keep("k", "ghp_12")
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = Tails(folder)
    assert second.now("k") == "ghp_12"
    second.clear("k")
    second.clear("k")
    assert list(folder.iterdir()) == []
    assert second.now("k") == ""


def test_nobody_reads_them_without_the_secret(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    tails.keep("k", "ghp_1234567890 \ud800")
    (file,) = folder.iterdir()
    assert b"ghp_" not in file.read_bytes()
    assert tails.now("k") == "ghp_1234567890 \ud800"
    stranger = Tails(folder, b"1" * 32)
    stranger.keep("k", "x")
    other = next(path for path in folder.iterdir() if path != file)
    other.write_bytes(file.read_bytes())
    assert stranger.now("k") == ""
    file.write_bytes(b"short")
    assert tails.now("k") == ""


def test_what_nobody_waits_for_goes(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    Tails(folder).keep("old", "half")
    (file,) = folder.iterdir()
    long_ago = file.stat().st_mtime - MOST_AGE - 1
    os.utime(file, (long_ago, long_ago))
    tails = Tails(folder)
    tails.keep("new", "half")
    tails.keep("newer", "half")
    assert tails.now("old") == ""
    assert len(list(folder.iterdir())) == 2


def test_what_a_chunk_has_come_to_is_not_left(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    tails.keep("k", "half")
    left_alone(folder)
    assert Tails(folder).now("k") == "half"
    assert tails.ending() == []


def test_what_a_chunk_leaves_while_another_is_ended_stays(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    for then in ("something else", "half"):
        tails.keep("k", "half")
        left_alone(folder)
        assert tails.ending() == [("k", "half")]
        Tails(folder).keep("k", then)
        tails.drop("k")
        assert tails.now("k") == then
    left_alone(folder)
    assert tails.ending() == [("k", "half")]
    tails.drop("k")
    tails.drop("k")
    assert list(folder.iterdir()) == []


def test_what_is_being_ended_is_no_chunk_s_any_more_and_told_again_until_it_is_dropped(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    tails.keep("k", "first")
    left_alone(folder)
    assert tails.ending() == [("k", "first")]
    assert tails.now("k") == ""
    tails.keep("k", "second")
    left_alone(folder)
    assert Tails(folder).ending() == [("k", "first")], "one after the other"
    tails.drop("k")
    assert tails.ending() == [("k", "second")]


def test_a_chunk_that_comes_while_others_are_ended_keeps_what_it_goes_on_with(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    for key in ("a", "b"):
        tails.keep(key, f"half {key}")
    left_alone(folder)
    ended = tails.left(lambda _: True)
    ((first, _), other) = next(ended), {"a": "b", "b": "a"}
    assert tails.now(other[first]) == f"half {other[first]}"
    assert list(ended) == [], "a chunk goes on with the other one"


def test_what_lies_aside_and_cannot_be_opened_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    for key in ("damaged", "sound"):
        tails.keep(key, "half")
    left_alone(folder)
    assert len(tails.ending()) == 2
    # It lies where a sound one would, and what it holds is nobody's.
    (folder / f"{'0' * 32}.ending").write_bytes(b"no seal at all, but long enough to hold one")
    stranger = Tails(folder, b"1" * 32)
    assert stranger.ending() == []
    assert sorted(tails.ending()) == [("damaged", "half"), ("sound", "half")]


def test_what_holds_is_for_the_record_to_say(tmp_path: Path) -> None:
    tails = Tails(tmp_path / "held")
    tails.keep("k", "after \0 it", event="e-2", before="before \0 it")
    assert tails.now("k") == "after \0 it"
    tails.lost = {"e-2"}
    assert tails.now("k") == "before \0 it"
    left_alone(tmp_path / "held")
    assert tails.ending() == [("k", "before \0 it")]
    tails.lost = set()
    assert tails.ending() == [("k", "before \0 it")], "its event came too late"


def test_what_comes_to_nothing_is_not_told_and_goes(tmp_path: Path) -> None:
    tails = Tails(tmp_path / "held")
    tails.keep("ended", "", event="e-1", before="half")
    tails.keep("refused", "half", event="e-2")
    tails.lost = {"e-2"}
    left_alone(tmp_path / "held")
    assert tails.ending() == []
    assert list((tmp_path / "held").iterdir()) == []


def test_where_it_cannot_lie_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    folder.write_text("no folder")
    for use in (lambda: Tails(folder).keep("k", "half"), lambda: Tails(folder).now("k")):
        with pytest.raises(StoreUnavailable) as told:
            use()
        assert str(folder) in str(told.value)
        assert "nothing was written" in str(told.value)
