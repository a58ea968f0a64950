"""Content keys: messages without an id are repeats by their content, within an attempt."""

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR, RECEIVED_PER_MINUTE, MessageReceived
from dragoman.core.attempt import (
    ClaimTask,
    ExpireLease,
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command
from dragoman.core.task_state import CreateTask, NoteTask, WarnTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.request import Committed
from dragoman.engine.verify import check_stored_states
from dragoman.system.clock import SequentialIds
from tests.engine.lab import ALICE, BOB, HUMAN, TTL, Lab
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


ENDS = (
    ReleaseTask("T", "not mine"),
    LimitAttempt("T", pauses=False),
    ReportOutcome("T", "failed", "no", apply=True, is_own=True),
)
"""Commands that return a task to its queue, without key and message."""


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("command", ENDS)
def test_end_of_an_attempt_is_a_repeat_by_its_content(lab: Lab, command: Command) -> None:
    claim_task(lab)
    first = lab.hub.submit(ALICE, command)
    before = lab.lines()

    assert lab.hub.submit(ALICE, command) == replace(first, repeated=True)
    assert lab.lines() == before
    assert lab.code(BOB, command) == "unassigned_task"
    assert lab.code(ALICE, ReleaseTask("T", "another")) == "lease_lost"


@proves("IDEM-REPEAT", "LEASE-LATE")
@pytest.mark.parametrize("command", ENDS)
def test_end_of_an_attempt_is_no_repeat_in_a_later_one(lab: Lab, command: Command) -> None:
    claim_task(lab)
    lab.do(ALICE, command)
    lab.clock.advance(60_000)
    lab.do(BOB, ClaimTask("T", "bob"))

    assert lab.code(ALICE, command) == "lease_lost"
    assert lab.task("T").assignee == "bob"


@proves("LEASE-LATE")
@pytest.mark.parametrize("command", ENDS)
def test_agent_whose_lease_was_lost_has_nothing_to_repeat(lab: Lab, command: Command) -> None:
    claim_task(lab)
    lab.clock.advance(TTL)
    lab.do(HUB_ACTOR, ExpireLease("T"))

    assert lab.code(ALICE, command) == "lease_lost"
