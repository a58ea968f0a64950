"""Items of the work queue: every state × every command, by whoever may and whoever may not."""

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import AddWorkItem, AnyCommand, ClaimWorkItem, ReleaseWorkItem
from dragoman.core.events import WorkItemAdded, WorkItemPassed
from tests.core.world import ALICE, BOB, HUB, HUMAN, OBSERVER, World, events_of
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")

ADD = AddWorkItem("Login", "w")
CLAIM, RELEASE = ClaimWorkItem("w"), ReleaseWorkItem("w")


def world(*commands: AnyCommand, actor: Actor = ALICE) -> World:
    """A world in which these were done."""
    built = World()
    for command in commands:
        built.do(actor, command)
    return built


def test_an_item_is_added_once() -> None:
    built = World()
    made = built.do(ALICE, ADD)
    assert events_of(made) == [WorkItemAdded("w", "Login")]
    assert (made.receipt.stream, made.receipt.state) == ("workq:w", "open")
    assert events_of(built.ask(BOB, ADD)) == []
    assert built.code(BOB, AddWorkItem("Another", "w")) == "already_exists"
    assert built.do(ALICE, AddWorkItem("Without a name")).receipt.stream != "workq:w"


def test_what_can_be_no_item() -> None:
    assert World().code(OBSERVER, ADD) == "not_authorized"
    assert World().code(ALICE, AddWorkItem("x", "a b")) == "invalid_id"
    assert World().code(ALICE, AddWorkItem("x" * 501, "w")) == "invalid_field"
    for command in (CLAIM, RELEASE):
        assert World().code(ALICE, command) == "work_item_not_found"
        assert world(ADD).code(OBSERVER, command) == "not_authorized"
    assert World().code(ALICE, ClaimWorkItem("a b")) == "invalid_id"
    assert world(ADD).code(ALICE, ClaimWorkItem("w", "a b")) == "invalid_id"


def test_whoever_claims_first_owns_it() -> None:
    built = world(ADD)
    assert events_of(built.do(ALICE, CLAIM)) == [WorkItemPassed("w", "alice", "claimed")]
    assert events_of(built.ask(ALICE, CLAIM)) == []
    assert built.code(BOB, CLAIM) == "already_claimed"
    assert built.code(HUB, ClaimWorkItem("w", "bob", "carol")) == "already_claimed"


@pytest.mark.parametrize("giver", [ALICE, HUMAN, HUB])
def test_its_owner_or_whoever_runs_the_show_gives_it_to_another(giver: Actor) -> None:
    built = world(ADD, CLAIM)
    given = ClaimWorkItem("w", "bob", "alice")
    assert events_of(built.ask(giver, given)) == [WorkItemPassed("w", "bob", "claimed")]
    assert built.code(BOB, ClaimWorkItem("w", "carol", "alice")) == "not_authorized"


def test_it_is_released_by_its_owner_and_then_nobodys() -> None:
    built = world(ADD, CLAIM)
    assert built.code(BOB, RELEASE) == "not_authorized"
    assert events_of(built.do(ALICE, RELEASE)) == [WorkItemPassed("w", "", "open")]
    assert built.code(ALICE, RELEASE) == "not_authorized"
    assert events_of(built.ask(HUMAN, RELEASE)) == []


def test_the_hub_notes_down_what_was_orphaned_elsewhere() -> None:
    orphan = ReleaseWorkItem("far", is_orphaned=True)
    built = World()
    assert built.code(HUMAN, orphan) == "work_item_not_found"
    assert built.code(HUB, ReleaseWorkItem("a b", is_orphaned=True)) == "invalid_id"
    assert events_of(built.do(HUB, orphan)) == [
        WorkItemAdded("far", ""),
        WorkItemPassed("far", "", "orphaned"),
    ]
    assert events_of(built.ask(HUB, orphan)) == []
    assert built.do(BOB, ClaimWorkItem("far")).receipt.state == "claimed"
    assert events_of(built.ask(HUB, orphan)) == []
    of_bob = ReleaseWorkItem("far", is_orphaned=True, sender="bob")
    assert events_of(built.ask(HUB, of_bob)) == [WorkItemPassed("far", "", "orphaned")]
