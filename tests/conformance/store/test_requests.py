"""Requests through the engine on every store: repeats, keys, atomicity, refusals."""

from dragoman.core.actor import REFUSALS_PER_MINUTE
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask, NoteTask
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Committed, Outcome, committed_or_raise
from tests.conformance.store.changes import EMPTY, everything
from tests.conformance.store.hubs import ALICE, ANN, BOB, EVE, Hub, Hubs
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT")

TTL = 60_000


def code(outcome: Outcome) -> str:
    """Return the code of a refusal, or "" if accepted."""
    return outcome.code if isinstance(outcome, Refusal) else ""


def expiry(hub: Hub, task: str) -> int:
    """Return the expiry of a task's lease."""
    row = hub.store.stream(f"task:{task}")
    assert row is not None
    assert row.lease is not None
    return row.lease.expires_at


@proves("IDEM-REPEAT")
def test_repeat_returns_the_first_answer_adds_no_entry_and_renews_the_lease(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True))
    claim = ClaimTask("a", "alice", ttl_ms=TTL)
    first = committed_or_raise(hub.ask(ALICE, claim, key="k"))
    report = ReportOutcome("a", "done")
    reported = committed_or_raise(hub.ask(ALICE, report, key="k2"))
    head, expires_at = hub.store.head(), expiry(hub, "a")

    for again in (hub, other):
        hubs.clock.advance(1_000)
        assert again.ask(ALICE, claim, key="k") == Committed(first.receipts, repeated=True)
        assert again.ask(ALICE, report, key="k2") == Committed(reported.receipts, repeated=True)

    assert hub.store.head() == head
    assert expiry(hub, "a") == expires_at + 2_000


@proves("IDEM-SCOPE")
def test_reused_key_for_another_request_is_refused(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a"))
    hub.do(ANN, NoteTask("a", "once"), key="k")

    assert code(other.ask(ANN, NoteTask("a", "something else"), key="k")) == "key_reused"
    assert code(hub.ask(BOB, NoteTask("a", "something else"), key="k")) == "key_reused"


@proves("IDEM-SCOPE")
def test_key_belongs_to_its_target_or_else_to_its_actor(hubs: Hubs) -> None:
    hub = hubs.new()

    outcomes = [
        hub.ask(ANN, CreateTask("a task", "a"), key="1"),
        hub.ask(BOB, CreateTask("a task", "b"), key="1"),
        hub.ask(ANN, NoteTask("a", "by Ann"), key="1"),
        hub.ask(ANN, NoteTask("b", "by Ann"), key="1"),
    ]

    assert [code(outcome) for outcome in outcomes] == ["", "", "", ""]
    assert not any(committed_or_raise(outcome).repeated for outcome in outcomes)


@proves("IDEM-REFUSED")
def test_refusal_is_not_remembered(hubs: Hubs) -> None:
    hub = hubs.new()
    claim = ClaimTask("a", "alice", ttl_ms=TTL)
    assert code(hub.ask(ALICE, claim, key="k")) == "task_not_found"
    hub.do(ANN, CreateTask("a task", "a", ready=True))

    assert code(hub.ask(ALICE, claim, key="k")) == ""


@proves("CORE-ALL-OR-NONE")
def test_commands_run_together_each_seeing_the_ones_before(hubs: Hubs) -> None:
    hub = hubs.new()

    receipt = hub.do(
        ANN,
        CreateTask("the first", "a", ready=True),
        CreateTask("the second", "b", ready=True, blocked_by=("a",)),
        ClaimTask("a", "alice", ttl_ms=TTL),
        MoveTask("a", "review"),
        MoveTask("a", "done"),
        ClaimTask("", "alice", ttl_ms=TTL),
    )

    assert (receipt.task, receipt.status) == ("b", "in-progress")
    entries = hub.store.entries(0, 100)
    assert [entry.event for entry in entries] == [
        "task.created",
        "task.created",
        "task.backlinked",
        "task.claimed",
        "task.transitioned",
        "task.transitioned",
        "task.unblocked",
        "task.claimed",
    ]


@proves("CORE-ALL-OR-NONE", "STORE-ATOMIC")
def test_refused_command_undoes_those_before_it(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True, aliases=("bead:x",)))
    before = everything(hub.store)

    outcome = hub.ask(
        ANN,
        CreateTask("another", "b", ready=True, aliases=("bead:y",)),
        ClaimTask("b", "alice", "s-alice", TTL),
        ClaimTask("a", "bob", "s-bob", TTL),
        LinkTask("a", "blocked-by", "b"),
        MoveTask("a", "backlog"),
        key="k",
    )

    assert code(outcome) == "invalid_transition"
    head, entries, rows, names, counts, _ = everything(hub.store)
    assert (head, names, counts) == (before[0] + 1, before[3], before[4])
    assert (entries[:-1], entries[-1].stream) == (before[1], "actor:human:ann")
    assert [row for row in rows if row.name.startswith("task:")] == [
        row for row in before[2] if row.name.startswith("task:")
    ]
    assert hub.store.streams_in_session("s-alice") == hub.store.streams_in_session("s-bob") == []
    assert code(hub.ask(ANN, CreateTask("another", "b", aliases=("bead:y",)), key="k")) == ""


@proves("REFUSAL-RECORDED")
def test_refusal_is_recorded_in_the_actors_stream_once(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a"))
    task = hub.store.stream("task:a")

    for each in (hub, other, hub):
        assert code(each.ask(EVE, NoteTask("a", "may I?"))) == "not_authorized"

    assert hub.store.stream("task:a") == task
    refusals = hub.store.history("actor:observer:eve", 0, 10)
    assert [(entry.version, entry.event) for entry in refusals] == [(1, "command.refused")]


@proves("REFUSAL-RECORDED")
def test_refusals_are_limited_per_actor_and_minute(hubs: Hubs) -> None:
    hub = hubs.new()
    for n in range(REFUSALS_PER_MINUTE + 20):
        assert code(hub.ask(BOB, RenewLease(f"task-{n}"))) == "task_not_found"
    assert hub.store.head() == REFUSALS_PER_MINUTE

    hubs.clock.advance(60_000)
    hub.ask(BOB, RenewLease("task-0"))

    assert hub.store.head() == REFUSALS_PER_MINUTE + 1


@proves("REFUSAL-RECORDED")
def test_empty_claim_writes_nothing(hubs: Hubs) -> None:
    hub = hubs.new()

    assert code(hub.ask(BOB, ClaimTask("", "bob"))) == "nothing_ready"

    assert everything(hub.store) == EMPTY


@proves("NAME-ALIAS")
def test_task_is_found_by_each_of_its_names(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", aliases=("bead:x",)))

    for name in ("a", "bead:x", "x", "TASK-2026-02-09-001", "aof:TASK-2026-02-09-001"):
        other.do(ANN, NoteTask(name, f"called {name}"))
        found = find_task(other.store, name)
        assert not isinstance(found, Refusal)
        assert found.task.id == "a"
    assert code(other.ask(ANN, CreateTask("another", "x"))) == "already_exists"
