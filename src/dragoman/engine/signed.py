"""Signed envelopes: a message that proves by itself whose it is, to this hub only, and only once.

    {"envelope": {…},
     "signature": {"agent", "nonce", "audience", "expires", "alg", "key"?, "value"}}

The value is an Ed25519 signature, in base64url, over a domain tag and the canonical JSON (RFC 8785)
of all that is there but the value itself. The audience is the id of this hub's ledger.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Annotated, Any, Final, cast

import msgspec
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from msgspec import Meta, Struct

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.ids import LONGEST_KEY, check_agent
from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.engine.identity import Principal
from dragoman.engine.ports import Clock, Store
from dragoman.engine.reads.ask import find_agent
from dragoman.engine.request import SIGNED_KEY
from dragoman.text.base64url import from_base64url, to_base64url
from dragoman.text.shape_words import below, shape_fault
from dragoman.text.strict_json import StrictJsonError, parse_json

LONGEST_MS: Final = 300_000
"""A signed message expires within five minutes: so long its nonce has to be remembered."""
MOST_NONCES: Final = 100_000
_OPENING: Final = 4
"""Limit of messages verified at once: unauthenticated callers must not take all threads."""
_FULL_MS: Final = 1_000
"""Interval between searches for expired nonces, while there are too many."""

_DOMAIN: Final = b"dragoman envelope v1\n"
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
_MADE_OF: Final = frozenset({"envelope", "signature"})


class Seal(Struct, frozen=True, forbid_unknown_fields=True, tag="ed25519", tag_field="alg"):
    """The fields of a signature."""

    agent: str
    nonce: str
    audience: str
    expires: str
    value: str
    key: Annotated[str, Meta(max_length=LONGEST_KEY - len(SIGNED_KEY))] = ""
    """The sender's idempotency key: a sender without an answer signs anew, and the message counts
    once."""


class Opened(Struct, frozen=True):
    """A message with a valid signature."""

    principal: Principal
    envelope: Mapping[str, Any]
    key: str
    """The sender's idempotency key; empty: it has none."""
    nonce: str

    def counts_by(self, content: str) -> str:
        """The key under which it counts once; `content`: a digest of the content that identifies
        it, empty where two equal messages are two.

        Unlike a message with a token it does not count again in a later attempt: a replay after a
        restart, when no nonce is remembered, must do nothing.
        """
        return f"{SIGNED_KEY}{self.key or content or self.nonce}"


class Envelopes:
    """Verifies signed messages. Thread-safe."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        unfit: Callable[[Any], Refusal | None] = lambda _: None,
    ) -> None:
        """`check_content`: refuses a message that could be accepted only if it were altered."""
        self._store = store
        self._clock = clock
        self._unfit = unfit
        self._audience = store.ledger_id()
        self._lock = Lock()
        self._opening = ThreadPoolExecutor(_OPENING, thread_name_prefix="signed")
        self._nonces: dict[tuple[str, str], int] = {}
        """Agent and nonce -> until when they are remembered."""
        self._swept_at = 0
        """When expired nonces were last removed: seldom, as it takes time."""

    async def open_soon(self, said: bytes, via: str) -> Opened | Refusal | None:
        """Like `verify`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._opening, self.open, said, via)

    def open(self, said: bytes, via: str) -> Opened | Refusal | None:
        """Verify a message: its content and sender; None: it is not a signed message."""
        try:
            value = parse_json(said)
        except StrictJsonError:
            return None
        if not isinstance(value, dict) or cast(dict[str, Any], value).keys() != _MADE_OF:
            return None
        parts = cast(dict[str, Any], value)
        try:
            seal = msgspec.convert(parts["signature"], Seal)
        except msgspec.ValidationError as error:
            fault = shape_fault(error, Seal)
            place = below("signature", fault.path)
            return Refusal("invalid_envelope", f"{place}: {fault.reason}", path=place)
        envelope: Mapping[str, Any] = parts["envelope"]
        if not isinstance(envelope, dict):
            return Refusal("invalid_envelope", "envelope is not an object", path="envelope")
        # The signature comes first: nobody else learns more.
        known = None if check_agent(seal.agent) else find_agent(self._store, seal.agent)
        now = self._clock.now()
        if known is None or not any(_holds(key, seal, parts) for key in known.good_keys(now)):
            return Refusal(
                "unauthenticated",
                "the signature does not match a key that is registered for its agent",
            )
        refusal = self._check(seal, now) or self._unfit(envelope) or self._use(seal, now)
        if refusal is not None:
            return refusal
        principal = Principal(Actor(known.role, known.name, via))
        return Opened(principal, envelope, seal.key, seal.nonce)

    def _check(self, seal: Seal, now: int) -> Refusal | None:
        """Check audience, nonce and expiry."""
        if seal.audience != self._audience:
            return Refusal(
                "unauthenticated",
                f"the message is signed for another hub; the audience here is {self._audience}",
                path="signature.audience",
            )
        if not _NONCE.fullmatch(seal.nonce):
            return _unfit("nonce", "use 16 to 64 of A-Z a-z 0-9 _ -")
        try:
            expires_at = parse_rfc3339(seal.expires)
        except ValueError as error:
            return _unfit("expires", f"{error}")
        if now >= expires_at:
            ended = f"the signature expired at {to_rfc3339(expires_at)}"
            return Refusal("token_expired", ended, path="signature.expires")
        if expires_at - now > LONGEST_MS:
            return _unfit("expires", "at most five minutes from now")
        return None

    def _use(self, seal: Seal, now: int) -> Refusal | None:
        """Remember the nonce; a refusal, if it was used before."""
        nonce = seal.agent, seal.nonce
        with self._lock:
            if nonce in self._nonces:
                why = "a message with this nonce was received before"
                return Refusal("replayed", why, path="signature.nonce")
            is_full = len(self._nonces) >= MOST_NONCES
            if not 0 <= now - self._swept_at < (_FULL_MS if is_full else LONGEST_MS):
                self._sweep(now)
            if len(self._nonces) >= MOST_NONCES:
                return Refusal("overloaded", "too many signed messages in five minutes; try again")
            # Longer than it is valid, because a clock may be set back.
            self._nonces[nonce] = now + 2 * LONGEST_MS
        return None

    def _sweep(self, now: int) -> None:
        # All of them: where a clock was set back, they are not in the order of their ends. An end
        # later than possible was received under a clock that ran ahead: that message is not valid
        # now, and when its time comes its key makes it a repeat.
        self._swept_at = now
        self._nonces = {
            nonce: until
            for nonce, until in self._nonces.items()
            if now < until <= now + 2 * LONGEST_MS
        }


def sign(envelope: object, said: Mapping[str, str], key: Ed25519PrivateKey) -> dict[str, Any]:
    """Sign a message; `claims` has agent, nonce, audience and expires, and maybe a key."""
    seal = {**said, "alg": "ed25519"}
    value = to_base64url(key.sign(signed_bytes(envelope, seal)))
    return {"envelope": envelope, "signature": {**seal, "value": value}}


def signed_bytes(envelope: object, seal: Mapping[str, str]) -> bytes:
    """The signed bytes: a domain tag, and the canonical JSON of the message without the value."""
    said = {name: text for name, text in seal.items() if name != "value"}
    return _DOMAIN + rfc8785.dumps(cast(Any, {"envelope": envelope, "signature": said}))


def _unfit(field: str, why: str) -> Refusal:
    path = f"signature.{field}"
    return Refusal("invalid_envelope", f"{path}: {why}", path=path)


def _holds(key: str, seal: Seal, parts: Mapping[str, Any]) -> bool:
    signature = from_base64url(seal.value)
    raw = from_base64url(key)
    if signature is None or raw is None:
        return False
    try:
        signed = signed_bytes(parts["envelope"], parts["signature"])
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, signed)
    except (InvalidSignature, rfc8785.CanonicalizationError):
        return False
    return True
