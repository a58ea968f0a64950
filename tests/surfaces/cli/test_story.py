"""`dragoman story`: Markdown, JSON and one HTML page, in which nothing acts."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

HOSTILE = (
    "<script>alert(1)</script> ![x](http://evil.example/x.png) [l](javascript:x) "
    "`````\n```\n# heading\n</pre><img src=x onerror=alert(1)>\x1b[2J\u202eend"
)


@pytest.fixture
def told(dragoman: Console) -> Console:
    """Give a task with hostile words in each place."""
    dragoman.make(HOSTILE.replace("\n", " "), "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ada")
    dragoman.ask("task", "log", "T-1", HOSTILE, "--as", "ada")
    dragoman.ask("task", "log", "T-1", "plain words", "--as", "ada")
    letter = {"subject": "[T-1] PROGRESS", "body_md": f"Status: {HOSTILE}", "to": ["ben"]}
    dragoman.ask("call", "mail.send", json.dumps(letter), "--as", "ada")
    return dragoman


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


@proves("STORY-ORDER", "STORY-INERT")
def test_markdown_keeps_hostile_words_in_fenced_blocks(told: Console) -> None:
    shown = told("story", "T-1").out
    outside, fence = list[str](), ""
    for line in shown.splitlines():
        mark = re.fullmatch(r"  (`{3,})(?:text)?", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1] == fence:
            fence = ""
        elif not fence:
            outside.append(line)
    assert not fence
    prose = "\n".join(outside)
    assert "## Attempt 1" in prose
    assert "**agent:ada** noted: plain words" in prose
    posted = re.search(r"^- (\d+) .* PROGRESS letter to ben", prose, re.MULTILINE)
    assert posted is not None
    assert f"also called bead:T-1 (agentmail, with {posted[1]})" in prose
    assert not re.search(r"<\w|(?<!\\)\]\(|^# heading", prose, re.MULTILINE)
    assert "``````text" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", shown)


@proves("STORY-ORDER", "DIALECTS-MEET")
def test_progress_of_a_task_and_of_its_intent_is_shown_once(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada")
    skills = {"agent_id": "ada", "skills": ["python"]}
    dragoman.ask("call", "ccos.register", json.dumps(skills), "--as", "ada")
    dragoman.ask("delegate", "python", "--id", "i-1")
    update = {"intent_id": "i-1", "agent_id": "ada", "progress": 50, "message": "half way"}
    dragoman.ask("call", "ccos.update", json.dumps(update), "--as", "ada")
    dragoman.ask("task", "update", "i-1", "--notes", "nearly", "--as", "ada")
    shown = dragoman("story", "i-1").out
    assert shown.count("half way") == shown.count("nearly") == 1
    assert "ada: 50" in shown
    items = dragoman.ask("story", "i-1")["items"]  # which is what the ledger has
    types = [item["type"] for item in items if "progress" in item["type"] or ".upd" in item["type"]]
    assert types == ["intent.updated", "task.progressed", "task.progressed", "intent.updated"]


@proves("STORY-ORDER", "STORY-INERT")
def test_html_page_has_no_script_and_loads_nothing(told: Console, tmp_path: Path) -> None:
    page = tmp_path / "story.html"

    assert str(page) in told("story", "T-1", "--html", str(page)).out

    html = page.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(html)
    assert not tags.tags & {"script", "img", "link", "iframe", "a", "object"}
    assert not {
        name for name in tags.attributes if name.startswith("on") or name in ("src", "href")
    }
    assert "default-src 'none'" in html
    assert html.count("&lt;script&gt;alert(1)") > 3
    assert "as received" in html
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)


@proves("STORY-ORDER", "STORY-INERT")
def test_json_has_all_items_and_the_words_unchanged(told: Console) -> None:
    out = told("story", "T-1", "--json").out
    assert out.isascii()
    story = json.loads(out)
    assert story["next"] is None
    assert [item["type"] for item in story["items"]] == [
        "task.created",
        "task.claimed",
        "task.noted",
        "task.noted",
        "mail.posted",
        "task.aliased",
        "task.progressed",
    ]
    assert story["items"][2]["text"] == HOSTILE
    assert story["task"]["status"] == "in-progress"


@proves("STORY-ORDER")
def test_chunks_of_a_thought_are_told_in_one_piece(dragoman: Console, tmp_path: Path) -> None:
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("agent", "add", "ada", "--saop-role", "developer")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--session", "s")
    for number, chunk in enumerate(("I look ", "at it", "."), start=1):
        payload = {
            "type": "THOUGHT_STREAM",
            "agent_id": "developer",
            "turn_index": 0,
            "chunk": chunk,
            "is_final": chunk == ".",
        }
        event = {
            "event_id": f"00000000-0000-4000-8000-{number:012}",
            "session_id": "s",
            "payload": payload,
        }
        dragoman.ask("call", "saop.event", json.dumps(event), "--as", "ada")

    assert "I look at it." in dragoman("story", "T-1").out
    page = tmp_path / "story.html"
    dragoman("story", "T-1", "--html", str(page))
    html = page.read_text(encoding="utf-8")
    assert "I look at it." in html
    assert "<span class=facts>(saop)" in html


@proves("STORY-PAGES")
def test_unknown_task_and_unwritable_page_are_refused(dragoman: Console, tmp_path: Path) -> None:
    dragoman.make("One", "--id", "T-1")
    refused = dragoman("story", "T-2", "--json")
    assert (refused.code, json.loads(refused.out)["code"]) == (1, "task_not_found")
    assert dragoman("story", "T-1", "--html", str(tmp_path / "none" / "page")).code == 1


@proves("AOF-EVENTS")
def test_event_lines_of_letters_and_handoffs_have_the_task(told: Console) -> None:
    package = ("--criterion", "tests pass", "--next-step", "read it", "--summary", "Half is done.")
    told.ask("handoff", "initiate", "--task", "T-1", "--to", "ben", *package, "--as", "ada")
    (offer,) = told.ask("handoff", "list")["handoffs"]
    told.ask("handoff", "withdraw", offer["handoff_id"], "--as", "ada")
    files = (told.data / "events").glob("*.jsonl")
    texts = (file.read_text(encoding="utf-8") for file in files)
    lines = [json.loads(line) for text in texts for line in text.splitlines()]

    about = {line["type"]: line.get("taskId") for line in lines}

    own = told.ask("task", "show", "T-1")["aofId"]
    assert about["mail.posted"] == own
    assert about["handoff.proposed"] == own
    assert about["handoff.transitioned"] == own
    assert told("verify").code == 0
