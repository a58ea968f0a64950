"""`task claim --wait` and `task ask --wait`: commands that wait for others."""

from collections.abc import Callable

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, CommandResult, Console

pytestmark = proves("CLI-TASK-WAIT")

ASK = ("task", "ask", "T-1", "UTC?", "--agent", "ada")


def then(*steps: Callable[[], object]) -> Callable[[], bool]:
    """A pause in which the next thing happens; after the last one the reader is gone."""
    left = list(steps)

    def pause() -> bool:
        if not left:
            return False
        left.pop(0)()
        return True

    return pause


@pytest.fixture
def asked(dragoman: Console) -> Console:
    """Give a directory in which ada holds T-1."""
    dragoman.make("Do it", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada")
    return dragoman


def test_claim_waits_for_a_task_that_the_agent_may_take(dragoman: Console) -> None:
    dragoman("init")

    def nothing() -> None:
        pass

    result = dragoman(
        *("task", "claim", "--agent", "ada", "--wait"),
        wait=then(
            nothing,
            lambda: dragoman.make("For ben", "--ready", "--assignee", "ben"),
            lambda: dragoman.make("Later"),
            lambda: dragoman.make("Now", "--id", "T-1", "--ready"),
        ),
    )

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("T-1  Now\n")


def test_claim_takes_at_once_what_is_ready(dragoman: Console) -> None:
    dragoman.make("Now", "--id", "T-1", "--ready")

    assert dragoman.ask("task", "claim", "--agent", "ada", "--wait", "10m")["id"] == "T-1"


def test_task_that_is_ready_and_not_due_is_waited_for(dragoman: Console) -> None:
    dragoman.make("Now", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "fail", "T-1", "--agent", "ada", "--now", NOON)

    pauses = then(*(lambda: None for _ in range(12)))
    result = dragoman("task", "claim", "--agent", "ada", "--wait", "--now", NOON, wait=pauses)

    assert result.err == "nothing_ready: no task was ready for ada in that time\n"


@pytest.mark.parametrize("time", ["1ms", "0"])
def test_claim_that_waits_in_vain_is_refused(dragoman: Console, time: str) -> None:
    dragoman("init")
    before = len(dragoman("events", "--json").objects)

    result = dragoman(
        "task", "claim", "--agent", "ada", "--wait", time, "--json", wait=lambda: True
    )

    assert (result.code, result.json["code"]) == (1, "nothing_ready")
    assert len(dragoman("events", "--json").objects) == before


def test_refusal_of_a_claim_ends_the_wait(dragoman: Console) -> None:
    dragoman("init")
    dragoman.ask("agent", "add", "eve", "--role", "observer")

    result = dragoman("task", "claim", "--agent", "eve", "--wait", wait=lambda: True)

    assert (result.code, result.err.partition(":")[0]) == (1, "not_authorized")


def test_wait_of_a_claim_is_for_no_single_task(asked: Console) -> None:
    result = asked("task", "claim", "T-1", "--agent", "ada", "--wait")

    assert (result.code, "name none" in result.err) == (2, True)


@proves("QUESTION-ASK")
def test_ask_goes_on_without_waiting(asked: Console) -> None:
    assert asked(*ASK).out == "q1 of T-1 waits for an answer\n"
    assert asked.ask(*ASK)["question"] == "q1"


@proves("QUESTION-ANSWER")
def test_ask_waits_for_the_answer_and_prints_nothing_else(asked: Console) -> None:
    def answer() -> None:
        asked.ask("task", "answer", "T-1", "UTC.\nAlways.")

    result = asked(*ASK, "--wait", wait=then(lambda: asked.make("Another"), answer))

    assert (result.code, result.out, result.err) == (0, "UTC.\nAlways.\n", "")
    assert asked.ask(*ASK, "--wait")["answer"] == "UTC.\nAlways."


def waiting(dragoman: Console, step: Callable[[], object]) -> CommandResult:
    return dragoman(*ASK, "--wait", "--json", wait=then(step))


def test_answer_is_an_object_with_json(asked: Console) -> None:
    result = waiting(asked, lambda: asked.ask("task", "answer", "T-1", "Yes"))

    assert (result.json["answer"], result.json["state"]) == ("Yes", "answered")


@proves("QUESTION-WITHDRAW")
def test_question_that_gets_no_answer_ends_the_wait(asked: Console) -> None:
    result = waiting(asked, lambda: asked.ask("task", "withdraw", "T-1", "q1"))

    assert (result.code, result.json["code"]) == (1, "not_answered")
    assert result.json["detail"] == "q1 of T-1 is withdrawn: it gets no answer"


def test_question_without_an_answer_in_time_is_said_to_be_open(asked: Console) -> None:
    result = waiting(asked, lambda: None)

    assert (result.code, result.json["code"]) == (1, "not_answered")
    assert asked.ask("task", "show", "T-1")["questions"][0]["id"] == "q1"
