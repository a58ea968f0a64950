"""Summaries of threads, from their letters alone."""

from typing import Any

import msgspec

from dragoman.protocols.agentmail import Message, MessageType, Parser, summarize
from tests.protocols.agentmail.letters import parse, row
from tests.requirements import proves

pytestmark = proves("MAIL-SUMMARY")


def letter(kind: str, number: int = 0, **more: Any) -> Message:
    """Parse the sample letter of a type."""
    return Parser().parse(row(kind, id=f"m-{number}", **{"from": "ada"}, **more))


THREAD = [
    letter("BEAD_ACCEPTED", 1),
    letter("PROGRESS", 2),
    letter("HELP_REQUEST", 3),
    letter("HELP_RESPONSE", 4),
    letter("PROGRESS", 5),
    parse("just saying"),
]


def test_summary_has_counts_files_commits_and_last_state() -> None:
    summary = summarize([*THREAD, letter("CHECKPOINT"), letter("OFFERING_READY"), parse("thanks")])

    assert summary.messages == 9
    assert summary.counts == {
        "BEAD_ACCEPTED": 1,
        "PROGRESS": 2,
        "HELP_REQUEST": 1,
        "HELP_RESPONSE": 1,
        "OFFERING_READY": 1,
        "CHECKPOINT": 1,
        "UNKNOWN": 2,
    }
    assert list(summary.counts) == [type for type in MessageType if type in summary.counts]
    assert (summary.last_type, summary.last_status) == ("OFFERING_READY", "DONE")
    assert summary.files == ("src/auth.py", "tests/test_auth.py")
    assert summary.commits == ("jkl012b", "abc123d")


def test_last_state_comes_from_the_last_typed_letter() -> None:
    statuses = {
        kind: summarize([letter("PROGRESS"), letter(kind), parse("well")]).last_status
        for kind in (
            "BEAD_ACCEPTED",
            "PROGRESS",
            "HELP_REQUEST",
            "CHECKPOINT",
            "FAILED",
            "SPAWN_ACK",
        )
    }
    assert statuses == {
        "BEAD_ACCEPTED": "BEAD_ACCEPTED",
        "PROGRESS": "Writing handler",
        "HELP_REQUEST": "STUCK",
        "CHECKPOINT": "CONTEXT_HIGH",
        "FAILED": "FAILED",
        "SPAWN_ACK": "spawned",
    }


def test_question_is_open_until_a_later_answer() -> None:
    (question,) = summarize(THREAD[:3]).open_questions
    assert (question.id, question.sender, question.question) == ("m-3", "ada", "Why?")
    assert summarize(THREAD).open_questions == ()
    again = summarize([*THREAD, letter("HELP_REQUEST", 9)])
    assert [question.id for question in again.open_questions] == ["m-9"]


def test_reply_that_only_repeats_a_type_is_a_plain_letter() -> None:
    reply, other = (
        parse("Re: [ol-1] HELP_REQUEST", "Left."),
        parse("Re: [ol-1] PROGRESS", "Step: x"),
    )
    summary = summarize([letter("HELP_REQUEST", 1), reply, parse("so"), reply, other])
    assert summary.counts == {"PROGRESS": 1, "HELP_REQUEST": 1, "UNKNOWN": 3}
    assert [question.id for question in summary.open_questions] == ["m-1"]


def test_answer_without_a_bead_closes_any_question() -> None:
    question, vague = letter("HELP_REQUEST"), parse("HELP_REQUEST")

    assert summarize([question, parse("[x-9] HELP_RESPONSE", "no")]).open_questions
    assert not summarize([question, parse("HELP_RESPONSE", "yes")]).open_questions
    assert not summarize([vague, parse("[x-9] HELP_RESPONSE", "yes")]).open_questions


def test_ack_is_open_until_acknowledged_or_answered() -> None:
    thread = [
        letter("SPAWN_REQUEST", 1),
        letter("OFFERING_READY", 2),
        letter("OFFERING_READY", 3, acknowledged=True),
        letter("DONE", 4, ack_required=True),
    ]
    assert [one.id for one in summarize(thread).open_acks] == ["m-1", "m-2", "m-4"]
    answered = [*thread, letter("SPAWN_ACK")]
    assert [one.id for one in summarize(answered).open_acks] == ["m-2", "m-4"]


def test_summary_is_deterministic_and_empty_without_letters() -> None:
    assert msgspec.json.encode(summarize(THREAD)) == msgspec.json.encode(summarize(list(THREAD)))
    nothing = summarize([])
    assert (nothing.messages, nothing.counts, nothing.last_type) == (0, {}, "")
