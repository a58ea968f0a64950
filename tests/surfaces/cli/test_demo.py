"""demo: the same story each time, told by a real hub, and nothing left behind."""

import tempfile
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-DEMO")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the demo a temporary folder of its own to look into afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_story_is_the_same_each_time_and_leaves_nothing_behind(
    dragoman: Console, elsewhere: Path
) -> None:
    first, second = dragoman("demo"), dragoman("demo")

    assert first.code == 0
    assert first.out == second.out
    assert list(elsewhere.iterdir()) == []
    assert not dragoman.data.exists()


def test_the_story_has_a_crash_a_recovery_and_a_proof(dragoman: Console) -> None:
    steps = dragoman.ask("demo")["steps"]

    told = [(step["at"][11:19], step["who"]) for step in steps]
    assert told == sorted(told, key=lambda step: step[0])
    story = " / ".join(f"{step['who']} {step['what']}" for step in steps)
    for part in (
        "mia creates the task",
        "ada claims the next task: attempt 1, fence 1",
        "ben wants it too: refused, already_claimed",
        "ada sends a heartbeat",
        "ada crashes",
        "hub ticks: the task is ready again",
        "ben claims the next task: attempt 2, fence 2",
        "ada comes back to life and reports done: refused, lease_lost",
        "ben reports done: the task is in review",
        "mia reviews it: done",
        "all good",
    ):
        assert part in story
        story = story.partition(part)[2]


@proves("CLI-NOW")
def test_the_story_begins_when_it_is_told_to(dragoman: Console) -> None:
    assert dragoman.ask("demo", "--now", NOON)["steps"][0]["at"] == "2026-02-09T12:00:00.000Z"


def test_the_story_fits_a_narrow_terminal(dragoman: Console) -> None:
    assert max(map(len, dragoman("demo").out.splitlines())) <= 80


def test_the_story_ends_with_what_to_try(dragoman: Console) -> None:
    last = dragoman("demo").out.splitlines()[-3:]

    assert all(line.startswith("  dragoman ") for line in last)
