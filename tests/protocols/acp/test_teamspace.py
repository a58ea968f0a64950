"""Teamspaces: who belongs where, by name and by role."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.protocols.acp import Teamspace
from tests.protocols.acp.desk import ALICE, BOB, CAROL, COORDINATOR, HUMAN, Desk, offer
from tests.requirements import proves

pytestmark = proves("ACP-TEAMSPACE")

OTHER = Actor("coordinator", "otis")


@pytest.fixture
def team(tmp_path: Path) -> Desk:
    """Give a hub where alice and bob have a teamspace of their own, coordinated by cora."""
    members = Teamspace(frozenset({"alice", "bob"}), frozenset({"cora"}))
    loose = Teamspace(frozenset({"alice", "otis"}))
    return Desk(tmp_path, teamspaces={"core": members, "loose": loose})


def inside(**more: Any) -> dict[str, Any]:
    return offer(teamspace_id="core", **more)


def test_only_members_offer_and_receive(team: Desk) -> None:
    assert team.code(inside(to="carol"), ALICE) == "not_authorized"
    assert team.code(inside(), CAROL) == "not_authorized"
    assert team.code(inside(), ALICE) == ""
    assert team.code(offer(task="t-2", to="carol"), ALICE) == ""
    drafts = {"action": "draft", "teamspace_id": "core"}
    assert team.code(drafts, CAROL) == "not_authorized"
    assert team.code(drafts, ALICE) == ""


def test_only_members_act_and_see(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    no = {"reason": "other", "detail": "no"}
    assert team.do("reject", id, OTHER, **no)["error"]["code"] == "not_authorized"
    assert team.do("reassign", id, COORDINATOR, to_agent="carol")["error"]["code"] == (
        "not_authorized"
    )
    one = {"action": "query", "handoff_id": id}
    assert team.code(one, CAROL) == "not_found"
    assert team.say({"action": "query"}, CAROL)["handoffs"] == []
    for reader in (BOB, COORDINATOR, HUMAN):
        assert [row["handoff_id"] for row in team.say(one, reader)["handoffs"]] == [id]
    assert team.do("reject", id, COORDINATOR, **no)["success"]


def test_without_named_coordinators_every_one_who_is_a_member_is_one(team: Desk) -> None:
    id = team.say(offer(to="otis", teamspace_id="loose"), ALICE)["handoff_id"]
    assert team.do("extend_sla", id, OTHER, by="1h")["success"]
    assert team.do("extend_sla", id, COORDINATOR, by="1h")["error"]["code"] == "not_authorized"
