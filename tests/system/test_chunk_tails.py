"""What a chunk holds back reaches the next process, and nobody else."""

import os
import stat
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.rests import Left
from dragoman.system.chunk_tails import MOST_AGE, MOST_PAST, PATIENCE, ChunkTails
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

SECRET = b"0" * 32
NOW = 1_770_670_500.0


class Tails(ChunkTails):
    """The same, beside a record in which everything is but what is lost."""

    def __init__(self, folder: Path, secret: bytes = SECRET, later: float = 0.0) -> None:
        super().__init__(folder, secret, lambda: NOW + self.later)
        self.later = later
        self.lost = set[str]()

    def keep(self, key: str, held: str, event: str = "e", before: str = "") -> None:
        self.put([Left(key, event, before, held)])

    def clear(self, key: str) -> None:
        """A chunk comes that leaves nothing."""
        left = [Left(key, "e-last", self.now(key), "")]
        self.put(left)
        self.settle(left)

    def now(self, key: str) -> str:
        return self.get(key, self._is_there)

    def ending(self) -> list[tuple[str, str]]:
        return list(self.left(self._is_there))

    def wait(self) -> None:
        """No chunk comes for as long as one may be waited for."""
        self.later += PATIENCE + 1

    def _is_there(self, event: str) -> bool:
        return event not in self.lost


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
    Tails(folder, b"1" * 32).keep("of other keys", "half")
    for file in folder.iterdir():
        long_ago = file.stat().st_mtime - MOST_AGE - 1
        os.utime(file, (long_ago, long_ago))
    tails = Tails(folder)
    tails.keep("new", "half")
    tails.keep("newer", "half")
    assert tails.now("old") == ""
    assert len(list(folder.iterdir())) == 1
    assert Tails(folder, later=MOST_AGE + 1).now("new") == ""


def test_what_a_chunk_has_come_to_is_not_left(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    tails.keep("k", "half")
    tails.wait()
    assert Tails(folder, later=tails.later).now("k") == "half"
    assert tails.ending() == []


def test_what_a_chunk_leaves_while_another_is_ended_stays(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = Tails(folder)
    for then in ("something else", "half"):
        tails.keep("k", "half")
        tails.wait()
        assert tails.ending() == [("k", "half")]
        Tails(folder).keep("k", then)
        tails.drop("k")
        assert tails.now("k") == then
    tails.wait()
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
    tails.wait()
    assert tails.ending() == [("k", "first")]
    assert tails.now("k") == ""
    tails.keep("k", "second")
    tails.wait()
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
    tails.wait()
    ended = tails.left(lambda _: True)
    ((first, _), other) = next(ended), {"a": "b", "b": "a"}
    assert tails.now(other[first]) == f"half {other[first]}"
    assert list(ended) == [], "a chunk goes on with the other one"


def test_what_cannot_be_opened_is_passed_over(tmp_path: Path) -> None:
    tails = Tails(tmp_path)
    sizes = [0]
    for key in ("sound", "damaged", "sound, too"):
        tails.keep(key, "half")
        (file,) = tmp_path.iterdir()
        sizes.append(file.stat().st_size)
    data = bytearray(file.read_bytes())
    data[sizes[2] - 1] ^= 1
    file.write_bytes(data)
    tails.wait()
    assert tails.ending() == [("sound", "half"), ("sound, too", "half")]
    assert Tails(tmp_path, b"1" * 32).ending() == []


@pytest.mark.parametrize("torn", [1, 20, 150])
def test_a_write_that_was_torn_is_cut_off(tmp_path: Path, torn: int) -> None:
    Tails(tmp_path).keep("k", "half")
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + (whole * 2)[: len(whole) + torn][-torn:])
    tails = Tails(tmp_path)
    assert tails.now("k") == "half"
    tails.keep("other", "more")
    assert Tails(tmp_path).now("other") == "more"
    assert Tails(tmp_path).now("k") == "half"


def test_many_are_kept_by_one_write_and_what_is_past_goes(tmp_path: Path) -> None:
    tails, other = Tails(tmp_path), Tails(tmp_path)
    texts = {f"k-{number}": f"held {number} " * 1_000 for number in range(20)}
    for number in range(10):
        left = [Left(key, f"e-{number}", "", text) for key, text in texts.items()]
        tails.put(left)
        tails.settle(left)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 2 * MOST_PAST
    assert {key: other.now(key) for key in texts} == texts
    other.keep("k-0", "anew")
    assert tails.now("k-0") == "anew"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_holds_is_for_the_record_to_say(tmp_path: Path) -> None:
    tails = Tails(tmp_path / "held")
    tails.keep("k", "after \0 it", event="e-2", before="before \0 it")
    assert tails.now("k") == "after \0 it"
    tails.lost = {"e-2"}
    assert tails.now("k") == "before \0 it"
    tails.wait()
    assert tails.ending() == [("k", "before \0 it")]
    tails.lost = set()
    assert tails.ending() == [("k", "before \0 it")], "its event came too late"


def test_what_comes_to_nothing_is_not_told_and_goes(tmp_path: Path) -> None:
    tails = Tails(tmp_path / "held")
    tails.keep("ended", "", event="e-1", before="half")
    tails.keep("refused", "half", event="e-2")
    tails.lost = {"e-2"}
    tails.wait()
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
