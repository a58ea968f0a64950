"""The Agent Mail dialect: complete tables and published shapes."""

from typing import Any

import pytest

from dragoman.core.mail import MAIL_FOLDS
from dragoman.engine.lint import linter_of
from dragoman.protocols.agentmail import MessageType, dialect
from tests.engine.lab import BOB
from tests.protocols.agentmail.hub import OLGA, MailHub, letter
from tests.requirements import proves

pytestmark = proves("DIALECT-COMPLETE")

MAIL = dialect()


def test_exactly_the_mail_events_concern_it() -> None:
    assert MAIL.events == set(MAIL_FOLDS)


@proves("MAIL-TYPE")
def test_dialect_lists_its_ten_message_types() -> None:
    assert set(linter_of(MAIL).message_types) == set(MessageType) - {MessageType.UNKNOWN}


ORDERING_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "about a bead": (letter("PROGRESS", "Step: 1", bead="ol-1"), "ol-1"),
    "of the bead's thread": (letter("PROGRESS", bead="ol-1", thread_id="ol-1"), "ol-1"),
    "of a thread": ({"subject": "a", "body_md": "", "thread_id": "t-1", "to": ["bob"]}, "t-1"),
    "to somebody": ({"subject": "a", "body_md": "", "to": ["bob", "eve"]}, "bob eve"),
    "about a bead in another thread": (letter("PROGRESS", bead="ol-1", thread_id="t-1"), ""),
    "a reply": ({"subject": "a", "body_md": "", "to": ["bob"], "reply_to": "m"}, ""),
    "an answer": (letter("HELP_RESPONSE", "Try again.", bead="ol-1"), ""),
}


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize("which", ORDERING_KEYS)
def test_ordering_key_is_the_thread_bead_or_recipients(which: str) -> None:
    row, shared = ORDERING_KEYS[which]
    routed = MailHub().router.parse(row)
    assert routed is not None
    assert routed.ordering_key == shared


@proves("MAIL-HTTP")
def test_unknown_arguments_are_refused() -> None:
    hub = MailHub()
    assert hub.code("mail.inbox", {"unraed": True}, BOB) == "invalid_field"
    assert hub.code("wave.start", {"beads": ["a-1"], "parallel": 1, "retry": {}}, OLGA) == (
        "invalid_field"
    )
    misspelt = {"beads": [{"id": "a-1", "fils": ["x"]}], "parallel": 1}
    assert hub.code("wave.start", misspelt, OLGA) == "invalid_field"
