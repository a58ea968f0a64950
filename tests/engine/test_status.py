"""Status of the hub: who works on what, what waits and for whom, who has spoken lately."""

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import (
    IssueToken,
    PauseAgent,
    RegisterAgent,
    RevokeToken,
    digest_token,
)
from dragoman.core.attempt import ClaimTask, FlagAttempt, RenewLease, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, LinkTask, NoteTask
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.status import (
    MAX_WORKING,
    HubStatus,
    find_anybody,
    find_status,
    list_everybody,
)
from dragoman.engine.schemas.agents import agent_resource
from dragoman.engine.schemas.status import status_resource
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("SEE-STATUS")

MINUTE = 60_000


def status_of(lab: Lab, limit: int = 20) -> HubStatus:
    """Find the status now."""
    now = lab.clock.now()
    return find_status(lab.store, now, find_attention(lab.store, now), limit)


def test_empty_hub_has_nothing_to_show() -> None:
    found = status_of(Lab())

    assert (found.head, found.counts, found.claimable, found.reserved) == (0, {}, 0, 0)
    assert (found.working, found.waiting, found.agents) == ((), (), ())


def test_work_in_progress_is_shown_with_its_signs_of_life() -> None:
    lab = Lab()
    for name in ("a", "b"):
        lab.do(HUMAN, CreateTask(name, id=name, ready=True))
    lab.do(BOB, ClaimTask("b", "bob"))
    lab.clock.advance(MINUTE)
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.clock.advance(MINUTE)
    lab.do(BOB, NoteTask("b", "half"))
    lab.clock.advance(MINUTE)
    lab.do(ALICE, RenewLease("a"))
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE))
    lab.do(HUMAN, NoteTask("b", "how far is it?"))

    shown = status_resource(status_of(lab))

    assert [(one.task, one.agent, one.attempt) for one in shown.working] == [
        ("b", "bob", 1),
        ("a", "alice", 1),
    ]
    first, second = shown.working
    assert (first.since, first.last_progress) == (
        "2026-02-09T14:30:00.000Z",
        "2026-02-09T14:32:00.000Z",
    )
    assert (second.since, second.last_sign, second.last_progress) == (
        "2026-02-09T14:31:00.000Z",
        "2026-02-09T14:33:00.000Z",
        "2026-02-09T14:31:00.000Z",
    )
    assert (second.lease_until, second.lease_valid) == ("2026-02-09T14:38:00.000Z", True)
    assert [(one.name, one.registered, one.holds) for one in shown.agents] == [
        ("alice", False, ("a",)),
        ("bob", False, ("b",)),
    ]
    assert [one.last_seen for one in shown.agents] == [
        "2026-02-09T14:33:00.000Z",
        "2026-02-09T14:32:00.000Z",
    ]
    lab.clock.advance(10 * MINUTE)
    assert not status_resource(status_of(lab)).working[0].lease_valid


def test_waiting_task_says_for_what_and_who_has_to_act() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(HUMAN, CreateTask("b", id="b"))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(HUMAN, CreateTask("c", id="c", ready=True, blocked_by=("a", "b")))
    lab.do(HUMAN, CreateTask("d", id="d", ready=True, assignee="bob"))
    lab.do(HUMAN, CreateTask("e", id="e", ready=True))
    lab.do(HUMAN, LinkTask("e", "blocked-by", "b"))
    lab.do(HUMAN, CreateTask("f", id="f", ready=True))

    found = status_of(lab)

    assert found.counts == {"in-progress": 1, "backlog": 1, "ready": 4}
    assert (found.claimable, found.reserved) == (1, 1)
    shown = {one.task: (one.kind, one.reason, one.actors) for one in status_resource(found).waiting}
    assert shown == {
        "e": ("dependency", "waits for b", ()),
        "d": ("reserved", "reserved for bob", ("bob",)),
        "c": ("dependency", "waits for a, b", ("alice",)),
    }
    assert len(status_of(lab, limit=2).waiting) == 2


def test_agents_that_spoke_lately_are_shown_and_others_only_while_they_hold() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, assignee="bob"))
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(HUMAN, PauseAgent("bob", "too dear"))
    lab.do(CAROL, NoteTask("a", "hello"))
    lab.do(BOB, NoteTask("a", "hello"))
    lab.do(HUMAN, ClaimTask("a", "hera", ttl_ms=120 * MINUTE))

    agents = {one.name: one for one in status_resource(status_of(lab)).agents}

    assert sorted(agents) == ["bob", "carol", "hera"]
    assert (agents["hera"].role, agents["hera"].holds) == ("human", ("a",))
    assert (agents["carol"].registered, agents["carol"].paused) == (False, None)
    paused = agents["bob"].paused
    assert (agents["bob"].registered, agents["bob"].waiting) == (True, 1)
    assert paused is not None
    assert paused.reason == "too dear"

    lab.clock.advance(61 * MINUTE)
    assert [one.name for one in status_of(lab).agents] == ["hera"]


@proves("STATUS-EVERYBODY")
def test_everybody_is_listed_with_all_that_they_hold() -> None:
    lab = Lab()
    for number in range(MAX_WORKING + 2):
        lab.do(HUMAN, CreateTask("many", id=f"m-{number}", ready=True))
        lab.do(ALICE, ClaimTask(f"m-{number}", "alice"))
        lab.clock.advance(1)
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, assignee="bob"))
    lab.do(HUMAN, RegisterAgent("bob", speaks=("aof",)))
    expiries = (MINUTE, 120 * MINUTE, 120 * MINUTE)
    for number, lifetime in enumerate(expiries):
        digest = digest_token(f"secret {number}")
        lab.do(HUMAN, IssueToken("bob", f"{number:012x}", digest, lab.clock.now() + lifetime))
    lab.do(HUMAN, RevokeToken("bob", f"{2:012x}"))
    lab.do(HUB_ACTOR, NoteTask("b", "hello"))
    lab.clock.advance(61 * MINUTE)

    now = lab.clock.now()
    everybody = list_everybody(lab.store, now)

    alice, bob, hera = (agent_resource(one, now) for one in everybody)
    assert [one.name for one in (alice, bob, hera)] == ["alice", "bob", "hera"]
    assert alice.holds == tuple(f"m-{number}" for number in range(MAX_WORKING + 2))
    assert (alice.registered, alice.registered_at, alice.speaks) == (False, None, ())
    assert (bob.registered, bob.speaks, bob.waiting, bob.holds) == (True, ("aof",), 1, ())
    assert [token.state for token in bob.tokens] == ["expired", "good", "revoked"]
    assert (hera.role, hera.registered, hera.last_seen) == ("human", False, None)
    assert find_anybody(lab.store, now, "bob") == everybody[1]
    refused = find_anybody(lab.store, now, "hub")
    assert isinstance(refused, Refusal)
    assert refused.code == "agent_not_found"


def test_status_counts_what_needs_a_person() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, ReportOutcome("a", "done", apply=True))

    shown = status_resource(status_of(lab))

    (item,) = shown.attention
    assert (item.kind, item.task, item.agent, item.since) == (
        "review",
        "a",
        "alice",
        "2026-02-09T14:30:00.000Z",
    )
    assert shown.attention_counts == {"review": 1}
    assert shown.at == "2026-02-09T14:30:00.000Z"
