"""Model, implementation and replay of the ledger agree after any sequence of requests."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import (
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command, Outcome, Priority, Status
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.errors import Refusal
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    Task,
    UpdateTask,
)
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import stream_entries
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.ledger.stream_state import decode_state, replay
from dragoman.services.timers import LeaseExpiry, RetryPromotion, SlaService
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, SequentialIds
from tests.core.expected_transitions import EXPECTED_TRANSITIONS
from tests.requirements import proves
from tests.stateful.task_model import Model

START = 1_770_609_600_000
"""2026-02-09T04:00:00.000Z."""

HERA = Actor("human", "hera")
AGENTS = ("alice", "bob", "carol")
FIRST = ("A", "B", "C")
IDS = (*FIRST, "D")
STATUSES: tuple[Status, ...] = get_args(Status)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
NAMES = st.sampled_from((*FIRST * 4, "D", "x:a", "x:b", "a", "nowhere"))
FENCES = st.sampled_from((None, None, 1, 2, 3))
ACTORS = st.sampled_from(
    [Actor("agent", name) for name in AGENTS] * 2
    + [HERA] * 3
    + [Actor("orchestrator", "olga"), Actor("coordinator", "cora"), Actor("observer", "otto")]
)
CREATED = st.builds(
    CreateTask,
    st.just("a title"),
    st.sampled_from(IDS),
    ready=st.sampled_from((True, True, False)),
    assignee=st.sampled_from(("",) * 9 + AGENTS),
    review_required=st.booleans(),
    priority=st.sampled_from(get_args(Priority)),
    blocked_by=st.lists(st.sampled_from(IDS), max_size=2, unique=True).map(tuple),
    aliases=st.sampled_from(((), (), ("x:a",), ("x:b",))),
    max_attempts=st.sampled_from((1, 2, 5)),
)
CLAIMED = st.builds(
    ClaimTask, NAMES, st.sampled_from(AGENTS), ttl_ms=st.sampled_from((1_000, 300_000))
)
DELEGATED = st.builds(
    RequestDelegation,
    NAMES,
    NAMES,
    st.sampled_from(AGENTS),
    st.sampled_from((START, START + 1_000, START + 300_000)),
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    CREATED,
    CLAIMED,
    CLAIMED,
    st.builds(MoveTask, NAMES, st.sampled_from(STATUSES), fence=FENCES),
    st.builds(MoveTask, NAMES, st.sampled_from(("ready", "review", "done")), fence=st.none()),
    st.builds(
        ReportOutcome,
        NAMES,
        st.sampled_from(OUTCOMES),
        blockers=st.sampled_from((("no key",), ())),
        fence=FENCES,
        apply=st.booleans(),
    ),
    st.builds(RenewLease, NAMES, FENCES),
    st.builds(ReleaseTask, NAMES, fence=FENCES),
    st.builds(EndAttempt, NAMES),
    st.builds(ExpireLease, NAMES),
    st.builds(NoteTask, NAMES, st.just("a note")),
    st.builds(AliasTask, NAMES, st.sampled_from(("x:a", "x:b", "y:a"))),
    st.builds(LinkTask, NAMES, st.just("blocked-by"), st.sampled_from(IDS)),
    st.builds(AdoptTask, st.just("bead"), st.sampled_from((*IDS, "E", "a"))),
    st.builds(
        UpdateTask,
        NAMES,
        st.sampled_from((None, *STATUSES)),
        notes=st.sampled_from(("", "words")),
        fence=FENCES,
    ),
    st.builds(
        EditTask,
        NAMES,
        priority=st.sampled_from((None, *get_args(Priority))),
        assignee=st.sampled_from((None, None, "", *AGENTS)),
        fence=FENCES,
    ),
    DELEGATED,
    DELEGATED,
    st.builds(AcceptDelegation, NAMES),
    st.builds(RejectDelegation, NAMES),
    st.builds(EscalateDelegation, NAMES),
)
KEYS = st.sampled_from(("",) * 6 + ("k1", "k2", "k3", "k4"))
HOLDER_COMMANDS: st.SearchStrategy[Command] = st.sampled_from(
    [
        *(ReportOutcome("T", outcome, "", ("no key",), apply=True) for outcome in OUTCOMES),
        *(ReportOutcome("T", outcome, "", ("no key",)) for outcome in OUTCOMES),
        MoveTask("T", "review"),
        MoveTask("T", "blocked"),
        ReleaseTask("T"),
        EndAttempt("T"),
        RenewLease("T"),
        NoteTask("T", "a note"),
        UpdateTask("T", "done", notes="words"),
        UpdateTask("T", "blocked"),
        EditTask("T", priority="critical"),
        RequestDelegation("D", "T", "bob", START),
        AcceptDelegation("T"),
        RejectDelegation("T"),
        AliasTask("T", "y:b"),
        LinkTask("T", "blocked-by", "D"),
    ]
)
"""Commands of the holder of a task."""
TUPLES = st.lists(COMMANDS, min_size=2, max_size=4).map(tuple)
REQUESTS = st.tuples(ACTORS, COMMANDS.map(lambda command: (command,)) | TUPLES, KEYS)
STEPS = st.sampled_from((1, 999, 1_000, 1_001, 60_000, 299_999, 300_000, 300_001))

Request = tuple[Actor, tuple[Command, ...], str]


def claim_for_self(actor: Actor, commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """Turn two thirds of the claims of an agent into claims for itself."""
    return tuple(
        ClaimTask(command.task, actor.name, ttl_ms=command.ttl_ms)
        if isinstance(command, ClaimTask) and actor.role == "agent" and command.agent != "carol"
        else command
        for command in commands
    )


class TaskMachine(RuleBasedStateMachine):
    """Several tasks, agents, tuples, keys, batches, restarts, and a clock that goes both ways."""

    def __init__(self, open_store: Callable[[Path], Store]) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-machine-")
        self._open_store = open_store
        self._clock = ManualClock(START)
        self._latest = START
        self._ids = SequentialIds()
        self._model = self._new_model()
        self._submitted: list[Request] = []
        self._hub = self._open()

    def _new_model(self) -> Model:
        return Model()

    def _open(self) -> Hub:
        store = self._open_store(Path(self._folder.name))
        return Hub(Engine(store, self._clock, b"secret"), self._ids)

    def teardown(self) -> None:
        """Close the hub and remove its folder."""
        self._hub.close()
        self._folder.cleanup()

    # Rules

    @initialize(tasks=st.tuples(CREATED, CREATED, CREATED))
    def create_tasks(self, tasks: tuple[CreateTask, ...]) -> None:
        """Create some tasks to begin with."""
        for name, task in zip(FIRST, tasks, strict=True):
            ready = replace(task, id=name, ready=True, blocked_by=(), aliases=())
            self._submit((HERA, (ready,), ""))

    @rule(request=REQUESTS)
    def request(self, request: Request) -> None:
        """Submit a random request of any actor."""
        actor, commands, key = request
        self._submit((actor, claim_for_self(actor, commands), key))

    @rule(
        agent=st.sampled_from(AGENTS),
        name=st.sampled_from(IDS),
        commands=st.lists(HOLDER_COMMANDS, min_size=1, max_size=3),
        last=st.lists(COMMANDS, max_size=1),
        key=KEYS,
    )
    def attempt(
        self, agent: str, name: str, commands: list[Command], last: list[Command], key: str
    ) -> None:
        """Claim and continue in one request; the last command may be refused."""
        begin = (AdoptTask("bead", name), ClaimTask(name, agent, ttl_ms=1_000))
        about = (replace(command, task=name) for command in commands)
        self._submit((Actor("agent", agent), (*begin, *about, *last), key))

    @rule(
        agent=st.sampled_from(AGENTS),
        name=st.sampled_from(IDS),
        holder_command=HOLDER_COMMANDS,
        key=KEYS,
    )
    def work(self, agent: str, name: str, holder_command: Command, key: str) -> None:
        """Give a command about a task that the agent holds, or else claim one."""
        held = [t.id for t in self._model.tasks.values() if t.lease and t.lease.holder == agent]
        command = replace(holder_command, task=held[0]) if held else ClaimTask(name, agent)
        self._submit((Actor("agent", agent), (command,), key))

    @precondition(lambda self: self._model.tasks)
    @rule(name=st.sampled_from(IDS), data=st.data())
    def move_by_human(self, name: str, data: st.DataObject) -> None:
        """Move a task as a human, to a status that it can go to."""
        task = self._model.tasks.get(name)
        targets_by_status = [
            reachable for a, reachable in EXPECTED_TRANSITIONS.items() if task and a == task.status
        ]
        targets: list[Status] = [to for reachable in targets_by_status for to in reachable]
        if targets:
            self._submit((HERA, (MoveTask(name, data.draw(st.sampled_from(targets))),), ""))

    @precondition(lambda self: self._is_clock_current())
    @rule(agent=st.sampled_from(AGENTS), key=KEYS)
    def claim_next(self, agent: str, key: str) -> None:
        """Claim the next ready task as an agent."""
        self._submit((Actor("agent", agent), (ClaimTask("", agent),), key))

    @precondition(lambda self: self._submitted)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Repeat an earlier request, with its key."""
        self._submit(data.draw(st.sampled_from(self._submitted)))

    @rule(drawn=st.lists(REQUESTS, min_size=2, max_size=5))
    def batch(self, drawn: list[Request]) -> None:
        """Submit several requests at once."""
        calls = [(actor, claim_for_self(actor, commands), key) for actor, commands, key in drawn]

        requests = [
            self._hub.make_request(actor, *commands, key=key) for actor, commands, key in calls
        ]

        async def together() -> list[Any]:
            return await asyncio.gather(*(self._hub.engine.handle(one) for one in requests))

        expected = [
            self._model.submit(*request, self._clock.now(), one.id)
            for request, one in zip(calls, requests, strict=True)
        ]
        for outcome, answer in zip(asyncio.run(together()), expected, strict=True):
            self._compare(outcome, answer)

    @rule(milliseconds=STEPS)
    def advance_clock(self, milliseconds: int) -> None:
        self._clock.advance(milliseconds)
        self._latest = max(self._latest, self._clock.now())

    @rule(milliseconds=st.sampled_from((1, 1_000, 300_000)))
    def set_clock_back(self, milliseconds: int) -> None:
        self._clock.advance(-milliseconds)

    @rule()
    def tick(self) -> None:
        """Run the duties once."""
        now = self._clock.now()
        expired = self._model.expired(now)
        assert LeaseExpiry(self._hub, Backoff()).run_once(now) == len(expired)
        RetryPromotion(self._hub).run_once(now)
        for name in expired:
            assert self._model.submit(HUB_ACTOR, (ExpireLease(name),), "", now)[0] == ""
        overdue = self._model.overdue(now)
        assert SlaService(self._hub).run_once(now) == len(overdue)
        for name in overdue:
            assert self._model.submit(HUB_ACTOR, (EscalateDelegation(name),), "", now)[0] == ""

    @rule()
    def restart(self) -> None:
        """Restart the hub on its stored data."""
        if isinstance(self._hub.store, MemoryStore):
            self._hub.engine.close()
            self._hub = Hub(Engine(self._hub.store, self._clock, b"secret"), self._ids)
        else:
            self._hub.close()
            self._hub = self._open()

    # Invariants

    @invariant()
    def implementation_matches_model(self) -> None:
        """Compare every task with its stored state and its lease."""
        for expected in self._model.tasks.values():
            view = find_task(self._hub.store, expected.id)
            assert not isinstance(view, Refusal)
            task, lease = view.task, view.lease
            assert (task.status, task.assignee, task.reserved_for) == (
                expected.status,
                expected.owner,
                expected.reserved,
            )
            assert (task.attempts, task.fence) == (expected.attempt, expected.attempt)
            assert (task.failures, task.not_before) == (expected.failures, expected.not_before)
            assert (list(task.blocked_by), list(task.open_blockers)) == (
                expected.blocked_by,
                expected.open,
            )
            assert (list(task.aliases), task.notes) == (expected.names, expected.notes)
            assert list(task.agents) == expected.agents
            assert (task.parent, list(task.children)) == (expected.parent, expected.children)
            delegation = task.delegation
            request = delegation and (
                delegation.parent,
                delegation.from_agent,
                delegation.to_agent,
                delegation.due_by,
            )
            assert (request, task.depth) == (expected.offer, expected.depth)
            assert delegation is None or (delegation.state, delegation.escalated) == (
                expected.answer,
                expected.escalated,
            )
            held = lease and (lease.holder, lease.fence, lease.ttl_ms, lease.expires_at)
            assert held == (
                expected.lease
                and (
                    expected.lease.holder,
                    expected.lease.fence,
                    expected.lease.ttl,
                    expected.lease.ends,
                )
            )
            # S-OWN and S-TASK: no in-progress without a lease, and a holder is always the owner.
            assert (task.status == "in-progress") == (lease is not None)
            assert lease is None or lease.holder == task.assignee
            assert task.failures < task.max_attempts or task.status == "deadletter"

    @invariant()
    def replay_matches_stored_state(self) -> None:
        """Fold every stream into its stored state, and verify the ledger."""
        store = self._hub.store
        tasks = 0
        for row in store.rows(0, 1_000):
            replayed = replay(entry.line for entry in stream_entries(store, row.name))
            assert replayed == (decode_state(row.name, row.state) if row.state else None)
            tasks += isinstance(replayed, Task)
        assert tasks == len(self._model.tasks)
        assert list(check_ledger(store, (), _ignore_progress)) == []
        assert list(check_stored_states(store, _ignore_progress)) == []

    def _is_clock_current(self) -> bool:
        """True unless the clock was set back: a promoted task stays promoted then."""
        return self._clock.now() >= self._latest

    def _submit(self, submitted: Request) -> None:
        actor, commands, key = submitted
        self._submitted.append(submitted)
        versions = self._versions()
        request = self._hub.make_request(actor, *commands, key=key)
        expected = self._model.submit(actor, commands, key, self._clock.now(), request.id)
        outcome = self._hub.engine.handle_now(request)
        self._compare(outcome, expected)
        if isinstance(outcome, Refusal) or outcome.repeated:
            assert self._versions() == versions, "a refusal or a repeat has changed a task"

    def _compare(self, outcome: Any, expected: tuple[str, list[object]]) -> None:
        code, receipts = expected
        assert (outcome.code if isinstance(outcome, Refusal) else "") == code
        if not isinstance(outcome, Refusal):
            assert [(r.task, r.status, r.attempt) for r in outcome.receipts] == receipts
            assert [r.fence for r in outcome.receipts] == [r.attempt for r in outcome.receipts]

    def _versions(self) -> dict[str, int]:
        rows = self._hub.store.rows(0, 1_000)
        return {row.name: row.version for row in rows if row.name.startswith("task:")}


def _ignore_progress(_: int) -> None:
    """Ignore the progress."""


def _in_memory(_: Path) -> Store:
    return MemoryStore("machine")


def _on_sqlite(folder: Path) -> Store:
    return SqliteStore.open(folder / "dragoman.db", lambda: "machine")


class MemoryMachine(TaskMachine):
    """Task machine on the memory store."""

    def __init__(self) -> None:
        super().__init__(_in_memory)


class SqliteMachine(TaskMachine):
    """Task machine on SQLite; a restart opens the file again."""

    def __init__(self) -> None:
        super().__init__(_on_sqlite)


TestTasksOnMemory = proves("MODEL-REPLAY", "CORE-ALL-OR-NONE", "IDEM-REPEAT")(
    MemoryMachine.TestCase
)
TestTasksOnSqlite = proves("MODEL-REPLAY", "CORE-ALL-OR-NONE", "STORE-CONTRACT")(
    SqliteMachine.TestCase
)
TestTasksOnSqlite.settings = settings(max_examples=max(10, settings().max_examples // 5))
