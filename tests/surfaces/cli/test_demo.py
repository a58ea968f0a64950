"""`demo`: a deterministic scenario on a real hub that leaves files only if asked to."""

import tempfile
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-DEMO")


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the demo its own temporary folder, to inspect it afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_demo_is_deterministic_and_leaves_no_files(
    dragoman: Console, temporary_folder: Path
) -> None:
    first, second = dragoman("demo"), dragoman("demo")

    assert first.code == 0
    assert first.out == second.out
    assert list(temporary_folder.iterdir()) == []
    assert not dragoman.data.exists()


def test_demo_has_handoff_crashes_recoveries_review_and_proof(dragoman: Console) -> None:
    steps = dragoman.ask("demo")["steps"]

    times_and_actors = [(step["at"][11:19], step["who"]) for step in steps]
    assert times_and_actors == sorted(times_and_actors, key=lambda step: step[0])
    text = " / ".join(f"{step['who']} {step['what']}" for step in steps)
    for part in (
        'mia creates TASK-2026-02-09-001 "Login by e-mail": ready',
        "ada claims 001: attempt 1, lease until 09:05:05",
        "ada status.update",
        "ada handoff.request to ben: 002 stays ready",
        "ben handoff.accepted, and claims 002: attempt 1",
        "ada crashes",
        "ben completion.report done: 002 is in-progress",
        "ben crashes too",
        "hub ticks: 001 in-progress → ready, stale_heartbeat_reclaim",
        "hub ticks: 002 in-progress → review, stale_heartbeat_done",
        "ben is back and claims 001: attempt 2, fence 2",
        "ada is back too, completion.report done: refused, lease_lost",
        "ben completion.report done, session_end: 001 is in review",
        "mia reviews both: 002 is done, 001 is done",
        "all good",
    ):
        assert part in text
        text = text.partition(part)[2]


@proves("CLI-NOW")
def test_demo_starts_at_now_option(dragoman: Console) -> None:
    assert dragoman.ask("demo", "--now", NOON)["steps"][0]["at"] == "2026-02-09T12:00:00.000Z"


def test_demo_fits_80_columns_and_60_lines(dragoman: Console) -> None:
    lines = dragoman("demo").out.splitlines()

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 60


def test_demo_ends_with_commands_to_try(dragoman: Console) -> None:
    last = dragoman("demo").out.splitlines()[-3:]

    assert all(line.startswith("  dragoman ") for line in last)


def test_kept_demo_directory_can_be_read_and_verified(dragoman: Console, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    reply = dragoman.ask("demo", "--keep", str(kept))

    assert reply["kept"] == str(kept)
    assert [path for path in reply["files"] if not (kept / path).is_file()] == []
    handoff = "tasks/done/TASK-2026-02-09-002/inputs/handoff.md"
    assert handoff in reply["files"]
    assert "**To:** ben" in (kept / handoff).read_text(encoding="utf-8")
    assert dragoman.ask("verify", "--data", str(kept))["found"] == 0


def test_demo_does_not_touch_an_existing_target(dragoman: Console, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine", encoding="utf-8")

    for taken in (tmp_path / "mine", tmp_path / "mine" / "file"):
        result = dragoman("demo", "--keep", str(taken))
        assert result.code == 2
        assert "name a new or empty folder" in result.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_demo_ignores_user_settings(dragoman: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dragoman("demo").out
    monkeypatch.setenv("DRAGOMAN_STORE_URL", "postgresql://nobody@localhost:1/none")
    monkeypatch.setenv("DRAGOMAN_AOF_APPLY_COMPLETION", "immediately")

    assert dragoman("demo").out == expected
