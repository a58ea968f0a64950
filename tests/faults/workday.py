"""Day at the hub: tasks, leases, letters, handoffs, traces, search; one by one and in batches.

A step whose outcome is unknown is repeated under the same keys, as a client does it.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.base import Command
from dragoman.core.handoff.state import CloseHandoff, CompleteHandoff
from dragoman.core.mail import AckMail, PostMail, ReadMail
from dragoman.core.read import Receipt
from dragoman.core.reservation import ReserveFiles
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.core.trace import RecordTrace, RecordTurn
from dragoman.engine.group_commit import Engine, Failpoint
from dragoman.engine.ports import Store
from dragoman.engine.queries.search import update_index
from dragoman.engine.request import Committed, Outcome, Request, committed_or_raise
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ALICE, ANN, BOB, NOW, SECRET, no_failure
from tests.conformance.store.scripts import SCRIPT
from tests.engine.handoffs import accept, activate, make, offer

DEVELOPER = Actor("agent", "developer")
STEP_MS = 1_000
LONG_TEXT = "What a letter says is long enough to fill some pages of the file. " * 40

ActorCommand = tuple[Actor, Command]


class Worker:
    """Submits the requests of the steps; the same step always submits the same."""

    def __init__(self, store: Store, failpoint: Failpoint = no_failure) -> None:
        self.store = store
        self.clock = ManualClock(NOW)
        self.engine = Engine(store, self.clock, SECRET, failpoint=failpoint)
        self.answers: dict[int, list[Outcome]] = {}
        """Step -> answers, as at the first submission."""
        self._step = 0

    def work(self, step: int) -> None:
        """Do one step of the day."""
        self._step = step
        self.answers[step] = []
        self.clock.advance(NOW + step * STEP_MS + sum(WAITS[:step]) - self.clock.now())
        DAY[step](self)

    def ask(self, actor: Actor, *commands: Command, key: str = "") -> Outcome:
        """Submit commands; returns the answer."""
        answer = self.engine.handle_now(self._request(actor, commands, key))
        self._note(answer)
        return answer

    def do(self, actor: Actor, *commands: Command) -> Receipt:
        """Submit commands that must be accepted; returns the last receipt."""
        return committed_or_raise(self.ask(actor, *commands)).receipts[-1]

    def ask_batch(self, *commands_by_actor: ActorCommand) -> None:
        """Submit commands of several callers: one batch, one commit."""

        async def ask_all() -> list[Outcome]:
            requests = [
                self._request(actor, (command,), f"{self._step}/{number}")
                for number, (actor, command) in enumerate(commands_by_actor)
            ]
            return await asyncio.gather(*map(self.engine.handle, requests))

        for answer in asyncio.run(ask_all()):
            self._note(answer)

    def _request(self, actor: Actor, commands: tuple[Command, ...], key: str) -> Request:
        key = key or f"{self._step}/{len(self.answers[self._step])}"
        return Request(actor, commands, f"request-{self._step}-{key}", key)

    def _note(self, answer: Outcome) -> None:
        first = replace(answer, repeated=False) if isinstance(answer, Committed) else answer
        self.answers[self._step].append(first)


Step = Callable[[Worker], object]


def _turn(index: int) -> RecordTurn:
    return RecordTurn("one", index, "developer", 0.5, {"thought": LONG_TEXT}, f"d{index}")


def _trace(number: int) -> RecordTrace:
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return RecordTrace(id, "s-1", "ANY", {"n": number}, f"e{number}")


def _letter(number: int) -> PostMail:
    return PostMail(("bob",), f"Letter {number}", LONG_TEXT, id=f"m-{number}", ack_wanted=True)


def _batch(*commands_by_actor: ActorCommand) -> Step:
    return lambda worker: worker.ask_batch(*commands_by_actor)


def _do(actor: Actor, *commands: Command) -> Step:
    return lambda worker: worker.do(actor, *commands)


def _index(worker: Worker) -> None:
    update_index(worker.store)


def _ask(actor: Actor, commands: tuple[Command, ...], key: str) -> Step:
    return lambda worker: worker.ask(actor, *commands, key=key)


_SCRIPTED_STEPS: list[tuple[Step, int]] = [
    (_ask(step.actor, step.commands, step.key), step.then_wait) for step in SCRIPT
]
"""Script of the stores' suite, with its refusals and repeats."""

_MORE_STEPS: list[Step] = [
    _batch(*((ANN, CreateTask(f"Task {n}", f"n-{n}", ready=True)) for n in range(12))),
    _batch(*((ALICE, ClaimTask(f"n-{n}", "alice", "s-alice")) for n in range(6))),
    _batch(*((BOB, ClaimTask(f"n-{n}", "bob", "s-bob")) for n in range(4, 9))),
    _batch(*((ALICE, RenewLease(f"n-{n}")) for n in range(6))),
    _do(ALICE, _letter(1)),
    _do(ALICE, _letter(2), NoteTask("n-1", "wrote to bob")),
    _index,
    _do(BOB, ReadMail("m-1")),
    _do(BOB, AckMail("m-1"), ReadMail("m-2")),
    _do(ALICE, ReserveFiles(("src/**",), 60_000)),
    make,
    offer,
    accept,
    activate,
    _do(BOB, CompleteHandoff("h1", "merged")),
    _do(ALICE, CloseHandoff("h1", "thanks")),
    *(_do(DEVELOPER, _turn(index)) for index in range(4)),
    _batch(*((DEVELOPER, _trace(number)) for number in range(5))),
    _do(ALICE, RenewLease("n-1")),
    _batch(*((ALICE, NoteTask(f"n-{n}", "half way")) for n in range(6))),
    _index,
    _do(ANN, CreateTask("the last one of the day")),
]

DAY: Sequence[Step] = [step for step, _ in _SCRIPTED_STEPS] + _MORE_STEPS
WAITS: Sequence[int] = [wait for _, wait in _SCRIPTED_STEPS] + [0] * len(_MORE_STEPS)
"""Pause after each step, in addition to its own time."""
