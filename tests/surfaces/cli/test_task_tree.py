"""`task tree`, `task search`, `task path` and `logs`: finding one's way among tasks."""

from pathlib import Path

import pytest

from dragoman.files.layout import OUTPUT_LOG
from tests.requirements import proves
from tests.surfaces.cli.console import Console

PLAN = """
{"id": "whole", "title": "The whole", "blocked_by": ["b"]}
{"id": "a", "title": "First", "parent": "whole", "ready": true, "text": "about Tokens"}
{"id": "b", "title": "Second", "parent": "whole", "blocked_by": ["a", "c"], "ready": true}
{"id": "c", "title": "Third", "assignee": "ada", "ready": true, "aliases": ["bead:ol-1"]}
"""


@pytest.fixture
def planned(dragoman: Console, tmp_path: Path) -> Console:
    """Give a directory with four tasks."""
    (tmp_path / "plan").write_text(PLAN)
    dragoman.ask("task", "create", "--file", str(tmp_path / "plan"))
    return dragoman


@proves("CLI-FIND")
def test_tree_shows_parts_and_what_they_wait_for(planned: Console) -> None:
    assert planned("task", "tree").out.splitlines() == [
        "c  ready  ada  Third",
        "whole  backlog  The whole",
        "  part a  ready  First",
        "  part b  ready  Second",
        "    waits for a  ready  First",
        "    waits for c  ready  ada  Third",
    ]


@proves("CLI-FIND")
def test_tree_of_one_task_is_an_object(planned: Console) -> None:
    (whole,) = planned.ask("task", "tree", "whole")["tasks"]
    first, second = whole["below"]
    assert (whole["id"], whole["relation"], first["id"]) == ("whole", None, "a")
    assert [(one["relation"], one["id"]) for one in second["below"]] == [
        ("waits for", "a"),
        ("waits for", "c"),
    ]
    assert planned.ask("task", "tree", "hwole", code=1)["code"] == "task_not_found"
    assert len(planned.ask("task", "tree", "--limit", "1")["tasks"]) == 1


@proves("CLI-FIND")
def test_tree_ends_where_it_was_shown_or_is_too_deep(dragoman: Console, tmp_path: Path) -> None:
    dragoman("init")
    assert dragoman("task", "tree").out == "no tasks\n"
    chain = "\n".join(
        f'{{"id": "t{n}", "title": "x", "blocked_by": ["t{n + 1}"]}}' for n in range(24)
    )
    (tmp_path / "plan").write_text(f'{chain}\n{{"id": "t24", "title": "x"}}')
    dragoman.ask("task", "create", "--file", str(tmp_path / "plan"))

    deep = dragoman("task", "tree", "t0").out.splitlines()
    assert (len(deep), deep[-1].strip()) == (21, "waits for t20  backlog  x …")
    # The newest one comes first, and no task is taken apart twice.
    lines = dragoman("task", "tree").out.splitlines()
    assert lines[:2] == ["t0  backlog  x", "  waits for t1  backlog  x"]
    assert "t1  backlog  x …" in lines


@proves("CLI-FIND", "CLI-PAGED")
def test_tree_shows_no_more_tasks_than_its_limit(planned: Console) -> None:
    assert planned("task", "tree", "--limit", "4").out.splitlines() == [
        "c  ready  ada  Third",
        "whole  backlog  The whole",
        "  part a  ready  First",
        "  part b  ready  Second …",
        "There are more: give a greater --limit, or the id of one of these",
    ]
    assert planned.ask("task", "tree", "--limit", "4")["more"] is True
    (first,) = planned.ask("task", "tree", "--limit", "1")["tasks"]
    assert (first["id"], first["below"]) == ("c", [])
    whole = planned.ask("task", "tree", "whole", "--limit", "2")
    assert [one["id"] for one in whole["tasks"][0]["below"]] == ["a"]
    assert (whole["more"], planned.ask("task", "tree")["more"]) == (True, False)


@proves("CLI-FIND", "CLI-PAGED")
def test_search_finds_tasks_by_all_of_their_words(planned: Console) -> None:
    def found(*words: str) -> list[str]:
        return [one["id"] for one in planned.ask("task", "search", *words)["tasks"]]

    assert found("TOKENS", "first") == ["a"]
    assert found("ol-1") == found("ADA") == ["c"]
    assert found("tokens", "third") == []
    assert found("r", "--status", "backlog") == []
    assert planned("task", "search", "nothing").out == "no tasks\n"
    page = planned.ask("task", "search", "i", "--limit", "1")
    assert len(page["tasks"]) == 1
    more = planned.ask("task", "search", "i", "--before", str(page["next"]))
    assert page["tasks"][0]["id"] not in [one["id"] for one in more["tasks"]]


@proves("TASK-WAIT")
def test_list_says_why_a_ready_task_cannot_be_claimed_by_anybody(planned: Console) -> None:
    reasons = {one["id"]: one["waitReason"] for one in planned.ask("task", "list")["tasks"]}
    assert reasons == {
        "whole": None,
        "a": None,
        "b": "waits for a, c",
        "c": "reserved for ada",
    }
    lines = planned("task", "list").out.splitlines()
    assert lines[0].split() == ["ID", "STATUS", "PRIORITY", "ASSIGNEE", "UPDATED", "WAITS", "TITLE"]
    assert any(line.startswith("b ") and "  waits for a, c  " in line for line in lines)
    assert "WAITS" not in planned("task", "list", "--status", "backlog").out


@proves("CLI-TASK")
def test_show_has_a_line_for_all_that_belongs_to_the_task(planned: Console) -> None:
    planned.ask("task", "claim", "a", "--agent", "ben")
    for text in ("UTC?", "Now?"):
        planned.ask("task", "ask", "a", text, "--agent", "ben")
    planned.ask("task", "answer", "a", "Yes.", "--question", "q1")
    planned.ask("task", "complete", "a", "--agent", "ben")
    planned.ask("task", "send-back", "a", "--reason", "no tests")

    lines = planned("task", "show", "a").out.splitlines()
    facts = {line[2:13].strip(): line[14:] for line in lines if line.startswith("  ")}

    assert facts["question"].startswith("q2 of ben, open since 2")
    assert facts["question"].endswith(": Now?")
    assert facts["answer"].endswith(": Yes.")
    assert facts["sent back"].endswith(": no tests")
    assert facts["letters"] == "1: dragoman mail thread a"
    shown = planned.ask("task", "show", "a")
    assert (shown["letters"], shown["turns"], shown["intent"]) == (1, 0, None)
    assert "letters" not in planned.ask("task", "show", "a", "--as-of", "8")


@proves("CLI-TASK")
def test_show_names_the_intent_and_the_turns(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--skill", "tests")
    dragoman.ask("delegate", "Run the tests", "--id", "i-1")
    shown = dragoman.ask("task", "show", "intent:i-1")
    assert (shown["intent"], shown["intentState"]) == ("i-1", "TaskDispatched")
    assert (
        "intent      i-1, TaskDispatched: dragoman why i-1"
        in dragoman("task", "show", "intent:i-1").out
    )


@proves("CLI-FIND")
def test_path_names_the_folders_by_any_name(planned: Console) -> None:
    task = planned.ask("task", "show", "c")["aofId"]
    data = planned.data

    paths = planned.ask("task", "path", "bead:ol-1")

    assert paths["id"] == "c"
    assert paths["file"] == f"{data}/tasks/ready/{task}.md"
    assert Path(paths["folder"]).is_dir() is (paths["folder"] is not None)
    assert paths["worktree"] is None
    alone = planned("task", "path", "c", "worktree")
    assert alone.out == f"{data}/worktrees/{task}\n"
    assert planned("task", "path", "c", "folder").out == f"{data}/tasks/ready/{task}\n"
    assert planned("task", "path", "c").out.startswith(f"file      {data}/tasks/ready/")
    assert planned.ask("task", "path", "nope", code=1)["code"] == "task_not_found"


def log_file(dragoman: Console, folder: str = "") -> Path:
    """The log of c's agent, as a hub writes it."""
    runs = Path(dragoman("task", "path", "c", "runs").out.strip())
    file = runs / folder / OUTPUT_LOG
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


@proves("CLI-LOGS")
def test_logs_print_the_output_of_an_attempt(planned: Console) -> None:
    planned.ask("task", "claim", "c", "--agent", "ada")
    log_file(planned).write_bytes(b"first\n\x1b[31mred\xff\nrest")

    assert planned("logs", "c").out == "first\nred\ufffd\nrest\n"
    assert planned("logs", "bead:ol-1", "--json").objects[0] == {"ok": True, "line": "first"}


@proves("CLI-LOGS")
def test_logs_of_an_earlier_attempt_and_of_none(planned: Console) -> None:
    none = planned.ask("logs", "c", code=1)
    assert none["detail"] == "c has had 0 attempts"
    planned.ask("task", "claim", "c", "--agent", "ada")
    planned.ask("task", "release", "c", "--agent", "ada")
    log_file(planned, "attempts/1").write_text("one\n")
    planned.ask("task", "claim", "c", "--agent", "ada")

    assert planned("logs", "c", "--attempt", "1").out == "one\n"
    assert planned.ask("logs", "c", code=1)["detail"].startswith("there is no output of attempt 2")
    assert planned.ask("logs", "c", "--attempt", "3", code=1)["code"] == "invalid_field"


@proves("CLI-LOGS")
def test_followed_logs_end_with_the_attempt(planned: Console) -> None:
    planned.ask("task", "claim", "c", "--agent", "ada")
    log = log_file(planned)
    log.write_text("one\nhal")

    def write(text: str) -> None:
        with log.open("a") as file:
            file.write(text)

    steps = [
        lambda: write("f\n"),
        lambda: None,
        lambda: planned.ask("task", "release", "c", "--agent", "ada"),
        lambda: write("last"),
    ]

    def pause() -> bool:
        if steps:
            steps.pop(0)()
        return True

    assert planned("logs", "c", "--follow", wait=pause).out == "one\nhalf\nlast\n"
    assert planned("logs", "c", "--follow", wait=lambda: False).out == "one\nhalf\nlast\n"


@proves("CLI-LOGS")
def test_followed_logs_wait_for_the_attempt_to_begin(planned: Console) -> None:
    def begin() -> None:
        planned.ask("task", "claim", "c", "--agent", "ada")

    def write() -> None:
        log_file(planned).write_text("one\n")

    def end() -> None:
        planned.ask("task", "release", "c", "--agent", "ada")

    steps = [lambda: None, begin, write, end]

    def pause() -> bool:
        if steps:
            steps.pop(0)()
        return True

    followed = planned("logs", "c", "--follow", wait=pause)
    assert (followed.out, followed.err) == (
        "one\n",
        "waiting for the output of attempt 1 on c\n",
    )


@proves("CLI-LOGS")
def test_followed_logs_end_when_no_output_can_come(planned: Console) -> None:
    def cancel() -> bool:
        planned.ask("task", "move", "c", "cancelled")
        return True

    never = planned("logs", "c", "--follow", wait=cancel)
    assert (never.code, "c has had 0 attempts" in never.err) == (1, True)
    unread = planned("logs", "a", "--follow", wait=lambda: False)
    assert (unread.code, "a has had 0 attempts" in unread.err) == (1, True)
