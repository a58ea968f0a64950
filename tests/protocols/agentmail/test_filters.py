"""Filters: which letters stay, in their order."""

import pytest

from dragoman.protocols import agentmail
from dragoman.protocols.agentmail import Message, MessageType, Parser
from dragoman.protocols.agentmail.words import TYPES
from tests.protocols.agentmail.letters import read
from tests.requirements import proves

pytestmark = proves("MAIL-FILTERS")

BOX = [Parser().parse({"subject": kind}) for kind in (*TYPES, "hello")]
VALIDATION = "## Self-Validation\n- Tests: {}\n- Lint: {}\n- Build: {}"


def types(messages: list[Message]) -> list[str]:
    """What stayed."""
    return [message.type for message in messages]


def test_completions_are_good_and_bad_ends() -> None:
    kept = agentmail.filter_completions(BOX)
    assert types(kept) == ["OFFERING_READY", "DONE", "FAILED", "CHECKPOINT"]


def test_successes_are_good_ends() -> None:
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
def test_a_checked_success_says_that_every_check_passes(
    verdicts: tuple[str, str, str], passes: bool
) -> None:
    message = read("DONE", VALIDATION.format(*verdicts))

    assert agentmail.filter_successes([message]) == [message]
    assert agentmail.filter_successes([message], checked=True) == [message] * passes
    assert agentmail.passes_checks(message) is passes


def test_pending_wants_an_ack_and_has_none() -> None:
    assert types(agentmail.filter_pending(BOX)) == [
        "HELP_REQUEST",
        "OFFERING_READY",
        "SPAWN_REQUEST",
    ]
    acked = read("HELP_REQUEST", acknowledged=True)
    asked = read("DONE", ack_required=True, acknowledged=False)
    assert agentmail.filter_pending([acked, asked]) == [asked]


def test_unread_is_what_nobody_says_was_read() -> None:
    unread, unsaid = read("DONE", read=False), read("DONE")
    assert agentmail.filter_unread([read("DONE", read=True), unread, unsaid]) == [unread, unsaid]


def test_by_type_bead_thread_and_sender() -> None:
    one = read("[a-1] DONE", thread_id="t-1", **{"from": "ada"})
    two = read("[a-2] FAILED", thread_id="t-2", **{"from": "bob"})
    both = [one, two]

    assert agentmail.filter_by_type(both, MessageType.FAILED) == [two]
    assert agentmail.filter_by_type(both, MessageType.FAILED, MessageType.DONE) == both
    assert agentmail.filter_by_bead_id(both, "a-1") == [one]
    assert agentmail.filter_by_thread_id(both, "t-2") == [two]
    assert agentmail.filter_by_sender(both, "ada") == [one]
    assert agentmail.filter_by_sender(iter(both), "eve") == []
