"""Actions on tasks at the command line: one row of the table, one command."""

from pathlib import Path
from typing import Unpack

import pytest
from msgspec.structs import fields

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.hub import RequestOptions
from dragoman.engine.request import Committed
from dragoman.engine.task_actions import TASK_ACTIONS
from dragoman.surfaces.cli.commands import GROUPS
from dragoman.surfaces.cli.commands.task_actions import ACTIONS
from dragoman.surfaces.cli.data_directory import DataDirectory
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-TASK-ACTIONS")

LATER = "2026-02-09T12:01:00Z"


@pytest.fixture
def work(dragoman: Console) -> Console:
    """Give a directory in which ada holds T-1, and T-2 and T-3 are ready."""
    for name in ("T-1", "T-2", "T-3"):
        dragoman.make(f"Task {name}", "--id", name, "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--now", NOON)
    return dragoman


def status(dragoman: Console, *names: str) -> list[str]:
    return [dragoman.ask("task", "show", name)["status"] for name in names]


@proves("TASK-ACTIONS")
def test_every_action_and_every_argument_of_it_can_be_typed() -> None:
    rows = {row.action: {field.path for field in row.fields} for row in ACTIONS}
    named = {name for names in GROUPS["task"].modules.values() for name in names}
    # `complete` reports its outcome, and `log` notes.
    assert set(TASK_ACTIONS) - named == {"report", "note"}
    for action, offered in rows.items():
        assert {one.name for one in fields(TASK_ACTIONS[action])} - {"fence"} == offered - {""}


def test_complete_ends_work_that_needs_no_review_in_one_step(dragoman: Console) -> None:
    dragoman.make("Do it", "--id", "T-1", "--ready", "--no-review")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--session", "s-1")

    done = dragoman("task", "complete", "T-1", "--agent", "ada", "--notes", "all tests pass")

    assert (done.code, done.out) == (0, "T-1 is done\n")
    assert dragoman.ask("task", "show", "T-1")["report"]["notes"] == "all tests pass"


def test_complete_says_who_ends_work_that_needs_a_review(work: Console) -> None:
    result = work("task", "complete", "T-1", "--agent", "ada", "--now", LATER)

    assert result.out == "T-1 is review: a person or an orchestrator approves it\n"


@proves("EVIDENCE-CHECKS")
@pytest.mark.parametrize(
    ("outcome", "then"),
    [
        ("done", ": the hub runs its checks"),
        ("needs_review", ": the hub runs its checks"),
        ("partial", ""),
    ],
)
def test_completion_says_that_checks_come_first(dragoman: Console, outcome: str, then: str) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--check", "true")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada")
    done = dragoman("task", "complete", "T-1", "--agent", "ada", "--outcome", outcome)
    assert done.out == f"T-1 is review{then}\n"


@proves("TASK-REVIEW", "TASK-SEND-BACK")
def test_review_is_sent_back_and_then_approved(work: Console) -> None:
    complete = ("task", "complete", "T-1", "--agent", "ada", "--now", LATER)
    work.ask(*complete)
    own = work.ask("task", "approve", "T-1", "--as", "ada", code=1)
    assert (own["code"], own["ok"]) == ("not_authorized", False)

    back = work("task", "send-back", "T-1", "--reason", "no tests", "--now", LATER)
    assert back.out == "T-1 is ready again, for ada\n"
    work.ask("task", "claim", "T-1", "--agent", "ada", "--now", LATER)
    work.ask(*complete)
    assert work("task", "approve", "T-1").out == "T-1 is done\n"
    assert work.ask("task", "show", "T-1")["feedback"][0]["text"] == "no tests"


def test_failure_says_how_often_and_until_when(work: Console) -> None:
    failed = work("task", "fail", "T-1", "--agent", "ada", "--notes", "no disk", "--now", LATER)

    assert failed.out.startswith("T-1 is ready: 1 of at most 5 failures in a row, not before 2026")


def test_several_tasks_have_a_line_each_and_one_refusal_exits_1(work: Console) -> None:
    result = work("task", "move", "T-2", "blocked", "--reason", "later")
    assert result.out == "T-2 is blocked\n"

    result = work("task", "retry", "T-2", "T-404", "T-1", "T-2", "--now", LATER)

    assert (result.code, result.out) == (1, "T-2 is ready\n")
    missing, held = result.err.splitlines()
    assert missing == "T-404: task_not_found: no task has the name T-404: see `dragoman task list`"
    assert held.startswith("T-1: invalid_transition: T-1 is in-progress")


def test_several_tasks_have_an_object_each(work: Console) -> None:
    result = work("task", "block", "T-2", "T-404", "--blocker", "no access", "--json")

    blocked, refused = result.objects
    assert (result.code, blocked["ok"], blocked["id"]) == (1, True, "T-2")
    assert blocked["obstacle"] == "no access"
    assert refused == {
        "ok": False,
        "id": "T-404",
        "code": "task_not_found",
        "detail": "no task has the name T-404: see `dragoman task list`",
    }


@proves("LEASE-FENCE")
def test_wrong_caller_and_old_fence_are_refused(work: Console) -> None:
    for action in ("complete", "fail", "release"):
        stranger = work.ask("task", action, "T-1", "--agent", "ben", "--now", LATER, code=1)
        assert stranger["code"] == "unauthorized_agent"
        old = ("--agent", "ada", "--fence", "7", "--now", LATER)
        assert work.ask("task", action, "T-1", *old, code=1)["code"] == "lease_lost"
    assert status(work, "T-1") == ["in-progress"]


@proves("QUESTION-ANSWER", "QUESTION-BLOCKED")
def test_answer_unblocks_once_and_not_by_a_stranger(work: Console) -> None:
    work.ask("task", "block", "T-1", "--agent", "ada", "--blocker", "UTC?", "--now", LATER)
    stranger = work.ask("task", "answer", "T-1", "Yes", "--as", "ben", code=1)
    assert stranger["code"] == "not_authorized"
    own = work.ask("task", "answer", "T-1", "Yes", "--as", "ada", code=1)
    assert own["code"] == "not_authorized"

    assert work("task", "answer", "T-1", "Yes").out == "q1 is answered, T-1 is ready\n"
    assert work("task", "answer", "T-1", "Yes").out == "q1 is answered, T-1 is ready\n"
    again = work.ask("task", "answer", "T-1", "No", "--question", "q1", code=1)
    assert again["code"] == "already_answered"
    assert work.ask("task", "answer", "T-2", "Yes", code=1)["code"] == "question_not_found"


@proves("TASK-ASSIGN")
def test_assign_takes_held_work_only_with_take(work: Console) -> None:
    result = work("task", "assign", "T-2", "T-1", "ben", "--now", LATER)
    assert (result.code, result.out) == (1, "T-2 is ready, for ben\n")
    assert result.err.startswith("T-1: ")
    taken = work("task", "assign", "T-1", "ben", "--take", "--now", LATER)
    assert taken.out == "T-1 is ready, for ben\n"
    assert work("task", "assign", "T-1", "T-2", "--anyone").out.splitlines() == [
        "T-1 is ready, for anyone",
        "T-2 is ready, for anyone",
    ]


@proves("TASK-EDIT")
def test_edit_changes_what_is_named_and_nothing_else(work: Console) -> None:
    changed = work.ask(
        *("task", "edit", "T-2", "--title", "Newer", "--text", "All of it", "--priority", "high"),
        *("--deadline", "2026-02-10T12:00:00+01:00", "--blocked-by", "T-3"),
    )
    assert (changed["title"], changed["body"], changed["priority"]) == (
        "Newer",
        "All of it",
        "high",
    )
    assert (changed["deadline"], changed["waitsFor"]) == ("2026-02-10T11:00:00.000Z", ["T-3"])

    result = work("task", "edit", "T-2", "--no-deadline", "--text", "", "--not-blocked-by", "T-3")
    assert result.out == "T-2 is ready, high: Newer\n"
    assert work.ask("task", "show", "T-2")["body"] == ""
    loop = work.ask("task", "edit", "T-2", "--title", "No", "--blocked-by", "T-2", code=1)
    assert loop["code"] == "link_cycle"
    assert work.ask("task", "show", "T-2")["title"] == "Newer"


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("edit", "T-1"), "say what to change"),
        (("edit", "T-1", "--no-deadline", "--deadline", NOON), "exclude each other"),
        (("edit", "T-1", "--deadline", "soon"), "is not a time"),
        (("update", "T-1"), "say what is new"),
        (("assign", "T-1"), "name a task and then its agent"),
        (("assign", "--anyone"), "name a task and then its agent"),
        (("send-back", "T-1"), "--reason"),
        (("block", "T-1"), "--blocker"),
        (("complete", "T-1"), "say which agent this is"),
        (("complete", "T-1", "--agent", "ada", "--outcome", "dnoe"), "did you mean done?"),
        (("complete", "T-1", "--agent", "ada", "--details", "[1]"), "is not a JSON object"),
        (("answer", "T-1"), "TEXT"),
    ],
)
def test_usage_error_changes_nothing(work: Console, args: tuple[str, ...], part: str) -> None:
    before = len(work("events", "--json").objects)

    result = work("task", *args)

    assert (result.code, result.out) == (2, "")
    assert part in result.err
    assert len(work("events", "--json").objects) == before


@proves("LIMIT-TEXT")
def test_too_long_title_is_refused_by_its_name(work: Console) -> None:
    refused = work.ask("task", "edit", "T-2", "--title", "x" * 501, code=1)

    assert (refused["code"], "title" in refused["detail"]) == ("invalid_field", True)


def test_failure_of_the_store_names_what_was_not_tried(work: Console) -> None:
    def open_failing(data: Path, store: str, now: int | None, **options: bool) -> DataDirectory:
        directory = CLI_WIRING.open_directory(data, store, now, **options)
        submit = directory.hub.submit

        def fail_for_second(
            actor: Actor, *commands: Command, **more: Unpack[RequestOptions]
        ) -> Committed:
            if commands[0].target_task == "T-2":
                raise StoreUnavailable("the disk is gone")
            return submit(actor, *commands, **more)

        directory.hub.submit = fail_for_second
        return directory

    result = Console(work.data, open_failing)("task", "retry", "T-1", "T-2", "T-3")

    assert result.code == 1
    assert result.err.splitlines()[1:] == [
        "T-2: store_unavailable: the disk is gone",
        "T-3: store_unavailable: not tried after that",
    ]


def test_person_is_told_that_a_pending_report_is_dropped(work: Console) -> None:
    report = '{"task": "T-1", "outcome": "done", "apply": false}'
    assert work("call", "task.report", report, "--as", "ada", "--now", NOON).code == 0
    taken = work("task", "assign", "T-1", "ben", "--take", "--now", NOON)
    assert taken.code == 0
    assert "the report of ada on attempt 1 (done) was still pending and is dropped" in taken.err


@proves("USAGE-LIMIT")
def test_outcome_limited_names_the_end_of_the_limit(dragoman: Console) -> None:
    dragoman("task", "create", "t", "--id", "T-9", "--ready")
    dragoman("task", "claim", "T-9", "--agent", "ada")
    end = ("--outcome", "limited", "--until", "2090-01-01T00:00:00Z")
    ended = dragoman("task", "complete", "T-9", "--agent", "ada", *end)
    assert ended.out == "T-9 is ready\n"
    assert "until 2090-01-01" in dragoman("agent", "show", "ada").out
