"""`dragoman report`: Markdown, JSON and one HTML page."""

import re
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("SEE-DAY", "SEE-EXPORT")

HOSTILE = "<b>x</b> ![x](http://evil.example/x.png) | # h\n```\x1b[2J\u202eend"


@pytest.fixture
def worked(dragoman: Console) -> Console:
    """Give a day in which one task was finished, one failed and one asks."""
    for id in ("T-1", "T-2", "T-3"):
        dragoman.make(HOSTILE.replace("\n", " "), "--id", id, "--ready", "--now", NOON)
        dragoman.ask("task", "claim", id, "--agent", "ada", "--now", NOON)
    done = ("--notes", HOSTILE, "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "complete", "T-1", *done)
    dragoman.ask("task", "approve", "T-1", "--now", NOON)
    dragoman.ask("task", "fail", "T-2", "--agent", "ada", "--notes", "broke", "--now", NOON)
    dragoman.ask("task", "ask", "T-3", "Which?", "--agent", "ada", "--now", NOON)
    return dragoman


def test_markdown_has_tables_in_which_nothing_acts(worked: Console) -> None:
    shown = worked("report", "--now", NOON).out
    for heading in ("In numbers", "By agent", "Finished", "Failed attempts", "Waits for a person"):
        assert f"\n## {heading}" in shown
    assert "# Report of 2026-02-09 (UTC)\n\nThe day as far as it has come" in shown
    assert "| Tasks finished | 1 |" in shown
    assert "| ada | 3 | 1 | 1 | 1 |" in shown
    assert "dragoman task answer T-3" in shown
    assert not re.search(r"<b>|(?<!\\)\]\(|^# h|[\x00-\x08\x0b-\x1f\u202e]", shown, re.MULTILINE)


def test_another_day_is_read_in_json(worked: Console) -> None:
    today = worked.ask("report", "--now", "2026-02-10T09:00:00Z")
    assert (today["day"], today["counts"], today["items"]) == ("2026-02-10", {}, [])
    before = worked.ask("report", "--day", "2026-02-09", "--now", "2026-02-10T09:00:00Z")
    assert before["counts"] == {"finished": 1, "failed": 1}
    assert before["items"][0]["text"] == HOSTILE
    assert "as far as it has come" not in worked("report", "--day", "2026-02-09").out


def test_page_is_written(worked: Console, tmp_path: Path) -> None:
    page = tmp_path / "day.html"
    assert f"{page}" in worked("report", "--now", NOON, "--html", f"{page}").out
    html = page.read_text()
    assert "default-src 'none'" in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert not re.search("<b>|<img|<script|[\x00-\x08\x0b-\x1f\u202e]", html)


def test_day_that_is_none_is_refused(dragoman: Console) -> None:
    refused = dragoman("report", "--day", "yesterday")
    assert refused.code == 2
    assert "is not a day: write it like 2026-02-09" in refused.err
