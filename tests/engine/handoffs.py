"""Handoffs in a lab: packages, and the steps from an offer to its end."""

from typing import Any, Protocol

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    Handoff,
    ProposeHandoff,
)
from dragoman.core.task_state import CreateTask
from dragoman.engine.queries.handoffs import find_handoff
from tests.engine.lab import ALICE, BOB, HUMAN, Lab


class HandoffTarget(Protocol):
    """Hub that accepts commands."""

    @property
    def store(self) -> Any: ...

    def do(self, actor: Actor, *commands: Command) -> Any:
        """Submit commands that must be accepted."""
        ...


CHECKS = ("schema", "policy", "artifacts", "cycle", "package_hash")
COORDINATOR = Actor("coordinator", "carl")


def package(task: str = "t1", **more: Any) -> dict[str, object]:
    """Build a package with all required fields."""
    return {
        "task": {
            "task_id": task,
            "title": "Fix the login",
            "objective": "People can log in",
            "success_criteria": ["all tests pass"],
            "priority": "normal",
        },
        "context": {"summary": "The token is read too late."},
        "work_state": {"status": "in_progress", "next_step": "write the test"},
        "artifacts": [],
        "policy": {"classification": "internal", "requires_human_approval": False},
        "verification": {"schema_version": "1.0.0"},
        **more,
    }


def make(lab: HandoffTarget, task: str = "t1") -> None:
    """Create a ready task without an owner."""
    lab.do(HUMAN, CreateTask("Fix the login", id=task, ready=True))


def offer(
    lab: HandoffTarget,
    id: str = "h1",
    task: str = "t1",
    to: str = "bob",
    by: Actor = ALICE,
    **more: Any,
) -> Handoff:
    """Offer a package."""
    content = more.pop("package", None) or package(task)
    lab.do(by, ProposeHandoff(task, to, content, id=id, **more))
    return state(lab, id)


def accept(lab: HandoffTarget, id: str = "h1", by: Actor = BOB, **more: Any) -> Handoff:
    """Accept as the recipient; all checks pass unless overridden."""
    fields: dict[str, Any] = {"passed": CHECKS, **more}
    lab.do(by, AcceptHandoff(id, state(lab, id).package_hash, **fields))
    return state(lab, id)


def activate(lab: HandoffTarget, id: str = "h1", by: Actor = BOB) -> Handoff:
    """Activate as the recipient."""
    lab.do(by, ActivateHandoff(id))
    return state(lab, id)


def finish(lab: HandoffTarget, id: str = "h1", by: Actor = BOB, sender: Actor = ALICE) -> Handoff:
    """Complete as the recipient, and close the record as the sender."""
    lab.do(by, CompleteHandoff(id, "merged"))
    lab.do(sender, CloseHandoff(id, "thanks"))
    return state(lab, id)


def life(lab: HandoffTarget, id: str = "h1", task: str = "t1") -> Handoff:
    """Run a whole handoff, from a new task to its end."""
    make(lab, task)
    offer(lab, id, task)
    accept(lab, id)
    activate(lab, id)
    return finish(lab, id)


def late(lab: Lab, id: str = "h1", after: int = 25 * 3_600_000) -> Handoff:
    """Advance the clock past the deadline, and escalate."""
    lab.clock.advance(after)
    lab.do(HUB_ACTOR, EscalateHandoff(id))
    return state(lab, id)


def state(lab: HandoffTarget, id: str) -> Handoff:
    """Load the stored handoff."""
    found = find_handoff(lab.store, id)
    assert not isinstance(found, Refusal), found
    return found
