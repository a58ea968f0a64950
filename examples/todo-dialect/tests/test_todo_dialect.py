"""The todo dialect does what every dialect must, and what its page says."""

import pytest
from todo_dialect import dialect

from dragoman.core.task_state import CreateTask
from dragoman.testing import Call, DialectConformance, Do, Refused, hand_hub


class TestTodo(DialectConformance):
    dialect = dialect()
    steps = (
        Do("olga", CreateTask("Mend the roof", id="roof", ready=True)),
        Call("ada", "todo.take", {"task": "roof"}),
        Call("ada", "todo.stuck", {"task": "roof", "note": "No ladder."}),
        Do("olga", CreateTask("Mend the door", id="door", ready=True)),
        Call("bob", "todo.take", {"task": "door"}),
        Call("bob", "todo.done", {"task": "door", "note": "It shuts."}),
    )
    messages = (
        "todo: ada take roof",
        "todo: ada stuck roof No ladder.",
        '{"todo": "done", "agent": "ada", "task": "roof"}',
    )


def test_lines_move_a_task() -> None:
    with hand_hub(dialects=(dialect(),)) as hub:
        hub.do(CreateTask("Mend the roof", id="roof", ready=True))

        assert hub.send("todo: ada take roof") == "roof is in-progress"
        assert hub.task("roof").assignee == "ada"
        with pytest.raises(Refused, match="roof belongs to ada"):
            hub.send("todo: bob done roof")
        assert hub.send("todo: ada done roof It is dry.") == "roof is review"


def test_faults_name_the_field() -> None:
    with hand_hub(dialects=(dialect(),)) as hub:
        hub.do(CreateTask("Mend the roof", id="roof", ready=True))
        for message, code in (
            ('{"todo": "drop", "agent": "ada", "task": "roof"}', "unknown_type"),
            ('{"todo": "take", "agent": "ada"}', "invalid_field"),
            ("todo: ada stuck roof", "invalid_field"),
            ("todo: ada take floor", "no_such_task"),
        ):
            with pytest.raises(Refused, match=code):
                hub.send(message)
