"""Test hub for ACP with a manual clock and real files, and packages as agents write them."""

import asyncio
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.task_state import Task
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.request import Accepted, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.files.artifacts import FileArtifactStore
from dragoman.ledger.stream_state import encode_state
from dragoman.protocols import acp
from dragoman.services.workq import HubWorkq
from dragoman.system.clock import SequentialIds
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, Lab

COORDINATOR = Actor("coordinator", "cora")
OBSERVER = Actor("observer", "otto")
MAX_BYTES = 1 << 20

Arguments = dict[str, Any]


def offer(to: str = "bob", task: str = "t-1", **more: Any) -> Arguments:
    """Build the arguments of an initiate action; None leaves a field out."""
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
    """Build an artifact of type file."""
    return {"artifact_id": id, "ref": {"type": "file", "path": path, **ref}}


class AcpHub:
    """Hub and router for ACP, with an artifact folder."""

    def __init__(self, data: Path, lab: Lab | None = None, **choices: Any) -> None:
        self.lab = lab or Lab()
        self.artifacts = data / "teamspaces" / "default" / "artifacts"
        self.artifacts.mkdir(parents=True)
        store = FileArtifactStore(data, SafeDisk, SequentialIds(), (data / "more",), MAX_BYTES)
        defaults: Any = {"artifacts": store, "workq": HubWorkq(self.lab.hub)}
        settings = acp.Choices(**(defaults | choices))
        self.teamspaces = settings.teamspaces
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.hub.clock.now)
        self.router = Router(self.lab.hub, (acp.dialect(settings),), facts)

    def write_artifact(self, name: str = "a.txt", text: str = "hello\n") -> Path:
        """Write a file into the artifact folder."""
        path = self.artifacts / name
        path.write_text(text)
        return path

    def call(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> Reply:
        """Call an operation by name."""
        return self.router.call(operation, arguments, actor)

    def reply(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> Any:
        """Call an operation and return its reply, accepted or refused."""
        return self.call(arguments, actor, operation).reply

    def reply_async(self, arguments: Arguments, actor: Actor) -> Any:
        """Call `acp_handoff` through the async interface and return its reply."""
        return asyncio.run(self.router.call_async("acp_handoff", arguments, actor)).reply

    def code(self, arguments: Arguments, actor: Actor, operation: str = "acp_handoff") -> str:
        """Return the refusal code of a call, empty when it is accepted."""
        reply = self.reply(arguments, actor, operation)
        assert reply["success"] is ("error" not in reply), reply
        return reply["error"]["code"] if "error" in reply else ""

    def act(self, action: str, id: str, actor: Actor, **more: Any) -> Any:
        """Act on a handoff and return the reply."""
        return self.reply({"action": action, "handoff_id": id, **more}, actor)

    def propose(self, **more: Any) -> str:
        """Propose a handoff as alice and return its id."""
        answer = self.call(offer(**more), ALICE)
        assert isinstance(answer, Accepted), answer
        return answer.reply["handoff_id"]

    def advance_to(self, state: str, **more: Any) -> str:
        """Move a new handoff to this state and return its id."""
        id = self.propose(**more)
        for action, actor in _ACTIONS[state]:
            reply = self.act(action, id, actor)
            assert reply["success"], reply
        return id

    def handoff(self, id: str) -> Handoff:
        found = find_handoff(self.lab.store, id)
        assert not isinstance(found, Refusal), found
        return found

    def task(self, name: str = "t-1") -> Task:
        return self.lab.task(name)

    def tamper(self, id: str, **fields: Any) -> None:
        """Change the stored state of a handoff directly."""
        self._store_state(handoff_stream(id), replace(self.handoff(id), **fields))

    def tamper_task(self, name: str, **fields: Any) -> None:
        """Change the stored state of a task directly."""
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
"""State -> actions that move a proposed handoff there."""

__all__ = ["ALICE", "BOB", "CAROL", "COORDINATOR", "HUMAN", "MAX_BYTES", "OBSERVER", "AcpHub"]
