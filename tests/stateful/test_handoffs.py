"""Model, implementation, table and replay agree after any sequence of handoff commands."""

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    Handoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.task_state import CreateTask, EditTask, MoveTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import stream_entries, stream_state
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Outcome
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.ledger.stream_state import decode_state, replay
from dragoman.services.timers import LeaseExpiry
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds
from tests.core.handoffs import offer, package
from tests.requirements import proves
from tests.stateful.handoff_model import HandoffModel, OfferedTask

START = 1_770_609_600_000
TTL = 300_000
TASKS = ("T", "U")
AGENTS = ("alice", "bob", "carol", "dave")
HERA = Actor("human", "hera")
ACTORS = st.sampled_from([*(Actor("agent", name) for name in AGENTS), Actor("coordinator", "cora")])
NAMES = st.sampled_from(AGENTS)
WHICH = st.integers(0, 5)
"""Index of a handoff, counted back from the newest."""


class HandoffMachine(RuleBasedStateMachine):
    """Two tasks, four agents, a coordinator and a human."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = ManualClock(START)
        store = MemoryStore("machine")
        self._hub = Hub(Engine(store, self._clock, b"secret"), SequentialIds())
        self._model = HandoffModel({name: OfferedTask() for name in TASKS})
        self._texts = count()
        for name in TASKS:
            self._hub.submit(HERA, CreateTask(name, name, ready=True, max_attempts=1_000))

    # Actions: each time with a new text, because the same text is a repeat

    @rule(actor=ACTORS, task=st.sampled_from(TASKS), to=NAMES, which=st.none() | WHICH)
    def offer(self, actor: Actor, task: str, to: str, which: int | None) -> None:
        """Offer a task, perhaps superseding another offer."""
        old = "" if which is None or not self._model.handoffs else self._id(which)
        handoff_package = package()
        handoff_package["context"]["summary"] = self._new_text()
        new = f"h{len(self._model.handoffs)}"
        command = replace(offer(to, new, package=handoff_package, supersedes=old), task=task)
        self._check(actor, command, self._model.offer(actor.name, new, task, to, old))

    @precondition(lambda self: bool(self._model.handoffs))
    @rule(actor=ACTORS, which=WHICH, is_fine=st.sampled_from((True, True, False)))
    def accept(self, actor: Actor, which: int, is_fine: bool) -> None:
        """Accept a handoff, as the recipient or another actor."""
        id = self._id(which)
        command = AcceptHandoff(id, self._handoff(id).package_hash, notes=self._new_text())
        if not is_fine:
            command = replace(command, failed=(("missing_artifact", self._new_text()),))
        if self._handoff(id).failed:
            return  # the gate rejects a failed handoff again, with any text
        self._check(actor, command, self._model.accept(actor.name, id, is_fine))

    @precondition(lambda self: bool(self._model.handoffs))
    @rule(
        actor=ACTORS,
        which=WHICH,
        action=st.sampled_from(("activate", "complete", "close", "reject", "withdraw")),
    )
    def act(self, actor: Actor, which: int, action: str) -> None:
        """Take an action on a handoff."""
        id, text = self._id(which), self._new_text()
        commands: dict[str, Command] = {
            "activate": ActivateHandoff(id, ttl_ms=TTL, work_state_update={"word": text}),
            "complete": CompleteHandoff(id, text),
            "close": CloseHandoff(id, text),
            "reject": RejectHandoff(id, "other", text),
            "withdraw": WithdrawHandoff(id, text),
        }
        decide: Any = getattr(self._model, action)
        self._check(actor, commands[action], decide(actor.name, id))

    @precondition(lambda self: bool(self._model.handoffs))
    @rule(actor=ACTORS, which=WHICH)
    def act_as_permitted(self, actor: Actor, which: int) -> None:
        """Take the next step of a handoff, as the actor that may."""
        id = self._id(which)
        handoff = self._model.handoffs[id]
        recipient = Actor("agent", handoff.recipient)
        del actor
        if handoff.status == "proposed":
            self.accept(recipient, which, True)
        elif handoff.status == "accepted":
            self.act(recipient, which, "activate")
        elif handoff.status == "activated":
            self.act(recipient, which, "complete")

    @precondition(lambda self: bool(self._model.handoffs))
    @rule(actor=ACTORS, which=WHICH, to=NAMES)
    def reassign(self, actor: Actor, which: int, to: str) -> None:
        """Reassign a handoff, as a coordinator or another actor."""
        id = self._id(which)
        request = self._hub.make_request(actor, ReassignHandoff(id, to, self._new_text()))
        expected = self._model.reassign(actor.name, id, request.id, to)
        assert self._code_of(self._hub.engine.handle_now(request)) == expected

    @rule(actor=ACTORS, task=st.sampled_from(TASKS))
    def claim(self, actor: Actor, task: str) -> None:
        """Claim a task as an agent."""
        if actor.role == "agent":
            is_allowed = self._model.claim(actor.name, task)
            command = ClaimTask(task, actor.name, ttl_ms=TTL)
            assert (self._submit(actor, command) == "") == is_allowed

    @rule(actor=ACTORS, task=st.sampled_from(TASKS))
    def report(self, actor: Actor, task: str) -> None:
        """Report a task done."""
        is_allowed = self._model.report(actor.name, task)
        command = ReportOutcome(task, "done", self._new_text(), apply=True)
        assert (self._submit(actor, command) == "") == is_allowed

    @rule(task=st.sampled_from(TASKS), status=st.sampled_from(("done", "done", "cancelled")))
    def end(self, task: str, status: Any) -> None:
        """End a task as a human; not too often, or no task is left to hand off."""
        if next(self._texts) % 5 == 0:
            is_allowed = self._model.end(task, status)
            assert (self._submit(HERA, MoveTask(task, status)) == "") == is_allowed

    @rule(task=st.sampled_from(TASKS), to=NAMES)
    def assign(self, task: str, to: str) -> None:
        """Assign a task as a human, without a handoff."""
        is_allowed = self._model.assign(task, to)
        assert (self._submit(HERA, EditTask(task, assignee=to)) == "") == is_allowed

    @rule()
    def expire_all_leases(self) -> None:
        self._clock.advance(TTL)
        self._model.expire()
        LeaseExpiry(self._hub, Backoff()).run_once(self._clock.now())

    # Invariants

    @invariant()
    def implementation_matches_model(self) -> None:
        """Compare every task and every handoff."""
        for name, expected in self._model.tasks.items():
            view = find_task(self._hub.store, name)
            assert not isinstance(view, Refusal)
            task, lease = view.task, view.lease
            assert (task.status, task.assignee, task.reserved_for) == (
                expected.status,
                expected.owner,
                expected.reserved,
            )
            assert (lease.holder if lease else "") == expected.holder
            assert list(task.chain) == expected.chain
            assert (task.handoff.id if task.handoff else "") == expected.active
        for id, expected in self._model.handoffs.items():
            handoff = self._handoff(id)
            assert (handoff.status, handoff.sender, handoff.recipient, list(handoff.chain)) == (
                expected.status,
                expected.sender,
                expected.recipient,
                expected.chain,
            )

    @invariant()
    def task_has_at_most_one_active_handoff(self) -> None:
        """Check the states and the table."""
        records = self._hub.store.handoffs("", 1_000)
        assert {record.id: record.status for record in records} == {
            id: handoff.status for id, handoff in self._model.handoffs.items()
        }
        under_way = [record.task_id for record in records if record.is_active]
        assert len(under_way) == len(set(under_way))

    def teardown(self) -> None:
        """Fold every stream into its stored state, and verify the ledger."""
        store = self._hub.store
        for row in store.rows(0, 10_000):
            replayed = replay(entry.line for entry in stream_entries(store, row.name))
            assert replayed == (decode_state(row.name, row.state) if row.state else None)
        assert list(check_ledger(store, (), _ignore_progress)) == []
        assert list(check_stored_states(store, _ignore_progress)) == []

    def _check(self, actor: Actor, command: Command, expected: str) -> None:
        assert self._submit(actor, command) == expected

    def _submit(self, actor: Actor, command: Command) -> str:
        return self._code_of(self._hub.engine.handle_now(self._hub.make_request(actor, command)))

    def _code_of(self, answer: Outcome) -> str:
        return f"{answer.code} {answer.kind}".strip() if isinstance(answer, Refusal) else ""

    def _id(self, which: int) -> str:
        ids = list(self._model.handoffs)
        return ids[-1 - which % len(ids)]

    def _new_text(self) -> str:
        return f"word {next(self._texts)}"

    def _handoff(self, id: str) -> Handoff:
        row = self._hub.store.stream(f"handoff:{id}")
        assert row is not None
        state = stream_state(self._hub.store, row)
        assert isinstance(state, Handoff)
        return state


def _ignore_progress(_: int) -> None:
    """Ignore the progress."""


TestHandoffs = proves("ACP-MODEL", "ACP-CHAIN", "ACP-ONE-ACTIVE")(HandoffMachine.TestCase)
TestHandoffs.settings = settings(max_examples=max(10, settings().max_examples // 3))
