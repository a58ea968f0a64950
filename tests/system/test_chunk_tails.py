"""What a chunk holds back reaches the next process, and nobody else."""

import os
import stat
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dragoman.system.chunk_tails import MOST_AGE, PATIENCE, ChunkTails
from dragoman.text.digest import keyed_digest
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

SECRET = b"0" * 32


def left_alone(folder: Path) -> None:
    """No chunk comes for as long as one may be waited for."""
    for path in folder.iterdir():
        at = path.stat().st_mtime - PATIENCE - 1
        os.utime(path, (at, at))


def test_another_process_takes_over_and_the_last_one_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    first = ChunkTails(folder, SECRET)
    assert first.get("k") == ""
    first.put("k", "ghp_12")
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = ChunkTails(folder, SECRET)
    assert second.get("k") == "ghp_12"
    second.put("k", "")
    second.put("k", "")
    assert list(folder.iterdir()) == []
    assert second.get("k") == ""


def test_nobody_reads_them_without_the_secret(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    tails.put("k", "ghp_1234567890 \ud800")
    (file,) = folder.iterdir()
    assert b"ghp_" not in file.read_bytes()
    assert tails.get("k") == "ghp_1234567890 \ud800"
    stranger = ChunkTails(folder, b"1" * 32)
    stranger.put("k", "x")
    other = next(path for path in folder.iterdir() if path != file)
    other.write_bytes(file.read_bytes())
    assert stranger.get("k") == ""
    file.write_bytes(b"short")
    assert tails.get("k") == ""


def test_what_nobody_waits_for_goes(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    ChunkTails(folder, SECRET).put("old", "half")
    (file,) = folder.iterdir()
    long_ago = file.stat().st_mtime - MOST_AGE - 1
    os.utime(file, (long_ago, long_ago))
    tails = ChunkTails(folder, SECRET)
    tails.put("new", "half")
    tails.put("newer", "half")
    assert tails.get("old") == ""
    assert len(list(folder.iterdir())) == 2


def test_what_an_earlier_version_has_kept_without_a_key_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    tails.put("k", "as it is now")
    (file,) = folder.iterdir()
    seal = AESGCM(keyed_digest(SECRET, b"what is held back"))
    for said in ("half a thou", "half\0a thou"):
        nonce = bytes(12)
        file.write_bytes(nonce + seal.encrypt(nonce, said.encode(), file.name.encode()))
        left_alone(folder)
        assert tails.get("k") == said
        assert list(tails.left()) == []


def test_what_a_chunk_has_come_to_is_not_left(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    tails.put("k", "half")
    left_alone(folder)
    assert ChunkTails(folder, SECRET).get("k") == "half"
    assert list(tails.left()) == []


def test_what_a_chunk_leaves_while_another_is_ended_stays(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    for then in ("something else", "half"):
        tails.put("k", "half")
        left_alone(folder)
        assert list(tails.left()) == [("k", "half")]
        ChunkTails(folder, SECRET).put("k", then)
        tails.drop("k")
        assert tails.get("k") == then
    left_alone(folder)
    assert list(tails.left()) == [("k", "half")]
    tails.drop("k")
    tails.drop("k")
    assert list(folder.iterdir()) == []


def test_what_is_being_ended_is_no_chunk_s_any_more_and_told_again_until_it_is_dropped(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    tails.put("k", "first")
    left_alone(folder)
    assert list(tails.left()) == [("k", "first")]
    assert tails.get("k") == ""
    tails.put("k", "second")
    left_alone(folder)
    assert list(ChunkTails(folder, SECRET).left()) == [("k", "first")], "one after the other"
    tails.drop("k")
    assert list(tails.left()) == [("k", "second")]


def test_a_chunk_that_comes_while_others_are_ended_keeps_what_it_goes_on_with(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    for key in ("a", "b"):
        tails.put(key, f"half {key}")
    left_alone(folder)
    ended = tails.left()
    ((first, _), other) = next(ended), {"a": "b", "b": "a"}
    assert tails.get(other[first]) == f"half {other[first]}"
    assert list(ended) == [], "a chunk goes on with the other one"


def test_what_lies_aside_and_cannot_be_opened_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    tails = ChunkTails(folder, SECRET)
    for key in ("damaged", "sound"):
        tails.put(key, "half")
    left_alone(folder)
    assert len(list(tails.left())) == 2
    # It lies where a sound one would, and what it holds is nobody's.
    (folder / f"{'0' * 32}.ending").write_bytes(b"no seal at all, but long enough to hold one")
    stranger = ChunkTails(folder, b"1" * 32)
    assert list(stranger.left()) == []
    assert sorted(tails.left()) == [("damaged", "half"), ("sound", "half")]
