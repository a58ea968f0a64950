"""Registration of agents: names, roles, dialects, and who may register whom."""

from typing import get_args

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, AgentRegistered, RegisterAgent
from dragoman.core.authority import MAY_REGISTER
from dragoman.core.base import Role
from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask
from tests.core.world import (
    ALICE,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TRUSTED_FILE,
    World,
)
from tests.requirements import proves

ROLES: tuple[Role, ...] = get_args(Role)

# Role to register -> letters of the actors that may register it.
#   h human, s the hub itself, o orchestrator, a the agent itself
EXPECTED_REGISTRARS: dict[Role, str] = {
    "agent": "hsoa",
    "observer": "hso",
    "coordinator": "hso",
    "orchestrator": "hso",
    "human": "hs",
    "file": "",
    "trusted-file": "",
    "system": "",
}
ACTORS = {
    "h": HUMAN,
    "s": HUB,
    "o": ORCHESTRATOR,
    "c": COORDINATOR,
    "x": OBSERVER,
    "f": FILE,
    "t": TRUSTED_FILE,
    "a": ALICE,
}


@proves("AGENT-REGISTRY")
def test_registration_records_role_and_dialects() -> None:
    world = World()
    decision = world.do(HUMAN, RegisterAgent("swe-qa", "coordinator", ("aof", "agentmail", "aof")))
    event = AgentRegistered("swe-qa", "coordinator", ("aof", "agentmail"))
    assert decision.events == (("agent:swe-qa", event),)
    assert (decision.receipt.task, decision.receipt.status) == ("", None)
    assert world.agents == {
        "swe-qa": AgentRecord("swe-qa", "coordinator", ("aof", "agentmail"), NOW)
    }


@proves("AGENT-REGISTRY", "IDEM-REPEAT")
def test_repeated_registration_is_a_no_op_and_a_new_one_replaces_it() -> None:
    world = World()
    world.do(HUMAN, RegisterAgent("bob", speaks=("aof",)))
    assert world.do(HUMAN, RegisterAgent("bob", speaks=("aof", "aof")), NOW + 1).events == ()
    world.do(HUMAN, RegisterAgent("bob", "observer"), NOW + 2)
    assert world.agents["bob"] == AgentRecord("bob", "observer", (), NOW)


@proves("AGENT-REGISTRY", "ROLE-TABLE")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("letter", ACTORS)
def test_registration_of_role_depends_on_role_of_actor(letter: str, role: Role) -> None:
    actor = ACTORS[letter]
    code = "" if letter in EXPECTED_REGISTRARS[role] else "not_authorized"
    assert World().code(actor, RegisterAgent(actor.name, role)) == code


@proves("AGENT-REGISTRY", "ROLE-TABLE")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("letter", ACTORS)
def test_change_of_role_depends_on_role_of_actor(letter: str, role: Role) -> None:
    actor = ACTORS[letter]
    world = World()
    world.agents[actor.name] = AgentRecord(actor.name, role, (), NOW)
    code = (
        ""
        if letter in EXPECTED_REGISTRARS[role] and letter in EXPECTED_REGISTRARS["agent"]
        else "not_authorized"
    )
    assert world.code(actor, RegisterAgent(actor.name, "agent", ("aof",))) == code


@proves("AGENT-REGISTRY")
def test_hub_name_is_reserved_for_the_hub() -> None:
    assert World().code(HUMAN, RegisterAgent("hub")) == "invalid_field"
    for command in (CreateTask("T"), PostMail(("bob",), "S", "B")):
        assert World().code(Actor("agent", "hub"), command) == "not_authorized"


@proves("AGENT-REGISTRY")
def test_agent_registers_only_itself() -> None:
    assert World().code(ALICE, RegisterAgent("alice")) == ""
    assert World().code(ALICE, RegisterAgent("bob")) == "not_authorized"
    assert World().code(Actor("agent", "bob"), RegisterAgent("bob", "human")) == "not_authorized"


@proves("AGENT-REGISTRY", "NAME-GRAMMAR")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (RegisterAgent(""), "invalid_id"),
        (RegisterAgent("../a"), "invalid_id"),
        (RegisterAgent("a b"), "invalid_id"),
        (RegisterAgent("bob@laptop"), ""),
        (RegisterAgent("a", speaks=("AOF",)), "invalid_id"),
        (RegisterAgent("a", speaks=("",)), "invalid_id"),
        (RegisterAgent("a", speaks=("aof/1", "saop/1.0.0")), ""),
        (RegisterAgent("a", speaks=("aof/",)), "invalid_id"),
        (RegisterAgent("a", speaks=("aof/new",)), "invalid_id"),
        (RegisterAgent("a", speaks=("AOF/1",)), "invalid_id"),
        (RegisterAgent("a", speaks=("a" * 17,)), "invalid_id"),
        (RegisterAgent("a", speaks=("aof",) * 17), "invalid_field"),
        (RegisterAgent("a", speaks=("aof",) * 16), ""),
    ],
    ids=range(13),
)
def test_registered_names_and_dialects_follow_their_grammar(
    command: RegisterAgent, code: str
) -> None:
    assert World().code(HUMAN, command) == code


@proves("AGENT-REGISTRY", "ROLE-TABLE")
def test_registration_table_covers_every_role() -> None:
    assert set(MAY_REGISTER) == set(ROLES)
