"""Agent Mail as doors are handed it: complete tables, and shapes that can be published."""

from typing import Any, get_args

import pytest

from dragoman.core.events import MailEvent, MailPosted
from dragoman.protocols.agentmail import MessageType, dialect
from tests.engine.lab import BOB
from tests.protocols.agentmail.office import OLGA, Office, letter
from tests.requirements import proves

pytestmark = proves("DIALECT-COMPLETE")

MAIL = dialect()


def test_every_event_of_a_letter_is_told_and_every_other_is_silent_on_purpose() -> None:
    told = {event for event, render in MAIL.render.items() if render is not None}
    assert told == set(get_args(MailEvent))
    render = MAIL.render[MailPosted]
    assert render is not None
    posted = MailPosted("m", "alice", ("bob",), "m", "", "lunch?", "at noon")
    assert render(posted)["to"] == ("bob",)


@proves("MAIL-TYPE")
def test_it_names_its_ten_types() -> None:
    assert set(MAIL.kinds) == set(MessageType) - {MessageType.UNKNOWN}


LINED_UP: dict[str, tuple[dict[str, Any], str]] = {
    "about a bead": (letter("PROGRESS", "Step: 1", bead="ol-1"), "ol-1"),
    "of the bead's thread": (letter("PROGRESS", bead="ol-1", thread_id="ol-1"), "ol-1"),
    "of a thread": ({"subject": "a", "body_md": "", "thread_id": "t-1", "to": ["bob"]}, "t-1"),
    "to somebody": ({"subject": "a", "body_md": "", "to": ["bob", "eve"]}, "bob eve"),
    "about a bead in another thread": (letter("PROGRESS", bead="ol-1", thread_id="t-1"), ""),
    "a reply": ({"subject": "a", "body_md": "", "to": ["bob"], "reply_to": "m"}, ""),
    "an answer": (letter("HELP_RESPONSE", "Try again.", bead="ol-1"), ""),
}


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize("which", LINED_UP)
def test_letters_of_a_batch_keep_their_order_where_it_matters_and_share_commits_elsewhere(
    which: str,
) -> None:
    row, shared = LINED_UP[which]
    spoken = Office().door.hear(row)
    assert spoken is not None
    assert spoken.line_up == shared


@proves("MAIL-HTTP")
def test_an_argument_that_nobody_asks_for_is_an_error() -> None:
    office = Office()
    assert office.code("mail.inbox", {"unraed": True}, BOB) == "invalid_field"
    assert office.code("wave.start", {"beads": ["a-1"], "parallel": 1, "retry": {}}, OLGA) == (
        "invalid_field"
    )
    misspelt = {"beads": [{"id": "a-1", "fils": ["x"]}], "parallel": 1}
    assert office.code("wave.start", misspelt, OLGA) == "invalid_field"
