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


def test_to_others_it_is_as_if_it_were_not_there(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    more: dict[str, dict[str, Any]] = {
        "reject": {"reason": "other", "detail": "no"},
        "extend_sla": {"by": "1h"},
        "reassign": {"to_agent": "otis"},
    }
    actions = ("query", "accept", "reject", "activate", "complete", "close", "withdraw")
    for action in (*actions, "extend_sla", "reassign", "propose", "validate"):
        for outsider in (CAROL, OTHER):
            there = team.do(action, id, outsider, **more.get(action, {}))
            absent = team.do(action, "absent", outsider, **more.get(action, {}))
            assert there["error"]["code"] == "not_found", there
            assert str(there).replace(id, "absent") == str(absent)


def test_letters_about_it_are_shown_to_its_members(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    team.do("reject", id, BOB, reason="other", detail="not for others")
    team.say({"to": ["bob"], "type": "status.update", "payload": {"n": [1]}}, ALICE, "acp_send")

    def types(reader: Actor, **asked: str) -> list[str]:
        return [row["type"] for row in team.say(asked, reader, "acp_query")["messages"]]

    for outsider in (CAROL, OTHER):
        assert types(outsider, task_id="t-1") == []
        assert types(outsider, to="alice") == []
        assert types(outsider, to="bob") == ["status.update"]
    for member in (ALICE, BOB, COORDINATOR, HUMAN):
        assert types(member, task_id="t-1") == ["handoff.initiate", "system.error"]


def test_only_members_act_and_see(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    no = {"reason": "other", "detail": "no"}
    assert team.do("reject", id, OTHER, **no)["error"]["code"] == "not_found"
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
    assert team.do("extend_sla", id, COORDINATOR, by="1h")["error"]["code"] == "not_found"
