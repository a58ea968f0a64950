"""Whatever is said about an intent, in whatever order: what must hold, holds after each word."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    DelegateIntent,
    EditTask,
    ExpireLease,
    ExpireRequest,
    MoveTask,
    ReceiveResult,
    ReleaseTask,
    ReportOutcome,
    UpdateIntent,
)
from dragoman.core.events import AgentRated, IntentCompleted, IntentFedBack
from dragoman.core.reading import Decision
from dragoman.core.states.intent import OVER
from tests.core.delegating import GOAL, HOUR, delegated, ranked, registry
from tests.core.world import HUB, HUMAN, NOW, World
from tests.requirements import proves

NAMES = ("alice", "bob", "carol")
STATUSES = ("ready", "blocked", "backlog", "review", "done", "deadletter", "cancelled")


@st.composite
def words(draw: st.DrawFn) -> tuple[Actor, AnyCommand, int]:
    """Somebody says something, some time later."""
    name = draw(st.sampled_from(NAMES))
    agent = Actor("agent", name)
    is_good = draw(st.booleans())
    any_of: Any = st.sampled_from
    said: tuple[Actor, AnyCommand] = draw(
        any_of(
            [
                (agent, ReceiveResult("i", name, is_good, error="" if is_good else "no")),
                (agent, ReceiveResult("i", name, True, request_id="i.2", output=1)),
                (agent, UpdateIntent("i", name, 50)),
                (agent, ClaimTask("i", name)),
                (agent, ReleaseTask("i")),
                (agent, ReportOutcome("i", "done" if is_good else "failed", apply=True)),
                (
                    agent,
                    ReportOutcome("i", "partial" if is_good else "blocked", "", ("b",), apply=True),
                ),
                (HUMAN, EditTask("i", assignee=name if is_good else "")),
                (HUMAN, MoveTask("i", draw(any_of(STATUSES)))),
                (HUB, ExpireLease("i")),
                (HUB, ExpireRequest("i")),
            ]
        )
    )
    later: int = draw(any_of([0, 1_000, 400_000, HOUR]))
    return said[0], said[1], later


def check(world: World, rated: Counter[str], fed_back: int) -> None:
    """What must hold."""
    intent, task = world.intents["i"], world.tasks["i"]
    request = intent.request
    for name, standing in world.standings.items():
        assert standing.open == (request is not None and request.agent == name)
        assert standing.successes + standing.failures == rated[name]
        assert standing.recent.count("1") == standing.successes
    assert rated.total() == fed_back
    if request is not None:
        assert intent.state == "TaskDispatched"
        assert task.assignee == request.agent
        assert not task.is_final
    assert (intent.state == "Satisfied") == (task.status == "done")
    if task.status in ("blocked", "deadletter", "cancelled"):
        assert intent.state in OVER
    if task.status in ("backlog", "ready", "in-progress"):
        assert request is not None or intent.state in OVER


@proves("CCOS-FEEDBACK", "CCOS-OTHERS", "CCOS-OWNER", "CCOS-RECEIPT")
@given(st.lists(words(), max_size=14), st.booleans())
def test_task_request_and_feedback_never_disagree(
    story: list[tuple[Actor, AnyCommand, int]], review_required: bool
) -> None:
    world = registry(*NAMES)
    delegated(world, patience_ms=HOUR, review_required=review_required)
    rated, fed_back, ended, now = Counter[str](), 0, set[str](), NOW
    for actor, command, later in story:
        now += later
        decision = world.ask(actor, command, now)
        if isinstance(decision, Decision):
            world.follow(decision, now)
            for _, event in decision.events:
                if isinstance(event, AgentRated):
                    rated[event.name] += 1
                fed_back += isinstance(event, IntentFedBack)
                if isinstance(event, IntentCompleted):
                    assert event.request_id not in ended, "a request ends once"
                    ended.add(event.request_id)
        check(world, rated, fed_back)
    again = world.ask(HUMAN, DelegateIntent(GOAL, "i", candidates=ranked(world, now=now)), now)
    if isinstance(again, Decision):
        world.follow(again, now)
        check(world, rated, fed_back)
