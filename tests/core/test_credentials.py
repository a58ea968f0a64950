"""Credentials: by which tokens and which key an agent is recognized, and who may say so."""

from typing import get_args

import pytest

from dragoman.core.actors import Actor, Role
from dragoman.core.authority import MAY_VOUCH
from dragoman.core.commands import IssueToken, KeyAgent, RegisterAgent, RevokeToken
from dragoman.core.events import AgentKeyed, TokenIssued, TokenRevoked
from dragoman.core.limits import TOKEN_MS, TOKENS
from dragoman.core.states.agent import REMEMBERED_TOKENS, AgentRecord, TokenRecord
from dragoman.core.tokens import Claim, digest_of, read_token, write_token
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

# Whose credentials (a role) may be given and taken by whom (a letter).
#   h human, s the hub itself, o orchestrator
BY_HAND: dict[Role, str] = {
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


def known(role: Role = "agent", name: str = "alice") -> World:
    """A world in which somebody is known."""
    world = World()
    world.agents[name] = AgentRecord(name, role, (), NOW)
    return world


def token(number: int = 1, expires_at: int = NOW + DAY, name: str = "alice") -> IssueToken:
    """A token of an agent."""
    return IssueToken(name, f"{number:012x}", f"{number:064x}", expires_at)


@proves("IDENTITY-TOKEN")
def test_a_token_is_issued_and_taken_back() -> None:
    world = known()
    decision = world.do(HUMAN, token())
    event = TokenIssued("000000000001", f"{1:064x}", NOW + DAY)
    assert decision.events == (("agent:alice", event),)
    assert world.agents["alice"].tokens == (
        TokenRecord("000000000001", f"{1:064x}", NOW, NOW + DAY),
    )
    revoked = world.do(HUMAN, RevokeToken("alice", "000000000001"), NOW + 1)
    assert revoked.events == (("agent:alice", TokenRevoked("000000000001")),)
    assert world.agents["alice"].live_tokens(NOW + 1) == []
    assert world.agents["alice"].cut_off_at is None


@proves("IDENTITY-TOKEN", "IDEM-REPEAT")
def test_the_same_again_is_a_no_op() -> None:
    world = known()
    world.do(HUMAN, token())
    assert world.do(HUMAN, token(), NOW + 1).events == ()
    assert world.code(HUMAN, token(expires_at=NOW + 2 * DAY)) == "already_exists"
    world.do(HUMAN, RevokeToken("alice", "000000000001"))
    assert world.do(HUMAN, RevokeToken("alice", "000000000001")).events == ()


@proves("IDENTITY-REVOKE")
def test_all_tokens_end_at_once_and_later_ones_do_not() -> None:
    world = known()
    world.do(HUMAN, token(1))
    world.do(HUMAN, token(2))
    assert world.do(HUMAN, RevokeToken("alice"), NOW + 1).events == (
        ("agent:alice", TokenRevoked()),
    )
    assert world.agents["alice"].cut_off_at == NOW + 1
    world.do(HUMAN, token(3), NOW + 2)
    live = world.agents["alice"].live_tokens(NOW + 2)
    assert [kept.id for kept in live] == ["000000000003"]


@proves("IDENTITY-TOKEN", "AGENT-REGISTRY")
def test_another_registration_leaves_the_credentials_as_they_are() -> None:
    world = known()
    world.do(HUMAN, token())
    world.do(HUMAN, KeyAgent("alice", KEY))
    before = world.agents["alice"]
    world.do(HUMAN, RegisterAgent("alice", "observer", ("aof",)), NOW + 1)
    after = world.agents["alice"]
    assert (after.tokens, after.key, after.registered_at) == (before.tokens, KEY, NOW)
    assert (after.role, after.speaks) == ("observer", ("aof",))


@proves("IDENTITY-SIGNED")
def test_a_key_is_made_known_replaced_and_taken_away() -> None:
    world = known()
    assert world.do(HUMAN, KeyAgent("alice", KEY)).events == (("agent:alice", AgentKeyed(KEY)),)
    assert world.do(HUMAN, KeyAgent("alice", KEY)).events == ()
    world.do(HUMAN, KeyAgent("alice", ""))
    assert world.agents["alice"].key == ""


def good_keys(world: World, now: int = NOW) -> tuple[str, ...]:
    return world.agents["alice"].good_keys(now)


@proves("IDENTITY-ROTATION")
def test_the_key_before_is_good_as_long_as_it_was_said_and_not_longer() -> None:
    world = known()
    assert good_keys(world) == ()
    world.do(HUMAN, KeyAgent("alice", KEY, overlap_ms=DAY))
    assert good_keys(world) == (KEY,), "there was none before"
    world.do(HUMAN, KeyAgent("alice", NEXT, overlap_ms=DAY))
    assert (good_keys(world, NOW + DAY - 1), good_keys(world, NOW + DAY)) == ((NEXT, KEY), (NEXT,))
    assert world.do(HUMAN, KeyAgent("alice", NEXT, overlap_ms=2 * DAY)).events == ()
    world.do(HUMAN, KeyAgent("alice", NEXT))
    assert good_keys(world) == (NEXT,), "said again without an overlap it ends the old one"
    assert world.do(HUMAN, KeyAgent("alice", NEXT)).events == ()


@proves("IDENTITY-ROTATION")
def test_an_overlap_can_be_made_shorter_and_not_longer() -> None:
    world = known()
    world.do(HUMAN, KeyAgent("alice", KEY))
    world.do(HUMAN, KeyAgent("alice", NEXT, overlap_ms=DAY))
    shorter = KeyAgent("alice", NEXT, overlap_ms=1_000)
    event = AgentKeyed(NEXT, NOW + 1_000)
    assert world.do(HUMAN, shorter).events == (("agent:alice", event),)
    assert good_keys(world, NOW + 999) == (NEXT, KEY), "the old one is the same as before"
    assert good_keys(world, NOW + 1_000) == (NEXT,)
    for again in (shorter, KeyAgent("alice", NEXT, overlap_ms=DAY)):
        assert world.do(HUMAN, again).events == ()
    assert good_keys(world, NOW + 1_000) == (NEXT,)


@proves("IDENTITY-ROTATION")
@pytest.mark.parametrize("overlap", [0, 1_000])
def test_the_same_key_after_an_overlap_is_a_no_op(overlap: int) -> None:
    world = known()
    world.do(HUMAN, KeyAgent("alice", KEY))
    world.do(HUMAN, KeyAgent("alice", NEXT, overlap_ms=DAY))
    assert world.do(HUMAN, KeyAgent("alice", NEXT, overlap), NOW + DAY).events == ()
    assert good_keys(world, NOW + DAY) == (NEXT,)


@proves("IDENTITY-ROTATION")
def test_without_an_overlap_or_a_new_key_the_old_one_ends_at_once() -> None:
    world = known()
    world.do(HUMAN, KeyAgent("alice", KEY))
    world.do(HUMAN, KeyAgent("alice", NEXT))
    assert good_keys(world) == (NEXT,)
    world.do(HUMAN, KeyAgent("alice", KEY, overlap_ms=DAY))
    world.do(HUMAN, KeyAgent("alice", ""))
    assert good_keys(world) == ()
    assert world.code(HUMAN, KeyAgent("alice", "", overlap_ms=DAY)) == "invalid_field"
    assert world.code(HUMAN, KeyAgent("alice", KEY, overlap_ms=8 * DAY)) == "invalid_field"


@proves("ROLE-CREDENTIALS")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("letter", ACTORS)
def test_who_may_vouch_for_whom(letter: str, role: Role) -> None:
    actor, world = ACTORS[letter], known(role)
    world.agents["alice"] = AgentRecord(
        "alice", role, (), NOW, KEY, (TokenRecord("0" * 12, "0" * 64, NOW, NOW + DAY),)
    )
    code = "" if letter in BY_HAND[role] else "not_authorized"
    assert world.code(actor, token()) == code
    assert world.code(actor, KeyAgent("alice", "")) == code
    assert world.code(actor, RevokeToken("alice")) == code
    assert world.code(actor, RevokeToken("alice", "0" * 12)) == code


@proves("ROLE-CREDENTIALS")
def test_an_agent_takes_back_its_own_and_gives_itself_none() -> None:
    world = known()
    world.do(HUMAN, token())
    assert world.code(ALICE, RevokeToken("alice", "000000000001")) == ""
    assert world.code(ALICE, RevokeToken("alice")) == ""
    assert world.code(ALICE, token(2)) == "not_authorized"
    assert world.code(ALICE, KeyAgent("alice", KEY)) == "not_authorized"
    world.do(HUMAN, KeyAgent("alice", KEY))
    assert world.code(ALICE, KeyAgent("alice", "")) == ""
    assert world.code(Actor("observer", "alice"), KeyAgent("alice", "")) == "not_authorized"
    assert world.code(Actor("observer", "alice"), RevokeToken("alice")) == "not_authorized"


@proves("ROLE-CREDENTIALS")
def test_the_table_of_roles_knows_every_role() -> None:
    assert set(MAY_VOUCH) == set(ROLES)


@proves("IDENTITY-TOKEN")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (token(expires_at=NOW), "invalid_field"),
        (token(expires_at=NOW + TOKEN_MS[0]), ""),
        (token(expires_at=NOW + TOKEN_MS[1]), ""),
        (token(expires_at=NOW + TOKEN_MS[1] + 1), "invalid_field"),
        (token(name="bob"), "agent_not_found"),
        (token(name="../bob"), "invalid_id"),
        (IssueToken("alice", "1", "0" * 64, NOW + DAY), "invalid_id"),
        (IssueToken("alice", "0" * 12, "0" * 63 + "G", NOW + DAY), "invalid_field"),
        (RevokeToken("bob"), "agent_not_found"),
        (RevokeToken("alice", "0" * 12), "token_not_found"),
        (RevokeToken("alice", "all"), "invalid_id"),
        (KeyAgent("bob", KEY), "agent_not_found"),
        (KeyAgent("alice", "A" * 42), "invalid_field"),
        (KeyAgent("alice", "A" * 42 + "!"), "invalid_field"),
        (KeyAgent("alice", "\u0391" * 43), "invalid_field"),
    ],
    ids=range(15),
)
def test_what_cannot_be_is_refused(command: IssueToken | RevokeToken | KeyAgent, code: str) -> None:
    assert known().code(HUMAN, command) == code


@proves("IDENTITY-SECRET")
def test_a_token_that_is_taken_for_a_digest_is_not_repeated_in_the_refusal() -> None:
    secret = write_token("alice", "0" * 12, "s3cret" * 7 + "x")
    answer = known().ask(HUMAN, IssueToken("alice", "0" * 12, secret, NOW + DAY))
    assert "s3cret" not in str(answer)


@proves("IDENTITY-TOKEN")
def test_an_agent_has_so_many_good_tokens_and_no_more() -> None:
    world = known()
    for number in range(TOKENS):
        world.do(HUMAN, token(number))
    assert world.code(HUMAN, token(TOKENS)) == "invalid_field"
    assert world.code(HUMAN, token(TOKENS), NOW + DAY) == "invalid_field"  # it has ended itself
    assert world.code(HUMAN, token(TOKENS, NOW + 2 * DAY), NOW + DAY) == ""


@proves("IDENTITY-TOKEN")
def test_the_oldest_that_have_ended_are_forgotten_and_a_good_one_never_is() -> None:
    world = known()
    world.do(HUMAN, token(0, NOW + 300 * DAY))
    for number in range(1, 200):
        at = NOW + number * 2_000
        world.do(HUMAN, token(number, at + 1_000), at)
    kept = [one.id for one in world.agents["alice"].tokens]
    assert len(kept) == REMEMBERED_TOKENS
    assert kept[0] == f"{0:012x}"
    assert kept[1:] == [f"{number:012x}" for number in range(201 - REMEMBERED_TOKENS, 200)]


@proves("IDENTITY-TOKEN", "NAME-GRAMMAR")
@pytest.mark.parametrize("agent", ["a", "swe-backend", "a_b__c", "bob@laptop", "x" * 128, "a_" * 9])
@pytest.mark.parametrize("secret", ["-" * 43, "_" * 43, "a" * 43, "_000000000000_" + "b" * 29])
def test_a_token_is_read_as_it_was_written(agent: str, secret: str) -> None:
    text = write_token(agent, "0123456789ab", secret)
    assert read_token(text) == Claim(agent, "0123456789ab")
    assert read_token(text + "\n") is read_token(text[:-1]) is None
    assert len(digest_of(text)) == 64


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
def test_what_is_no_token_is_none(text: str) -> None:
    assert read_token(text) is None
