"""Who speaks: tokens of agents, of the owner and of attempts, and how soon a revocation counts."""

import asyncio
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    DEFAULT_TTL_MS,
    AnyCommand,
    ClaimTask,
    CreateTask,
    IssueToken,
    MoveTask,
    NoteTask,
    RegisterAgent,
    ReleaseTask,
    ReportOutcome,
    RevokeToken,
)
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import Role
from dragoman.core.tokens import digest_of, write_token
from dragoman.engine import identity
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.identity import (
    FRESH_MS,
    LINGER_MS,
    MOST_CHARACTERS,
    MOST_REMEMBERED,
    Identity,
    Principal,
)
from dragoman.engine.ports import Row
from dragoman.system.clock import HandClock
from dragoman.system.ids import CountingIds
from tests.engine.lab import HUMAN, START, OpenStore
from tests.requirements import proves

OWNER = "drgo_" + "o" * 43
DAY = 86_400_000
SECRET = b"the hub's own secret"


class CountedStore(OpenStore):
    """A store that counts how often somebody looked into it."""

    looks = 0

    def stream(self, name: str) -> Row | None:
        self.looks += 1
        return super().stream(name)


class Gate:
    """A hub and its doorkeeper, in one process."""

    def __init__(self, store: CountedStore | None = None) -> None:
        self.store = store or CountedStore()
        self.clock = HandClock(START)
        self.identity = Identity(self.store, SECRET, OWNER.encode(), self.clock, owner="hera")
        engine = Engine(self.store, self.clock, SECRET, on_commit=self.identity.forget)
        self.hub = Hub(engine, CountingIds())

    def add(self, name: str = "alice", role: Role = "agent", life: int = DAY) -> str:
        """Make an agent known; its token."""
        number = len(self.store.tables.entries)
        token = write_token(name, f"{number:012x}", f"{number:043x}")
        expires_at = self.clock.now() + life
        issue = IssueToken(name, f"{number:012x}", digest_of(token), expires_at)
        self.hub.do(HUMAN, RegisterAgent(name, role), issue)
        return token

    def hold(self, task: str) -> None:
        """Alice has this task, in her first attempt."""
        self.hub.do(HUMAN, CreateTask(task, task, ready=True))
        self.hub.do(HUMAN, ClaimTask(task, "alice"))

    def who(self, token: str) -> Principal:
        """The bearer of a token that must be good."""
        found = self.identity.who(token, "http")
        assert isinstance(found, Principal), found
        return found

    def code(self, token: str) -> str:
        """The code of the refusal, or "" for a token that is good."""
        found = self.identity.who(token, "http")
        return found.code if isinstance(found, Refusal) else ""


@pytest.fixture
def gate() -> Gate:
    """Give a hub whose clock is in the test's hands."""
    return Gate()


@proves("IDENTITY-TOKEN")
def test_a_token_speaks_for_its_agent_in_its_role(gate: Gate) -> None:
    alice, otto = gate.add(), gate.add("otto", "observer")
    assert gate.who(alice) == Principal(Actor("agent", "alice", "http"))
    assert gate.who(otto).actor == Actor("observer", "otto", "http")
    assert (gate.who(alice).task, gate.who(alice).fence) == ("", None)
    mcp = gate.identity.who(alice, "mcp")
    assert isinstance(mcp, Principal)
    assert mcp.actor.via == "mcp"


@proves("IDENTITY-TOKEN")
def test_a_new_role_counts_from_the_next_word_on(gate: Gate) -> None:
    token = gate.add()
    gate.who(token)
    gate.hub.do(HUMAN, RegisterAgent("alice", "observer"))
    assert gate.who(token).actor.role == "observer"


@proves("IDENTITY-TOKEN", "IDENTITY-ATTEMPT")
@pytest.mark.parametrize(
    ("role", "speaks_as"), [("observer", "observer"), ("orchestrator", "agent"), ("human", "agent")]
)
def test_the_token_of_an_attempt_gives_no_more_than_its_agent_has(
    gate: Gate, role: Role, speaks_as: Role
) -> None:
    gate.add()
    gate.hold("T")
    token = gate.identity.attempt_token("alice", "T", 1, DAY)
    assert gate.who(token).actor == Actor("agent", "alice", "http", "T", 1)
    gate.hub.do(HUMAN, RegisterAgent("alice", role))
    assert gate.who(token).actor == Actor(speaks_as, "alice", "http", "T", 1)


@proves("IDENTITY-OWNER")
def test_the_token_of_the_directory_is_the_person(gate: Gate) -> None:
    assert gate.who(OWNER) == Principal(Actor("human", "hera", "http"), is_owner=True)
    assert gate.store.looks == 0
    assert gate.code(OWNER + "o") == gate.code(OWNER[:-1]) == "unauthenticated"


@proves("IDENTITY-TOKEN")
def test_a_token_ends_at_its_millisecond(gate: Gate) -> None:
    token = gate.add(life=1_000)
    gate.clock.advance(600)
    assert gate.code(token) == ""
    gate.clock.advance(399)
    assert gate.code(token) == ""
    gate.clock.advance(1)
    assert gate.code(token) == "token_expired"
    gate.clock.advance(DAY)
    assert gate.code(token) == "token_expired"


@proves("IDENTITY-TOKEN", "IDENTITY-SECRET")
def test_whoever_lacks_the_secret_learns_nothing(gate: Gate) -> None:
    token = gate.add(life=1_000)
    gate.hub.do(HUMAN, RevokeToken("alice"))
    gate.clock.advance(DAY)
    nearly = token[:-1] + ("1" if token[-1] == "0" else "0")
    of_nobody = token.replace("alice", "malory")
    answers = {str(gate.identity.who(wrong, "http")) for wrong in (nearly, of_nobody, "", "x")}
    assert len(answers) == 1
    assert gate.code(nearly) == "unauthenticated"
    assert gate.code(token) == "token_revoked"
    assert token not in str(gate.identity.who(token, "http"))
    assert token not in repr(vars(gate.identity))


@proves("IDENTITY-TOKEN")
@pytest.mark.parametrize("token", ["\u2603", "drg_\ud800", "drga_.", "drga_a.a", "drga_\u00fc.b"])
def test_what_is_no_token_speaks_for_nobody(gate: Gate, token: str) -> None:
    assert gate.code(token) == "unauthenticated"
    assert gate.code(token + "a" * MOST_CHARACTERS) == "unauthenticated"


@proves("IDENTITY-TOKEN", "IDENTITY-ATTEMPT")
@given(token=st.text(max_size=200) | st.text(max_size=200).map("drga_".__add__))
def test_no_text_makes_the_doorkeeper_fail(token: str) -> None:
    assert Gate().code(token) == "unauthenticated"


@proves("IDENTITY-TOKEN")
def test_a_token_that_was_just_seen_costs_no_look_into_the_store(gate: Gate) -> None:
    token = gate.add()
    gate.who(token)
    seen = gate.store.looks
    for _ in range(50):
        gate.clock.advance(FRESH_MS // 100)
        gate.who(token)
    assert gate.store.looks == seen
    gate.clock.advance(FRESH_MS)
    gate.who(token)
    assert gate.store.looks == seen + 1


@proves("IDENTITY-REVOKE")
@pytest.mark.parametrize("one", [True, False])
def test_a_revocation_counts_at_once_in_its_own_process(gate: Gate, *, one: bool) -> None:
    token = gate.add()
    gate.who(token)
    gate.hub.do(HUMAN, RevokeToken("alice", token.split("_")[2] if one else ""))
    assert gate.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
@pytest.mark.parametrize("waited", [FRESH_MS, -1])
def test_and_within_a_second_in_every_other(gate: Gate, waited: int) -> None:
    token = gate.add()
    other = Gate(gate.store)
    other.who(token)
    gate.hub.do(HUMAN, RevokeToken("alice"))
    # A clock that is set back does not keep what was seen alive.
    other.clock.advance(waited)
    assert other.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
def test_what_is_read_while_somebody_revokes_is_not_kept() -> None:
    class Racing(CountedStore):
        """A store in which somebody revokes right after the record was read."""

        race: "Gate | None" = None

        def stream(self, name: str) -> Row | None:
            row = super().stream(name)
            racer, self.race = self.race, None
            if racer is not None:
                racer.hub.do(HUMAN, RevokeToken("alice"))
            return row

    store = Racing()
    gate = Gate(store)
    token = gate.add()
    store.race = gate
    assert gate.code(token) == ""  # it was good when it was looked at
    assert gate.code(token) == "token_revoked"


@proves("IDENTITY-REVOKE")
def test_only_the_agents_whose_stream_changed_are_looked_at_again(gate: Gate) -> None:
    alice, bob = gate.add(), gate.add("bob")
    gate.who(alice)
    gate.who(bob)
    seen = gate.store.looks
    gate.hub.do(HUMAN, CreateTask("A", "a"))
    gate.who(alice)
    gate.who(bob)
    assert gate.store.looks == seen
    gate.hub.do(HUMAN, RevokeToken("alice"))
    assert (gate.code(bob), gate.store.looks) == ("", seen)


@proves("IDENTITY-TOKEN")
def test_what_is_remembered_is_bounded(gate: Gate) -> None:
    gate.hold("T")
    for number in range(1, MOST_REMEMBERED + 2):
        gate.who(gate.identity.attempt_token("alice", "T", 1, DAY + number))
    seen = gate.store.looks
    gate.who(gate.identity.attempt_token("alice", "T", 1, DAY + 1))
    assert gate.store.looks > seen


@proves("IDENTITY-LOOK")
def test_a_name_that_nobody_knows_is_looked_for_once_a_second(gate: Gate) -> None:
    stranger = write_token("mallory", "0" * 12, "0" * 43)
    assert gate.code(stranger) == "unauthenticated"
    seen = gate.store.looks
    assert gate.code(write_token("mallory", "1" * 12, "1" * 43)) == "unauthenticated"
    assert gate.code("drga_" + "x" * 80) == "unauthenticated"
    assert gate.store.looks == seen
    gate.clock.advance(FRESH_MS)
    assert gate.code(stranger) == "unauthenticated"
    assert gate.store.looks == seen + 1
    assert gate.code(gate.add("mallory")) == ""


@proves("IDENTITY-LOOK")
def test_the_loop_does_not_wait_for_a_store_that_is_slow() -> None:
    class Slow(CountedStore):
        """Answers when it is told to."""

        def __init__(self) -> None:
            super().__init__()
            self.may_answer = threading.Event()
            self.may_answer.set()

        def stream(self, name: str) -> Row | None:
            assert self.may_answer.wait(30)
            return super().stream(name)

    store = Slow()
    gate = Gate(store)
    token = gate.add()

    async def ask() -> Principal | Refusal:
        store.may_answer.clear()
        asked = asyncio.create_task(gate.identity.who_soon(token, "http"))
        await asyncio.sleep(0)
        assert not asked.done()  # we are here, though the store says nothing
        owner = await gate.identity.who_soon(OWNER, "http")
        assert isinstance(owner, Principal)
        store.may_answer.set()
        return await asked

    assert asyncio.run(ask()) == Principal(Actor("agent", "alice", "http"))


@proves("IDENTITY-ATTEMPT")
def test_the_token_of_an_attempt_speaks_for_its_task_and_is_stored_nowhere(gate: Gate) -> None:
    gate.hold("TASK-1")
    before = gate.store.head()
    token = gate.identity.attempt_token("alice", "TASK-1", 1, 60_000)
    found = gate.who(token)
    assert found.actor == Actor("agent", "alice", "http", "TASK-1", 1)
    assert (found.task, found.fence, found.is_owner) == ("TASK-1", 1, False)
    assert gate.store.head() == before
    gate.clock.advance(60_000)
    assert gate.code(token) == "token_expired"


@proves("IDENTITY-ATTEMPT")
def test_nobody_else_can_make_or_change_one(gate: Gate) -> None:
    token = gate.identity.attempt_token("alice", "T", 1, DAY)
    said, _, seal = token.removeprefix("drga_").partition(".")
    words = urlsafe_b64decode(said + "=" * (-len(said) % 4))
    forged = urlsafe_b64encode(words.replace(b'"fence":1', b'"fence":2')).rstrip(b"=").decode()
    assert forged != said
    other = Identity(gate.store, b"another secret", OWNER.encode(), gate.clock)
    # What a message of the same words would be given as its key is no seal.
    as_key = urlsafe_b64encode(bytes.fromhex(gate.hub.content_key(words))).rstrip(b"=").decode()
    for wrong in (
        f"drga_{forged}.{seal}",
        f"drga_{said}.{seal[:-2]}",
        f"drga_{said}.{as_key}",
        f"drga_{said}",
        f"drga_{said}=.{seal}",
        token + "=",
        token + ".",
        other.attempt_token("alice", "T", 1, DAY),
    ):
        assert gate.code(wrong) == "unauthenticated", wrong


@proves("IDENTITY-ATTEMPT", "IDENTITY-REVOKE")
def test_with_all_tokens_of_an_agent_those_of_its_attempts_end(gate: Gate) -> None:
    gate.add()
    gate.hold("T")
    running = gate.identity.attempt_token("alice", "T", 1, DAY)
    gate.who(running)
    gate.hub.do(HUMAN, RevokeToken("alice"))
    assert gate.code(running) == "token_revoked"
    gate.clock.advance(1)
    assert gate.code(gate.identity.attempt_token("alice", "T", 1, DAY)) == ""


@proves("IDENTITY-ATTEMPT-END")
def test_it_is_dead_when_another_attempt_begins(gate: Gate) -> None:
    gate.hold("T")
    old = gate.identity.attempt_token("alice", "T", 1, DAY)
    gate.who(old)
    gate.hub.do(gate.who(old).actor, ReleaseTask("T"))
    gate.hub.do(HUMAN, ClaimTask("T", "alice"))
    gate.clock.advance(FRESH_MS)
    assert gate.code(old) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize(
    "end", [ReportOutcome("T", "done", apply=True), ReleaseTask("T"), MoveTask("T", "blocked", "x")]
)
def test_and_a_while_after_its_own_end(gate: Gate, end: AnyCommand) -> None:
    gate.hold("T")
    token = gate.identity.attempt_token("alice", "T", 1, DAY)
    gate.hub.do(gate.who(token).actor, end)
    gate.clock.advance(LINGER_MS - 1)
    assert gate.code(token) == ""  # the answer to its last word may have been lost
    gate.clock.advance(FRESH_MS)
    assert gate.code(token) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
def test_and_when_its_lease_has_ended_or_its_task_never_was(gate: Gate) -> None:
    gate.hold("T")
    token = gate.identity.attempt_token("alice", "T", 1, DAY)
    gate.clock.advance(DEFAULT_TTL_MS + LINGER_MS - 1)
    assert gate.code(token) == ""
    gate.clock.advance(FRESH_MS)
    assert gate.code(token) == "lease_lost"
    assert gate.code(gate.identity.attempt_token("alice", "nothing", 1, DAY)) == "lease_lost"


@proves("IDENTITY-ATTEMPT")
@pytest.mark.parametrize(
    ("agent", "task", "fence"), [("a b", "T", 1), ("a", "../T", 1), ("a", "T", 0)]
)
def test_no_token_is_made_for_what_cannot_be(gate: Gate, agent: str, task: str, fence: int) -> None:
    with pytest.raises(ValueError, match=r"not a valid|no attempt"):
        gate.identity.attempt_token(agent, task, fence, DAY)


@proves("IDENTITY-ATTEMPT", "LEASE-LOST")
def test_an_old_attempt_of_the_same_agent_is_refused_by_its_token_alone(gate: Gate) -> None:
    hub = gate.hub
    hub.do(HUMAN, CreateTask("A", "a", ready=True))
    first = hub.do(HUMAN, ClaimTask("a", "alice")).receipts[0]
    old = gate.who(gate.identity.attempt_token("alice", first.task, first.fence, DAY)).actor
    hub.do(old, NoteTask("a", "I am alive"))
    hub.do(old, ReleaseTask("a"))
    second = hub.do(HUMAN, ClaimTask("a", "alice")).receipts[0]
    new = gate.who(gate.identity.attempt_token("alice", second.task, second.fence, DAY)).actor
    with pytest.raises(Refused, match="lease_lost"):
        hub.do(old, NoteTask("a", "I am back"))
    hub.do(new, NoteTask("a", "I am alive"))


class HastyStore(CountedStore):
    """A store in which somebody registers the very agent that is being looked for."""

    gate: "Gate | None" = None

    def stream(self, name: str) -> Row | None:
        gate, self.gate = self.gate, None
        found = super().stream(name)
        if gate is not None:
            gate.add("bob")
        return found


@proves("IDENTITY-LOOK")
def test_who_is_made_known_while_somebody_looks_is_not_taken_for_unknown() -> None:
    store = HastyStore()
    gate = Gate(store)
    token = write_token("bob", f"{0:012x}", f"{0:043x}")
    store.gate = gate
    assert gate.code(token) == "unauthenticated", "so it was when it was looked for"
    assert gate.code(token) == ""


@proves("IDENTITY-LOOK")
def test_of_names_that_nobody_knows_only_so_many_are_remembered(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "MOST_REMEMBERED", 2)
    strangers = [write_token(f"stranger-{n}", f"{n:012x}", f"{n:043x}") for n in range(3)]
    for token in strangers:
        assert gate.code(token) == "unauthenticated"
    before = gate.store.looks
    assert gate.code(strangers[2]) == "unauthenticated"
    assert gate.store.looks == before
    assert gate.code(strangers[0]) == "unauthenticated"
    assert gate.store.looks == before + 1
