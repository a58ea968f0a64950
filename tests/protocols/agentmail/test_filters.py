"""Filters for lists of letters."""

import pytest

from dragoman.protocols import agentmail
from dragoman.protocols.agentmail import Message, MessageType, Parser
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from tests.protocols.agentmail.letters import parse
from tests.requirements import proves

pytestmark = proves("MAIL-FILTERS")

BOX = [Parser().parse({"subject": kind}) for kind in (*MESSAGE_TYPES, "hello")]
VALIDATION = "## Self-Validation\n- Tests: {}\n- Lint: {}\n- Build: {}"


def types(messages: list[Message]) -> list[str]:
    """Return the types of the messages."""
    return [message.type for message in messages]


def test_completions_are_successes_failures_and_checkpoints() -> None:
    kept = agentmail.filter_completions(BOX)
    assert types(kept) == ["OFFERING_READY", "DONE", "FAILED", "CHECKPOINT"]


def test_successes_are_offerings_and_done() -> None:
    assert types(agentmail.filter_successes(BOX)) == ["OFFERING_READY", "DONE"]


@pytest.mark.parametrize(
    ("verdicts", "passes"),
    [
        (("PASS", "ok", "yes"), True),
        (("PASS", "PASS", "FAIL"), False),
        (("PASS", "PASS", "unsure"), False),
        (("PASS", "PASS", ""), False),
    ],
)
def test_checked_success_needs_every_check_to_pass(
    verdicts: tuple[str, str, str], passes: bool
) -> None:
    message = parse("DONE", VALIDATION.format(*verdicts))

    assert agentmail.filter_successes([message]) == [message]
    assert agentmail.filter_successes([message], checked=True) == [message] * passes
    assert agentmail.passes_checks(message) is passes


def test_pending_letters_want_an_ack_and_have_none() -> None:
    assert types(agentmail.filter_pending(BOX)) == [
        "HELP_REQUEST",
        "OFFERING_READY",
        "SPAWN_REQUEST",
    ]
    acked = parse("HELP_REQUEST", acknowledged=True)
    requested = parse("DONE", ack_required=True, acknowledged=False)
    assert agentmail.filter_pending([acked, requested]) == [requested]


def test_unread_letters_are_those_not_marked_read() -> None:
    unread, unmarked = parse("DONE", read=False), parse("DONE")
    assert agentmail.filter_unread([parse("DONE", read=True), unread, unmarked]) == [
        unread,
        unmarked,
    ]


def test_filters_by_type_bead_thread_and_sender() -> None:
    one = parse("[a-1] DONE", thread_id="t-1", **{"from": "ada"})
    two = parse("[a-2] FAILED", thread_id="t-2", **{"from": "bob"})
    both = [one, two]

    assert agentmail.filter_by_type(both, MessageType.FAILED) == [two]
    assert agentmail.filter_by_type(both, MessageType.FAILED, MessageType.DONE) == both
    assert agentmail.filter_by_bead_id(both, "a-1") == [one]
    assert agentmail.filter_by_thread_id(both, "t-2") == [two]
    assert agentmail.filter_by_sender(both, "ada") == [one]
    assert agentmail.filter_by_sender(iter(both), "eve") == []
