"""Items of the work queue: every state × every command, by permitted and other actors."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.work_queue import (
    AddWorkItem,
    ClaimWorkItem,
    ReleaseWorkItem,
    WorkItemAdded,
    WorkItemOwnerChanged,
)
from tests.core.world import ALICE, BOB, HUB, HUMAN, OBSERVER, World, events_of
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")

ADD = AddWorkItem("Login", "w")
CLAIM, RELEASE = ClaimWorkItem("w"), ReleaseWorkItem("w")


def world_with(*commands: Command, actor: Actor = ALICE) -> World:
    """World in which these commands were carried out."""
    world = World()
    for command in commands:
        world.do(actor, command)
    return world


def test_item_is_added_once() -> None:
    world = World()
    made = world.do(ALICE, ADD)
    assert events_of(made) == [WorkItemAdded("w", "Login")]
    assert (made.receipt.stream, made.receipt.state) == ("workq:w", "open")
    assert events_of(world.decide(BOB, ADD)) == []
    assert world.code(BOB, AddWorkItem("Another", "w")) == "already_exists"
    assert world.do(ALICE, AddWorkItem("Without a name")).receipt.stream != "workq:w"


def test_invalid_item_command_is_refused() -> None:
    assert World().code(OBSERVER, ADD) == "not_authorized"
    assert World().code(ALICE, AddWorkItem("x", "a b")) == "invalid_id"
    assert World().code(ALICE, AddWorkItem("x" * 501, "w")) == "invalid_field"
    for command in (CLAIM, RELEASE):
        assert World().code(ALICE, command) == "work_item_not_found"
        assert world_with(ADD).code(OBSERVER, command) == "not_authorized"
    assert World().code(ALICE, ClaimWorkItem("a b")) == "invalid_id"
    assert world_with(ADD).code(ALICE, ClaimWorkItem("w", "a b")) == "invalid_id"


def test_first_claimant_owns_item() -> None:
    world = world_with(ADD)
    assert events_of(world.do(ALICE, CLAIM)) == [WorkItemOwnerChanged("w", "alice", "claimed")]
    assert events_of(world.decide(ALICE, CLAIM)) == []
    assert world.code(BOB, CLAIM) == "already_claimed"
    assert world.code(HUB, ClaimWorkItem("w", "bob", "carol")) == "already_claimed"


@pytest.mark.parametrize("giver", [ALICE, HUMAN, HUB])
def test_owner_or_privileged_role_passes_item_on(giver: Actor) -> None:
    world = world_with(ADD, CLAIM)
    command = ClaimWorkItem("w", "bob", "alice")
    assert events_of(world.decide(giver, command)) == [WorkItemOwnerChanged("w", "bob", "claimed")]
    assert world.code(BOB, ClaimWorkItem("w", "carol", "alice")) == "not_authorized"


def test_item_is_released_by_owner() -> None:
    world = world_with(ADD, CLAIM)
    assert world.code(BOB, RELEASE) == "not_authorized"
    assert events_of(world.do(ALICE, RELEASE)) == [WorkItemOwnerChanged("w", "", "open")]
    assert world.code(ALICE, RELEASE) == "not_authorized"
    assert events_of(world.decide(HUMAN, RELEASE)) == []


def test_hub_records_orphaned_item() -> None:
    orphan = ReleaseWorkItem("far", is_orphaned=True)
    world = World()
    assert world.code(HUMAN, orphan) == "work_item_not_found"
    assert world.code(HUB, ReleaseWorkItem("a b", is_orphaned=True)) == "invalid_id"
    assert events_of(world.do(HUB, orphan)) == [
        WorkItemAdded("far", ""),
        WorkItemOwnerChanged("far", "", "orphaned"),
    ]
    assert events_of(world.decide(HUB, orphan)) == []
    assert world.do(BOB, ClaimWorkItem("far")).receipt.state == "claimed"
    assert events_of(world.decide(HUB, orphan)) == []
    of_bob = ReleaseWorkItem("far", is_orphaned=True, sender="bob")
    assert events_of(world.decide(HUB, of_bob)) == [WorkItemOwnerChanged("far", "", "orphaned")]
