"""Stored answers of requests, for their repeats: the receipts, and a fingerprint of the request.

Those of a batch are encoded at its end, all in one go; before that, only where one is asked for.
"""

from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.read import Receipt
from dragoman.engine.ports import IdempotencyRecord
from dragoman.engine.request import Committed, Request
from dragoman.text.keyed_digest import keyed_digest

AnswerKey = tuple[str, str]
"""The stream in which an idempotency key is unique, and the key."""


class _DeclinedEffect(Struct, frozen=True, tag="declined"):
    """A refused effect, stored in place of the effect's receipts, with the reason."""

    code: str
    detail: str


class _PendingAnswer(Struct, frozen=True):
    scope: int
    key: str
    request: Request
    outcome: Committed


_position = attrgetter("position")
_decoder = msgspec.json.Decoder(tuple[Receipt | _DeclinedEffect, ...])
_encode = msgspec.json.Encoder().encode


class IdempotencyAnswers:
    """Stored answers by key, as far as this process has loaded or made them."""

    def __init__(self, cache: dict[AnswerKey, IdempotencyRecord], secret: bytes) -> None:
        """`cache` lasts from batch to batch; fingerprints are keyed with `secret`."""
        self._cache = cache
        self._secret = secret
        self._pending: dict[AnswerKey, _PendingAnswer] = {}

    def add_stored(self, key: AnswerKey, answer: IdempotencyRecord) -> None:
        """Add a record that was read from the store."""
        self._cache[key] = answer

    def add(self, key: AnswerKey, scope: int, request: Request, outcome: Committed) -> None:
        """Add the answer to this request; `scope` is the number of the stream in which its key is
        unique."""
        self._pending[key] = _PendingAnswer(scope, key[1], request, outcome)

    def find(self, key: AnswerKey) -> IdempotencyRecord | None:
        """The answer that was given under this key."""
        new = self._pending.get(key)
        return self._cache.get(key) if new is None else self._to_record(new)

    def matches(self, answer: IdempotencyRecord, request: Request) -> bool:
        """True if this request was answered, and not another one under the same key."""
        return answer.fingerprint == _fingerprint(request, self._secret)

    def take_pending(self) -> list[IdempotencyRecord]:
        """Take the records of the batch, to be stored; from now on they are cached."""
        answers = [self._to_record(new) for new in self._pending.values()]
        self._cache.update(zip(self._pending, answers, strict=True))
        return answers

    def _to_record(self, new: _PendingAnswer) -> IdempotencyRecord:
        fingerprint = _fingerprint(new.request, self._secret)
        return IdempotencyRecord(
            new.scope, new.key, fingerprint, _encode(_answer_parts(new.outcome))
        )


def decode_answer(answer: IdempotencyRecord) -> Committed:
    """Decode a stored answer."""
    parts = _decoder.decode(answer.answer)
    declined = next((part for part in parts if isinstance(part, _DeclinedEffect)), None)
    return Committed(
        tuple(part for part in parts if isinstance(part, Receipt)),
        repeated=True,
        declined=declined and Refusal(declined.code, declined.detail),
    )


def _answer_parts(outcome: Committed) -> Sequence[Receipt | _DeclinedEffect]:
    # The position is known only after the commit, and is looked up for a repeat.
    receipts = outcome.receipts
    if any(map(_position, receipts)):
        receipts = tuple(replace(one, position=0) for one in receipts)
    if outcome.declined is None:
        return receipts
    return (*receipts, _DeclinedEffect(outcome.declined.code, outcome.declined.detail))


def _fingerprint(request: Request, secret: bytes) -> bytes:
    """Fingerprint that tells a repeat from a reuse of its key; keyed, so that it leaks nothing of a
    secret."""
    return keyed_digest(secret, _encode((request.actor.label, _fingerprint_input(request))))


def _fingerprint_input(request: Request) -> object:
    """The part of a request that a repeat has in common with the first one.

    A key that is made of the content is enough. Under a key of the caller's own the original text
    counts where there is one: facts that were collected while it was translated may differ, and so
    may the carry-over that a chunk is redacted with.
    """
    if request.per_attempt:
        return ()
    if request.carry_over is not None:
        return request.carry_over.text_digest
    return request.commands if request.original_text is msgspec.UNSET else request.original_text
