"""Credentials of agents: tokens, keys, and who may manage them."""

from typing import get_args

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import (
    REMEMBERED_TOKENS,
    AgentKeySet,
    AgentRecord,
    IssueToken,
    RegisterAgent,
    RevokeToken,
    SetAgentKey,
    TokenClaim,
    TokenIssued,
    TokenRecord,
    TokenRevoked,
    digest_token,
    format_token,
    parse_token,
)
from dragoman.core.authority import MAY_MANAGE_CREDENTIALS
from dragoman.core.base import Role
from dragoman.core.limits import MAX_TOKENS, TOKEN_LIFETIME_RANGE_MS
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
)
from tests.requirements import proves

ROLES: tuple[Role, ...] = get_args(Role)
DAY = 86_400_000
KEY = "A" * 43
NEXT = "B" * 42 + "A"

# Role of the agent -> letters of the actors that may manage its credentials.
#   h human, s the hub itself, o orchestrator
EXPECTED_MANAGERS: dict[Role, str] = {
    "agent": "hso",
    "observer": "hso",
    "coordinator": "hs",
    "orchestrator": "hs",
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
    "b": BOB,
}


def registered(role: Role = "agent", name: str = "alice") -> World:
    """World in which one agent is registered."""
    world = World()
    world.agents[name] = AgentRecord(name, role, (), NOW)
    return world


def issue_token(number: int = 1, expires_at: int = NOW + DAY, name: str = "alice") -> IssueToken:
    return IssueToken(name, f"{number:012x}", f"{number:064x}", expires_at)


@proves("IDENTITY-TOKEN")
def test_token_is_issued_and_revoked() -> None:
    world = registered()
    decision = world.do(HUMAN, issue_token())
    event = TokenIssued("000000000001", f"{1:064x}", NOW + DAY)
    assert decision.events == (("agent:alice", event),)
    assert world.agents["alice"].tokens == (
        TokenRecord("000000000001", f"{1:064x}", NOW, NOW + DAY),
    )
    revoked = world.do(HUMAN, RevokeToken("alice", "000000000001"), NOW + 1)
    assert revoked.events == (("agent:alice", TokenRevoked("000000000001")),)
    assert world.agents["alice"].valid_tokens(NOW + 1) == []
    assert world.agents["alice"].cut_off_at is None


@proves("IDENTITY-TOKEN", "IDEM-REPEAT")
def test_repeated_issue_and_revocation_are_no_ops() -> None:
    world = registered()
    world.do(HUMAN, issue_token())
    assert world.do(HUMAN, issue_token(), NOW + 1).events == ()
    assert world.code(HUMAN, issue_token(expires_at=NOW + 2 * DAY)) == "already_exists"
    world.do(HUMAN, RevokeToken("alice", "000000000001"))
    assert world.do(HUMAN, RevokeToken("alice", "000000000001")).events == ()


@proves("IDENTITY-REVOKE")
def test_revoking_all_tokens_spares_later_ones() -> None:
    world = registered()
    world.do(HUMAN, issue_token(1))
    world.do(HUMAN, issue_token(2))
    assert world.do(HUMAN, RevokeToken("alice"), NOW + 1).events == (
        ("agent:alice", TokenRevoked()),
    )
    assert world.agents["alice"].cut_off_at == NOW + 1
    world.do(HUMAN, issue_token(3), NOW + 2)
    live = world.agents["alice"].valid_tokens(NOW + 2)
    assert [kept.id for kept in live] == ["000000000003"]


@proves("IDENTITY-TOKEN", "AGENT-REGISTRY")
def test_new_registration_keeps_credentials() -> None:
    world = registered()
    world.do(HUMAN, issue_token())
    world.do(HUMAN, SetAgentKey("alice", KEY))
    before = world.agents["alice"]
    world.do(HUMAN, RegisterAgent("alice", "observer", ("aof",)), NOW + 1)
    after = world.agents["alice"]
    assert (after.tokens, after.key, after.registered_at) == (before.tokens, KEY, NOW)
    assert (after.role, after.speaks) == ("observer", ("aof",))


@proves("IDENTITY-SIGNED")
def test_key_is_set_repeated_and_removed() -> None:
    world = registered()
    assert world.do(HUMAN, SetAgentKey("alice", KEY)).events == (("agent:alice", AgentKeySet(KEY)),)
    assert world.do(HUMAN, SetAgentKey("alice", KEY)).events == ()
    world.do(HUMAN, SetAgentKey("alice", ""))
    assert world.agents["alice"].key == ""


@proves("IDENTITY-ROTATION")
def test_previous_key_ends_at_once() -> None:
    world = registered()
    world.do(HUMAN, SetAgentKey("alice", KEY))
    world.do(HUMAN, SetAgentKey("alice", NEXT))
    assert world.agents["alice"].key == NEXT


@proves("ROLE-CREDENTIALS")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("letter", ACTORS)
def test_credential_management_depends_on_both_roles(letter: str, role: Role) -> None:
    actor, world = ACTORS[letter], registered(role)
    world.agents["alice"] = AgentRecord(
        "alice", role, (), NOW, KEY, (TokenRecord("0" * 12, "0" * 64, NOW, NOW + DAY),)
    )
    code = "" if letter in EXPECTED_MANAGERS[role] else "not_authorized"
    assert world.code(actor, issue_token()) == code
    assert world.code(actor, SetAgentKey("alice", "")) == code
    assert world.code(actor, RevokeToken("alice")) == code
    assert world.code(actor, RevokeToken("alice", "0" * 12)) == code


@proves("ROLE-CREDENTIALS")
def test_agent_revokes_own_credentials_but_issues_none() -> None:
    world = registered()
    world.do(HUMAN, issue_token())
    assert world.code(ALICE, RevokeToken("alice", "000000000001")) == ""
    assert world.code(ALICE, RevokeToken("alice")) == ""
    assert world.code(ALICE, issue_token(2)) == "not_authorized"
    assert world.code(ALICE, SetAgentKey("alice", KEY)) == "not_authorized"
    world.do(HUMAN, SetAgentKey("alice", KEY))
    assert world.code(ALICE, SetAgentKey("alice", "")) == ""
    assert world.code(Actor("observer", "alice"), SetAgentKey("alice", "")) == "not_authorized"
    assert world.code(Actor("observer", "alice"), RevokeToken("alice")) == "not_authorized"


@proves("ROLE-CREDENTIALS")
def test_credential_table_covers_every_role() -> None:
    assert set(MAY_MANAGE_CREDENTIALS) == set(ROLES)


@proves("IDENTITY-TOKEN")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (issue_token(expires_at=NOW), "invalid_field"),
        (issue_token(expires_at=NOW + TOKEN_LIFETIME_RANGE_MS[0]), ""),
        (issue_token(expires_at=NOW + TOKEN_LIFETIME_RANGE_MS[1]), ""),
        (issue_token(expires_at=NOW + TOKEN_LIFETIME_RANGE_MS[1] + 1), "invalid_field"),
        (issue_token(name="bob"), "agent_not_found"),
        (issue_token(name="../bob"), "invalid_id"),
        (IssueToken("alice", "1", "0" * 64, NOW + DAY), "invalid_id"),
        (IssueToken("alice", "0" * 12, "0" * 63 + "G", NOW + DAY), "invalid_field"),
        (RevokeToken("bob"), "agent_not_found"),
        (RevokeToken("alice", "0" * 12), "token_not_found"),
        (RevokeToken("alice", "all"), "invalid_id"),
        (SetAgentKey("bob", KEY), "agent_not_found"),
        (SetAgentKey("alice", "A" * 42), "invalid_field"),
        (SetAgentKey("alice", "A" * 42 + "!"), "invalid_field"),
        (SetAgentKey("alice", "\u0391" * 43), "invalid_field"),
    ],
    ids=range(15),
)
def test_invalid_credential_command_is_refused(
    command: IssueToken | RevokeToken | SetAgentKey, code: str
) -> None:
    assert registered().code(HUMAN, command) == code


@proves("IDENTITY-SECRET")
def test_refusal_does_not_quote_token_given_as_digest() -> None:
    secret = format_token("alice", "0" * 12, "s3cret" * 7 + "x")
    answer = registered().decide(HUMAN, IssueToken("alice", "0" * 12, secret, NOW + DAY))
    assert "s3cret" not in str(answer)


@proves("IDENTITY-TOKEN")
def test_agent_has_limited_number_of_valid_tokens() -> None:
    world = registered()
    for number in range(MAX_TOKENS):
        world.do(HUMAN, issue_token(number))
    assert world.code(HUMAN, issue_token(MAX_TOKENS)) == "invalid_field"
    assert (
        world.code(HUMAN, issue_token(MAX_TOKENS), NOW + DAY) == "invalid_field"
    )  # the token has expired itself
    assert world.code(HUMAN, issue_token(MAX_TOKENS, NOW + 2 * DAY), NOW + DAY) == ""


@proves("IDENTITY-TOKEN")
def test_oldest_expired_tokens_are_forgotten_and_valid_ones_kept() -> None:
    world = registered()
    world.do(HUMAN, issue_token(0, NOW + 300 * DAY))
    for number in range(1, 200):
        at = NOW + number * 2_000
        world.do(HUMAN, issue_token(number, at + 1_000), at)
    kept = [one.id for one in world.agents["alice"].tokens]
    assert len(kept) == REMEMBERED_TOKENS
    assert kept[0] == f"{0:012x}"
    assert kept[1:] == [f"{number:012x}" for number in range(201 - REMEMBERED_TOKENS, 200)]


@proves("IDENTITY-TOKEN", "NAME-GRAMMAR")
@pytest.mark.parametrize("agent", ["a", "swe-backend", "a_b__c", "bob@laptop", "x" * 128, "a_" * 9])
@pytest.mark.parametrize("secret", ["-" * 43, "_" * 43, "a" * 43, "_000000000000_" + "b" * 29])
def test_token_round_trips_through_its_text(agent: str, secret: str) -> None:
    text = format_token(agent, "0123456789ab", secret)
    assert parse_token(text) == TokenClaim(agent, "0123456789ab")
    assert parse_token(text + "\n") is parse_token(text[:-1]) is None
    assert len(digest_token(text)) == 64


@proves("IDENTITY-TOKEN")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "drg_",
        "drg__0123456789ab_" + "a" * 43,
        "drg_../x_0123456789ab_" + "a" * 43,
        "drg_a@b@c_0123456789ab_" + "a" * 43,
        "drg_a_0123456789AB_" + "a" * 43,
        "DRG_a_0123456789ab_" + "a" * 43,
        "drga_a_0123456789ab_" + "a" * 43,
    ],
    ids=range(8),
)
def test_malformed_token_is_not_read(text: str) -> None:
    assert parse_token(text) is None
