"""A hub that speaks ACP under a hand-moved clock, on a real disk, and packages as agents write."""

import asyncio
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Answer, Taken
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.files.handoffs.artifacts import ArtifactShelf
from dragoman.ledger.views import encode_state
from dragoman.protocols import acp
from dragoman.services.workq import HubWorkq
from dragoman.system.beneath import Beneath
from dragoman.system.ids import CountingIds
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, Lab

COORDINATOR = Actor("coordinator", "cora")
OBSERVER = Actor("observer", "otto")
MAX_BYTES = 1 << 20

Arguments = dict[str, Any]


def offer(to: str = "bob", task: str = "t-1", **more: Any) -> Arguments:
    """The arguments of an initiate; what is None is left out."""
    arguments: Arguments = {
        "action": "initiate",
        "to_agent": to,
        "task": {
            "task_id": task,
            "title": "Login",
            "objective": "People can log in.",
            "success_criteria": ["the tests pass"],
        },
        "context": {"summary": "Half of it is there."},
        "work_state": {"status": "in_progress", "next_step": "Write the form."},
        **more,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def artifact(id: str = "a", path: str = "a.txt", **ref: Any) -> Arguments:
    """An artifact that is a file."""
    return {"artifact_id": id, "ref": {"type": "file", "path": path, **ref}}


class AcpHub:
    """The hub and its door for ACP, with a place for artifacts."""

    def __init__(self, data: Path, lab: Lab | None = None, **choices: Any) -> None:
        self.lab = lab or Lab()
        self.artifacts = data / "teamspaces" / "default" / "artifacts"
        self.artifacts.mkdir(parents=True)
        store = ArtifactShelf(data, Beneath, CountingIds(), (data / "more",), MAX_BYTES)
        defaults: Any = {"artifacts": store, "workq": HubWorkq(self.lab.hub)}
        settings = acp.Choices(**(defaults | choices))
        self.teamspaces = settings.teamspaces
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.hub.clock.now)
        self.router = Interpreter(self.lab.hub, (acp.dialect(settings),), facts)

    def write_artifact(self, name: str = "a.txt", text: str = "hello\n") -> Path:
        """A file among the artifacts."""
        path = self.artifacts / name
        path.write_text(text)
        return path

    def call(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> Answer:
        """An operation by its name."""
        return self.router.call(operation, arguments, actor)

    def reply(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> Any:
        """The reply, a yes or a no."""
        return self.call(arguments, actor, operation).reply

    def reply_async(self, arguments: Arguments, actor: Actor) -> Any:
        """The same by the way that a server takes."""
        return asyncio.run(self.router.call_soon("acp_handoff", arguments, actor)).reply

    def code(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> str:
        """The code of a no; empty for a yes."""
        reply = self.reply(arguments, actor, operation)
        assert reply["success"] is ("error" not in reply), reply
        return reply["error"]["code"] if "error" in reply else ""

    def act(self, action: str, id: str, actor: Actor, **more: Any) -> Any:
        """An action on a handoff; the reply."""
        return self.reply({"action": action, "handoff_id": id, **more}, actor)

    def propose(self, **more: Any) -> str:
        """An offer of alice's; its id."""
        answer = self.call(offer(**more), ALICE)
        assert isinstance(answer, Taken), answer
        return answer.reply["handoff_id"]

    def advance_to(self, state: str, **more: Any) -> str:
        """A handoff that has come so far; its id."""
        id = self.propose(**more)
        for action, actor in _ACTIONS[state]:
            reply = self.act(action, id, actor)
            assert reply["success"], reply
        return id

    def handoff(self, id: str) -> Handoff:
        """A handoff as it stands."""
        found = find_handoff(self.lab.store, id)
        assert not isinstance(found, Refusal), found
        return found

    def task(self, name: str = "t-1") -> Task:
        """A task as it stands."""
        return self.lab.task(name)

    def tamper(self, id: str, **fields: Any) -> None:
        """Change what is stored of a handoff behind the hub's back."""
        self._store_state(handoff_stream(id), replace(self.handoff(id), **fields))

    def tamper_task(self, name: str, **fields: Any) -> None:
        """The same with a task."""
        self._store_state(task_stream(name), replace(self.task(name), **fields))

    def _store_state(self, stream: str, state: Handoff | Task) -> None:
        rows = self.lab.store.tables.rows
        number = next(row.number for row in rows.values() if row.name == stream)
        rows[number] = replace(rows[number], state=encode_state(state))
        self.lab.store.is_fresh = False


_ACTIONS: dict[str, tuple[tuple[str, Actor], ...]] = {
    "proposed": (),
    "accepted": (("accept", BOB),),
    "activated": (("accept", BOB), ("activate", BOB)),
    "completed": (("accept", BOB), ("activate", BOB), ("complete", BOB)),
    "closed": (("accept", BOB), ("activate", BOB), ("complete", BOB), ("close", ALICE)),
}
"""State -> how a handoff gets there from its offer."""

__all__ = ["ALICE", "BOB", "CAROL", "COORDINATOR", "HUMAN", "MAX_BYTES", "OBSERVER", "AcpHub"]
