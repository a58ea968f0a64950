"""`task list`, `show` and `log`: pages, past states, and every name of a task."""

import shutil

import msgspec
import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import Actor
from dragoman.core.attempt import ReportOutcome
from dragoman.core.timestamps import parse_rfc3339
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console


def task_ids(page: dict[str, list[dict[str, str]]]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


@pytest.fixture
def seven_tasks(dragoman: Console) -> Console:
    """Give a directory with T-1 to T-7; the even ones are ready."""
    for number in range(1, 8):
        ready = () if number % 2 else ("--ready",)
        dragoman.make(f"Title {number}", "--id", f"T-{number}", *ready, "--now", NOON)
    return dragoman


@proves("CLI-TASK", "CLI-PAGED")
def test_list_is_paged_newest_first(seven_tasks: Console) -> None:
    seen: list[str] = []
    cursor: tuple[str, ...] = ()
    for size in (3, 3, 1):
        page = seven_tasks.ask("task", "list", "--limit", "3", *cursor)
        assert len(page["tasks"]) == size
        seen += task_ids(page)
        cursor = ("--before", str(page["next"]))

    assert page["next"] is None
    assert seen == [f"T-{number}" for number in (7, 6, 5, 4, 3, 2, 1)]
    shown = seven_tasks("task", "list", "--limit", "3").out
    hint = shown.splitlines()[-1]
    assert hint.startswith("There are more: add --before ")
    assert task_ids(seven_tasks.ask("task", "list", *hint.split()[-2:]))[0] == "T-4"


@proves("CLI-PAGED")
def test_exactly_full_page_has_no_next(seven_tasks: Console) -> None:
    assert seven_tasks.ask("task", "list", "--limit", "7")["next"] is None
    assert seven_tasks.ask("task", "list", "--limit", "6")["next"] is not None


@proves("CLI-TASK")
def test_list_is_filtered_by_status_and_assignee(seven_tasks: Console) -> None:
    seven_tasks.ask("task", "claim", "T-2", "--agent", "ada")
    seven_tasks.ask("task", "claim", "T-4", "--agent", "ben")

    assert task_ids(seven_tasks.ask("task", "list", "--status", "in-progress")) == ["T-4", "T-2"]
    assert task_ids(seven_tasks.ask("task", "list", "--assignee", "ada")) == ["T-2"]
    assert task_ids(seven_tasks.ask("task", "list", "--status", "ready", "--assignee", "ada")) == []


@proves("CLI-TASK", "TASK-READY")
def test_ready_list_has_only_claimable_tasks(seven_tasks: Console) -> None:
    seven_tasks.ask("task", "link", "T-6", "--blocked-by", "T-1")
    seven_tasks.ask("task", "claim", "T-4", "--agent", "ada", "--now", NOON)
    in_cooldown = ("--now", "2026-02-09T12:10:00Z")
    seven_tasks.ask("tick", *in_cooldown)

    assert task_ids(seven_tasks.ask("task", "list", "--ready", *in_cooldown)) == ["T-2"]
    assert task_ids(seven_tasks.ask("task", "list", "--status", "ready", *in_cooldown)) == [
        "T-6",
        "T-4",
        "T-2",
    ]
    after_cooldown = seven_tasks.ask("task", "list", "--ready", "--now", "2026-02-09T12:11:00Z")
    assert task_ids(after_cooldown) == ["T-4", "T-2"]


@proves("CLI-PAGED")
def test_ready_pages_skip_waiting_tasks(seven_tasks: Console) -> None:
    for number in range(8, 68):
        seven_tasks.make("waits", "--id", f"T-{number}", "--ready", "--blocked-by", "T-1")

    found: list[str] = []
    page = seven_tasks.ask("task", "list", "--ready", "--limit", "2")
    found += task_ids(page)
    while page["next"] is not None:
        page = seven_tasks.ask(
            "task", "list", "--ready", "--limit", "2", "--before", str(page["next"])
        )
        found += task_ids(page)
    assert found == ["T-6", "T-4", "T-2"]


@proves("ENGINE-AS-OF", "CLI-TASK", "CLI-PAGED")
def test_past_state_is_listed_and_shown(seven_tasks: Console) -> None:
    seven_tasks.ask("task", "claim", "T-2", "--agent", "ada")
    seven_tasks.ask("task", "move", "T-1", "ready")

    first = seven_tasks.ask("task", "list", "--as-of", "4", "--limit", "3")
    assert task_ids(first) == ["T-4", "T-3", "T-2"]
    second = seven_tasks.ask("task", "list", "--as-of", "4", "--before", str(first["next"]))
    assert (task_ids(second), second["next"]) == (["T-1"], None)
    assert second["tasks"][0]["status"] == "backlog"
    assert task_ids(seven_tasks.ask("task", "list", "--as-of", "0")) == []
    assert task_ids(seven_tasks.ask("task", "list", "--as-of", "4", "--ready")) == ["T-4", "T-2"]
    assert seven_tasks.ask("task", "show", "T-2", "--as-of", "7")["status"] == "ready"
    assert seven_tasks.ask("task", "show", "T-2", "--as-of", "8")["status"] == "in-progress"
    assert (
        seven_tasks.ask("task", "show", "T-7", "--as-of", "3", code=1)["code"] == "task_not_found"
    )
    assert seven_tasks("task", "list", "--as-of", "8").err == ""
    beyond = (
        seven_tasks("task", "list", "--as-of", "999"),
        seven_tasks("task", "show", "T-7", "--as-of", "999"),
    )
    assert all("the ledger ends at" in result.err for result in beyond)


@proves("CLI-TASK")
def test_empty_list_is_reported(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("task", "list").out == "no tasks\n"
    assert dragoman.ask("task", "list") == {"ok": True, "tasks": [], "next": None}


@proves("CLI-TASK", "CLI-PLAIN")
def test_piped_list_is_aligned_plain_text(dragoman: Console) -> None:
    dragoman.make("Short", "--id", "T-1", "--now", NOON)
    dragoman.make("Other", "--id", "T-longer", "--ready", "--assignee", "ada", "--now", NOON)

    assert dragoman("task", "list").out.splitlines() == [
        "ID        STATUS   PRIORITY  ASSIGNEE  UPDATED            WAITS             TITLE",
        "T-longer  ready    normal    ada       2026-02-09T12:00Z  reserved for ada  Other",
        "T-1       backlog  normal              2026-02-09T12:00Z                    Short",
    ]


@proves("CLI-TASK", "NAME-ALIAS")
def test_show_finds_a_task_by_any_name(dragoman: Console) -> None:
    dragoman.make("x", "--id", "T-1", "--alias", "bead:b-1", "--alias", "intent:i-1")
    aof = dragoman.ask("task", "show", "T-1")["aofId"]

    for name in ("T-1", aof, f"aof:{aof}", "bead:b-1", "b-1", "intent:i-1"):
        assert dragoman.ask("task", "show", name)["id"] == "T-1", name
    assert dragoman.ask("task", "show", "bead:i-1", code=1)["code"] == "task_not_found"


@proves("CLI-TASK")
def test_show_separates_open_and_ended_dependencies(dragoman: Console) -> None:
    dragoman.make("First", "--id", "T-1", "--ready")
    dragoman.make("Second", "--id", "T-2", "--ready")
    dragoman.make("Third", "--id", "T-3", "--ready", "--blocked-by", "T-1", "--blocked-by", "T-2")
    dragoman.ask("task", "move", "T-1", "cancelled")

    page = dragoman("task", "show", "T-3").out
    assert "  waits for   T-2\n" in page
    assert "  waited for  T-1\n" in page


@proves("CLI-TASK")
def test_show_prints_every_field(dragoman: Console) -> None:
    dragoman.make("Before", "--id", "T-0", "--ready", "--now", NOON)
    dragoman.make(
        "Do it", "--id", "T-1", "--ready", "--alias", "bead:b-1", "--parent", "T-0",
        "--discovered-from", "T-0", "--body", "line one\nstatus      done", "--now", NOON,
    )  # fmt: skip
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--session", "s-1", "--now", NOON)
    dragoman.ask("task", "link", "T-1", "--blocked-by", "T-0", "--now", NOON)

    ended = "ended at 2026-02-09T12:05:00.000Z, awaits `tick`"
    assert dragoman("task", "show", "b-1", "--now", "2026-02-09T12:06:00Z").out.splitlines() == [
        "T-1  Do it",
        "  status      in-progress since 2026-02-09T12:00:00.000Z",
        "  assignee    ada",
        "  priority    normal",
        "  review      required",
        "  aof id      TASK-2026-02-09-002",
        "  also called bead:b-1",
        "  waits for   T-0",
        "  part of     T-0",
        "  found doing T-0",
        "  attempts    1 (fence 1); 0 of at most 5 failures in a row",
        f"  lease       ada, fence 1, session s-1, heartbeats: 1, {ended}",
        "  created     2026-02-09T12:00:00.000Z",
        "  updated     2026-02-09T12:00:00.000Z",
        "  body",
        "    | line one",
        "    | status      done",
    ]
    whole = dragoman("task", "show", "T-0").out
    assert "  blocks      T-1\n" in whole
    assert "  parts       T-1\n" in whole
    assert "  led to      T-1\n" in whole


@proves("CLI-TASK", "ATTEMPT-RESULT", "LEDGER-SAID")
def test_show_and_events_include_report_and_original_text(dragoman: Console) -> None:
    dragoman.make("Do it", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    directory = open_directory(dragoman.data, "", parse_rfc3339(NOON), create=False)
    report = ReportOutcome("T-1", "blocked", "no key\nat all", ("key", "door"), apply=True)
    directory.hub.submit(
        Actor("agent", "ada"), report, original_text=msgspec.Raw(b'{"odd":[1,"\xc3\xa4"]}')
    )
    directory.hub.close()

    assert dragoman.ask("task", "show", "T-1")["report"] == {
        "outcome": "blocked",
        "notes": "no key\nat all",
        "blockers": ["key", "door"],
        "attempt": 1,
        "by": None,
        "agent": "ada",
        "at": "2026-02-09T12:00:00.000Z",
    }
    page = dragoman("task", "show", "T-1").out
    at = "2026-02-09T12:00:00.000Z"
    assert f"  report      blocked by ada (attempt 1) at {at}; blocked by key, door\n" in page
    assert page.endswith("  obstacle\n    | key; door\n  notes\n    | no key\n    | at all\n")
    events = dragoman("events", "--type", "task.reported", "--json").objects
    assert events[0]["originalText"] == {"odd": [1, "ä"]}
    assert events[0]["via"] == "--now"


@proves("CLI-TASK", "TASK-LOG")
def test_log_adds_a_line_and_pages_the_history(dragoman: Console) -> None:
    dragoman.make("Do it", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    result = dragoman("task", "log", "T-1", "half done", "--as", "ada", "--now", NOON)
    assert result.out == "noted in the log of T-1\n"

    history = dragoman.ask("task", "log", "T-1")
    assert (history["id"], history["next"]) == ("T-1", None)
    assert [entry["type"] for entry in history["entries"]] == [
        "task.created",
        "task.claimed",
        "task.noted",
    ]
    assert history["entries"][2]["body"] == {"text": "half done"}
    first = dragoman("task", "log", "T-1", "--limit", "2").out.splitlines()
    assert first[-1] == "There are more: add --after 2"
    (rest,) = dragoman("task", "log", "T-1", "--after", "2").out.splitlines()
    assert "  2026-02-09T12:00:00.000Z  agent:ada " in rest
    assert rest.endswith("noted: half done")


@proves("CLI-TASK", "LIMIT-TEXT")
def test_empty_note_and_unknown_task_are_refused(dragoman: Console) -> None:
    dragoman.make("Do it", "--id", "T-1")

    assert dragoman.ask("task", "log", "T-1", "", code=1)["code"] == "invalid_field"
    assert dragoman.ask("task", "log", "T-2", "text", code=1)["code"] == "task_not_found"
    assert dragoman.ask("task", "log", "T-2", code=1)["code"] == "task_not_found"
    assert dragoman.ask("task", "show", "T-1")["notes"] == 0


@proves("CLI-START")
def test_tasks_can_be_read_without_keys(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1")
    shutil.rmtree(dragoman.data / "keys")

    assert [task["id"] for task in dragoman.ask("task", "list")["tasks"]] == ["T-1"]
    assert dragoman("task", "create", "Two").code == 1
    assert dragoman("verify").code == 1
