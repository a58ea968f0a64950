"""The test hub: real core, ledger and store; only time and ids are scripted."""

import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, EndAttempt, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.base import DEFAULT_LEASE_MS, Command, Outcome, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.read import Receipt
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask, Task
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.lint import explain_unrecognized
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.intents import list_intents
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Rejected, Reply
from dragoman.engine.router import MessageInput, Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.verify import Finding, check_ledger, check_stored_states
from dragoman.ledger.entry import Line, read_line
from dragoman.protocols import ccos
from dragoman.services.timers import time_driven_services
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, SequentialIds

# --- CCOS requests, dispatched synchronously --------------------------------------------------

AgentFunction = Callable[[ccos.TaskRequest], ccos.TaskResult]
"""An agent: takes a request, returns its result."""


class DialectOperations:
    """Calls operations of dialects on a hub, and dispatches CCOS requests to functions."""

    def __init__(self, hub: Hub, dialects: Sequence[Dialect]) -> None:
        facts = StoreFacts(hub.store, _has_no_file, now=hub.clock.now)
        self._hub = hub
        self._router = Router(hub, dialects, facts)

    def call(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Any:
        """Call an operation; a refusal is raised as Refused."""
        return _accepted_reply(self._router.call(operation, arguments, actor))

    def send(self, message: MessageInput) -> Any:
        """Send a message of its own sender; a refusal is raised as Refused."""
        answer = self._router.send(message, via="testing")
        if answer is None:
            fault = explain_unrecognized(message, self._router.dialects)
            raise Refused(Refusal(fault.code, fault.detail))
        return _accepted_reply(answer)

    def dispatch(self, workers: Mapping[str, AgentFunction]) -> int:
        """Dispatch every open request of these agents; their number."""
        requests = [
            request
            for agent in workers
            for placed in list_intents(self._hub.store, ListQuery(f"requests:{agent}", limit=1_000))
            if (request := self._find_request(placed.intent.id)) is not None
        ]
        for request in requests:
            result = workers[request.agent_id](request)
            arguments = msgspec.to_builtins(result)
            self.call("ccos.result", arguments, Actor("agent", request.agent_id, "testing"))
        return len(requests)

    def _find_request(self, intent: str) -> ccos.TaskRequest | None:
        shown = self.call("ccos.intent", {"intent_id": intent}, Actor("observer", "testing"))
        request = shown.get("request")
        return None if request is None else msgspec.convert(request, ccos.TaskRequest)


def _accepted_reply(answer: Reply) -> Any:
    if isinstance(answer, Rejected):
        raise Refused(Refusal(answer.code, answer.detail, path=answer.path))
    return answer.reply


def _has_no_file(task: str, ref: str) -> bool:
    """Return False: without a data directory no task has files."""
    del task, ref
    return False


# --- hub --------------------------------------------------------------------------------------

START = 1_770_670_500_000
"""Start time of the manual clock: 2026-02-09T20:55:00Z."""

_TESTER = Actor("human", "tester", "testing")

_DEFAULTS = ccos.Choices()
_CCOS: Sequence[Dialect] = (ccos.dialect(_DEFAULTS),)


class Work(Struct, frozen=True):
    """An attempt in an agent's hands; every write names its fencing token."""

    hub: "HandHub"
    task: str
    agent: str
    attempt: int
    fence: int

    def heartbeat(self) -> None:
        """Renew the lease."""
        self._do(RenewLease(self.task, self.fence))

    def note(self, text: str) -> None:
        """Add a line to the work log."""
        self._do(NoteTask(self.task, text, self.fence))

    def release(self, reason: str = "released") -> None:
        """Release the task."""
        self._do(ReleaseTask(self.task, reason, self.fence))

    def report(self, outcome: Outcome, notes: str = "", blockers: tuple[str, ...] = ()) -> None:
        """Report the outcome; it takes effect when the session ends or the lease expires."""
        self._do(ReportOutcome(self.task, outcome, notes, blockers, fence=self.fence))

    def end(self) -> None:
        """End the session: its report takes effect."""
        self._do(EndAttempt(self.task, fence=self.fence))

    def finish(self, outcome: Outcome = "done", notes: str = "") -> None:
        """Report and end at once."""
        self._do(ReportOutcome(self.task, outcome, notes, fence=self.fence, apply=True))

    def _do(self, command: Command) -> None:
        self.hub.do(command, agent=self.agent)


class HandHub:
    """A hub whose time passes only when a test says so."""

    def __init__(
        self, open_store: Callable[[], Store], dialects: Sequence[Dialect] = _CCOS
    ) -> None:
        self.clock = ManualClock(START)
        self._ids = SequentialIds()
        self._open_store = open_store
        self._dialects = dialects
        self._hub = self._open()
        self._operations = DialectOperations(self._hub, dialects)

    def create(self, title: str, *, ready: bool = True) -> str:
        """Create a task; give `do` a `CreateTask` for one with more to it."""
        return self.do(CreateTask(title, ready=ready)).task

    def claim(
        self, task: str = "", *, agent: str, session: str = "", ttl_ms: int = DEFAULT_LEASE_MS
    ) -> Work:
        """Claim a task, or the next ready one."""
        receipt = self.do(ClaimTask(task, agent, session, ttl_ms), agent=agent)
        return Work(self, receipt.task, agent, receipt.attempt, receipt.fence)

    def move(self, task: str, to: Status, reason: str = "", *, agent: str = "") -> None:
        """Change the status, as a person or as an agent."""
        self.do(MoveTask(task, to, reason), agent=agent)

    def do(self, command: Command, *, agent: str = "", key: str = "") -> Receipt:
        """Run any command, as a person or as an agent; a refusal is raised as Refused."""
        actor = Actor("agent", agent, "testing") if agent else _TESTER
        return self._hub.submit(actor, command, key=key).receipts[0]

    def call(self, operation: str, *, agent: str = "", **arguments: Any) -> Any:
        """Call an operation, as a person or as an agent; a refusal is raised as Refused."""
        actor = Actor("agent", agent, "testing") if agent else _TESTER
        return self._operations.call(operation, arguments, actor)

    def send(self, message: MessageInput) -> Any:
        """Send a message, from whom it names; its reply, or a refusal that is raised as Refused."""
        return self._operations.send(message)

    def dispatch(self, workers: Mapping[str, AgentFunction]) -> int:
        """Dispatch every open request to its agent's function, submit the result; their number."""
        return self._operations.dispatch(workers)

    def task(self, name: str) -> Task:
        """The current task."""
        found = find_task(self._hub.store, name)
        if isinstance(found, Refusal):
            raise Refused(found)
        return found.task

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Let time pass; nothing happens by itself until `tick`."""
        self.clock.advance(round((seconds + 60 * minutes + 3_600 * hours) * 1_000))

    def tick(self) -> None:
        """Run every time-driven service once, with the default settings."""
        now = self.clock.now()
        for service in time_driven_services(self._hub, Settings()):
            service.run_once(now)

    def restart(self) -> None:
        """Restart the hub on what it had stored."""
        self.close()
        self._hub = self._open()
        self._operations = DialectOperations(self._hub, self._dialects)

    def history(self) -> list[Line[Raw]]:
        """Every entry of the ledger, oldest first."""
        return [read_line(entry.line) for entry in all_entries(self._hub.store)]

    def verify(self) -> list[Finding]:
        """Problems of the ledger and its views; none, one hopes."""
        store = self._hub.store
        return [
            *check_ledger(store, (), _ignore_progress),
            *check_stored_states(store, _ignore_progress),
        ]

    def close(self) -> None:
        """Close the store."""
        self._hub.close()

    def _open(self) -> Hub:
        return Hub(Engine(self._open_store(), self.clock, bytes(32)), self._ids)


@contextmanager
def hand_hub(
    store: Literal["memory", "sqlite"] = "memory",
    choices: ccos.Choices = _DEFAULTS,
    dialects: Sequence[Dialect] = (),
) -> Generator[HandHub]:
    """Open a hub in memory, or on a temporary SQLite file, that speaks CCOS and these dialects."""
    if store not in _OPENERS:
        raise ValueError(f"a manual hub is stored in {' or '.join(_OPENERS)}, not in {store!r}")
    with tempfile.TemporaryDirectory() as folder:
        hub = HandHub(_OPENERS[store](Path(folder)), (ccos.dialect(choices), *dialects))
        try:
            yield hub
        finally:
            hub.close()


def _open_memory(_: Path) -> Callable[[], Store]:
    kept = MemoryStore("testing")
    return lambda: kept


def _open_sqlite(folder: Path) -> Callable[[], Store]:
    return lambda: SqliteStore.open(folder / "dragoman.db", lambda: "testing")


_OPENERS: dict[str, Callable[[Path], Callable[[], Store]]] = {
    "memory": _open_memory,
    "sqlite": _open_sqlite,
}


def _ignore_progress(_: int) -> None:
    """Ignore progress."""
