"""Summaries of threads."""

from tests.engine.lab import ALICE, BOB
from tests.protocols.agentmail.hub import (
    BEAD,
    OLGA,
    MailHub,
    Row,
    checkpoint,
    failed,
    help_request,
    letter,
    offering,
)
from tests.requirements import proves

pytestmark = proves("MAIL-SUMMARY")


def summary(hub: MailHub) -> Row:
    """Return the summary of the bead's thread."""
    return hub.ask("mail.summary", {"thread_id": BEAD}, BOB)


def test_summary_has_counts_files_commits_and_last_state() -> None:
    hub = MailHub()
    to: Row = {"to": ["olga"]}
    for row in (letter("BEAD_ACCEPTED"), checkpoint("c1"), letter("BEAD_ACCEPTED"), offering()):
        hub.send(ALICE, row | to)
    plain = {"subject": "thanks", "body_md": "", "to": ["alice"], "thread_id": BEAD}
    hub.send(OLGA, plain)
    made = summary(hub)
    assert made["messages"] == 5
    counts = {"BEAD_ACCEPTED": 2, "OFFERING_READY": 1, "CHECKPOINT": 1, "UNKNOWN": 1}
    assert (made["counts"], list(made["counts"])) == (counts, list(counts))
    assert (made["last_type"], made["last_status"]) == ("OFFERING_READY", "DONE")
    assert (made["files"], made["commits"]) == (["src/a.py", "src/b.py"], ["c1", "0a1b2c3"])
    assert [one["type"] for one in made["open_acks"]] == ["OFFERING_READY"]
    assert summary(hub) == made


def test_last_state_comes_from_the_last_typed_letter() -> None:
    statuses = list[str]()
    for row in (
        letter("BEAD_ACCEPTED"),
        letter("PROGRESS", "Status: testing"),
        help_request(),
        failed("ERROR"),
    ):
        hub = MailHub()
        hub.send(ALICE, row | {"to": ["olga"]})
        hub.send(OLGA, {"subject": "well", "body_md": "", "to": ["alice"], "thread_id": BEAD})
        statuses.append(summary(hub)["last_status"])
    assert statuses == ["BEAD_ACCEPTED", "testing", "STUCK", "FAILED"]


def test_question_is_open_until_it_is_answered() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, help_request())
    (question,) = summary(hub)["open_questions"]
    assert (question["id"], question["sender"]) == (sent["id"], "alice")
    assert question["question"] == "Which way?"
    hub.send(OLGA, letter("HELP_RESPONSE", "Left.", to=["alice"], thread_id=BEAD))
    assert summary(hub)["open_questions"] == []
