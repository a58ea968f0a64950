"""Content keys: messages without an id are repeats by their content, within an attempt."""

import msgspec
import pytest

from dragoman.core.actor import RECEIVED_PER_MINUTE, MessageReceived
from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.task_state import CreateTask, NoteTask, WarnTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.request import Committed
from dragoman.engine.verify import check_stored_states
from dragoman.system.clock import SequentialIds
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

RECEIPT_EVENT = MessageReceived("aof", "completion.report", "T")


def send(lab: Lab, *commands: Command, content: bytes = b"words") -> Committed:
    """Send a message of alice with this content, translated to these commands."""
    return lab.hub.submit(
        ALICE,
        *commands,
        key=lab.hub.content_key(content),
        original_text=msgspec.Raw(b'{"words":1}'),
        per_attempt=True,
        receipt_event=RECEIPT_EVENT,
    )


def claim_task(lab: Lab) -> None:
    """Create a task T that alice holds."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))


@proves("IDEM-REPEAT")
def test_same_content_is_a_repeat_whatever_warnings_differ(lab: Lab) -> None:
    claim_task(lab)
    missing = WarnTask("T", "missing_summary")
    first = send(lab, ReportOutcome("T", "done"), missing)
    before = lab.lines()

    assert send(lab, ReportOutcome("T", "done")) == Committed(first.receipts, repeated=True)
    assert lab.lines() == before
    assert not send(lab, ReportOutcome("T", "done"), content=b"other words").repeated


@proves("IDEM-REPEAT")
def test_same_content_in_a_later_attempt_is_new(lab: Lab) -> None:
    claim_task(lab)
    send(lab, NoteTask("T", "half"))
    lab.do(ALICE, ReleaseTask("T"))
    lab.do(ALICE, ClaimTask("T", "alice"))

    assert not send(lab, NoteTask("T", "half")).repeated
    assert lab.task("T").notes == 2


@proves("IDEM-REPEAT")
def test_content_key_depends_on_the_hub_secret(lab: Lab) -> None:
    other = Hub(Engine(lab.store, lab.clock, b"another secret"), SequentialIds())
    assert lab.hub.content_key(b"words") == lab.hub.content_key(b"words")
    assert lab.hub.content_key(b"words") != other.content_key(b"words")


@proves("MESSAGE-HEARD")
def test_message_without_effect_is_recorded_once_in_its_actors_stream(lab: Lab) -> None:
    claim_task(lab)
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))

    send(lab, ReportOutcome("T", "done"))
    assert lab.lines()[-1] == (ALICE.stream, "message.received")
    before = lab.lines()
    assert send(lab, ReportOutcome("T", "done")).repeated
    assert lab.lines() == before


@proves("MESSAGE-HEARD")
def test_message_with_effect_is_recorded_in_the_stream_it_changes(lab: Lab) -> None:
    claim_task(lab)
    send(lab, NoteTask("T", "half"))
    assert lab.lines()[-1] == ("task:T", "task.noted")


@proves("LEASE-HEARTBEAT")
def test_on_leases_reports_changed_leases_after_the_commit(lab: Lab) -> None:
    changed: list[list[str]] = []
    hub = Hub(
        Engine(lab.store, lab.clock, b"s", on_leases=lambda names: changed.append(list(names))),
        SequentialIds(),
    )
    hub.submit(HUMAN, CreateTask("t", "T", ready=True))
    hub.submit(ALICE, ClaimTask("T", "alice"))
    hub.submit(ALICE, RenewLease("T"))
    lab.store.faults = [OSError("full")]
    with pytest.raises(OSError, match="full"):
        hub.submit(ALICE, RenewLease("T"))
    hub.submit(BOB, NoteTask("T", "not a holder"))
    assert changed == [["task:T"], ["task:T"]]


@proves("MESSAGE-HEARD")
def test_messages_without_effect_are_rate_limited_per_actor(lab: Lab) -> None:
    claim_task(lab)
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))
    before = lab.store.head()
    for number in range(RECEIVED_PER_MINUTE + 20):
        send(lab, ReportOutcome("T", "done"), content=f"words {number}".encode())
    assert lab.store.head() - before == RECEIVED_PER_MINUTE
    lab.clock.advance(60_000)
    send(lab, ReportOutcome("T", "done"), content=b"later")
    assert lab.store.head() - before == RECEIVED_PER_MINUTE + 1
    assert list(check_stored_states(lab.store, lambda _: None)) == []
