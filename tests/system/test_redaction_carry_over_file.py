"""Carry-over of a chunk: read by the next process, and by no one without the secret."""

import os
import stat
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.redaction_carry_over import StoredCarryOver
from dragoman.system.redaction_carry_over_file import (
    MAX_AGE_SECONDS,
    MAX_OUTDATED_BYTES,
    STALE_SECONDS,
    CarryOverFile,
)
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

SECRET = b"0" * 32
NOW = 1_770_670_500.0


class CarryOvers(CarryOverFile):
    """Carry-over file beside a ledger that has every event except the lost ones."""

    def __init__(self, folder: Path, secret: bytes = SECRET, later: float = 0.0) -> None:
        super().__init__(folder, secret, lambda: NOW + self.later)
        self.later = later
        self.lost = set[str]()

    def keep(self, key: str, text: str, event: str = "e", before: str = "") -> None:
        self.put([StoredCarryOver(key, event, before, text)])

    def clear(self, key: str) -> None:
        """Put a chunk without carry-over."""
        left = [StoredCarryOver(key, "e-last", self.current(key), "")]
        self.put(left)
        self.settle(left)

    def current(self, key: str) -> str:
        return self.get(key, self._is_recorded)

    def stale(self) -> list[tuple[str, str]]:
        return list(self.find_stale(self._is_recorded))

    def become_stale(self) -> None:
        """Let so much time pass that all carry-over is stale."""
        self.later += STALE_SECONDS + 1

    def _is_recorded(self, event: str) -> bool:
        return event not in self.lost


def test_next_process_takes_over_and_last_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    first = CarryOvers(folder)
    assert first.current("k") == ""
    first.keep("k", "ghp_12")
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = CarryOvers(folder)
    assert second.current("k") == "ghp_12"
    second.clear("k")
    second.clear("k")
    assert list(folder.iterdir()) == []
    assert second.current("k") == ""


def test_file_is_unreadable_without_the_secret(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    carry_overs = CarryOvers(folder)
    carry_overs.keep("k", "ghp_1234567890 \ud800")
    (file,) = folder.iterdir()
    assert b"ghp_" not in file.read_bytes()
    assert carry_overs.current("k") == "ghp_1234567890 \ud800"
    stranger = CarryOvers(folder, b"1" * 32)
    stranger.keep("k", "x")
    other = next(path for path in folder.iterdir() if path != file)
    other.write_bytes(file.read_bytes())
    assert stranger.current("k") == ""
    file.write_bytes(b"short")
    assert carry_overs.current("k") == ""


def test_old_carry_over_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    CarryOvers(folder).keep("old", "half")
    CarryOvers(folder, b"1" * 32).keep("of other keys", "half")
    for file in folder.iterdir():
        long_ago = file.stat().st_mtime - MAX_AGE_SECONDS - 1
        os.utime(file, (long_ago, long_ago))
    carry_overs = CarryOvers(folder)
    carry_overs.keep("new", "half")
    carry_overs.keep("newer", "half")
    assert carry_overs.current("old") == ""
    assert len(list(folder.iterdir())) == 1
    assert CarryOvers(folder, later=MAX_AGE_SECONDS + 1).current("new") == ""


def test_touched_carry_over_is_not_stale(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    carry_overs = CarryOvers(folder)
    carry_overs.keep("k", "half")
    carry_overs.become_stale()
    assert CarryOvers(folder, later=carry_overs.later).current("k") == "half"
    assert carry_overs.stale() == []


def test_new_carry_over_stays_while_previous_is_flushed(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    carry_overs = CarryOvers(folder)
    for next_text in ("something else", "half"):
        carry_overs.keep("k", "half")
        carry_overs.become_stale()
        assert carry_overs.stale() == [("k", "half")]
        CarryOvers(folder).keep("k", next_text)
        carry_overs.drop("k")
        assert carry_overs.current("k") == next_text
    carry_overs.become_stale()
    assert carry_overs.stale() == [("k", "half")]
    carry_overs.drop("k")
    carry_overs.drop("k")
    assert list(folder.iterdir()) == []


def test_flushing_carry_over_is_listed_until_dropped(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "carry-over"
    carry_overs = CarryOvers(folder)
    carry_overs.keep("k", "first")
    carry_overs.become_stale()
    assert carry_overs.stale() == [("k", "first")]
    assert carry_overs.current("k") == ""
    carry_overs.keep("k", "second")
    carry_overs.become_stale()
    assert CarryOvers(folder).stale() == [("k", "first")], "one after the other"
    carry_overs.drop("k")
    assert carry_overs.stale() == [("k", "second")]


def test_carry_over_touched_during_flush_is_not_flushed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "carry-over"
    carry_overs = CarryOvers(folder)
    for key in ("a", "b"):
        carry_overs.keep(key, f"half {key}")
    carry_overs.become_stale()
    stale = carry_overs.find_stale(lambda _: True)
    ((first, _), other) = next(stale), {"a": "b", "b": "a"}
    assert carry_overs.current(other[first]) == f"half {other[first]}"
    assert list(stale) == [], "a chunk goes on with the other one"


def test_undecryptable_frame_is_skipped(tmp_path: Path) -> None:
    carry_overs = CarryOvers(tmp_path)
    sizes = [0]
    for key in ("sound", "damaged", "sound, too"):
        carry_overs.keep(key, "half")
        (file,) = tmp_path.iterdir()
        sizes.append(file.stat().st_size)
    data = bytearray(file.read_bytes())
    data[sizes[2] - 1] ^= 1
    file.write_bytes(data)
    carry_overs.become_stale()
    assert carry_overs.stale() == [("sound", "half"), ("sound, too", "half")]
    assert CarryOvers(tmp_path, b"1" * 32).stale() == []


@pytest.mark.parametrize("torn", [1, 20, 150])
def test_torn_write_is_cut_off(tmp_path: Path, torn: int) -> None:
    CarryOvers(tmp_path).keep("k", "half")
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + (whole * 2)[: len(whole) + torn][-torn:])
    carry_overs = CarryOvers(tmp_path)
    assert carry_overs.current("k") == "half"
    carry_overs.keep("other", "more")
    assert CarryOvers(tmp_path).current("other") == "more"
    assert CarryOvers(tmp_path).current("k") == "half"


def test_batch_is_written_once_and_file_is_compacted(tmp_path: Path) -> None:
    carry_overs, other = CarryOvers(tmp_path), CarryOvers(tmp_path)
    texts = {f"k-{number}": f"held {number} " * 1_000 for number in range(20)}
    for number in range(10):
        left = [StoredCarryOver(key, f"e-{number}", "", text) for key, text in texts.items()]
        carry_overs.put(left)
        carry_overs.settle(left)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 2 * MAX_OUTDATED_BYTES
    assert {key: other.current(key) for key in texts} == texts
    other.keep("k-0", "anew")
    assert carry_overs.current("k-0") == "anew"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_ledger_decides_between_text_and_previous(tmp_path: Path) -> None:
    carry_overs = CarryOvers(tmp_path / "carry-over")
    carry_overs.keep("k", "after \0 it", event="e-2", before="before \0 it")
    assert carry_overs.current("k") == "after \0 it"
    carry_overs.lost = {"e-2"}
    assert carry_overs.current("k") == "before \0 it"
    carry_overs.become_stale()
    assert carry_overs.stale() == [("k", "before \0 it")]
    carry_overs.lost = set()
    assert carry_overs.stale() == [("k", "before \0 it")], "its event came too late"


def test_empty_carry_over_is_dropped(tmp_path: Path) -> None:
    carry_overs = CarryOvers(tmp_path / "carry-over")
    carry_overs.keep("ended", "", event="e-1", before="half")
    carry_overs.keep("refused", "half", event="e-2")
    carry_overs.lost = {"e-2"}
    carry_overs.become_stale()
    assert carry_overs.stale() == []
    assert list((tmp_path / "carry-over").iterdir()) == []


def test_unusable_folder_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    folder.write_text("no folder")
    for use in (
        lambda: CarryOvers(folder).keep("k", "half"),
        lambda: CarryOvers(folder).current("k"),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            use()
        assert str(folder) in str(caught.value)
        assert "nothing was written" in str(caught.value)
