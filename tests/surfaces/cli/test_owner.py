"""The owner: the person at the keyboard, by name, with an inbox."""

from pathlib import Path

import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import RegisterAgent
from dragoman.engine.queries.agents import find_agent
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("OWNER")


def register(data: Path) -> list[str]:
    """Register the owner of a directory, as a start of the hub does; return the warnings."""
    directory = open_directory(data, "", None, create=True)
    directory.register_owner()
    warnings = list(directory.warnings)
    directory.hub.close()
    return warnings


def test_owner_is_registered_once(dragoman: Console) -> None:
    dragoman("init")
    for _ in range(2):
        assert register(dragoman.data) == []
    (record,) = dragoman.ask("agent", "list")["agents"]
    assert (record["name"], record["role"]) == ("owner", "human")
    (entry,) = dragoman("events", "--json").objects
    assert entry["type"] == "agent.registered"


def test_owner_has_the_name_of_the_settings(dragoman: Console) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text('[owner]\nname = "mia"\n')
    register(dragoman.data)
    dragoman("task", "create", "One", "--id", "T-1")
    assert {entry["actor"] for entry in dragoman("events", "--json").objects} == {
        "system:hub",
        "human:mia",
    }
    dragoman("mail", "send", "--as", "ada", "--to", "mia", "--subject", "Hello", "--body", "x")
    assert [one["from"] for one in dragoman.ask("mail", "inbox")["messages"]] == ["ada"]


def test_name_of_an_agent_is_not_taken_for_the_owner(dragoman: Console) -> None:
    directory = open_directory(dragoman.data, "", None, create=True)
    directory.hub.submit(HUB_ACTOR, RegisterAgent("owner", "agent"))
    directory.hub.close()
    (warning,) = register(dragoman.data)
    assert warning.startswith("owner, the name of the owner, is registered as agent")
    directory = open_directory(dragoman.data, "", None, create=True)
    record = find_agent(directory.hub.store, "owner")
    assert record is not None
    assert record.role == "agent"
    directory.hub.close()


@pytest.mark.parametrize("name", ["", "a b", "../x"])
def test_name_outside_the_grammar_is_refused(dragoman: Console, name: str) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text(f'[owner]\nname = "{name}"\n')
    assert "owner.name" in dragoman.ask("task", "list", code=1)["detail"]


@pytest.mark.parametrize("orchestrator", [True, False])
def test_help_without_a_helper_reaches_the_owner(dragoman: Console, *, orchestrator: bool) -> None:
    dragoman("init")
    register(dragoman.data)
    if orchestrator:
        dragoman("agent", "add", "olga", "--role", "orchestrator", "--no-token")
    dragoman("task", "create", "One", "--id", "T-1", "--ready")
    dragoman("task", "claim", "T-1", "--as", "ada")
    body = "Bead: T-1\n\n## Question\n\nred or blue?\n"
    letter = ("--subject", "[T-1] HELP_REQUEST", "--body", body)
    dragoman("mail", "send", "--as", "ada", *letter)
    found = [one["type"] for one in dragoman.ask("mail", "inbox")["messages"]]
    assert found == ([] if orchestrator else ["HELP_REQUEST"])


@proves("MAIL-UNKNOWN-NAME")
def test_sender_is_told_that_nobody_has_that_name(dragoman: Console) -> None:
    dragoman("init")
    register(dragoman.data)
    letter = ("--subject", "Hello", "--body", "x")
    sent = dragoman("mail", "send", "--to", "owner", "--to", "bbo", *letter)
    assert "nobody is known as 'bbo': the letter waits" in sent.out
    dragoman("agent", "add", "bbo", "--no-token")
    assert "is known as" not in dragoman("mail", "send", "--to", "bbo", *letter).out
    stranger = dragoman("mail", "send", "--as", "unregistered", "--to", "nobody", *letter)
    assert "nobody is known as 'nobody'" in stranger.out
    answer = dragoman("mail", "send", "--to", "unregistered", *letter)
    assert "is known as" not in answer.out, "somebody has spoken under that name"
