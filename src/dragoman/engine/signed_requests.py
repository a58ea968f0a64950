"""Signed messages: each proves its sender by itself, to this hub only, and only once.

    {"envelope": {…},
     "signature": {"agent", "nonce", "audience", "expires", "alg", "key"?, "value"}}

The value is an Ed25519 signature, in base64url, over a domain tag and the canonical JSON (RFC 8785)
of all fields but the value itself. The audience is the id of this hub's ledger.
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
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta, Struct

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.ids import MAX_KEY_LENGTH, check_agent
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.auth import Principal
from dragoman.engine.ports import Clock, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.request import SIGNED_KEY_PREFIX
from dragoman.text.base64url import decode_base64url, encode_base64url
from dragoman.text.error_messages import join_path, shape_fault
from dragoman.text.strict_json import StrictJsonError, parse_json

MAX_VALIDITY_MS: Final = 300_000
"""A signed message expires within five minutes: so long its nonce has to be remembered."""
MAX_NONCES: Final = 100_000
_MAX_CONCURRENT: Final = 4
"""Limit of messages verified at once: unauthenticated callers must not take all threads."""
_FULL_SWEEP_MS: Final = 1_000
"""Interval between searches for expired nonces, while there are too many."""

_DOMAIN: Final = b"dragoman envelope v1\n"
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
_TOP_LEVEL_FIELDS: Final = frozenset({"envelope", "signature"})


class Signature(Struct, frozen=True, forbid_unknown_fields=True, tag="ed25519", tag_field="alg"):
    """The fields of a signature."""

    agent: str
    nonce: str
    audience: str
    expires: str
    value: str
    key: Annotated[str, Meta(max_length=MAX_KEY_LENGTH - len(SIGNED_KEY_PREFIX))] = ""
    """The sender's idempotency key: a sender without an answer signs anew, and the message counts
    once."""


class VerifiedMessage(Struct, frozen=True):
    """A message with a valid signature."""

    principal: Principal
    envelope: Mapping[str, Any]
    key: str
    """The sender's idempotency key; empty: it has none."""
    nonce: str

    def idempotency_key(self, content: str) -> str:
        """The key under which it counts once; `content`: a digest of the content that identifies
        it, empty where two equal messages are two.

        Unlike a message with a token it does not count again in a later attempt: a replay after a
        restart, when no nonce is remembered, must do nothing.
        """
        return f"{SIGNED_KEY_PREFIX}{self.key or content or self.nonce}"


class SignedMessageVerifier:
    """Verifies signed messages. Thread-safe."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        check_content: Callable[[Any], Refusal | None] = lambda _: None,
    ) -> None:
        """`check_content`: refuses a message that could be accepted only if it were altered."""
        self._store = store
        self._clock = clock
        self._check_content = check_content
        self._audience = store.ledger_id()
        self._lock = Lock()
        self._workers = ThreadPoolExecutor(_MAX_CONCURRENT, thread_name_prefix="signed")
        self._nonces: dict[tuple[str, str], int] = {}
        """Agent and nonce -> until when they are remembered."""
        self._swept_at = 0
        """Time at which expired nonces were last removed: seldom, as it takes time."""

    async def verify_async(self, data: bytes, via: str) -> VerifiedMessage | Refusal | None:
        """Like `verify`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, self.verify, data, via)

    def verify(self, data: bytes, via: str) -> VerifiedMessage | Refusal | None:
        """Verify a message: its content and sender; None: it is not a signed message."""
        try:
            value = parse_json(data)
        except StrictJsonError:
            return None
        if not isinstance(value, dict) or cast(dict[str, Any], value).keys() != _TOP_LEVEL_FIELDS:
            return None
        parts = cast(dict[str, Any], value)
        try:
            signature = msgspec.convert(parts["signature"], Signature)
        except msgspec.ValidationError as error:
            fault = shape_fault(error, Signature)
            place = join_path("signature", fault.path)
            return Refusal("invalid_envelope", f"{place}: {fault.reason}", path=place)
        envelope: Mapping[str, Any] = parts["envelope"]
        if not isinstance(envelope, dict):
            return Refusal("invalid_envelope", "envelope is not an object", path="envelope")
        # The signature comes first: nobody else learns more.
        known = None if check_agent(signature.agent) else find_agent(self._store, signature.agent)
        now = self._clock.now()
        if known is None or not known.key or not _is_valid_signature(known.key, signature, parts):
            return Refusal(
                "unauthenticated",
                "the signature does not match a key that is registered for its agent",
            )
        refusal = (
            self._check_fields(signature, now)
            or self._check_content(envelope)
            or self._use_nonce(signature, now)
        )
        if refusal is not None:
            return refusal
        principal = Principal(Actor(known.role, known.name, via))
        return VerifiedMessage(principal, envelope, signature.key, signature.nonce)

    def _check_fields(self, signature: Signature, now: int) -> Refusal | None:
        """Check audience, nonce and expiry."""
        if signature.audience != self._audience:
            return Refusal(
                "unauthenticated",
                f"the message is signed for another hub; the audience here is {self._audience}",
                path="signature.audience",
            )
        if not _NONCE.fullmatch(signature.nonce):
            return _invalid_field("nonce", "use 16 to 64 of A-Z a-z 0-9 _ -")
        try:
            expires_at = parse_rfc3339(signature.expires)
        except ValueError as error:
            return _invalid_field("expires", f"{error}")
        if now >= expires_at:
            ended = f"the signature expired at {to_rfc3339(expires_at)}"
            return Refusal("token_expired", ended, path="signature.expires")
        if expires_at - now > MAX_VALIDITY_MS:
            return _invalid_field("expires", "at most five minutes from now")
        return None

    def _use_nonce(self, signature: Signature, now: int) -> Refusal | None:
        """Remember the nonce; a refusal, if it was used before."""
        nonce = signature.agent, signature.nonce
        with self._lock:
            if nonce in self._nonces:
                reason = "a message with this nonce was received before"
                return Refusal("replayed", reason, path="signature.nonce")
            is_full = len(self._nonces) >= MAX_NONCES
            if not 0 <= now - self._swept_at < (_FULL_SWEEP_MS if is_full else MAX_VALIDITY_MS):
                self._sweep(now)
            if len(self._nonces) >= MAX_NONCES:
                return Refusal("overloaded", "too many signed messages in five minutes; try again")
            # Longer than it is valid, because a clock may be set back.
            self._nonces[nonce] = now + 2 * MAX_VALIDITY_MS
        return None

    def _sweep(self, now: int) -> None:
        # All of them: where a clock was set back, they are not in the order of their ends. An end
        # later than possible was received under a clock that ran ahead: that message is not valid
        # now, and when its time comes its key makes it a repeat.
        self._swept_at = now
        self._nonces = {
            nonce: until
            for nonce, until in self._nonces.items()
            if now < until <= now + 2 * MAX_VALIDITY_MS
        }


def sign_message(
    envelope: object, claims: Mapping[str, str], key: Ed25519PrivateKey
) -> dict[str, Any]:
    """Sign a message; `claims` has agent, nonce, audience and expires, and maybe a key."""
    signed_fields = {**claims, "alg": "ed25519"}
    value = encode_base64url(key.sign(signed_bytes(envelope, signed_fields)))
    return {"envelope": envelope, "signature": {**signed_fields, "value": value}}


def signed_bytes(envelope: object, signature: Mapping[str, str]) -> bytes:
    """The signed bytes: a domain tag, and the canonical JSON of the message without the value."""
    signed_fields = {name: text for name, text in signature.items() if name != "value"}
    return _DOMAIN + rfc8785.dumps(cast(Any, {"envelope": envelope, "signature": signed_fields}))


def _invalid_field(field: str, reason: str) -> Refusal:
    path = f"signature.{field}"
    return Refusal("invalid_envelope", f"{path}: {reason}", path=path)


def _is_valid_signature(key: str, fields: Signature, parts: Mapping[str, Any]) -> bool:
    signature = decode_base64url(fields.value)
    raw = decode_base64url(key)
    if signature is None or raw is None:
        return False
    try:
        signed = signed_bytes(parts["envelope"], parts["signature"])
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, signed)
    except (InvalidSignature, rfc8785.CanonicalizationError):
        return False
    return True
