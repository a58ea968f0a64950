"""`agent add`: registered names and their roles."""

import pytest

from tests.protocols.aof.hub import CHILD, PARENT, request, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.message_files import MessageFiles

pytestmark = proves("CLI-AGENT")


def test_add_registers_an_agent(dragoman: Console) -> None:
    args = ("agent", "add", "ada", "--no-token", "--speaks", "aof", "--speaks", "acp")
    assert dragoman.ask(*args) == {
        "ok": True,
        "agent": "ada",
        "role": "agent",
        "speaks": ["aof", "acp"],
    }
    result = dragoman(
        "agent", "add", "boss", "--role", "orchestrator", "--speaks", "aof", "--no-token"
    )
    assert result.out == "boss is known: orchestrator, speaks aof\n"
    known = [e["body"] for e in dragoman("events", "--json").objects]
    assert [(agent["name"], agent.get("role", "agent")) for agent in known] == [
        ("ada", "agent"),
        ("boss", "orchestrator"),
    ]
    assert dragoman.ask("verify")["findings"] == []


def test_repeated_add_writes_no_entry_and_a_change_is_recorded(dragoman: Console) -> None:
    for _ in range(2):
        dragoman.ask("agent", "add", "ada", "--speaks", "aof")
    seen = [entry["type"] for entry in dragoman("events", "--json").objects]
    assert seen == ["agent.registered", "token.issued"]

    dragoman.ask("agent", "add", "ada", "--role", "observer")
    assert dragoman("events", "--json").objects[-1]["body"]["role"] == "observer"


def test_add_keeps_role_and_dialects_that_are_not_passed(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator", "--speaks", "aof")
    result = dragoman("agent", "add", "boss")
    assert result.out.splitlines() == [
        "boss is known: orchestrator, speaks aof",
        "it has a good token; `dragoman agent token boss` gives one more",
    ]
    again = dragoman.ask("agent", "add", "boss", "--speaks", "acp")
    assert (again["role"], again["speaks"]) == ("orchestrator", ["acp"])


def test_token_can_expire_after_the_minimum_of_1s(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--no-token")
    assert dragoman.ask("agent", "token", "ada", "--expires", "1s")["token"]


@proves("AOF-AUTHORITY", "ROLE-TABLE")
def test_registered_agent_acts_in_its_role(dragoman: Console, message_file: MessageFiles) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.make("Two", "--id", CHILD, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend")
    asks = message_file(request(fromAgent="boss") | {"fromAgent": "boss"})
    tells = message_file(
        update(agentId="boss", status="blocked", notes="x") | {"fromAgent": "boss"}
    )

    assert dragoman.ask("send", asks, "--as", "boss", code=1)["code"] == "unauthorized_agent"
    dragoman.ask("agent", "add", "boss", "--role", "observer")
    assert dragoman.ask("send", tells, "--as", "boss", code=1)["code"] == "unauthorized_agent"
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    dragoman.ask("send", asks)
    assert dragoman.ask("send", tells, "--as", "boss")["reply"]["status"] == "blocked"
    actors = {e["actor"] for e in dragoman("events", "--json", "--task", PARENT).objects}
    assert "orchestrator:boss" in actors


@proves("CLI-EXIT", "ROLE-TABLE")
def test_agent_cannot_register_another_agent(dragoman: Console) -> None:
    args = ("agent", "add", "ben", "--role", "orchestrator", "--as", "ada")

    assert dragoman.ask(*args, code=1)["code"] == "not_authorized"


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("add",), "Missing argument 'NAME'"),
        (("add", "ada", "--role", "king"), "'king' is not one of"),
        (("add", "ada", "--speaks", "latin"), "'latin' is not a dialect; known: aof, agentmail"),
        (("add", "ada", "--speaks", "aof/2"), "this hub speaks version 1 of aof, and nothing"),
        (("add", "ada", "--expires", "1d", "--no-token"), "exclude each other"),
        (("add", "ada", "--expires", "367d"), "a token is good for 1s to 366d"),
        (("token", "ada", "--expires", "999999999999d"), "a token is good for 1s to 366d"),
        (("revoke", "ada", "--token", ""), "an empty argument stands after --token"),
    ],
)
def test_invalid_arguments_are_usage_errors(
    dragoman: Console, args: tuple[str, ...], expected: str
) -> None:
    ended = dragoman("agent", *args)

    assert ended.code == 2
    assert expected in ended.err + ended.out
    assert not dragoman.data.exists()


@proves("STATUS-EVERYBODY")
def test_who_has_only_spoken_is_listed_as_not_registered(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--no-token")
    for number in range(4):
        dragoman.make("One", "--id", f"T-{number}", "--ready")
        dragoman.ask("task", "claim", f"T-{number}", "--as", "sam")
    lines = dragoman("agent", "list").out.splitlines()
    assert lines[0].split() == ["NAME", "ROLE", "SPEAKS", "TOKENS", "HOLDS", "PAUSED"]
    (row,) = (line for line in lines if line.startswith("sam "))
    assert "agent, not registered" in row
    assert "T-0, T-1, T-2 and 1 more" in row
    (ada,) = (line for line in lines if line.startswith("ada "))
    assert "not registered" not in ada
    found = {one["name"]: one for one in dragoman.ask("agent", "list")["agents"]}
    assert (found["sam"]["registered"], found["ada"]["registered"]) == (False, True)
    assert found["sam"]["holds"] == ["T-0", "T-1", "T-2", "T-3"]
    shown = dragoman("agent", "show", "sam").out.splitlines()
    assert shown[:2] == [
        "sam is agent, and not registered: `dragoman agent add sam` does that",
        "holds T-0, T-1, T-2, T-3",
    ]


@proves("CLI-EXIT")
@pytest.mark.parametrize("command", ["show", "token", "revoke", "pause", "resume"])
def test_mistyped_agent_gets_a_suggestion(dragoman: Console, command: str) -> None:
    dragoman.ask("agent", "add", "swe-backend", "--no-token")
    refused = dragoman.ask("agent", command, "swe-bakend", code=1)
    assert refused["code"] == "agent_not_found"
    assert refused["detail"].endswith("; did you mean swe-backend?")
    assert "mean" not in dragoman.ask("agent", command, "zoe", code=1)["detail"]


@proves("CLI-EXIT")
def test_other_refusals_get_no_suggestion(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--no-token")
    refused = dragoman.ask("agent", "pause", "ada", "--as", "ada", code=1)
    assert refused["code"] == "not_authorized"
    assert "mean" not in refused["detail"]


@proves("CLI-EXIT", "NAME-GRAMMAR")
def test_invalid_agent_name_is_refused(dragoman: Console) -> None:
    assert dragoman.ask("agent", "add", "a b", code=1)["code"] == "invalid_id"
