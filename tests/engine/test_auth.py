"""Authentication: tokens of agents, owner and attempts; revocation and caching."""

import asyncio
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actor import Actor
from dragoman.core.agent import IssueToken, RegisterAgent, RevokeToken, digest_token, format_token
from dragoman.core.attempt import ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.base import DEFAULT_LEASE_MS, Command, Role
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.auth import (
    ATTEMPT_GRACE_MS,
    CACHE_TTL_MS,
    MAX_CACHED,
    MAX_TOKEN_LENGTH,
    Authenticator,
    Principal,
)
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import StreamRow
from dragoman.system.clock import ManualClock, SequentialIds
from tests.engine.lab import HUMAN, START, OpenStore
from tests.requirements import proves

OWNER = "drgo_" + "o" * 43
DAY = 86_400_000
SECRET = b"the hub's own secret"


class CountedStore(OpenStore):
    """Store that counts reads of streams."""

    reads = 0

    def stream(self, name: str) -> StreamRow | None:
        self.reads += 1
        return super().stream(name)


class AuthHub:
    """Hub and its authentication, in one process."""

    def __init__(self, store: CountedStore | None = None) -> None:
        self.store = store or CountedStore()
        self.clock = ManualClock(START)
        self.identity = Authenticator(self.store, SECRET, OWNER.encode(), self.clock, owner="hera")
        engine = Engine(self.store, self.clock, SECRET, on_commit=self.identity.invalidate)
        self.hub = Hub(engine, SequentialIds())

    def add(self, name: str = "alice", role: Role = "agent", life: int = DAY) -> str:
        """Register an agent and return its token."""
        number = len(self.store.tables.entries)
        token = format_token(name, f"{number:012x}", f"{number:043x}")
        expires_at = self.clock.now() + life
        issue = IssueToken(name, f"{number:012x}", digest_token(token), expires_at)
        self.hub.submit(HUMAN, RegisterAgent(name, role), issue)
        return token

    def claim_task(self, task: str) -> None:
        """Let alice claim this task as her first attempt."""
        self.hub.submit(HUMAN, CreateTask(task, task, ready=True))
        self.hub.submit(HUMAN, ClaimTask(task, "alice"))

    def authenticate(self, token: str) -> Principal:
        """Authenticate a token that must be valid."""
        found = self.identity.authenticate(token, "http")
        assert isinstance(found, Principal), found
        return found

    def code(self, token: str) -> str:
        """Return the refusal code of a token, or "" if it is valid."""
        found = self.identity.authenticate(token, "http")
        return found.code if isinstance(found, Refusal) else ""


@pytest.fixture
def hub() -> AuthHub:
    """Hub whose clock the test controls."""
    return AuthHub()


@proves("IDENTITY-TOKEN")
def test_token_authenticates_its_agent_in_its_role(hub: AuthHub) -> None:
    alice, otto = hub.add(), hub.add("otto", "observer")
    assert hub.authenticate(alice) == Principal(Actor("agent", "alice", "http"))
    assert hub.authenticate(otto).actor == Actor("observer", "otto", "http")
    assert (hub.authenticate(alice).task, hub.authenticate(alice).fence) == ("", None)
    mcp = hub.identity.authenticate(alice, "mcp")
    assert isinstance(mcp, Principal)
    assert mcp.actor.via == "mcp"


@proves("IDENTITY-TOKEN")
def test_changed_role_applies_to_the_next_request(hub: AuthHub) -> None:
    token = hub.add()
    hub.authenticate(token)
    hub.hub.submit(HUMAN, RegisterAgent("alice", "observer"))
    assert hub.authenticate(token).actor.role == "observer"


@proves("IDENTITY-TOKEN", "IDENTITY-ATTEMPT")
@pytest.mark.parametrize(
    ("role", "speaks_as"), [("observer", "observer"), ("orchestrator", "agent"), ("human", "agent")]
)
def test_attempt_token_grants_no_more_than_its_agents_role(
    hub: AuthHub, role: Role, speaks_as: Role
) -> None:
    hub.add()
    hub.claim_task("T")
    token = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    assert hub.authenticate(token).actor == Actor("agent", "alice", "http", "T", 1)
    hub.hub.submit(HUMAN, RegisterAgent("alice", role))
    assert hub.authenticate(token).actor == Actor(speaks_as, "alice", "http", "T", 1)


@proves("IDENTITY-OWNER")
def test_owner_token_is_the_owner(hub: AuthHub) -> None:
    assert hub.authenticate(OWNER) == Principal(Actor("human", "hera", "http"), is_owner=True)
    assert hub.store.reads == 0
    assert hub.code(OWNER + "o") == hub.code(OWNER[:-1]) == "unauthenticated"


@proves("IDENTITY-TOKEN")
def test_token_expires_at_its_millisecond(hub: AuthHub) -> None:
    token = hub.add(life=1_000)
    hub.clock.advance(600)
    assert hub.code(token) == ""
    hub.clock.advance(399)
    assert hub.code(token) == ""
    hub.clock.advance(1)
    assert hub.code(token) == "token_expired"
    hub.clock.advance(DAY)
    assert hub.code(token) == "token_expired"


@proves("IDENTITY-TOKEN", "IDENTITY-SECRET")
def test_failed_authentication_reveals_nothing(hub: AuthHub) -> None:
    token = hub.add(life=1_000)
    hub.hub.submit(HUMAN, RevokeToken("alice"))
    hub.clock.advance(DAY)
    wrong_secret = token[:-1] + ("1" if token[-1] == "0" else "0")
    unknown_agent = token.replace("alice", "malory")
    answers = {
        str(hub.identity.authenticate(wrong, "http"))
        for wrong in (wrong_secret, unknown_agent, "", "x")
    }
    assert len(answers) == 1
    assert hub.code(wrong_secret) == "unauthenticated"
    assert hub.code(token) == "token_revoked"
    assert token not in str(hub.identity.authenticate(token, "http"))
    assert token not in repr(vars(hub.identity))


@proves("IDENTITY-TOKEN")
@pytest.mark.parametrize("token", ["\u2603", "drg_\ud800", "drga_.", "drga_a.a", "drga_\u00fc.b"])
def test_malformed_token_is_unauthenticated(hub: AuthHub, token: str) -> None:
    assert hub.code(token) == "unauthenticated"
    assert hub.code(token + "a" * MAX_TOKEN_LENGTH) == "unauthenticated"


@proves("IDENTITY-TOKEN", "IDENTITY-ATTEMPT")
@given(token=st.text(max_size=200) | st.text(max_size=200).map("drga_".__add__))
def test_arbitrary_text_is_unauthenticated(token: str) -> None:
    assert AuthHub().code(token) == "unauthenticated"


@proves("IDENTITY-TOKEN")
def test_recently_checked_token_needs_no_store_read(hub: AuthHub) -> None:
    token = hub.add()
    hub.authenticate(token)
    reads = hub.store.reads
    for _ in range(50):
        hub.clock.advance(CACHE_TTL_MS // 100)
        hub.authenticate(token)
    assert hub.store.reads == reads
    hub.clock.advance(CACHE_TTL_MS)
    hub.authenticate(token)
    assert hub.store.reads == reads + 1


@proves("IDENTITY-REVOKE")
@pytest.mark.parametrize("single", [True, False])
def test_revocation_applies_at_once_in_its_own_process(hub: AuthHub, *, single: bool) -> None:
    token = hub.add()
    hub.authenticate(token)
    hub.hub.submit(HUMAN, RevokeToken("alice", token.split("_")[2] if single else ""))
    assert hub.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
@pytest.mark.parametrize("waited", [CACHE_TTL_MS, -1])
def test_revocation_applies_within_a_second_in_other_processes(hub: AuthHub, waited: int) -> None:
    token = hub.add()
    other = AuthHub(hub.store)
    other.authenticate(token)
    hub.hub.submit(HUMAN, RevokeToken("alice"))
    # A clock that is set back does not keep the cached record valid.
    other.clock.advance(waited)
    assert other.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
def test_record_read_during_a_revocation_is_not_cached() -> None:
    class RevokingStore(CountedStore):
        """Store in which all tokens are revoked right after the record was read."""

        race: "AuthHub | None" = None

        def stream(self, name: str) -> StreamRow | None:
            row = super().stream(name)
            racer, self.race = self.race, None
            if racer is not None:
                racer.hub.submit(HUMAN, RevokeToken("alice"))
            return row

    store = RevokingStore()
    hub = AuthHub(store)
    token = hub.add()
    store.race = hub
    assert hub.code(token) == ""  # It was valid when it was read.
    assert hub.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
def test_only_changed_agents_are_read_again(hub: AuthHub) -> None:
    alice, bob = hub.add(), hub.add("bob")
    hub.authenticate(alice)
    hub.authenticate(bob)
    reads = hub.store.reads
    hub.hub.submit(HUMAN, CreateTask("A", "a"))
    hub.authenticate(alice)
    hub.authenticate(bob)
    assert hub.store.reads == reads
    hub.hub.submit(HUMAN, RevokeToken("alice"))
    assert (hub.code(bob), hub.store.reads) == ("", reads)


@proves("IDENTITY-TOKEN")
def test_token_cache_is_bounded(hub: AuthHub) -> None:
    hub.claim_task("T")
    for number in range(1, MAX_CACHED + 2):
        hub.authenticate(hub.identity.issue_attempt_token("alice", "T", 1, DAY + number))
    reads = hub.store.reads
    hub.authenticate(hub.identity.issue_attempt_token("alice", "T", 1, DAY + 1))
    assert hub.store.reads > reads


@proves("IDENTITY-LOOK")
def test_slow_store_does_not_block_the_loop() -> None:
    class SlowStore(CountedStore):
        """Store that answers only when allowed to."""

        def __init__(self) -> None:
            super().__init__()
            self.may_answer = threading.Event()
            self.may_answer.set()

        def stream(self, name: str) -> StreamRow | None:
            assert self.may_answer.wait(30)
            return super().stream(name)

    store = SlowStore()
    hub = AuthHub(store)
    token = hub.add()

    async def authenticate_while_blocked() -> Principal | Refusal:
        store.may_answer.clear()
        pending = asyncio.create_task(hub.identity.authenticate_async(token, "http"))
        await asyncio.sleep(0)
        assert not pending.done()  # The loop runs, although the store has not answered.
        owner = await hub.identity.authenticate_async(OWNER, "http")
        assert isinstance(owner, Principal)
        store.may_answer.set()
        return await pending

    assert asyncio.run(authenticate_while_blocked()) == Principal(Actor("agent", "alice", "http"))


@proves("IDENTITY-ATTEMPT")
def test_attempt_token_is_bound_to_its_task_and_not_stored(hub: AuthHub) -> None:
    hub.claim_task("TASK-1")
    before = hub.store.head()
    token = hub.identity.issue_attempt_token("alice", "TASK-1", 1, 60_000)
    found = hub.authenticate(token)
    assert found.actor == Actor("agent", "alice", "http", "TASK-1", 1)
    assert (found.task, found.fence, found.is_owner) == ("TASK-1", 1, False)
    assert hub.store.head() == before
    hub.clock.advance(60_000)
    assert hub.code(token) == "token_expired"


@proves("IDENTITY-ATTEMPT")
def test_attempt_token_cannot_be_forged_or_changed(hub: AuthHub) -> None:
    token = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    encoded_claims, _, seal = token.removeprefix("drga_").partition(".")
    claims = urlsafe_b64decode(encoded_claims + "=" * (-len(encoded_claims) % 4))
    forged = urlsafe_b64encode(claims.replace(b'"fence":1', b'"fence":2')).rstrip(b"=").decode()
    assert forged != encoded_claims
    other = Authenticator(hub.store, b"another secret", OWNER.encode(), hub.clock)
    # The content key of a message with the same claims is no seal.
    as_key = urlsafe_b64encode(bytes.fromhex(hub.hub.content_key(claims))).rstrip(b"=").decode()
    for wrong in (
        f"drga_{forged}.{seal}",
        f"drga_{encoded_claims}.{seal[:-2]}",
        f"drga_{encoded_claims}.{as_key}",
        f"drga_{encoded_claims}",
        f"drga_{encoded_claims}=.{seal}",
        token + "=",
        token + ".",
        other.issue_attempt_token("alice", "T", 1, DAY),
    ):
        assert hub.code(wrong) == "unauthenticated", wrong


@proves("IDENTITY-ATTEMPT", "IDENTITY-REVOKE")
def test_revoking_all_tokens_of_an_agent_ends_its_attempt_tokens(hub: AuthHub) -> None:
    hub.add()
    hub.claim_task("T")
    running = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    hub.authenticate(running)
    hub.hub.submit(HUMAN, RevokeToken("alice"))
    assert hub.code(running) == "token_revoked"
    hub.clock.advance(1)
    assert hub.code(hub.identity.issue_attempt_token("alice", "T", 1, DAY)) == ""


@proves("IDENTITY-ATTEMPT-END")
def test_attempt_token_ends_when_another_attempt_begins(hub: AuthHub) -> None:
    hub.claim_task("T")
    old = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    hub.authenticate(old)
    hub.hub.submit(hub.authenticate(old).actor, ReleaseTask("T"))
    hub.hub.submit(HUMAN, ClaimTask("T", "alice"))
    hub.clock.advance(CACHE_TTL_MS)
    assert hub.code(old) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize(
    "end", [ReportOutcome("T", "done", apply=True), ReleaseTask("T"), MoveTask("T", "blocked", "x")]
)
def test_attempt_token_ends_a_while_after_its_attempt(hub: AuthHub, end: Command) -> None:
    hub.claim_task("T")
    token = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    hub.hub.submit(hub.authenticate(token).actor, end)
    hub.clock.advance(ATTEMPT_GRACE_MS - 1)
    assert hub.code(token) == ""  # The answer to its last request may have been lost.
    hub.clock.advance(CACHE_TTL_MS)
    assert hub.code(token) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
def test_attempt_token_ends_with_its_lease_and_needs_an_existing_task(hub: AuthHub) -> None:
    hub.claim_task("T")
    token = hub.identity.issue_attempt_token("alice", "T", 1, DAY)
    hub.clock.advance(DEFAULT_LEASE_MS + ATTEMPT_GRACE_MS - 1)
    assert hub.code(token) == ""
    hub.clock.advance(CACHE_TTL_MS)
    assert hub.code(token) == "lease_lost"
    assert hub.code(hub.identity.issue_attempt_token("alice", "nothing", 1, DAY)) == "lease_lost"


@proves("IDENTITY-ATTEMPT")
@pytest.mark.parametrize(
    ("agent", "task", "fence"), [("a b", "T", 1), ("a", "../T", 1), ("a", "T", 0)]
)
def test_attempt_token_needs_valid_claims(hub: AuthHub, agent: str, task: str, fence: int) -> None:
    with pytest.raises(ValueError, match=r"not a valid|no attempt"):
        hub.identity.issue_attempt_token(agent, task, fence, DAY)


@proves("IDENTITY-ATTEMPT", "LEASE-LOST")
def test_old_attempt_is_refused_by_its_token_alone(hub: AuthHub) -> None:
    engine_hub = hub.hub
    engine_hub.submit(HUMAN, CreateTask("A", "a", ready=True))
    first = engine_hub.submit(HUMAN, ClaimTask("a", "alice")).receipts[0]
    old = hub.authenticate(
        hub.identity.issue_attempt_token("alice", first.task, first.fence, DAY)
    ).actor
    engine_hub.submit(old, NoteTask("a", "I am alive"))
    engine_hub.submit(old, ReleaseTask("a"))
    second = engine_hub.submit(HUMAN, ClaimTask("a", "alice")).receipts[0]
    new = hub.authenticate(
        hub.identity.issue_attempt_token("alice", second.task, second.fence, DAY)
    ).actor
    with pytest.raises(Refused, match="lease_lost"):
        engine_hub.submit(old, NoteTask("a", "I am back"))
    engine_hub.submit(new, NoteTask("a", "I am alive"))
