"""Test hub for AOF/1 with claimed tasks, and messages to be modified."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, MoveTask, Task
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols.aof import dialect, render_lines
from tests.engine.lab import Lab

EXAMPLES = Path(__file__).parent / "examples"

PERSON = Actor("human", "hera", "cli")
BOSS = Actor("orchestrator", "boss", "cli")
BACKEND = Actor("agent", "swe-backend", "test")
QA = Actor("agent", "swe-qa", "test")

PARENT = "TASK-2026-02-09-057"
CHILD = "TASK-2026-02-09-061"
UNKNOWN = "TASK-2026-02-09-999"


def example(number: int) -> dict[str, Any]:
    """Load a message of the specification."""
    return msgspec.json.decode((EXAMPLES / f"{number}.json").read_bytes())


def envelope(kind: str, sender: str, payload: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Build a message about the parent task to the dispatcher; given fields replace its own."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": PARENT,
        "fromAgent": sender,
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T21:00:00.000Z",
        "payload": dict(payload),
    } | fields


def report(outcome: str = "done", **fields: Any) -> dict[str, Any]:
    """Build a completion report of swe-backend; the fields are those of its payload."""
    payload = {
        "outcome": outcome,
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 3, "passed": 2, "failed": 1},
        "blockers": ["Awaiting API key"] if outcome == "blocked" else [],
        "notes": "As far as it goes",
    }
    return envelope("completion.report", BACKEND.name, payload | fields)


def update(**fields: Any) -> dict[str, Any]:
    """Build a status update of swe-backend; the fields are those of its payload."""
    payload = {"taskId": PARENT, "agentId": BACKEND.name}
    return envelope("status.update", BACKEND.name, payload | fields)


def request(**fields: Any) -> dict[str, Any]:
    """Build a handoff request from swe-backend to swe-qa; the fields are those of its payload."""
    payload = {
        "taskId": CHILD,
        "parentTaskId": PARENT,
        "fromAgent": BACKEND.name,
        "toAgent": QA.name,
        "acceptanceCriteria": ["All tests pass"],
        "expectedOutputs": ["tests/report.md"],
        "contextRefs": [f"tasks/in-progress/{PARENT}.md"],
        "constraints": ["No new dependencies"],
        "dueBy": "2026-02-10T12:00:00.000Z",
    }
    return envelope(
        "handoff.request", BACKEND.name, payload | fields, taskId=CHILD, toAgent=QA.name
    )


def accepted(**fields: Any) -> dict[str, Any]:
    """Build swe-qa's acceptance of the child."""
    payload = {"taskId": CHILD, "accepted": True}
    return envelope("handoff.accepted", QA.name, payload | fields, taskId=CHILD)


def rejected(**fields: Any) -> dict[str, Any]:
    """Build swe-qa's rejection of the child."""
    payload = {"taskId": CHILD, "accepted": False, "reason": "No test plan"}
    return envelope("handoff.rejected", QA.name, payload | fields, taskId=CHILD)


MESSAGES = {
    "completion.report": report,
    "status.update": lambda: update(progress="Half of it", notes="So far"),
    "handoff.request": request,
    "handoff.accepted": accepted,
    "handoff.rejected": rejected,
}
"""Type of message -> function that builds a valid one."""


class AofHub:
    """Hub with the parent task held by swe-backend, the child ready, and a router."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.lab = Lab()
        self.files = {(PARENT, "outputs/summary.md")}
        """(task, path) of the files in the task folders."""
        facts = StoreFacts(self.lab.store, lambda task, ref: (task, ref) in self.files)
        self.router = Router(self.lab.hub, [dialect(apply_immediately=at_once)], facts)
        self.create_held(PARENT, BACKEND, session="s-backend")
        self.create_ready(CHILD)

    def create_ready(self, task: str, **fields: Any) -> None:
        """Create a ready task."""
        self.lab.do(PERSON, CreateTask(f"Work {task}", task, ready=True, **fields))

    def create_held(self, task: str, actor: Actor, session: str = "", **fields: Any) -> None:
        """Create a task and claim it."""
        self.create_ready(task, **fields)
        self.claim(task, actor, session)

    def claim(self, task: str, actor: Actor, session: str = "") -> None:
        """Start a new attempt."""
        self.lab.do(actor, ClaimTask(task, actor.name, session))

    def attempt_actor(self) -> Actor:
        """Return the parent's holder under the credential of its current attempt."""
        task = self.task()
        return Actor("agent", task.assignee, "http", task.id, task.fence)

    def do(self, actor: Actor, *commands: Command) -> None:
        self.lab.do(actor, *commands)

    def send(
        self, message: bytes | str | Mapping[str, Any], speaker: Actor | None = None
    ) -> Reply | None:
        """Send a message; without a speaker, its sender field counts."""
        return self.router.send(message, speaker=speaker, via="test")

    def accept(self, message: Any, speaker: Actor | None = None) -> Accepted:
        """Send a message that must be accepted."""
        answer = self.send(message, speaker)
        assert isinstance(answer, Accepted), answer
        return answer

    def reject(self, message: Any, speaker: Actor | None = None) -> Rejected:
        """Send a message that must be refused."""
        answer = self.send(message, speaker)
        assert isinstance(answer, Rejected), answer
        return answer

    def code(self, message: Any, speaker: Actor | None = None) -> str:
        """Send a message and return the refusal code, empty when it is accepted."""
        answer = self.send(message, speaker)
        assert answer is not None
        return answer.code if isinstance(answer, Rejected) else ""

    def call(self, operation: str, arguments: Any, actor: Actor) -> Reply:
        """Call an operation by name."""
        return self.router.call(operation, arguments, actor)

    def end_session(self, session: str = "", actor: Actor = PERSON) -> Reply:
        """End a session."""
        return self.call("session_end", {"sessionId": session} if session else {}, actor)

    def complete_parent(self) -> None:
        """Report, review and complete the parent."""
        self.accept(report())
        self.end_session()
        self.do(PERSON, MoveTask(PARENT, "done"))

    def task(self, name: str = PARENT) -> Task:
        return self.lab.task(name)

    def head(self) -> int:
        """Return the number of ledger entries."""
        return self.lab.store.head()

    def lines(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the event lines of all entries after a position."""
        entries = self.lab.store.entries(after, 100_000)
        return [msgspec.json.decode(line) for e in entries for line in render_lines(e, self.aof_id)]

    def types(self, after: int = 0) -> list[str]:
        """Return the types of those lines."""
        return [line["type"] for line in self.lines(after)]

    def aof_id(self, name: str) -> str:
        found = find_task(self.lab.store, name)
        assert not isinstance(found, Refusal), found
        return found.task.aof_id
