"""Teamspaces: membership, coordinators and visibility."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.engine.request import Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import agentmail
from dragoman.protocols.acp import Teamspace
from tests.protocols.acp.hub import ALICE, BOB, CAROL, COORDINATOR, HUMAN, AcpHub, offer
from tests.requirements import proves

pytestmark = proves("ACP-TEAMSPACE")

OTHER = Actor("coordinator", "otis")


@pytest.fixture
def team(tmp_path: Path) -> AcpHub:
    """Give a hub with two teamspaces: one that cora coordinates, and one without coordinators."""
    members = Teamspace(frozenset({"alice", "bob"}), frozenset({"cora"}))
    loose = Teamspace(frozenset({"alice", "otis"}))
    return AcpHub(tmp_path, teamspaces={"core": members, "loose": loose})


def team_offer(**more: Any) -> dict[str, Any]:
    return offer(teamspace_id="core", **more)


def test_only_members_offer_and_receive(team: AcpHub) -> None:
    assert team.code(team_offer(to="carol"), ALICE) == "not_authorized"
    assert team.code(team_offer(), CAROL) == "not_authorized"
    assert team.code(team_offer(), ALICE) == ""
    assert team.code(offer(task="t-2", to="carol"), ALICE) == ""


def test_handoff_does_not_exist_for_outsiders(team: AcpHub) -> None:
    id = team.reply(team_offer(), ALICE)["handoff_id"]
    more: dict[str, dict[str, Any]] = {
        "reject": {"reason": "other", "detail": "no"},
        "extend_sla": {"by": "1h"},
        "reassign": {"to_agent": "otis"},
    }
    actions = ("query", "accept", "reject", "activate", "complete", "close", "withdraw")
    for action in (*actions, "extend_sla", "reassign"):
        for outsider in (CAROL, OTHER):
            there = team.act(action, id, outsider, **more.get(action, {}))
            absent = team.act(action, "absent", outsider, **more.get(action, {}))
            assert there["error"]["code"] == "not_found", there
            assert str(there).replace(id, "absent") == str(absent)
    hash = team.handoff(id).package_hash
    replies = [
        team.reply(
            {
                "to": ["bob"],
                "type": "handoff.accept",
                "payload": {"handoff_id": named, "package_hash": hash},
            },
            CAROL,
            "acp_send",
        )
        for named in (id, "absent")
    ]
    assert replies[0]["error"]["code"] == "not_found"
    assert str(replies[0]).replace(id, "absent") == str(replies[1])


def test_removed_member_can_finish_its_open_handoffs(tmp_path: Path) -> None:
    teams = {"core": Teamspace(frozenset({"alice", "bob"}))}
    team = AcpHub(tmp_path, teamspaces=teams)
    active, returned = (
        team.reply(team_offer(task=task), ALICE)["handoff_id"] for task in ("t-1", "t-2")
    )
    for id in (active, returned):
        team.act("accept", id, BOB)
        team.act("activate", id, BOB)
    teams["core"] = Teamspace(frozenset({"alice"}))
    assert team.act("query", active, BOB)["handoffs"][0]["status"] == "activated"
    listed = team.reply({"action": "query", "to_agent": "bob"}, BOB)["handoffs"]
    assert {row["handoff_id"] for row in listed} == {active, returned}
    assert team.act("complete", active, BOB)["success"]
    assert team.act("reject", returned, BOB, reason="other", detail="I have left")["success"]
    # Nothing new: neither from it nor to it.
    follow_up = team_offer(task="t-2", supersedes=returned)
    assert team.code(follow_up, ALICE) == "not_authorized"
    assert team.code(team_offer(task="t-3", to="alice"), BOB) == "not_authorized"
    assert team.act("query", active, CAROL)["error"]["code"] == "not_found"


def test_teamspace_without_members_is_open_to_all(tmp_path: Path) -> None:
    named = Teamspace(frozenset(), frozenset({"cora"}))
    team = AcpHub(tmp_path, teamspaces={"core": named, "bare": Teamspace(frozenset())})
    id = team.reply(team_offer(to="carol"), ALICE)["handoff_id"]
    assert team.act("accept", id, CAROL)["success"]
    assert team.act("reject", id, OTHER, reason="other", detail="x")["error"]["code"] == "not_found"
    assert team.act("reject", id, COORDINATOR, reason="other", detail="stuck")["success"]
    bare = team.reply(offer(task="t-2", to="carol", teamspace_id="bare"), ALICE)["handoff_id"]
    assert team.act("reject", bare, OTHER, reason="other", detail="stuck")["success"]


def test_used_id_reveals_nothing_about_its_handoff(team: AcpHub) -> None:
    id = team.reply(team_offer(handoff_id="h-1"), ALICE)["handoff_id"]
    answer = team.call({**offer(task="t-9", to="dan"), "handoff_id": id}, CAROL)
    assert isinstance(answer, Rejected)
    assert answer.reply["error"] == {
        "code": "not_authorized",
        "detail": f"the id {id} is taken: choose another",
    }
    assert "status" not in answer.reply


def test_letters_of_a_teamspace_are_visible_to_its_members_only(team: AcpHub) -> None:
    id = team.reply(team_offer(), ALICE)["handoff_id"]
    team.act("reject", id, BOB, reason="other", detail="not for others")
    team.reply({"to": ["bob"], "type": "status.update", "payload": {"n": [1]}}, ALICE, "acp_send")

    def types(reader: Actor, **filters: str) -> list[str]:
        return [row["type"] for row in team.reply(filters, reader, "acp_query")["messages"]]

    for outsider in (CAROL, OTHER):
        assert types(outsider, task_id="t-1") == []
        assert types(outsider, to="alice") == []
        assert types(outsider, to="bob") == ["status.update"]
    for member in (ALICE, BOB, COORDINATOR, HUMAN):
        assert types(member, task_id="t-1") == ["handoff.initiate", "system.error"]


@proves("ACP-CLOSED-LETTERS")
def test_agent_mail_shows_teamspace_letters_to_members_only(team: AcpHub) -> None:
    id = team.reply(team_offer(thread_id="th-1"), ALICE)["handoff_id"]
    team.reply({"to": ["bob"], "type": "status.update", "payload": {"n": 1}}, ALICE, "acp_send")
    choices = agentmail.Choices(teamspaces=team.teamspaces)
    facts = StoreFacts(team.lab.store, lambda _task, _ref: False)
    mail = Router(team.lab.hub, (agentmail.dialect(choices),), facts)

    def found(operation: str, reader: Actor, **filters: Any) -> list[str]:
        return [row["subject"] for row in mail.call(operation, filters, reader).reply["messages"]]

    def visible_subjects(reader: Actor) -> list[list[str]]:
        return [
            found("mail.thread", reader, thread_id="th-1"),
            found("mail.search", reader, query=id),
            found("mail.inbox", reader, agent="bob", thread_id="th-1"),
            found("mail.inbox", reader, agent="alice", box="sent", thread_id="th-1"),
        ]

    (letter,) = team.reply({"thread_id": "th-1"}, BOB, "acp_query")["messages"]
    for outsider in (CAROL, OTHER):
        assert visible_subjects(outsider) == [[], [], [], []]
        refused = mail.call("mail.show", {"id": letter["message_id"]}, outsider)
        assert isinstance(refused, Rejected)
        assert refused.code == "mail_not_found"
        summary = mail.call("mail.summary", {"thread_id": "th-1"}, outsider).reply
        assert summary["counts"] == {}
        assert found("mail.inbox", outsider, agent="bob") == ["status.update"]
    for member in (ALICE, BOB, COORDINATOR, HUMAN):
        assert visible_subjects(member) == [["handoff.initiate: t-1"]] * 4
        assert mail.call("mail.show", {"id": letter["message_id"]}, member).reply["id"]


@proves("ACP-CLOSED-LETTERS")
def test_hidden_letter_cannot_be_marked_or_replied_to(team: AcpHub) -> None:
    team.reply(team_offer(thread_id="th-1"), ALICE)
    choices = agentmail.Choices(teamspaces=team.teamspaces)
    facts = StoreFacts(team.lab.store, lambda _task, _ref: False)
    mail = Router(team.lab.hub, (agentmail.dialect(choices),), facts)
    (letter,) = team.reply({"thread_id": "th-1"}, BOB, "acp_query")["messages"]
    id = letter["message_id"]
    written = {"to": ["dan"], "subject": "hm", "body_md": "why?"}
    message = {"to": ["dan"], "type": "status.update", "payload": {"n": 1}}

    def codes(actor: Actor, id: str = id) -> list[str]:
        named = {"id": id}
        answers = (
            mail.call("mail.ack", named, actor),
            mail.call("mail.read", named, actor),
            mail.call("mail.send", written | {"reply_to": id}, actor),
            team.call(message | {"reply_to": id}, actor, "acp_send"),
        )
        return [one.code if isinstance(one, Rejected) else "" for one in answers]

    for outsider in (CAROL, OTHER):
        assert (
            codes(outsider) == codes(outsider, "absent") == ["mail_not_found"] * 3 + ["not_found"]
        )
    assert codes(BOB) == ["", "", "", ""]
    assert codes(COORDINATOR) == ["not_authorized", "not_authorized", "", ""]


@proves("ACP-CLOSED-LETTERS")
def test_superseding_handoff_stays_in_its_teamspace(team: AcpHub) -> None:
    id = team.reply(team_offer(), ALICE)["handoff_id"]
    for action in ("accept", "activate"):
        assert team.act(action, id, BOB)["success"]
    assert team.code(offer(to="otis", supersedes=id), BOB) == "not_authorized"
    absent = team.reply(offer(to="otis", supersedes="absent"), CAROL)
    there = team.reply(offer(to="otis", supersedes=id), CAROL)
    assert there["error"]["code"] == "not_found"
    assert str(there).replace(id, "absent") == str(absent)
    back = team.reply(offer(to="cora", supersedes=id), BOB)
    assert team.handoff(back["handoff_id"]).teamspace == "core"
    again = team.reply(offer(to="cora", supersedes=id), BOB)
    assert again["handoff_id"] == back["handoff_id"]
    out = team.reply(offer(to="otis", supersedes=back["handoff_id"], teamspace_id="default"), BOB)
    assert team.handoff(out["handoff_id"]).teamspace == "default", "it was said where"


def test_only_members_act_and_see(team: AcpHub) -> None:
    id = team.reply(team_offer(), ALICE)["handoff_id"]
    reason = {"reason": "other", "detail": "no"}
    assert team.act("reject", id, OTHER, **reason)["error"]["code"] == "not_found"
    assert team.act("reassign", id, COORDINATOR, to_agent="carol")["error"]["code"] == (
        "not_authorized"
    )
    one = {"action": "query", "handoff_id": id}
    assert team.code(one, CAROL) == "not_found"
    assert team.reply({"action": "query"}, CAROL)["handoffs"] == []
    for reader in (BOB, COORDINATOR, HUMAN):
        assert [row["handoff_id"] for row in team.reply(one, reader)["handoffs"]] == [id]
    assert team.act("reject", id, COORDINATOR, **reason)["success"]


def test_coordinators_are_the_member_coordinators_when_none_are_named(team: AcpHub) -> None:
    id = team.reply(offer(to="otis", teamspace_id="loose"), ALICE)["handoff_id"]
    assert team.act("extend_sla", id, OTHER, by="1h")["success"]
    assert team.act("extend_sla", id, COORDINATOR, by="1h")["error"]["code"] == "not_found"
