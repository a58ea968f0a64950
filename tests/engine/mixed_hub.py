"""A hub in memory with all five dialects and the example, and calls and messages of agents."""

from collections.abc import Mapping
from typing import Any

from todo_dialect import dialect as todo_dialect

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.base import Role
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from tests.engine.lab import HUMAN, Lab

DIALECTS = (
    aof.dialect(),
    agentmail.dialect(),
    acp.dialect(),
    ccos.dialect(),
    saop.dialect(),
    todo_dialect(),
)


class MixedHub(Lab):
    """Lab with a router for messages and calls."""

    def __init__(self) -> None:
        super().__init__()
        facts = StoreFacts(self.store, lambda _, __: False, now=self.clock.now)
        self.router = Router(self.hub, DIALECTS, facts)

    def register(self, name: str, *speaks: str, role: Role = "agent", saop: str = "") -> Actor:
        """Register an agent with what it speaks."""
        self.do(HUMAN, RegisterAgent(name, role, speaks, saop_role=saop))
        return Actor(role, name)

    def send(self, message: Mapping[str, Any] | str, by: Actor | None = None) -> Any:
        """Send a message that must be accepted; its reply."""
        return _reply(self.router.send(message, speaker=by, via="test"))

    def call(self, operation: str, by: Actor, **arguments: Any) -> Any:
        """Call an operation that must be accepted; its reply."""
        return _reply(self.router.call(operation, arguments, by))

    def refusal(self, message: Mapping[str, Any], by: Actor | None = None) -> str:
        """Send a message that must be refused; its code."""
        answer = self.router.send(message, speaker=by, via="test")
        assert isinstance(answer, Rejected), answer
        return answer.code


def _reply(answer: Any) -> Any:
    assert isinstance(answer, Accepted), answer
    return answer.reply


def aof_message(kind: str, task: str, sender: str, to: str = "dispatcher", **payload: Any) -> Any:
    """AOF message from an agent about a task."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": task,
        "fromAgent": sender,
        "toAgent": to,
        "sentAt": "2026-02-09T14:30:00.000Z",
        "payload": {"taskId": task, **payload},
    }


def turn(task: str, index: int = 0, thought: str = "I look at the test.") -> Any:
    """SAOP turn about a task."""
    return {
        "turn_index": index,
        "agent_id": "developer",
        "role": "developer",
        "content": {"thought": thought, "action": "run tests", "observation": "two fail"},
        "metadata": {
            "version": "1.0.0",
            "task_id": task,
            "timestamp": "2026-02-09T14:30:00.000Z",
            "confidence": 0.8,
            "estimated_complexity": "low",
        },
    }


def tool_event(number: int, session: str, **payload: Any) -> Any:
    """SAOP event of a session."""
    at = "2026-02-09T14:30:00.000Z"
    return {
        "event_id": f"00000000-0000-4000-8000-{number:012}",
        "session_id": session,
        "payload": {"timestamp": at, **payload},
    }
