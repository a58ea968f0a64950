"""Test hub for SAOP with a manual clock, and messages as agents write them."""

from typing import Any

from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.engine.hub import Hub
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import saop
from dragoman.text.keyed_digest import keyed_digest
from dragoman.text.redact import Redactor
from tests.engine.lab import Lab

DEVELOPER = Actor("agent", "developer")
REVIEWER = Actor("agent", "reviewer")
OLGA = Actor("orchestrator", "olga")
SECRET = "ghp_" + "1234567890abcdefghijABCDEFGHIJ123456"
AT = "2026-02-21T10:00:00.000Z"
TASK = "task-abc-123"


def turn(index: int = 0, thought: str = "t", **changes: Any) -> dict[str, Any]:
    """Build a turn of the developer."""
    content = {"thought": thought, "action": "a", "observation": "o"}
    metadata = {
        "version": "1.0.0",
        "task_id": TASK,
        "timestamp": AT,
        "confidence": 0.9,
        "estimated_complexity": "medium",
    }
    envelope: dict[str, Any] = {
        "turn_index": index,
        "agent_id": "developer",
        "role": "developer",
        "content": {**content, **changes.pop("content", {})},
        "metadata": {**metadata, **changes.pop("metadata", {})},
    }
    return {**envelope, **changes}


def event(number: int, payload: dict[str, Any], session: str = "s-1") -> dict[str, Any]:
    """Build an event of a session."""
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return {"event_id": id, "session_id": session, "payload": payload}


def thought(chunk: str, *, final: bool = False, index: int = 0) -> dict[str, Any]:
    """Build a thought chunk of the developer."""
    return {
        "type": "THOUGHT_STREAM",
        "agent_id": "developer",
        "turn_index": index,
        "chunk": chunk,
        "is_final": final,
    }


def invoked(call: str, **arguments: Any) -> dict[str, Any]:
    """Build the invocation of a tool."""
    return {
        "type": "TOOL_LIFECYCLE_INVOKED",
        "call_id": call,
        "tool": "bash",
        "arguments": arguments,
        "timestamp": AT,
    }


def completed(call: str) -> dict[str, Any]:
    """Build the completion of a tool call."""
    return {
        "type": "TOOL_LIFECYCLE_COMPLETED",
        "call_id": call,
        "tool": "bash",
        "status": "success",
        "duration_ms": 12.5,
        "timestamp": AT,
    }


def transition(to: str, task: str = TASK, **more: Any) -> dict[str, Any]:
    """Build a transition event of a task."""
    return {
        "type": "TASK_TRANSITION",
        "task_id": task,
        "from_state": "anywhere",
        "to_state": to,
        "timestamp": AT,
        **more,
    }


def pulse(line: str) -> dict[str, Any]:
    """Build a line of terminal output."""
    return {"type": "SANDBOX_PULSE", "line": line, "masked": False, "timestamp": AT}


def _digest(data: bytes) -> str:
    return keyed_digest(b"key", data).hex()


class SaopHub(Lab):
    """Hub with the SAOP dialect."""

    def __init__(
        self, choices: saop.Choices | None = None, previous: "SaopHub | None" = None
    ) -> None:
        """Build a hub; `previous` shares its store, and its ids are not given again."""
        super().__init__(previous.store if previous else None)
        if previous:
            self.hub: Hub = previous.hub
        self.choices = replace(
            choices or saop.Choices(),
            redactor=Redactor(key=b"key"),
            digest=_digest,
        )
        facts = StoreFacts(self.store, lambda _task, _ref: True)
        self.router = Router(self.hub, (saop.dialect(self.choices),), facts)

    def call(self, name: str, arguments: Any, actor: Actor = DEVELOPER) -> Any:
        """Call an operation that must be accepted, and return its reply."""
        answer = self.router.call(name, arguments, actor)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def refusal(self, name: str, arguments: Any, actor: Actor = DEVELOPER) -> Rejected:
        """Call an operation that must be refused."""
        answer = self.router.call(name, arguments, actor)
        assert isinstance(answer, Rejected), answer
        return answer

    def turn(self, index: int = 0, thought: str = "t", **changes: Any) -> Any:
        """Send a turn of the developer."""
        return self.call("saop.turn", turn(index, thought, **changes))

    def event(self, number: int, payload: dict[str, Any], session: str = "s-1") -> Any:
        """Send an event of the developer."""
        return self.call("saop.event", event(number, payload, session))

    def events(self, **filters: Any) -> list[Any]:
        """Return the recorded events."""
        return self.call("saop.events", filters)["events"]
