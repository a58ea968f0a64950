"""Workload of callers on a failing store, who repeat each request until it is answered."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.errors import StoreLost, StoreUnavailable
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.request import Committed, Outcome, Request
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.ledger.entry import read_line
from dragoman.system.clock import ManualClock, new_id
from tests.conformance.store.hubs import ANN, NOW, SECRET, Hub

T = TypeVar("T")

MAX_REPEATS = 200
"""Number of retries of a caller; far more than any workload here needs."""
BOARD = "board"
"""Task that all callers write notes to."""


class KeyedCommand(Struct, frozen=True):
    """Command of a task's scenario, under its key."""

    actor: Actor
    command: Command
    key: str


class Answer(Struct, frozen=True):
    """Final answer to a command."""

    command: KeyedCommand
    outcome: Outcome


class UnkeyedNote(Struct, frozen=True):
    """Note without a key, sent once; acknowledged, refused, or (None) unanswered."""

    text: str
    is_acknowledged: bool | None


def task_commands(name: str) -> Iterator[KeyedCommand]:
    """Commands of a task from creation to end, with a note on the board."""
    agent = Actor("agent", f"agent-{name}")
    commands: tuple[tuple[Actor, Command], ...] = (
        (ANN, CreateTask("a task", name, ready=True)),
        (agent, ClaimTask(name, agent.name)),
        (agent, RenewLease(name)),
        (agent, NoteTask(BOARD, f"{name} was here")),
        (agent, ReportOutcome(name, outcome="done", apply=True)),
        (ANN, MoveTask(name, to="done")),
    )
    for n, (actor, command) in enumerate(commands):
        yield KeyedCommand(actor, command, f"{name}-{n}")


TASK_EVENTS = [
    "task.created",
    "task.claimed",
    "task.reported",
    "task.transitioned",
    "task.transitioned",
]


class Workload:
    """Callers on a store whose connections break, and their answers."""

    def __init__(self, store: Store, before_retry: Callable[[], object] = lambda: None) -> None:
        """`before_retry`: called before a request is repeated."""
        self._before_retry = before_retry
        self._engine = Engine(store, ManualClock(NOW), SECRET)
        self.answers: list[Answer] = []
        self.unkeyed_notes: list[UnkeyedNote] = []
        self.tasks: list[str] = []

    def run(self, callers: int, is_over: Callable[[], bool]) -> None:
        """Run all callers at once until it is over; then complete the tasks in progress."""

        async def caller(number: int) -> None:
            while not is_over():
                await self._run_task(f"t{number}-{len(self.tasks)}")

        async def all_callers() -> None:
            await asyncio.gather(*map(caller, range(callers)))

        asyncio.run(all_callers())
        self._engine.close()

    async def _run_task(self, name: str) -> None:
        self.tasks.append(name)
        for command in task_commands(name):
            self.answers.append(Answer(command, await self._retry_until_answered(command)))
        self.unkeyed_notes.append(await self._send_unkeyed_note(f"{name} shouts"))

    async def _retry_until_answered(self, command: KeyedCommand) -> Outcome:
        for _ in range(MAX_REPEATS):
            try:
                return await self._ask(command)
            except StoreUnavailable:
                self._before_retry()
        raise AssertionError(f"no answer to {command.key} after {MAX_REPEATS} repeats")

    async def _send_unkeyed_note(self, text: str) -> UnkeyedNote:
        try:
            await self._ask(KeyedCommand(ANN, NoteTask(BOARD, text), ""))
        except StoreLost:
            return UnkeyedNote(text, None)
        except StoreUnavailable:
            return UnkeyedNote(text, is_acknowledged=False)
        return UnkeyedNote(text, is_acknowledged=True)

    async def _ask(self, command: KeyedCommand) -> Outcome:
        request = Request(command.actor, (command.command,), new_id(), command.key)
        return await self._engine.handle(request)


def find_violations(store: Store, workload: Workload) -> list[str]:
    """Everything that is wrong after a workload; `store` is not part of it."""
    return [
        *(
            f"refused: {answer}"
            for answer in workload.answers
            if not isinstance(answer.outcome, Committed)
        ),
        *_wrong_tasks(store, workload),
        *_wrong_notes(store, workload),
        *_verify_store(store),
        *_wrong_answers(store, workload),
    ]


def _wrong_tasks(store: Store, workload: Workload) -> Iterator[str]:
    for name in workload.tasks:
        events = [entry.event for entry in store.history(f"task:{name}", 0, 100)]
        if events != TASK_EVENTS:
            yield f"{name} has lived {events}"


def _wrong_notes(store: Store, workload: Workload) -> Iterator[str]:
    counts = Counter(
        msgspec.json.decode(read_line(entry.line).body)["text"]
        for entry in store.history(f"task:{BOARD}", 0, 1_000_000)
        if entry.event == "task.noted"
    )
    for name in workload.tasks:
        if (times := counts.pop(f"{name} was here", 0)) != 1:
            yield f"the note of {name} is there {times} times"
    for note in workload.unkeyed_notes:
        times = counts.pop(note.text, 0)
        if times > 1 or (note.is_acknowledged is not None and times != note.is_acknowledged):
            yield f"{note} is there {times} times"
    yield from (f"nobody wrote {text}" for text in counts)


def _verify_store(store: Store) -> Iterator[str]:
    yield from map(str, check_ledger(store, (), _ignore_progress))
    yield from map(str, check_stored_states(store, _ignore_progress))
    positions = [entry.position for entry in all_entries(store)]
    if positions != list(range(1, len(positions) + 1)):
        yield "positions have gaps"


def _wrong_answers(store: Store, workload: Workload) -> Iterator[str]:
    """Repeat every command from another hub: the same answer, and no new entry."""
    before, hub = store.head(), Hub(store, ManualClock(NOW))
    for answer in workload.answers:
        repeated = hub.ask(answer.command.actor, answer.command.command, key=answer.command.key)
        receipts = answer.outcome.receipts if isinstance(answer.outcome, Committed) else ()
        if repeated != Committed(receipts, repeated=True):
            yield f"{answer} is {repeated} when it is repeated"
    if store.head() != before:
        yield f"repeats have added {store.head() - before} entries"


def _ignore_progress(_: int) -> None:
    """Ignore the progress."""
