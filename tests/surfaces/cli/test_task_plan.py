"""`task create --file`: all tasks of a plan, or none."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.surfaces.cli.task_plan import MAX_PLAN_BYTES, MAX_TASKS
from tests.requirements import proves
from tests.surfaces.cli.console import CommandResult, Console

pytestmark = proves("CLI-PLAN")

PLAN = '''
# [[tasks]] in a comment is none
[[tasks]]
id = "whole"
title = "The whole"
text = """
[[tasks]]
"""
blocked_by = ["first", "second"]
ready = true

[[tasks]]
id = "second"
title = 'Second, after "first" # no comment'
parent = "whole"
blocked_by = ["first", "before"]
ready = true
deadline = 2026-12-01T00:00:00+01:00

[[ tasks ]]
title = "Unnamed"
blocked_by = ["first"]

[[tasks]]
id = "first"
title = "First"
parent = "whole"
ready = true
review = false
assignee = "ada"
priority = "high"
aliases = ["bead:b-1"]
deadline = "2026-12-01T00:00:00Z"
'''

MakePlan = Callable[[str], CommandResult]


@pytest.fixture
def hub(dragoman: Console) -> Console:
    """Give a data directory with a task called before."""
    dragoman.make("Before", "--id", "before")
    return dragoman


@pytest.fixture
def make(hub: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlan:
    """Give a function that creates the tasks of a plan."""
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> CommandResult:
        Path("plan").write_text(text, encoding="utf-8")
        return hub("task", "create", "--file", "plan", "--json")

    return make


def task(line_id: str, **more: object) -> str:
    return json.dumps({"id": line_id, "title": line_id, **more})


def lines(*tasks: str) -> str:
    return "\n".join(tasks)


def test_tasks_are_created_whatever_their_order(hub: Console, make: MakePlan) -> None:
    made = make(PLAN).json["tasks"]

    assert [one["title"][:6] for one in made] == ["The wh", "First", "Second", "Unname"]
    shown = {name: hub.ask("task", "show", name) for name in ("whole", "first", "second")}
    assert shown["whole"]["waitsFor"] == ["first", "second"]
    assert shown["whole"]["children"] == ["first", "second"]
    assert shown["whole"]["body"] == "[[tasks]]\n"
    assert shown["second"]["waitsFor"] == ["first", "before"]
    assert shown["second"]["deadline"] == "2026-11-30T23:00:00.000Z"
    first = shown["first"]
    assert (first["priority"], first["reviewRequired"], first["reservedFor"]) == (
        *("high", False, "ada"),
    )
    assert (first["deadline"], first["aliases"]) == ("2026-12-01T00:00:00.000Z", ["bead:b-1"])


def test_plan_says_what_each_status_means(hub: Console, make: MakePlan) -> None:
    make(task("a"))
    Path("plan").write_text(PLAN)

    told = hub("task", "create", "--file", "plan").out.splitlines()

    assert told[:3] == [
        "whole  ready, but nobody takes it yet: waits for first, second",
        "first  ready: only ada takes it",
        "second  ready, but nobody takes it yet: waits for first, before",
    ]
    assert "  backlog: nobody takes it until it is ready: dragoman task move TASK-" in told[3]


def test_a_thousand_tasks_are_created_together(hub: Console, make: MakePlan) -> None:
    chain = [task(f"t-{n}", blocked_by=[f"t-{n + 1}"]) for n in range(MAX_TASKS - 1)]

    made = make(lines(*chain, task(f"t-{MAX_TASKS - 1}"))).json["tasks"]

    assert len(made) == MAX_TASKS
    assert made[0]["id"] == f"t-{MAX_TASKS - 1}"
    assert hub.ask("task", "show", "t-0")["waitsFor"] == ["t-1"]


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        (lines(task("a"), "", task("a")), "already_exists", "line 3: the id a is that of the task"),
        (lines(task("a"), task("before")), "already_exists", "line 2: "),
        (lines(task("a", blocked_by=["a"])), "link_cycle", "line 1: "),
        (
            lines(task("x"), task("a", blocked_by=["b"]), task("b", blocked_by=["a"])),
            "link_cycle",
            "none can be the first: a → b → a",
        ),
        (
            lines(task("a", parent="b"), task("b", parent="c"), task("c", blocked_by=["a"])),
            "link_cycle",
            "line ",
        ),
        (
            lines(
                task("a", blocked_by=["b"]),
                task("b", parent="a", blocked_by=["a"]),
            ),
            "link_cycle",
            "line 1: ",
        ),
        (lines(task("a"), task("b", blocked_by=["zz"])), "task_not_found", "line 2: no task"),
        (lines(task("a"), task("b", parent="zz")), "parent_not_found", "line 2: no task"),
        (lines(task("a"), task("b", titel="x")), "bad_file", "line 2: titel: "),
        (lines(task("a"), '{"id": "b"}'), "bad_file", "line 2: title: it is missing"),
        (lines(task("a"), "[1]"), "bad_file", "line 2: it must be an object"),
        (lines(task("a"), '{"id": "b", "id": "c"}'), "bad_file", "stands twice"),
        (lines(task("a"), "{"), "bad_file", "line 2: this is not JSON"),
        (lines(task("a", deadline="soon")), "bad_file", "line 1: deadline: "),
        (lines(task("a", priority="hihg")), "bad_file", "is not one of: critical, high"),
        (lines(task("a", title="x" * 501)), "bad_file", "at most 500 characters"),
        (lines(*(task(f"t-{n}") for n in range(MAX_TASKS + 1))), "bad_file", "line 1001: "),
        (" " * (MAX_PLAN_BYTES + 1), "bad_file", "several plans"),
        ("", "bad_file", "has no tasks"),
        ("title = 'x'", "bad_file", "'title' is not understood"),
        ("tasks = [{title = 'x'}]", "bad_file", "write each task as [[tasks]]"),
        ("tasks = 1", "bad_file", "write each task as [[tasks]]"),
        ("[[tasks]]\ntitle = [", "bad_file", "at end of document"),
        ("\n[[tasks]]\ntitle = 'x'\n[[tasks]]\ntitel = 'y'", "bad_file", "line 4: titel: "),
        ("[[tasks]]\ntitle = 'x'\ndeadline = 2026-12-01", "bad_file", "line 1: deadline: "),
    ],
)
def test_fault_is_told_with_its_line_and_creates_nothing(
    hub: Console, make: MakePlan, text: str, code: str, detail: str
) -> None:
    result = make(text)

    assert (result.code, result.json["code"]) == (1, code)
    assert detail in result.json["detail"]
    assert result.json["detail"].startswith("plan")
    assert [one["id"] for one in hub.ask("task", "list")["tasks"]] == ["before"]


def test_plan_that_is_not_utf8_is_refused(hub: Console, tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"[[tasks]]\ntitle = '\xff'")

    result = hub("task", "create", "--file", str(tmp_path / "plan"))

    assert (result.code, "is not UTF-8 text" in result.err) == (1, True)


def test_same_key_creates_nothing_twice(hub: Console, make: MakePlan) -> None:
    make(task("a"))
    first, second = (
        hub.ask("task", "create", "--file", "plan", "--key", "k-1", code=code) for code in (1, 1)
    )
    assert first["code"] == second["code"] == "already_exists"
    Path("plan").write_text(task("b"))
    made = [hub.ask("task", "create", "--file", "plan", "--key", "k-2") for _ in range(2)]
    assert [one["repeated"] for one in made] == [False, True]


@pytest.mark.parametrize(
    "more", [("Title",), ("--ready",), ("--blocked-by", "before"), ("--priority", "high")]
)
def test_plan_takes_no_other_field(hub: Console, more: tuple[str, ...]) -> None:
    result = hub("task", "create", "--file", "plan", *more)

    assert (result.code, "--file has the tasks" in result.err) == (2, True)


@proves("CLI-TASK")
def test_create_says_what_its_status_means(hub: Console) -> None:
    def create(*more: str) -> str:
        return hub("task", "create", "Do it", *more).err

    assert create("--id", "T-1") == (
        "backlog: nobody takes it until it is ready: dragoman task move T-1 ready\n"
    )
    assert create("--ready") == "ready: the next claim takes it\n"
    hub.ask("agent", "add", "ada")
    assert create("--ready", "--assignee", "ada") == "ready: only ada takes it\n"
    waits = create("--ready", "--blocked-by", "T-1")
    assert waits == "ready, but nobody takes it yet: waits for T-1\n"
    late = hub.ask("task", "create", "Do it", "--deadline", "2026-02-10T12:00:00Z")
    assert (late["deadline"], late["overdue"]) == ("2026-02-10T12:00:00.000Z", True)


def test_mistyped_names_get_a_suggestion(hub: Console) -> None:
    hub.ask("agent", "add", "swe-backend")

    made = hub("task", "create", "Do it", "--id", "fix-login", "--assignee", "swe-bakend")
    assert made.err.startswith("warning: nobody is known as swe-bakend; did you mean swe-backend?")
    for args in (
        ("task", "show", "fix-lgoin"),
        ("task", "log", "fix-lgoin"),
        ("task", "log", "fix-lgoin", "a line"),
        ("task", "heartbeat", "fix-lgoin", "--agent", "ada"),
        ("task", "claim", "fix-lgoin", "--agent", "ada"),
        ("task", "retry", "fix-lgoin"),
    ):
        assert "; did you mean fix-login?" in hub.ask(*args, code=1)["detail"], args
    assert "warning: " not in hub("task", "assign", "fix-login", "swe-backend").err
    for name in ("another-one", "python"):
        assert hub("task", "assign", "fix-login", name).err == (
            f"warning: nobody is known as {name}: the task waits until somebody is\n"
        )


@proves("NEAREST-NAME")
def test_mistyped_ids_are_found_among_many(hub: Console, tmp_path: Path) -> None:
    plan = tmp_path / "plan.jsonl"
    items = [{"id": f"step-{n:04}", "title": "x"} for n in range(1_000)]
    hub.ask("task", "create", "First", "--id", "fix-login", "--alias", "bead:repair-logout")
    plan.write_text("\n".join(json.dumps(one) for one in items))
    hub.ask("task", "create", "--file", str(plan))

    def hint(name: str) -> str:
        detail = hub.ask("task", "show", name, code=1)["detail"]
        return detail.partition("; did you mean ")[2]

    assert hint("fix-lgoin") == hint("ifx-login") == "fix-login?"
    assert hint("repair-logotu") == "repair-logout?"
    assert hint("step-0999x") == "step-0999?"
    assert hint("step-98765") == hint("coder") == ""
