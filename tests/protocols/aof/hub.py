"""A hub that speaks AOF/1, with tasks in the hands of agents, and messages to be bent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, ClaimTask, CreateTask, MoveTask
from dragoman.core.errors import Refusal
from dragoman.core.states.task import Task
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.engine.reads.ask import find_task
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
    """A message of the specification, as it stands there."""
    return msgspec.json.decode((EXAMPLES / f"{number}.json").read_bytes())


def envelope(kind: str, sender: str, payload: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A message about the parent task to the dispatcher, unless the fields say otherwise."""
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
    """A completion report of swe-backend; the fields are those of its payload."""
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
    """A status update of swe-backend; the fields are those of its payload."""
    payload = {"taskId": PARENT, "agentId": BACKEND.name}
    return envelope("status.update", BACKEND.name, payload | fields)


def request(**fields: Any) -> dict[str, Any]:
    """A handoff request from swe-backend to swe-qa; the fields are those of its payload."""
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
    """swe-qa takes the child."""
    payload = {"taskId": CHILD, "accepted": True}
    return envelope("handoff.accepted", QA.name, payload | fields, taskId=CHILD)


def rejected(**fields: Any) -> dict[str, Any]:
    """swe-qa does not take the child."""
    payload = {"taskId": CHILD, "accepted": False, "reason": "No test plan"}
    return envelope("handoff.rejected", QA.name, payload | fields, taskId=CHILD)


MESSAGES = {
    "completion.report": report,
    "status.update": lambda: update(progress="Half of it", notes="So far"),
    "handoff.request": request,
    "handoff.accepted": accepted,
    "handoff.rejected": rejected,
}
"""Type of message -> what makes a good one."""


class AofHub:
    """The parent in the hands of swe-backend, the child ready, and a door."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.lab = Lab()
        self.files = {(PARENT, "outputs/summary.md")}
        """What the tasks' folders hold."""
        facts = StoreFacts(self.lab.store, lambda task, ref: (task, ref) in self.files)
        self.router = Interpreter(self.lab.hub, [dialect(at_once=at_once)], facts)
        self.create_held(PARENT, BACKEND, session="s-backend")
        self.create_ready(CHILD)

    def create_ready(self, task: str, **fields: Any) -> None:
        """A task that waits."""
        self.lab.do(PERSON, CreateTask(f"Work {task}", task, ready=True, **fields))

    def create_held(self, task: str, actor: Actor, session: str = "", **fields: Any) -> None:
        """A task in an agent's hands."""
        self.create_ready(task, **fields)
        self.claim(task, actor, session)

    def claim(self, task: str, actor: Actor, session: str = "") -> None:
        """A new attempt."""
        self.lab.do(actor, ClaimTask(task, actor.name, session))

    def attempt_actor(self) -> Actor:
        """Who holds the parent, under the credential of the present attempt."""
        task = self.task()
        return Actor("agent", task.assignee, "http", task.id, task.fence)

    def do(self, actor: Actor, *commands: AnyCommand) -> None:
        """Whatever else happens."""
        self.lab.do(actor, *commands)

    def send(
        self, message: bytes | str | Mapping[str, Any], speaker: Actor | None = None
    ) -> Answer | None:
        """A message; without a speaker from whom it says it is from."""
        return self.router.send(message, speaker=speaker, via="test")

    def accept(self, message: Any, speaker: Actor | None = None) -> Taken:
        """What came of a message that must be accepted."""
        answer = self.send(message, speaker)
        assert isinstance(answer, Taken), answer
        return answer

    def reject(self, message: Any, speaker: Actor | None = None) -> Turned:
        """Why a message is refused that must be."""
        answer = self.send(message, speaker)
        assert isinstance(answer, Turned), answer
        return answer

    def code(self, message: Any, speaker: Actor | None = None) -> str:
        """The reason of a refusal; empty for a yes."""
        answer = self.send(message, speaker)
        assert answer is not None
        return answer.code if isinstance(answer, Turned) else ""

    def call(self, operation: str, arguments: Any, actor: Actor) -> Answer:
        """An operation by its name."""
        return self.router.call(operation, arguments, actor)

    def end_session(self, session: str = "", actor: Actor = PERSON) -> Answer:
        """The end of a session."""
        return self.call("session_end", {"sessionId": session} if session else {}, actor)

    def complete_parent(self) -> None:
        """The parent is reported, reviewed and done."""
        self.accept(report())
        self.end_session()
        self.do(PERSON, MoveTask(PARENT, "done"))

    def task(self, name: str = PARENT) -> Task:
        """The task as it is now."""
        return self.lab.task(name)

    def head(self) -> int:
        """How many entries the ledger has."""
        return self.lab.store.head()

    def lines(self, after: int = 0) -> list[dict[str, Any]]:
        """The event lines of every entry after a position."""
        entries = self.lab.store.entries(after, 100_000)
        return [msgspec.json.decode(line) for e in entries for line in render_lines(e, self.aof_id)]

    def types(self, after: int = 0) -> list[str]:
        """The types of those lines."""
        return [line["type"] for line in self.lines(after)]

    def aof_id(self, name: str) -> str:
        """The AOF id of a task."""
        found = find_task(self.lab.store, name)
        assert not isinstance(found, Refusal), found
        return found.task.aof_id
