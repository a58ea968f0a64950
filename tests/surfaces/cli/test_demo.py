"""`demo`: one task in five dialects, by real processes, which leaves files only if asked to."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-DEMO")

STEPS = (
    ("mia", "CCOS", "wants: Translate the guide to French"),
    ("hub", "CCOS", "wren proposed"),
    ("wren", None, "begins: attempt 1"),
    ("wren", "AOF/1", "3 of 6 pages are translated"),
    ("mia", None, "kill -9"),
    ("hub", None, "wren ended by signal 9, without a report"),
    ("hub", "CCOS", "finch proposed"),
    ("finch", None, "begins: attempt 2"),
    ("finch", "AOF/1", "going on where wren stopped"),
    ("finch", "Agent Mail", "HELP_REQUEST to ivy: tu or vous?"),
    ("ivy", "Agent Mail", "HELP_RESPONSE: vous"),
    ("finch", "AOF/1", "6 of 6 pages are translated"),
    ("finch", "ACP", "hands it to rex for review"),
    ("rex", "ACP", "checked: schema, policy, artifacts, cycle, package_hash passed"),
    ("rex", "ACP", "waits for a person's approval"),
    ("mia", "ACP", "approved by mia"),
    ("rex", "ACP", "begins: attempt 3"),
    ("rex", "SAOP", "I read the French"),
    ("rex", "SAOP", "grep success"),
    ("rex", "SAOP", "turn 0 of the reviewer"),
    ("rex", None, "no mistake found"),
    ("hub", "CCOS", "the goal is reached"),
)
"""Speaker, dialect and words of each step, in this order."""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the demo its own temporary folder, to inspect it afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def check_steps(steps: list[dict[str, Any]]) -> None:
    """Each step is there, after the one before."""
    left = list(steps)
    for who, dialect, what in STEPS:
        while left and (left[0]["who"] != who or what not in left[0]["what"]):
            left.pop(0)
        assert left, (who, what, [step["what"] for step in steps])
        assert left.pop(0)["dialect"] == dialect, what


@proves("DIALECTS-MEET", "AUDIT-FORMS")
def test_one_task_goes_through_five_dialects_to_its_end_and_is_kept(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_STORE_URL", "postgresql://nobody@localhost:1/none")
    monkeypatch.setenv("DRAGOMAN_AOF_APPLY_COMPLETION", "nonsense")
    kept = tmp_path / "kept"
    played = dragoman.ask("demo", "--fast", "--keep", str(kept))
    monkeypatch.undo()

    check_steps(played["steps"])
    assert played["verified"].endswith(": all good")
    words = {name: view.partition(":")[0] for name, view in played["views"].items()}
    assert words == {
        "AOF/1": "done",
        "Agent Mail": "done",
        "SAOP": "done",
        "ACP": "completed",
        "CCOS": "Satisfied",
    }
    assert len(played["story"]) > len(STEPS)
    assert played["kept"] == str(kept)
    assert dragoman.ask("verify", "--data", str(kept))["found"] == 0
    handoffs = (kept / "teamspaces/default/handoffs/handoffs.jsonl").read_bytes().splitlines()
    assert json.loads(handoffs[-1])["event"] == "handoff_completed"
    story = dragoman("story", "guide-fr", "--data", str(kept)).out
    assert "tu or vous?" in story
    why = dragoman("why", "guide-fr", "--data", str(kept)).out
    assert why.index("wren") < why.index("finch") < why.index("rex")


def test_lines_are_short_end_with_commands_and_nothing_is_left(
    dragoman: Console, temporary_folder: Path
) -> None:
    played = dragoman("demo", "--fast")
    lines = played.out.splitlines()

    assert played.code == 0
    assert max(map(len, lines)) <= 96
    assert all(line.startswith("  dragoman ") for line in lines[-3:])
    assert list(temporary_folder.iterdir()) == []
    assert not dragoman.data.exists()


def test_demo_does_not_touch_an_existing_target(dragoman: Console, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine", encoding="utf-8")

    for taken in (tmp_path / "mine", tmp_path / "mine" / "file"):
        result = dragoman("demo", "--keep", str(taken))
        assert result.code == 2
        assert "name a new or empty folder" in result.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_a_hub_that_does_not_start_is_said_with_its_own_words(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "uvloop.py").write_text("raise SystemExit('no loop here')\n", encoding="utf-8")
    result = dragoman("demo", "--fast")

    assert result.code == 1
    assert "hub has failed: no loop here" in result.err
