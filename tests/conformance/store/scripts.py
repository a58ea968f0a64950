"""Scripts for the suite: requests of several actors in sequence, while time passes."""

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import Struct

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.agent import IssueToken, RegisterAgent, RevokeToken, SetAgentKey
from dragoman.core.attempt import (
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command, LinkKind, Outcome, Priority, Status
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    UpdateTask,
    WarnTask,
)
from tests.conformance.store.hubs import ALICE, ANN, BOB, EVE, HUB, NOW

AGENTS = ("alice", "bob")
TTL = 60_000


class Step(Struct, frozen=True):
    """One request, and how far the clock is moved after it."""

    actor: Actor
    commands: tuple[Command, ...]
    key: str = ""
    then_wait: int = 0


def step(actor: Actor, *commands: Command, key: str = "", then_wait: int = 0) -> Step:
    """Make a step of a handwritten script."""
    return Step(actor, commands, key, then_wait)


SCRIPT: Sequence[Step] = (
    step(ANN, CreateTask("first", "a", ready=True), then_wait=10),
    step(ANN, CreateTask("second", "b", ready=True, priority="high", aliases=("bead:x",))),
    step(ANN, CreateTask("third", ready=True, assignee="bob", priority="low"), then_wait=5),
    step(ANN, CreateTask("fourth", "d", blocked_by=("a",), ready=True, parent="b")),
    step(ANN, CreateTask("fifth", "e"), then_wait=5),
    step(BOB, AdoptTask("jira", "X-1", "from elsewhere"), then_wait=5),
    step(EVE, NoteTask("a", "observers may not")),
    step(EVE, NoteTask("a", "observers may not")),
    step(ALICE, ClaimTask("", "alice", "s-alice", TTL), key="next", then_wait=20),
    step(ALICE, ClaimTask("", "alice", "s-alice", TTL), key="next", then_wait=20),
    step(ALICE, ClaimTask("a", "alice", "s-alice", 2 * TTL), then_wait=20),
    step(BOB, ClaimTask("", "bob", "s-bob", TTL), then_wait=20),
    step(BOB, ClaimTask("a", "bob")),
    step(ALICE, RenewLease("b"), then_wait=20),
    step(ALICE, ReportOutcome("b", "failed", apply=True), then_wait=20),
    step(ALICE, ReportOutcome("a", "done", notes="ready for review"), then_wait=20),
    step(ALICE, EndAttempt("a"), NoteTask("e", "while I am here"), then_wait=20),
    step(ANN, MoveTask("a", "done"), AliasTask("e", "bead:x2"), then_wait=20),
    step(ANN, MoveTask("e", "ready"), MoveTask("e", "review"), then_wait=20),
    step(ANN, LinkTask("e", "blocked-by", "d"), LinkTask("d", "discovered-from", "jira:X-1")),
    step(ANN, LinkTask("d", "blocked-by", "e"), then_wait=TTL),
    step(HUB, ExpireLease("jira:X-1"), then_wait=10 * TTL),
    step(BOB, ClaimTask("", "bob", "s-bob", TTL), then_wait=20),
    step(ANN, MoveTask("e", "cancelled", "not needed"), then_wait=1),
    step(ANN, RegisterAgent("alice", speaks=("aof",)), then_wait=1),
    step(ANN, RegisterAgent("a.b@host"), RegisterAgent("Zoe"), RegisterAgent("a-b")),
    step(
        ANN, IssueToken("alice", "0" * 12, "0" * 64, NOW + 90 * TTL), SetAgentKey("Zoe", "A" * 43)
    ),
    step(ANN, RevokeToken("alice"), then_wait=1),
    step(ANN, RequestDelegation("d", "b", "alice", NOW + 60 * TTL, ("tested",)), then_wait=1),
    step(ANN, RequestDelegation("b", "e", "alice", NOW), then_wait=1),
    step(ALICE, AcceptDelegation("d"), then_wait=1),
    step(HUB, EscalateDelegation("d"), then_wait=1),
    step(ANN, RequestDelegation("jira:X-1", "b", "bob", NOW + 9), then_wait=1),
    step(HUB, EscalateDelegation("jira:X-1"), then_wait=1),
    step(ANN, RequestDelegation("jira:X-1", "b", "bob", NOW + 7), EditTask("d", "the fourth")),
    step(ANN, RequestDelegation("b", "d", "bob", NOW)),
    step(BOB, RejectMessage("invalid_json", "line 1", "d", "status.update")),
)
"""Queues, blockers, aliases, leases, refusals, repeats and deadlines in one script."""


IDS = ("a", "b", "c")
STATUSES: tuple[Status, ...] = (
    "backlog",
    "ready",
    "blocked",
    "review",
    "done",
    "deadletter",
    "cancelled",
)
OUTCOMES: tuple[Outcome, ...] = ("done", "blocked", "needs_review", "partial", "failed")
PRIORITIES: tuple[Priority, ...] = ("critical", "high", "normal", "low")
LINKS: tuple[LinkKind, ...] = ("blocked-by", "parent", "discovered-from")

_known = st.sampled_from((*IDS, "bead:x", "x", "nobody"))
_ids = st.sampled_from(("", *IDS))
_agents = st.sampled_from(AGENTS)
_some_known = st.lists(st.sampled_from(IDS), max_size=2, unique=True).map(tuple)


@st.composite
def _creations(draw: st.DrawFn) -> CreateTask:
    return CreateTask(
        "a task",
        draw(_ids),
        ready=draw(st.booleans()),
        assignee=draw(st.sampled_from(("", *AGENTS))),
        review_required=draw(st.booleans()),
        priority=draw(st.sampled_from(PRIORITIES)),
        blocked_by=draw(_some_known) if draw(st.booleans()) else (),
        aliases=draw(st.sampled_from(((), (), ("bead:x",), ("jira:x", "bead:y")))),
        max_attempts=draw(st.sampled_from((1, 5))),
    )


_claims = st.builds(
    ClaimTask,
    task=st.sampled_from(("", "", *IDS)),
    agent=_agents,
    session=st.sampled_from(("", "s-alice", "s-bob")),
    ttl_ms=st.sampled_from((TTL, 2 * TTL)),
)
_delegations = st.builds(
    RequestDelegation,
    task=_known,
    parent=_known,
    to_agent=_agents,
    due_by=st.sampled_from((NOW, NOW + 1, NOW + TTL, NOW + 90 * TTL)),
)
_commands: st.SearchStrategy[Command] = st.one_of(
    _creations(),
    _creations(),
    _claims,
    _claims,
    st.builds(AdoptTask, kind=st.just("jira"), name=st.sampled_from(("a", "X-1"))),
    st.builds(MoveTask, task=_known, to=st.sampled_from(STATUSES)),
    st.builds(RenewLease, task=_known),
    st.builds(ReleaseTask, task=_known),
    st.builds(ReportOutcome, task=_known, outcome=st.sampled_from(OUTCOMES), apply=st.booleans()),
    st.builds(EndAttempt, task=_known),
    st.builds(ExpireLease, task=_known),
    st.builds(LinkTask, task=_known, kind=st.sampled_from(LINKS), target=_known),
    st.builds(AliasTask, task=_known, alias=st.sampled_from(("bead:x", "bead:z", "jira:a"))),
    st.builds(NoteTask, task=_known, text=st.just("noted")),
    st.builds(WarnTask, task=_known, reason=st.just("odd")),
    st.builds(UpdateTask, task=_known, to=st.sampled_from((None, *STATUSES)), notes=st.just("n")),
    st.builds(
        EditTask,
        task=_known,
        priority=st.sampled_from((None, *PRIORITIES)),
        assignee=st.sampled_from((None, "", *AGENTS)),
    ),
    _delegations,
    _delegations,
    st.builds(AcceptDelegation, task=_known),
    st.builds(RejectDelegation, task=_known),
    st.builds(EscalateDelegation, task=_known),
    st.builds(RegisterAgent, name=_agents, speaks=st.sampled_from(((), ("aof",)))),
    st.builds(RejectMessage, code=st.just("invalid_json"), detail=st.just("x"), target=_known),
)
scripts = st.lists(
    st.builds(
        Step,
        actor=st.sampled_from((ANN, ALICE, BOB, HUB, EVE)),
        commands=st.lists(_commands, min_size=1, max_size=3).map(tuple),
        key=st.sampled_from(("", "", "", "k1", "k2")),
        then_wait=st.sampled_from((0, 1, 1_000, TTL, 10 * TTL)),
    ),
    max_size=25,
)
"""Any sequence of requests, valid or not."""
