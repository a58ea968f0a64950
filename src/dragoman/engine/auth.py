"""Authentication: the principal that a token stands for, checked the same way at every surface.

Tokens of agents stand in the ledger as digests; the owner's token lies in the data directory; the
token of an attempt is stored nowhere: it carries its claims, sealed with the hub's own secret.
"""

import asyncio
import hmac
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, digest_token, parse_token
from dragoman.core.authority import MAY_HOLD, attempt_ended_refusal
from dragoman.core.base import Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, check_task_id
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Clock, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.text.base64url import decode_base64url, encode_base64url

ATTEMPT_CREDENTIAL_PREFIX: Final = "drga_"
MAX_TOKEN_LENGTH: Final = 2_048
CACHE_TTL_MS: Final = 1_000
"""Lifetime of a cached agent: a revocation by another process takes effect within it."""
MAX_CACHED: Final = 10_000
ATTEMPT_GRACE_MS: Final = 60_000
"""Grace period of the token of an ended attempt, while no other attempt has begun."""

_MAX_LOOKUPS: Final = 4
"""Limit of concurrent store lookups: unauthenticated callers must not take all threads."""

_SEAL_PREFIX: Final = b"\x00attempt token\x00"
"""Put before the sealed claims: no message begins so, hence no digest of one is a seal."""

_UNKNOWN: Final = Refusal(
    "unauthenticated",
    "unknown credential: show the token of this data directory, or one that `dragoman agent add` "
    "printed",
)


class Principal(Struct, frozen=True):
    """The caller, by the credential that was shown."""

    actor: Actor
    is_owner: bool = False
    """True for the person whose data directory this is."""

    @property
    def task(self) -> str:
        """The one task that an attempt's token is valid for; empty: any."""
        return self.actor.task

    @property
    def fence(self) -> int | None:
        """The fencing token that an attempt's token is bound to."""
        return self.actor.fence or None


class _AttemptToken(Struct, frozen=True):
    """The claims of an attempt's token."""

    agent: str
    task: str
    fence: int
    issued: int
    expires: int


class _CachedBearer(Struct, frozen=True):
    """The bearer of a token that was valid when it was looked up."""

    role: Role
    name: str
    expires_at: int
    seen_at: int
    task: str = ""
    fence: int = 0


class Authenticator:
    """Authenticates tokens. Thread-safe."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        owner_token: bytes,
        clock: Clock,
        *,
        owner: str = "owner",
        attempt_grace_ms: int = ATTEMPT_GRACE_MS,
    ) -> None:
        self._store = store
        self._secret = secret
        self._owner_digest = digest_token(owner_token.decode("ascii"))
        self._owner = owner
        self._clock = clock
        self._attempt_grace_ms = attempt_grace_ms
        self._lock = Lock()
        self._lookups = ThreadPoolExecutor(_MAX_LOOKUPS, thread_name_prefix="identity")
        self._bearers: dict[str, _CachedBearer] = {}
        """Digest of a token -> its bearer."""
        self._invalidations = 0
        """Counts invalidations: a lookup that began before the last one is not cached."""

    def authenticate(self, token: str, via: str) -> Principal | Refusal:
        """The principal of a token; `via` is the surface at which it was shown.

        A token that was seen within the last second costs no lookup in the store.
        """
        known = self._check_cached(token, via)
        if known is not None:
            return known
        digest, now, invalidations = digest_token(token), self._clock.now(), self._invalidations
        bearer = self._look_up_bearer(token, digest, now)
        if isinstance(bearer, Refusal):
            self._drop(digest)
            return bearer
        self._remember(digest, bearer, invalidations)
        return _check_expiry(bearer, now, via)

    async def authenticate_async(self, token: str, via: str) -> Principal | Refusal:
        """Like `authenticate`; a lookup in the store does not block the event loop."""
        known = self._check_cached(token, via)
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._lookups, self.authenticate, token, via)

    def _check_cached(self, token: str, via: str) -> Principal | Refusal | None:
        """The result, if it is known without the store; None: a lookup is needed."""
        if not token.isascii() or len(token) > MAX_TOKEN_LENGTH:
            return _UNKNOWN
        digest = digest_token(token)
        if hmac.compare_digest(digest, self._owner_digest):
            return Principal(Actor("human", self._owner, via), is_owner=True)
        now = self._clock.now()
        bearer = self._bearers.get(digest)
        # A clock that was set back must not make an old lookup a fresh one.
        if bearer is not None and 0 <= now - bearer.seen_at < CACHE_TTL_MS:
            return _check_expiry(bearer, now, via)
        if token.startswith(ATTEMPT_CREDENTIAL_PREFIX):
            return _UNKNOWN if self._parse_attempt_token(token) is None else None
        return _UNKNOWN if parse_token(token) is None else None

    def issue_attempt_token(self, agent: str, task: str, fence: int, ttl_ms: int) -> str:
        """Issue a token for one attempt: valid as this agent, for this task, under this fence.

        `task` is the task's primary id. The token ends with its time, with the attempt, and when
        all tokens of the agent are revoked.
        """
        malformed = check_agent(agent) or check_task_id(task)
        if malformed is not None or fence < 1:
            raise ValueError(malformed.detail if malformed else f"no attempt has fence {fence}")
        now = self._clock.now()
        claims = msgspec.json.encode(_AttemptToken(agent, task, fence, now, now + ttl_ms))
        seal = encode_base64url(self._seal(claims))
        return f"{ATTEMPT_CREDENTIAL_PREFIX}{encode_base64url(claims)}.{seal}"

    def invalidate(self, streams: Collection[str]) -> None:
        """Drop cached agents whose streams have changed. (An `OnCommit`.)"""
        agents = {stream[6:] for stream in streams if stream.startswith("agent:")}
        if agents:
            with self._lock:
                self._invalidations += 1
                self._bearers = {
                    digest: bearer
                    for digest, bearer in self._bearers.items()
                    if bearer.name not in agents
                }

    def _remember(self, digest: str, bearer: _CachedBearer, invalidations: int) -> None:
        with self._lock:
            if invalidations != self._invalidations:
                return
            if len(self._bearers) >= MAX_CACHED:
                self._bearers.clear()
            self._bearers[digest] = bearer

    def _drop(self, digest: str) -> None:
        with self._lock:
            self._bearers.pop(digest, None)

    def _look_up_bearer(self, token: str, digest: str, now: int) -> _CachedBearer | Refusal:
        attempt = self._parse_attempt_token(token)
        if attempt is not None:
            return self._look_up_attempt(attempt, now)
        claim = parse_token(token)
        assert claim is not None, "a malformed token was refused before"
        known = find_agent(self._store, claim.agent)
        if known is None:
            return _UNKNOWN
        # Only the bearer of the whole token is told that it was revoked.
        for issued in known.tokens:
            if issued.id == claim.id and hmac.compare_digest(issued.digest, digest):
                if issued.is_revoked:
                    return _revoked(known.name)
                return _CachedBearer(known.role, known.name, issued.expires_at, now)
        return _UNKNOWN

    def _parse_attempt_token(self, token: str) -> _AttemptToken | None:
        """The claims of an attempt's token; None: this hub has not sealed it."""
        if not token.startswith(ATTEMPT_CREDENTIAL_PREFIX):
            return None
        claims, _, seal = token.removeprefix(ATTEMPT_CREDENTIAL_PREFIX).partition(".")
        carried, sealed = decode_base64url(claims), decode_base64url(seal)
        if carried is None or sealed is None:
            return None
        if not hmac.compare_digest(sealed, self._seal(carried)):
            return None
        return msgspec.json.decode(carried, type=_AttemptToken)

    def _look_up_attempt(self, attempt: _AttemptToken, now: int) -> _CachedBearer | Refusal:
        known = find_agent(self._store, attempt.agent)
        if known is not None and _is_revoked_before(known, attempt.issued):
            return _revoked(attempt.agent)
        view = find_task(self._store, attempt.task)
        ended_at = None if isinstance(view, Refusal) else _attempt_end(view, attempt.fence, now)
        if ended_at is None or now - ended_at >= self._attempt_grace_ms:
            return attempt_ended_refusal(attempt.agent, attempt.fence, attempt.task)
        # An attempt gives nobody a higher role than an agent's, and an observer none to act in.
        role = known.role if known is not None and known.role not in MAY_HOLD else "agent"
        return _CachedBearer(role, attempt.agent, attempt.expires, now, attempt.task, attempt.fence)

    def _seal(self, claims: bytes) -> bytes:
        return hmac.digest(self._secret, _SEAL_PREFIX + claims, "sha256")


def _check_expiry(bearer: _CachedBearer, now: int, via: str) -> Principal | Refusal:
    if now >= bearer.expires_at:
        return _expired(bearer.name, bearer.expires_at)
    return Principal(Actor(bearer.role, bearer.name, via, bearer.task, bearer.fence))


def _attempt_end(view: TaskView, fence: int, now: int) -> int | None:
    """End of the attempt; now, while it lives; None: another one has begun since."""
    task, lease = view.task, view.lease
    if task.fence != fence:
        return None
    if lease is not None:
        return min(now, lease.expires_at)
    # Later changes of the task must not bring the credential back.
    reported = task.reported
    return task.moved_at if reported is None else reported.at


def _is_revoked_before(known: AgentRecord, issued: int) -> bool:
    return known.cut_off_at is not None and issued <= known.cut_off_at


def _expired(name: str, at: int) -> Refusal:
    return Refusal(
        "token_expired", f"the token of {name} expired at {to_rfc3339(at)}: ask for a new one"
    )


def _revoked(name: str) -> Refusal:
    return Refusal("token_revoked", f"the token of {name} was revoked: ask for a new one")
