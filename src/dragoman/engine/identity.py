"""Who speaks: what a token says about its bearer, checked at every door in the same way.

Tokens of agents stand in the ledger as digests; the owner's token lies in the data directory; the
token of an attempt stands nowhere: it carries what it says, under the hub's own seal.
"""

import hmac
from collections.abc import Collection
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.agents import AgentRecord
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.ids import check_agent, check_task_id
from dragoman.core.moments import to_rfc3339
from dragoman.core.tokens import digest_of, read_token
from dragoman.engine.ask import find_agent
from dragoman.engine.ports import Clock, Store
from dragoman.text.base64url import from_base64url, to_base64url

ATTEMPT: Final = "drga_"
MOST_CHARACTERS: Final = 2_048
FRESH_MS: Final = 1_000
"""How long what was read of an agent is believed: what another process revokes is seen then."""
MOST_REMEMBERED: Final = 10_000

_SEAL_OF: Final = b"\x00attempt token\x00"
"""Before what is sealed: no message begins so, hence no digest of one is a seal."""

_UNKNOWN: Final = Refusal(
    "unauthenticated",
    "the credential speaks for nobody here: show the token of this data directory, or one that "
    "`dragoman agent add` printed",
)


class Principal(Struct, frozen=True):
    """Who speaks, by the credential that was shown."""

    actor: Actor
    is_owner: bool = False
    """Whether it is the person whose data directory this is."""

    @property
    def task(self) -> str:
        """The one task that an attempt's token speaks for; empty: any."""
        return self.actor.task

    @property
    def fence(self) -> int | None:
        """The fencing token that an attempt's token is bound to."""
        return self.actor.fence or None


class _Attempt(Struct, frozen=True):
    """What the token of an attempt carries."""

    agent: str
    task: str
    fence: int
    issued: int
    expires: int


class _Bearer(Struct, frozen=True):
    """What is known of a token that was good when it was looked at."""

    role: Role
    name: str
    expires_at: int
    seen_at: int
    task: str = ""
    fence: int = 0


class Identity:
    """Knows the bearers of tokens. Several threads may ask at once."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        owner_token: bytes,
        clock: Clock,
        *,
        owner: str = "owner",
    ) -> None:
        self._store = store
        self._secret = secret
        self._owner_digest = digest_of(owner_token.decode("ascii"))
        self._owner = owner
        self._clock = clock
        self._lock = Lock()
        self._bearers: dict[str, _Bearer] = {}
        """Digest of a token -> its bearer."""
        self._forgotten = 0
        """How often something was forgotten: what was read before that is not kept."""

    def who(self, token: str, via: str) -> Principal | Refusal:
        """Whose token this is; `via` is the door at which it was shown.

        A token that was seen within the last second costs no look into the store.
        """
        if not token.isascii() or len(token) > MOST_CHARACTERS:
            return _UNKNOWN
        digest = digest_of(token)
        if hmac.compare_digest(digest, self._owner_digest):
            return Principal(Actor("human", self._owner, via), is_owner=True)
        now = self._clock.now()
        bearer = self._bearers.get(digest)
        # A clock that was set back must not make an old look a fresh one.
        if bearer is None or not 0 <= now - bearer.seen_at < FRESH_MS:
            forgotten = self._forgotten
            looked = self._look(token, digest, now)
            if isinstance(looked, Refusal):
                self._drop(digest)
                return looked
            bearer = looked
            self._remember(digest, bearer, forgotten)
        if now >= bearer.expires_at:
            return _expired(bearer.name, bearer.expires_at)
        return Principal(Actor(bearer.role, bearer.name, via, bearer.task, bearer.fence))

    def attempt_token(self, agent: str, task: str, fence: int, ttl_ms: int) -> str:
        """A token for one attempt: it speaks as this agent, for this task, under this fence.

        `task` is the task's primary id. The token ends with its time, with the attempt, and when
        all tokens of the agent are revoked.
        """
        malformed = check_agent(agent) or check_task_id(task)
        if malformed is not None or fence < 1:
            raise ValueError(malformed.detail if malformed else f"no attempt has fence {fence}")
        now = self._clock.now()
        said = msgspec.json.encode(_Attempt(agent, task, fence, now, now + ttl_ms))
        return f"{ATTEMPT}{to_base64url(said)}.{to_base64url(self._seal(said))}"

    def forget(self, streams: Collection[str]) -> None:
        """What happened to these streams changes who may speak: look again. (An `OnCommit`.)"""
        agents = {stream[6:] for stream in streams if stream.startswith("agent:")}
        if agents:
            with self._lock:
                self._forgotten += 1
                self._bearers = {
                    digest: bearer
                    for digest, bearer in self._bearers.items()
                    if bearer.name not in agents
                }

    def _remember(self, digest: str, bearer: _Bearer, forgotten: int) -> None:
        with self._lock:
            if forgotten != self._forgotten:
                return
            if len(self._bearers) >= MOST_REMEMBERED:
                self._bearers.clear()
            self._bearers[digest] = bearer

    def _drop(self, digest: str) -> None:
        with self._lock:
            self._bearers.pop(digest, None)

    def _look(self, token: str, digest: str, now: int) -> _Bearer | Refusal:
        if token.startswith(ATTEMPT):
            return self._look_at_attempt(token, now)
        claim = read_token(token)
        known = None if claim is None else find_agent(self._store, claim.agent)
        if claim is None or known is None:
            return _UNKNOWN
        # Only whoever has the whole token is told what became of it.
        for kept in known.tokens:
            if kept.id == claim.id and hmac.compare_digest(kept.digest, digest):
                if kept.is_revoked:
                    return _revoked(known.name)
                return _Bearer(known.role, known.name, kept.expires_at, now)
        return _UNKNOWN

    def _look_at_attempt(self, token: str, now: int) -> _Bearer | Refusal:
        said, _, seal = token.removeprefix(ATTEMPT).partition(".")
        carried, sealed = from_base64url(said), from_base64url(seal)
        if carried is None or sealed is None:
            return _UNKNOWN
        if not hmac.compare_digest(sealed, self._seal(carried)):
            return _UNKNOWN
        attempt = msgspec.json.decode(carried, type=_Attempt)
        known = find_agent(self._store, attempt.agent)
        if known is not None and _is_cut_off(known, attempt.issued):
            return _revoked(attempt.agent)
        return _Bearer("agent", attempt.agent, attempt.expires, now, attempt.task, attempt.fence)

    def _seal(self, said: bytes) -> bytes:
        return hmac.digest(self._secret, _SEAL_OF + said, "sha256")


def _is_cut_off(known: AgentRecord, issued: int) -> bool:
    return known.cut_off_at is not None and issued <= known.cut_off_at


def _expired(name: str, at: int) -> Refusal:
    return Refusal(
        "token_expired", f"the token of {name} ended at {to_rfc3339(at)}: ask for a new one"
    )


def _revoked(name: str) -> Refusal:
    return Refusal("token_revoked", f"the token of {name} was taken back: ask for a new one")
