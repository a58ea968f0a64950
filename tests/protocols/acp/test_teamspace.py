"""Teamspaces: who belongs where, by name and by role."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Turned
from dragoman.protocols import agentmail
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
    hash = team.handoff(id).package_hash
    told = [
        team.say(
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
    assert told[0]["error"]["code"] == "not_found"
    assert str(told[0]).replace(id, "absent") == str(told[1])


def test_who_is_taken_out_of_it_keeps_what_it_has_in_hand(tmp_path: Path) -> None:
    teams = {"core": Teamspace(frozenset({"alice", "bob"}))}
    team = Desk(tmp_path, teamspaces=teams)
    begun, given_back = (
        team.say(inside(task=task), ALICE)["handoff_id"] for task in ("t-1", "t-2")
    )
    for id in (begun, given_back):
        team.do("accept", id, BOB)
        team.do("activate", id, BOB)
    draft = {"action": "draft", "handoff_id": "d-1", "teamspace_id": "core", "to_agent": "alice"}
    team.say(draft, BOB)
    teams["core"] = Teamspace(frozenset({"alice"}))
    assert team.do("query", begun, BOB)["handoffs"][0]["status"] == "activated"
    listed = team.say({"action": "query", "to_agent": "bob"}, BOB)["handoffs"]
    assert {row["handoff_id"] for row in listed} == {begun, given_back}
    assert team.do("complete", begun, BOB)["success"]
    assert team.do("reject", given_back, BOB, reason="other", detail="I have left")["success"]
    assert team.say({**draft, "reason": "I leave"}, BOB)["success"]
    assert team.do("propose", "d-1", BOB)["error"]["code"] == "schema_invalid"
    assert team.do("discard", "d-1", BOB)["success"]
    # Nothing new: neither by it nor to it.
    on = inside(task="t-2", supersedes=given_back)
    assert team.code(on, ALICE) == "not_authorized"
    assert team.code(inside(task="t-3", to="alice"), BOB) == "not_authorized"
    assert team.do("query", begun, CAROL)["error"]["code"] == "not_found"


def test_one_without_members_is_everyones(tmp_path: Path) -> None:
    named = Teamspace(frozenset(), frozenset({"cora"}))
    team = Desk(tmp_path, teamspaces={"core": named, "bare": Teamspace(frozenset())})
    id = team.say(inside(to="carol"), ALICE)["handoff_id"]
    assert team.do("accept", id, CAROL)["success"]
    assert team.do("reject", id, OTHER, reason="other", detail="x")["error"]["code"] == "not_found"
    assert team.do("reject", id, COORDINATOR, reason="other", detail="stuck")["success"]
    bare = team.say(offer(task="t-2", to="carol", teamspace_id="bare"), ALICE)["handoff_id"]
    assert team.do("reject", bare, OTHER, reason="other", detail="stuck")["success"]


def test_an_id_that_is_taken_is_taken_and_nothing_else_is_said_of_it(team: Desk) -> None:
    offered = team.say(inside(handoff_id="h-1"), ALICE)["handoff_id"]
    drafted = team.say({"action": "draft", "handoff_id": "d-1"}, ALICE)["handoff_id"]
    for action in (offer(task="t-9", to="dan"), {"action": "draft"}):
        for id in (offered, drafted):
            answer = team.call({**action, "handoff_id": id}, CAROL)
            assert isinstance(answer, Turned)
            assert answer.reply["error"] == {
                "code": "not_authorized",
                "detail": f"the id {id} is taken: choose another",
            }
            assert "status" not in answer.reply


def test_a_draft_in_its_place_says_nothing_of_it_to_others(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    team.lab.do(HUMAN, CreateTask("T", id="t-9", ready=True))
    said = offer("otis", "t-9") | {"action": "draft"}

    def told(supersedes: str) -> str:
        draft = team.say(said | {"supersedes": supersedes}, CAROL)["handoff_id"]
        reply = team.do("validate", draft, CAROL)
        assert reply["error"]["code"] == "not_found"
        return str(reply).replace(draft, "draft")

    assert told(id).replace(id, "absent") == told("absent")


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


@proves("ACP-CLOSED-LETTERS")
def test_agent_mail_shows_letters_about_it_to_its_members_too(team: Desk) -> None:
    id = team.say(inside(thread_id="th-1"), ALICE)["handoff_id"]
    team.say({"to": ["bob"], "type": "status.update", "payload": {"n": 1}}, ALICE, "acp_send")
    choices = agentmail.Choices(teamspaces=team.teamspaces)
    facts = StoreFacts(team.lab.store, lambda _task, _ref: False)
    mail = Interpreter(team.lab.hub, (agentmail.dialect(choices),), facts)

    def found(operation: str, reader: Actor, **asked: Any) -> list[str]:
        return [row["subject"] for row in mail.call(operation, asked, reader).reply["messages"]]

    def looked_up(reader: Actor) -> list[list[str]]:
        return [
            found("mail.thread", reader, thread_id="th-1"),
            found("mail.search", reader, query=id),
            found("mail.inbox", reader, agent="bob", thread_id="th-1"),
            found("mail.inbox", reader, agent="alice", box="sent", thread_id="th-1"),
        ]

    (letter,) = team.say({"thread_id": "th-1"}, BOB, "acp_query")["messages"]
    for outsider in (CAROL, OTHER):
        assert looked_up(outsider) == [[], [], [], []]
        no = mail.call("mail.show", {"id": letter["message_id"]}, outsider)
        assert isinstance(no, Turned)
        assert no.code == "mail_not_found"
        summary = mail.call("mail.summary", {"thread_id": "th-1"}, outsider).reply
        assert summary["counts"] == {}
        assert found("mail.inbox", outsider, agent="bob") == ["status.update"]
    for member in (ALICE, BOB, COORDINATOR, HUMAN):
        assert looked_up(member) == [["handoff.initiate: t-1"]] * 4
        assert mail.call("mail.show", {"id": letter["message_id"]}, member).reply["id"]


@proves("ACP-CLOSED-LETTERS")
def test_a_letter_that_is_not_there_is_neither_marked_nor_replied_to(team: Desk) -> None:
    team.say(inside(thread_id="th-1"), ALICE)
    choices = agentmail.Choices(teamspaces=team.teamspaces)
    facts = StoreFacts(team.lab.store, lambda _task, _ref: False)
    mail = Interpreter(team.lab.hub, (agentmail.dialect(choices),), facts)
    (letter,) = team.say({"thread_id": "th-1"}, BOB, "acp_query")["messages"]
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
        return [one.code if isinstance(one, Turned) else "" for one in answers]

    for outsider in (CAROL, OTHER):
        assert (
            codes(outsider) == codes(outsider, "absent") == ["mail_not_found"] * 3 + ["not_found"]
        )
    assert codes(BOB) == ["", "", "", ""]
    assert codes(COORDINATOR) == ["not_authorized", "not_authorized", "", ""]


@proves("ACP-CLOSED-LETTERS")
def test_what_is_passed_on_stays_in_its_teamspace(team: Desk) -> None:
    id = team.say(inside(), ALICE)["handoff_id"]
    for action in ("accept", "activate"):
        assert team.do(action, id, BOB)["success"]
    assert team.code(offer(to="otis", supersedes=id), BOB) == "not_authorized"
    draft = offer(to="otis", supersedes=id) | {"action": "draft", "handoff_id": "d1"}
    assert team.code(draft, BOB) == ""
    assert team.do("propose", "d1", BOB)["error"]["code"] == "not_authorized"
    absent = team.say(offer(to="otis", supersedes="absent"), CAROL)
    there = team.say(offer(to="otis", supersedes=id), CAROL)
    assert there["error"]["code"] == "not_found"
    assert str(there).replace(id, "absent") == str(absent)
    back = team.say(offer(to="cora", supersedes=id), BOB)
    assert team.handoff(back["handoff_id"]).teamspace == "core"
    again = team.say(offer(to="cora", supersedes=id), BOB)
    assert again["handoff_id"] == back["handoff_id"]
    out = team.say(offer(to="otis", supersedes=back["handoff_id"], teamspace_id="default"), BOB)
    assert team.handoff(out["handoff_id"]).teamspace == "default", "it was said where"


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
