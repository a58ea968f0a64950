"""A process killed at every named failpoint: nothing acknowledged is lost, nothing is doubled."""

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bootstrap import open_store
from dragoman.engine.ask import entries
from dragoman.engine.verify import check_ledger, check_views
from dragoman.ledger.entry import read_line
from tests.crash.worker import SCRIPT
from tests.requirements import proves

ROOT = Path(__file__).parents[2]
FAILPOINTS = ("decided", "written", "committed")
KILLED = -9


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'crash.db'}"
    return request.getfixturevalue("postgres_url")


def play(url: str, failpoint: str = "none", times: int = 1) -> tuple[int, list[str]]:
    """Run the worker; how it ended, and what it acknowledged."""
    worker = [sys.executable, "-m", "tests.crash.worker", url, failpoint, str(times)]
    done = subprocess.run(worker, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode, done.stdout.splitlines()


def ignore(_: int) -> None:
    """Nobody watches the progress."""


def check_sound(url: str) -> list[str]:
    """The ledger and its views hold; the requests that left entries, in order."""
    store = open_store(url, Path())
    try:
        assert list(check_ledger(store, (), ignore)) == []
        assert list(check_views(store, ignore)) == []
        lines = [read_line(entry.line) for entry in entries(store)]
        return list(dict.fromkeys(line.cause for line in lines))
    finally:
        store.close()


SILENT = {"beat"}
"""Requests that leave no entry."""

WHOLE = [key for key, _, _ in SCRIPT if key not in SILENT]


@proves("CRASH-FAILPOINTS", "STORE-DURABLE", "IDEM-REPEAT")
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_killed_at_each_pass_of_a_failpoint(url: str, failpoint: str, tmp_path: Path) -> None:
    _, uninterrupted = play(f"sqlite:///{tmp_path / 'whole.db'}")
    for times in range(1, len(SCRIPT) + 1):
        ended, acknowledged = play(url, failpoint, times)
        recorded = check_sound(url)
        assert ended == KILLED
        # Every round repeats the script from its beginning, under the same keys: what an earlier
        # round had done is answered the same and adds nothing, so each round gets one step further.
        assert acknowledged == uninterrupted[: len(acknowledged)]
        expected = [key for key, _, _ in SCRIPT[: len(acknowledged)] if key not in SILENT]
        assert len(expected) <= len(recorded) <= len(expected) + 1
    assert play(url) == (0, uninterrupted)
    assert len(check_sound(url)) == len(WHOLE)


@proves("CRASH-FAILPOINTS", "IDEM-REPEAT")
def test_the_whole_script_twice_adds_nothing(url: str) -> None:
    first, second = play(url), play(url)
    assert first == second
    assert len(check_sound(url)) == len(WHOLE)
