"""Answers to requests, for their repeats: what was told, and a digest of what was asked.

Those of a batch are put into their stored form at its end, all in one go; before that, only where
one is asked for.
"""

from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.reading import Receipt
from dragoman.engine.ports import Answer
from dragoman.engine.request import Accepted, Request
from dragoman.engine.snapshots import Place
from dragoman.text.digest import keyed_digest


class _Declined(Struct, frozen=True, tag="declined"):
    """A refused effect, stored in place of the effect's receipts, with the reason."""

    code: str
    detail: str


class _New(Struct, frozen=True):
    scope: int
    key: str
    request: Request
    told: Accepted


_position = attrgetter("position")
_decoder = msgspec.json.Decoder(tuple[Receipt | _Declined, ...])
_encode = msgspec.json.Encoder().encode


class Answers:
    """Stored answers by key, as far as this process has loaded or made them."""

    def __init__(self, kept: dict[Place, Answer], secret: bytes) -> None:
        """`cache` lasts from batch to batch; fingerprints are keyed with `secret`."""
        self._kept = kept
        self._secret = secret
        self._new: dict[Place, _New] = {}

    def learn(self, place: Place, answer: Answer) -> None:
        """Add a record that was read from the store."""
        self._kept[place] = answer

    def keep(self, place: Place, scope: int, request: Request, told: Accepted) -> None:
        """Add the answer to this request; `scope` is the number of the stream in which its key is
        unique."""
        self._new[place] = _New(scope, place[1], request, told)

    def find(self, place: Place) -> Answer | None:
        """The answer that was given under this key."""
        new = self._new.get(place)
        return self._kept.get(place) if new is None else self._stored(new)

    def fits(self, answer: Answer, request: Request) -> bool:
        """True if this request was answered, and not another one under the same key."""
        return answer.fingerprint == _fingerprint(request, self._secret)

    def written(self) -> list[Answer]:
        """Take the records of the batch, to be stored; from now on they are cached."""
        answers = [self._stored(new) for new in self._new.values()]
        self._kept.update(zip(self._new, answers, strict=True))
        return answers

    def _stored(self, new: _New) -> Answer:
        fingerprint = _fingerprint(new.request, self._secret)
        return Answer(new.scope, new.key, fingerprint, _encode(_parts(new.told)))


def told_before(answer: Answer) -> Accepted:
    """Decode a stored answer."""
    parts = _decoder.decode(answer.answer)
    declined = next((part for part in parts if isinstance(part, _Declined)), None)
    return Accepted(
        tuple(part for part in parts if isinstance(part, Receipt)),
        repeated=True,
        declined=declined and Refusal(declined.code, declined.detail),
    )


def _parts(told: Accepted) -> Sequence[Receipt | _Declined]:
    # The position is known only after the commit, and is looked up for a repeat.
    receipts = told.receipts
    if any(map(_position, receipts)):
        receipts = tuple(replace(one, position=0) for one in receipts)
    if told.declined is None:
        return receipts
    return (*receipts, _Declined(told.declined.code, told.declined.detail))


def _fingerprint(request: Request, secret: bytes) -> bytes:
    """Fingerprint that tells a repeat from a reuse of its key; keyed, so that it leaks nothing of a
    secret."""
    return keyed_digest(secret, _encode((request.actor.label, _asked(request))))


def _asked(request: Request) -> object:
    """The part of a request that a repeat has in common with the first one.

    A key that is made of the content is enough. Under a key of the caller's own the original text
    counts where there is one: facts that were collected while it was translated may differ, and so
    may the carry-over that a chunk is redacted with.
    """
    if request.per_attempt:
        return ()
    if request.rest is not None:
        return request.rest.said
    return request.commands if request.said is msgspec.UNSET else request.said
