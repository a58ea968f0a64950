"""Carry-over of a chunk: read by the next process, and by no one without the secret."""

import stat
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.redaction_carry_over import StoredCarryOver
from dragoman.system.redaction_carry_over_file import (
    MAX_AGE_SECONDS,
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
        self.put([StoredCarryOver(key, "e-last", self.current(key), "")])

    def current(self, key: str) -> str:
        return self.get(key, self._is_recorded)

    def stale(self) -> list[tuple[str, str]]:
        return self.find_stale(self._is_recorded)

    def become_stale(self) -> None:
        """Let so much time pass that all carry-over is stale."""
        self.later += STALE_SECONDS + 1

    def _is_recorded(self, event: str) -> bool:
        return event not in self.lost


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
    assert stranger.stale() == []
    file.write_bytes(b"short")
    assert carry_overs.current("k") == ""


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


def test_next_process_takes_over_and_the_last_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "carry-over"
    first = CarryOvers(folder)
    assert first.current("k") == ""
    first.keep("k", "ghp_12")
    first.keep("other", "half")
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = CarryOvers(folder)
    assert second.current("k") == "ghp_12"
    second.clear("k")
    assert (first.current("k"), first.current("other")) == ("", "half")
    second.become_stale()
    assert second.stale() == [("k", ""), ("other", "half")]
    for key in ("k", "other", "unknown"):
        second.drop(key)
    assert list(folder.iterdir()) == []
    assert second.current("other") == ""


def test_old_carry_over_is_dropped(tmp_path: Path) -> None:
    CarryOvers(tmp_path).keep("old", "half")
    late = CarryOvers(tmp_path, later=MAX_AGE_SECONDS + 1)
    assert (late.current("old"), late.stale()) == ("", [])
    late.keep("new", "half")
    assert late.current("new") == "half"


def test_carry_over_of_a_later_chunk_stays(tmp_path: Path) -> None:
    carry_overs = CarryOvers(tmp_path)
    carry_overs.keep("k", "half")
    carry_overs.become_stale()
    assert carry_overs.stale() == [("k", "half")]
    CarryOvers(tmp_path, later=carry_overs.later).keep("k", "half of another")
    carry_overs.drop("k")
    assert carry_overs.current("k") == "half of another"
    assert carry_overs.stale() == []


def test_ledger_decides_between_text_and_previous(tmp_path: Path) -> None:
    carry_overs = CarryOvers(tmp_path / "carry-over")
    carry_overs.keep("k", "after \0 it", event="e-2", before="before \0 it")
    assert carry_overs.current("k") == "after \0 it"
    carry_overs.lost = {"e-2"}
    assert carry_overs.current("k") == "before \0 it"
    carry_overs.become_stale()
    assert carry_overs.stale() == [("k", "before \0 it")]
