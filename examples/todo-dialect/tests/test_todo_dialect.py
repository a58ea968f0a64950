"""The todo dialect does what every dialect must, and what its page says."""

import pytest
from todo_dialect import dialect

from dragoman.core.errors import Refusal
from dragoman.core.notice import Notice
from dragoman.core.task_state import CreateTask
from dragoman.engine.translation import TranslatedMessage, translate, translate_notice
from dragoman.protocols import aof
from dragoman.testing import Call, DialectConformance, Do, Refused, hand_hub


class TestTodo(DialectConformance):
    dialect = dialect()
    steps = (
        Do("olga", CreateTask("Mend the roof", id="roof", ready=True)),
        Call("ada", "todo.take", {"task": "roof"}),
        Call("ada", "todo.say", {"task": "roof", "note": "Half of it is dry."}),
        Call("ada", "todo.offer", {"task": "gutter", "to": "bob", "note": "Mend the gutter"}),
        Call("bob", "todo.inbox", {}),
        Call("ada", "todo.stuck", {"task": "roof", "note": "No ladder."}),
        Do("olga", CreateTask("Mend the door", id="door", ready=True)),
        Call("bob", "todo.take", {"task": "door"}),
        Call("bob", "todo.done", {"task": "door", "note": "It shuts."}),
    )
    messages = (
        "todo: ada take roof",
        "todo: ada say roof Half of it is dry.",
        "todo: ada stuck roof No ladder.",
        '{"todo": "offer", "agent": "ada", "task": "gutter", "to": "bob"}',
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
            ('{"todo": "offer", "agent": "ada", "task": "gutter"}', "invalid_field"),
            ("todo: ada take floor", "no_such_task"),
        ):
            with pytest.raises(Refused, match=code):
                hub.send(message)


def test_message_is_translated_to_another_dialect_and_back() -> None:
    todo, report = dialect(), aof.dialect()
    task = "TASK-2026-02-09-057"
    there = translate(f"todo: ada done {task} It is dry.", todo, report)
    assert isinstance(there, TranslatedMessage)
    assert there.message["payload"]["outcome"] == "done"
    assert there.message["payload"]["notes"] == "It is dry."
    back = translate(there.message, report, todo)
    assert isinstance(back, TranslatedMessage)
    assert (back.message["todo"], back.message["note"]) == ("done", "It is dry.")
    assert {loss.field for loss in back.losses} == {"at", "summary_ref", "tests"}


def test_what_todo_has_no_verb_for_is_said_as_a_notice() -> None:
    asked = Notice(kind="help_asked", task="roof", text="No ladder.", question="Whose?")
    made = translate_notice(asked, "", dialect())
    assert isinstance(made, TranslatedMessage)
    assert made.is_notice
    assert made.message == {
        "todo": "say",
        "agent": "unknown",
        "task": "roof",
        "note": "No ladder.",
        "more": "kind: help_asked\nquestion: Whose?",
    }
    stuck = translate_notice(Notice(kind="failed", task="roof"), "", dialect())
    assert isinstance(stuck, TranslatedMessage)
    assert stuck.message["note"] == "not stated"
    assert isinstance(translate_notice(Notice(kind="progress"), "", dialect()), Refusal)
