"""The core is a function over frozen values: complete, without memory, and stable in its names."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dragoman.core.actor import Actor, ActorRecord, RejectMessage
from dragoman.core.agent import (
    AgentDescriptor,
    AgentRecord,
    Evidence,
    RegisterAgent,
    Reputation,
    TokenRecord,
)
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.attempt_state import Checkpoint, Lease, Report
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command, Event, command_name
from dragoman.core.deciders import DECIDERS
from dragoman.core.delegation import RequestDelegation
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.intent.candidate import Candidate, Policy, Requirements, ScoreParts
from dragoman.core.intent.state import ClosedRequest, Intent, OpenRequest
from dragoman.core.mail import Mail, PostMail
from dragoman.core.read import Decision, LeaseChange, Receipt
from dragoman.core.reservation import Reservations
from dragoman.core.task_state import (
    PRIORITY_RANK,
    AdoptTask,
    CreateTask,
    Delegation,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    Task,
    UpdateTask,
)
from dragoman.core.wave import Wave
from tests.core.world import ALICE, HUMAN, World, held, task
from tests.requirements import proves

COMMANDS: tuple[type[Command], ...] = tuple(DECIDERS)
EVENTS: tuple[type[Event], ...] = tuple(EVENT_NAMES)
STATES = (
    Task,
    Report,
    Delegation,
    Checkpoint,
    Lease,
    ActorRecord,
    AgentRecord,
    TokenRecord,
    Mail,
    Wave,
    Reservations,
    Reputation,
    AgentDescriptor,
    Evidence,
    Intent,
    OpenRequest,
    ClosedRequest,
    Candidate,
    ScoreParts,
    Policy,
    Requirements,
)
VALUES = (*COMMANDS, *EVENTS, *STATES, Actor, Backoff, Decision, LeaseChange, Receipt)


@proves("CORE-PURE")
@pytest.mark.parametrize(
    "kind",
    VALUES,
    ids=lambda kind: kind.__name__,
)
def test_value_types_are_frozen(kind: type[Struct]) -> None:
    assert kind.__struct_config__.frozen


@proves("CORE-PURE")
def test_commands_have_deciders_and_stable_names() -> None:
    assert set(DECIDERS) == set(COMMANDS)
    assert sorted(str(kind.__struct_config__.tag) for kind in COMMANDS) == [
        "agent.describe",
        "agent.key",
        "agent.pause",
        "agent.presence",
        "agent.register",
        "agent.resume",
        "attempt.end",
        "attempt.flag",
        "attempt.limit",
        "delegation.accept",
        "delegation.escalate",
        "delegation.reject",
        "delegation.request",
        "entropy.escalate",
        "entropy.settle",
        "handoff.accept",
        "handoff.activate",
        "handoff.approve",
        "handoff.close",
        "handoff.complete",
        "handoff.escalate",
        "handoff.extend",
        "handoff.note",
        "handoff.propose",
        "handoff.reassign",
        "handoff.reject",
        "handoff.withdraw",
        "intent.cancel",
        "intent.delegate",
        "intent.expire",
        "intent.result",
        "intent.update",
        "lease.expire",
        "mail.ack",
        "mail.answer",
        "mail.escalate",
        "mail.post",
        "mail.read",
        "message.reject",
        "reservation.release",
        "reservation.take",
        "task.adopt",
        "task.alias",
        "task.answer",
        "task.ask",
        "task.checkpoint",
        "task.claim",
        "task.create",
        "task.edit",
        "task.heartbeat",
        "task.link",
        "task.move",
        "task.note",
        "task.record-checks",
        "task.release",
        "task.report",
        "task.rewind",
        "task.send-back",
        "task.transition",
        "task.unlink",
        "task.update",
        "task.warn",
        "task.withdraw-question",
        "token.issue",
        "token.revoke",
        "trace.record",
        "turn.record",
        "wave.advance",
        "wave.start",
        "workq.add",
        "workq.claim",
        "workq.release",
    ]
    assert command_name(ClaimTask("T", "alice")) == "task.claim"


@proves("IDEM-SCOPE", "CORE-PURE")
def test_encoded_command_omits_defaults() -> None:
    """Stored requests stay valid when a later release adds a field."""
    assert msgspec.json.encode(CreateTask("x")) == b'{"type":"task.create","title":"x"}'
    assert msgspec.json.encode(NoteTask("T", "x")) == b'{"type":"task.note","task":"T","text":"x"}'


@proves("LEDGER-NAMES", "CORE-PURE")
def test_events_have_their_promised_names() -> None:
    assert set(EVENT_NAMES) == set(EVENTS)
    assert sorted(EVENT_NAMES.values()) == [
        "agent.assigned",
        "agent.described",
        "agent.key_set",
        "agent.paused",
        "agent.presence",
        "agent.rated",
        "agent.registered",
        "agent.relieved",
        "agent.resumed",
        "attempt.escalated",
        "attempt.quiet",
        "command.refused",
        "delegation.accepted",
        "delegation.escalated",
        "delegation.rejected",
        "delegation.requested",
        "entropy.escalated",
        "entropy.settled",
        "handoff.approved",
        "handoff.escalated",
        "handoff.extended",
        "handoff.noted",
        "handoff.proposed",
        "handoff.rejected",
        "handoff.transitioned",
        "handoff.verified",
        "intent.anomaly",
        "intent.approved",
        "intent.completed",
        "intent.created",
        "intent.dispatched",
        "intent.feedback_applied",
        "intent.needs_follow_up",
        "intent.proposed",
        "intent.rejected",
        "intent.satisfied",
        "intent.superseded",
        "intent.updated",
        "mail.acked",
        "mail.answered",
        "mail.escalated",
        "mail.posted",
        "mail.read",
        "message.received",
        "question.answered",
        "question.asked",
        "question.withdrawn",
        "reservation.ended",
        "reservation.renewed",
        "reservation.taken",
        "task.aliased",
        "task.backlinked",
        "task.checked",
        "task.checkpointed",
        "task.claimed",
        "task.created",
        "task.edited",
        "task.handoff_changed",
        "task.linked",
        "task.noted",
        "task.progressed",
        "task.reported",
        "task.requeued",
        "task.rewound",
        "task.transitioned",
        "task.unbacklinked",
        "task.unblocked",
        "task.unlinked",
        "task.warned",
        "token.issued",
        "token.revoked",
        "trace.anomaly",
        "trace.recorded",
        "turn.recorded",
        "wave.bead_released",
        "wave.completed",
        "wave.started",
        "workq.added",
        "workq.owner_changed",
    ]


@proves("CORE-PURE")
def test_command_names_its_target_task() -> None:
    assert CreateTask("x", "T").target_task == ""
    assert AdoptTask("bead", "b").target_task == ""
    assert MoveTask("T", "ready").target_task == "T"
    assert LinkTask("T", "parent", "U").target_task == "T"
    assert ClaimTask("", "alice").target_task == ""
    assert RegisterAgent("alice").target_task == ""
    assert RejectMessage("invalid_json", "why", "T").target_task == "T"
    assert RequestDelegation("U", "T", "bob", 0).target_task == "U"


@proves("LEASE-HEARTBEAT")
def test_command_names_task_whose_lease_it_renews() -> None:
    assert NoteTask("T", "x").heartbeat_task == "T"
    assert RequestDelegation("U", "T", "bob", 0).heartbeat_task == "T", (
        "who delegates works on the parent"
    )
    assert PostMail(("bob",), "half way", "", bead="T").heartbeat_task == "T"
    assert AdoptTask("bead", "T").heartbeat_task == ""


@proves("TASK-PRIORITY")
def test_priorities_are_ordered() -> None:
    assert PRIORITY_RANK == {"critical": 0, "high": 1, "normal": 2, "low": 3}


@proves("CORE-PURE")
@given(st.data())
def test_decision_is_deterministic_and_changes_nothing(data: st.DataObject) -> None:
    world = data.draw(st.sampled_from([held(), World(task("T"), task("U")), World()]))
    actor = data.draw(st.sampled_from([ALICE, HUMAN]))
    command: Any = data.draw(
        st.sampled_from(
            [
                CreateTask("x", "N", parent="T"),
                AdoptTask("bead", "N"),
                MoveTask("T", "blocked"),
                ClaimTask("T", "alice"),
                ClaimTask("", "alice"),
                RenewLease("T"),
                NoteTask("T", "x"),
                LinkTask("T", "blocked-by", "U"),
                ReportOutcome("T", "failed", apply=True),
                UpdateTask("T", "blocked", notes="x"),
                EditTask("T", "another title"),
                RequestDelegation("U", "T", "bob", 0),
            ]
        )
    )
    before = msgspec.json.encode((world.tasks, world.leases, world.numbers))
    first, second = world.decide(actor, command), world.decide(actor, command)
    assert first == second
    assert msgspec.json.encode((world.tasks, world.leases, world.numbers)) == before
