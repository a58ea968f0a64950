"""Owner's token: made once, owner-only, and a damaged file is named with a remedy."""

import os
import re
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman.system.bearer_tokens import load_or_create_token, load_token
from dragoman.system.safe_fs import BadKey
from tests.requirements import proves
from tests.system.child_processes import child, next_line, resume

pytestmark = proves("IDENTITY-OWNER")

RACER = """
import sys
from pathlib import Path
from dragoman.system.bearer_tokens import load_or_create_token
print("there", flush=True)
sys.stdin.readline()
print(load_or_create_token(Path(sys.argv[1])).decode(), flush=True)
"""


def test_token_is_made_once_and_owner_only(tmp_path: Path) -> None:
    token = load_or_create_token(tmp_path)
    assert re.fullmatch(rb"drgo_[A-Za-z0-9_-]{43}", token)
    assert load_or_create_token(tmp_path) == load_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    assert load_or_create_token(make_folder_at(tmp_path / "other")) != token


def test_token_mode_ignores_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        load_or_create_token(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_concurrent_processes_get_the_same_token(tmp_path: Path) -> None:
    with ExitStack() as stack:
        racers = [stack.enter_context(child(RACER, tmp_path)) for _ in range(4)]
        for racer in racers:
            assert next_line(racer) == "there"
        for racer in racers:
            resume(racer)
        assert {next_line(racer) for racer in racers} == {load_token(tmp_path).decode()}


def test_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_token(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_file_readable_by_others_is_refused_with_remedy(tmp_path: Path, mode: int) -> None:
    token = load_or_create_token(tmp_path)
    path = tmp_path / "token"
    path.chmod(mode)
    with pytest.raises(BadKey, match=f"its mode is {mode:o}.*chmod 600 {path}") as caught:
        load_or_create_token(tmp_path)
    assert token.decode() not in caught.value.detail


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def repeat_content(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (make_empty, "does not hold a token"),
        (truncate, "does not hold a token"),
        (repeat_content, "does not hold a token"),
        (make_folder, "is not a regular file"),
        (make_pipe, "is not a regular file"),
    ],
    ids=range(5),
)
@proves("IDENTITY-SECRET")
def test_damaged_file_is_named_and_stays(
    tmp_path: Path, damage: Callable[[Path], None], why: str
) -> None:
    secret = load_or_create_token(tmp_path).decode()[5:25]
    damage(tmp_path / "token")
    with pytest.raises(BadKey, match=why) as caught:
        load_or_create_token(tmp_path)
    assert f"Move {tmp_path / 'token'} away" in caught.value.detail
    assert secret not in caught.value.detail
    assert (tmp_path / "token").exists()


def make_folder_at(folder: Path) -> Path:
    folder.mkdir()
    return folder
