"""Handoffs of the tasks of intents: what CCOS and ACP do to one task agrees (S-OWN, S-CCOS-3)."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ActivateHandoff,
    ReceiveResult,
)
from dragoman.core.errors import Refusal
from tests.core.delegating import CAROL, delegated, registry
from tests.core.handoffs import accept, accepted, offer
from tests.core.world import ALICE, BOB, NOW, World
from tests.requirements import proves


def on_its_way(*names: str, is_accepted: bool = False, **more: Any) -> World:
    """Alice has the intent i, and has offered its task to carol."""
    world = registry(*names)
    delegated(world, **more)
    world.do(ALICE, replace(offer("carol"), task="i"))
    if is_accepted:
        world.do(CAROL, accept(world))
    return world


def result(agent: str, *, success: bool, request: str = "") -> ReceiveResult:
    """What an agent brings back."""
    return ReceiveResult("i", agent, success, None, "" if success else "it broke", request)


def refused(world: World, actor: Actor, command: Any, now: int = NOW) -> Refusal:
    """A no."""
    answer = world.ask(actor, command, now)
    assert isinstance(answer, Refusal), answer
    return answer


@proves("ACP-INTENT-ENDED")
@pytest.mark.parametrize("is_accepted", [False, True])
def test_a_result_that_ends_the_task_ends_the_handoff(is_accepted: bool) -> None:
    world = on_its_way(is_accepted=is_accepted)
    world.do(ALICE, result("alice", success=True))
    handoff = world.handoffs["H"]
    assert (world.tasks["i"].status, handoff.status) == ("done", "closed")
    assert handoff.rejection is not None
    assert (handoff.rejection.by, handoff.rejection.reason) == ("hub", "other")
    assert world.tasks["i"].handoff is None
    assert refused(world, CAROL, ActivateHandoff("H")).code == "invalid_transition"


@proves("ACP-INTENT-ENDED")
def test_what_is_done_is_not_begun_again_by_an_old_handoff() -> None:
    world = accepted()
    world.tasks["T"] = replace(world.tasks["T"], status="done")
    answer = refused(world, BOB, ActivateHandoff("H"))
    assert (answer.code, answer.detail) == (
        "invalid_transition",
        "T is done: nothing is left to do",
    )
