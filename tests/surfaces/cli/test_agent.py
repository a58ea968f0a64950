"""agent add: names that are known, and the roles that they speak in."""

import pytest

from tests.protocols.aof.hub import CHILD, PARENT, request, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.letters import Letters

pytestmark = proves("CLI-AGENT")


def test_an_agent_is_made_known(dragoman: Console) -> None:
    words = ("agent", "add", "ada", "--no-token", "--speaks", "aof", "--speaks", "acp")
    assert dragoman.ask(*words) == {
        "ok": True,
        "agent": "ada",
        "role": "agent",
        "speaks": ["aof", "acp"],
    }
    said = dragoman(
        "agent", "add", "boss", "--role", "orchestrator", "--speaks", "aof", "--no-token"
    )
    assert said.out == "boss is known: orchestrator, speaks aof\n"
    known = [e["body"] for e in dragoman("events", "--json").objects]
    assert [(agent["name"], agent.get("role", "agent")) for agent in known] == [
        ("ada", "agent"),
        ("boss", "orchestrator"),
    ]
    assert dragoman.ask("verify")["findings"] == []


def test_the_same_again_adds_nothing_and_a_change_is_recorded(dragoman: Console) -> None:
    for _ in range(2):
        dragoman.ask("agent", "add", "ada", "--speaks", "aof")
    seen = [entry["type"] for entry in dragoman("events", "--json").objects]
    assert seen == ["agent.registered", "token.issued"]

    dragoman.ask("agent", "add", "ada", "--role", "observer")
    assert dragoman("events", "--json").objects[-1]["body"]["role"] == "observer"


def test_what_is_not_said_anew_stays_as_it_is(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator", "--speaks", "aof")
    said = dragoman("agent", "add", "boss")
    assert said.out.splitlines() == [
        "boss is known: orchestrator, speaks aof",
        "it has a good token; `dragoman agent token boss` gives one more",
    ]
    again = dragoman.ask("agent", "add", "boss", "--speaks", "acp")
    assert (again["role"], again["speaks"]) == ("orchestrator", ["acp"])


def test_a_token_for_the_least_time_is_given(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--no-token")
    assert dragoman.ask("agent", "token", "ada", "--expires", "1s")["token"]


@proves("AOF-AUTHORITY", "ROLE-TABLE")
def test_whoever_is_known_speaks_in_its_role(dragoman: Console, letter: Letters) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.make("Two", "--id", CHILD, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend")
    asks = letter(request(fromAgent="boss") | {"fromAgent": "boss"})
    tells = letter(update(agentId="boss", status="blocked", notes="x") | {"fromAgent": "boss"})

    assert dragoman.ask("send", asks, "--as", "boss", code=1)["code"] == "unauthorized_agent"
    dragoman.ask("agent", "add", "boss", "--role", "observer")
    assert dragoman.ask("send", tells, "--as", "boss", code=1)["code"] == "unauthorized_agent"
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    dragoman.ask("send", asks)
    assert dragoman.ask("send", tells, "--as", "boss")["reply"]["status"] == "blocked"
    actors = {e["actor"] for e in dragoman("events", "--json", "--task", PARENT).objects}
    assert "orchestrator:boss" in actors


@proves("CLI-EXIT", "ROLE-TABLE")
def test_an_agent_makes_nobody_else_known(dragoman: Console) -> None:
    words = ("agent", "add", "ben", "--role", "orchestrator", "--as", "ada")

    assert dragoman.ask(*words, code=1)["code"] == "not_authorized"


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "Missing argument 'NAME'"),
        (("add", "ada", "--role", "king"), "'king' is not one of"),
        (("add", "ada", "--speaks", "latin"), "'latin' is not a dialect; known: aof, agentmail"),
        (("add", "ada", "--expires", "1d", "--no-token"), "exclude each other"),
        (("add", "ada", "--expires", "367d"), "a token is good for 1s to 366d"),
        (("token", "ada", "--expires", "999999999999d"), "a token is good for 1s to 366d"),
        (("revoke", "ada", "--token", ""), "an empty word stands after --token"),
    ],
)
def test_what_is_not_understood_is_wrong_usage(
    dragoman: Console, words: tuple[str, ...], said: str
) -> None:
    ended = dragoman("agent", *words)

    assert ended.code == 2
    assert said in ended.err + ended.out
    assert not dragoman.data.exists()


@proves("CLI-EXIT", "NAME-GRAMMAR")
def test_a_name_that_cannot_be_one_is_refused(dragoman: Console) -> None:
    assert dragoman.ask("agent", "add", "a b", code=1)["code"] == "invalid_id"
