"""Handoffs for the tests of deciders: a package, and worlds with a handoff in a given state."""

from typing import Any

from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    Handoff,
    HandoffStatus,
    ProposeHandoff,
    RejectHandoff,
)
from dragoman.core.read import Decision
from tests.core.world import ALICE, BOB, NOW, World, held, task

CAROL = Actor("agent", "carol")
DAVE = Actor("agent", "dave")


def package(**policy: object) -> dict[str, Any]:
    """Minimal valid package."""
    return {
        "task": {
            "task_id": "T",
            "title": "title of T",
            "objective": "that it works",
            "success_criteria": ["all tests pass"],
            "priority": "normal",
        },
        "context": {"summary": "half done"},
        "work_state": {"status": "in_progress", "next_step": "write the other half"},
        "artifacts": [],
        "policy": {"classification": "internal", "requires_human_approval": False, **policy},
        "verification": {"schema_version": "1.0.0"},
    }


def offer(recipient: str = "bob", id: str = "H", **fields: Any) -> ProposeHandoff:
    """Proposal of T to the recipient."""
    return ProposeHandoff("T", recipient, fields.pop("package", None) or package(), id, **fields)


def unclaimed() -> World:
    """World in which T has no owner."""
    return World(task("T"))


def offered(world: World | None = None, **fields: Any) -> World:
    """World in which alice, the holder of T, has offered it to bob."""
    world = world or held()
    world.do(ALICE, offer(**fields))
    return world


def accept(world: World, id: str = "H", **fields: Any) -> AcceptHandoff:
    """Acceptance of the current package."""
    command = AcceptHandoff(id, world.handoffs[id].package_hash, ("schema",))
    return replace(command, **fields)


def accepted(**fields: Any) -> World:
    """World in which bob has accepted the offer."""
    world = offered(**fields)
    world.do(BOB, accept(world))
    return world


def activated(**fields: Any) -> World:
    """World in which bob has activated the handoff."""
    world = accepted(**fields)
    world.do(BOB, ActivateHandoff("H", "s-bob"))
    return world


def at(state: HandoffStatus) -> World:
    """World in which the handoff H, from alice to bob, is in this state."""
    world = _BUILDERS[state]()
    for actor, command in _FURTHER_STEPS.get(state, ()):
        world.do(actor, command)
    assert world.handoffs["H"].status == state
    return world


def validating() -> World:
    """World in which bob has accepted, but a transient problem keeps H validating."""
    world = offered()
    world.do(BOB, accept(world, waits_for="the disk does not answer"))
    return world


_BUILDERS = {
    "proposed": offered,
    "validating": validating,
    "accepted": accepted,
    "activated": activated,
    "rejected": offered,
    "completed": activated,
    "closed": activated,
}
_FURTHER_STEPS: dict[HandoffStatus, tuple[tuple[Actor, Command], ...]] = {
    "rejected": ((BOB, RejectHandoff("H", "capacity_unavailable", "too much to do")),),
    "completed": ((BOB, CompleteHandoff("H", "done")),),
    "closed": ((BOB, CompleteHandoff("H", "done")), (ALICE, CloseHandoff("H"))),
}


def again(world: World, actor: Actor, command: Command, cause: str, now: int = NOW) -> Decision:
    """Decide a command as a new request, with an id of its own."""
    world.cause = cause
    return world.do(actor, command, now)


def mail_recipients(world: World, kind: str) -> list[tuple[str, ...]]:
    """Recipients of the letters of this kind."""
    return [mail.to for mail in world.mails.values() if mail.kind == kind]


def handoff(world: World, id: str = "H") -> Handoff:
    return world.handoffs[id]
