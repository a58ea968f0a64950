"""Invariants of an intent under random commands, checked after each of them."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRated
from dragoman.core.attempt import ClaimTask, ExpireLease, ReleaseTask, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.intent.state import (
    SETTLED_STATES,
    DelegateIntent,
    ExpireRequest,
    IntentCompleted,
    IntentFeedbackApplied,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.read import Decision
from dragoman.core.task_state import EditTask, MoveTask
from tests.core.intents import GOAL, HOUR, delegate_intent, rank_candidates, registry
from tests.core.world import HUB, HUMAN, NOW, World
from tests.requirements import proves

NAMES = ("alice", "bob", "carol")
STATUSES = ("ready", "blocked", "backlog", "review", "done", "deadletter", "cancelled")


@st.composite
def steps(draw: st.DrawFn) -> tuple[Actor, Command, int]:
    """Actor, random command, and milliseconds that pass before it."""
    name = draw(st.sampled_from(NAMES))
    agent = Actor("agent", name)
    is_success = draw(st.booleans())
    any_of: Any = st.sampled_from
    drawn: tuple[Actor, Command] = draw(
        any_of(
            [
                (agent, ReceiveResult("i", name, is_success, error="" if is_success else "no")),
                (agent, ReceiveResult("i", name, True, request_id="i.2", output=1)),
                (agent, UpdateIntent("i", name, 50)),
                (agent, ClaimTask("i", name)),
                (agent, ReleaseTask("i")),
                (agent, ReportOutcome("i", "done" if is_success else "failed", apply=True)),
                (
                    agent,
                    ReportOutcome(
                        "i", "partial" if is_success else "blocked", "", ("b",), apply=True
                    ),
                ),
                (HUMAN, EditTask("i", assignee=name if is_success else "")),
                (HUMAN, MoveTask("i", draw(any_of(STATUSES)))),
                (HUB, ExpireLease("i")),
                (HUB, ExpireRequest("i")),
            ]
        )
    )
    later: int = draw(any_of([0, 1_000, 400_000, HOUR]))
    return drawn[0], drawn[1], later


def check_invariants(world: World, rated: Counter[str], fed_back: int) -> None:
    intent, task = world.intents["i"], world.tasks["i"]
    request = intent.request
    for name, reputation in world.reputations.items():
        assert reputation.open == (request is not None and request.agent == name)
        assert reputation.successes + reputation.failures == rated[name]
        assert reputation.recent.count("1") == reputation.successes
    assert rated.total() == fed_back
    if request is not None:
        assert intent.state == "TaskDispatched"
        assert task.assignee == request.agent
        assert not task.is_final
    assert (intent.state == "Satisfied") == (task.status == "done")
    if task.status in ("blocked", "deadletter", "cancelled"):
        assert intent.state in SETTLED_STATES
    if task.status in ("backlog", "ready", "in-progress"):
        assert request is not None or intent.state in SETTLED_STATES


@proves("CCOS-FEEDBACK", "CCOS-OTHERS", "CCOS-OWNER", "CCOS-RECEIPT")
@given(st.lists(steps(), max_size=14), st.booleans())
def test_task_request_and_feedback_agree_after_every_command(
    history: list[tuple[Actor, Command, int]], review_required: bool
) -> None:
    world = registry(*NAMES)
    delegate_intent(world, patience_ms=HOUR, review_required=review_required)
    rated, fed_back, ended, now = Counter[str](), 0, set[str](), NOW
    for actor, command, later in history:
        now += later
        decision = world.decide(actor, command, now)
        if isinstance(decision, Decision):
            world.apply(decision, now)
            for _, event in decision.events:
                if isinstance(event, AgentRated):
                    rated[event.name] += 1
                fed_back += isinstance(event, IntentFeedbackApplied)
                if isinstance(event, IntentCompleted):
                    assert event.request_id not in ended, "a request ends once"
                    ended.add(event.request_id)
        check_invariants(world, rated, fed_back)
    again = world.decide(
        HUMAN, DelegateIntent(GOAL, "i", candidates=rank_candidates(world, now=now)), now
    )
    if isinstance(again, Decision):
        world.apply(again, now)
        check_invariants(world, rated, fed_back)
