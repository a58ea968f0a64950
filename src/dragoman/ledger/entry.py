"""Entries of the ledger: one line each, chained by SHA-256, decoded with upcasters on read."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.base import Event
from dragoman.core.errors import LedgerError
from dragoman.core.event_table import EVENT_NAMES
from dragoman.text.keyed_digest import uuid8

GENESIS = bytes(32)
"""The hash before the first entry of a stream."""


def link_hash(previous: bytes, line: bytes) -> bytes:
    """SHA-256 of the previous hash of the stream, followed by the line."""
    return sha256(previous + line).digest()


Body = TypeVar("Body")


class Line(Struct, Generic[Body], frozen=True, omit_defaults=True):
    """The JSON line, in the order of its fields. Stored as bytes and never written again.

    It is written with an event as its body and read with the body's bytes, which the codec decodes.
    """

    stream: str
    version: int
    """The entry's number in its stream, from 1."""
    event: str
    v: int
    """The version of the event's shape."""
    at: int
    """The hub's clock, in milliseconds since the epoch."""
    actor: str
    cause: str
    """The id of the request; all entries of one request share it."""
    body: Body
    via: str = ""
    original_text: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The sender's message with unknown fields, as received; on the first entry of a request."""


class Entry(Struct, frozen=True, gc=False):
    """An entry as it is stored; `stream`, `version` and `event` are copies of the line's."""

    position: int
    stream: str
    version: int
    event: str
    line: bytes
    previous: bytes
    hash: bytes


_decoder = msgspec.json.Decoder(Line[msgspec.Raw])
write_line = msgspec.json.Encoder().encode


def line_prefix(stream: str, version: int, event: str) -> bytes:
    """The beginning of a line with these columns, unless a name in it needs an escape."""
    return f'{{"stream":"{stream}","version":{version},"event":"{event}","v":'.encode()


def read_line(data: bytes) -> Line[msgspec.Raw]:
    """Decode a stored line."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LedgerError(f"a stored line is not an entry: {error}") from error


def transition_id(digest: bytes) -> str:
    """The id of a task's move as a trace event: a UUID made of its entry's hash, the same in every
    copy of the ledger."""
    return uuid8(digest)


Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(event name, old version) -> upcasts the body to the next version."""


class Codec(Struct, frozen=True):
    """Event names, the version of each, and how older versions are read."""

    types: Mapping[str, type[Event]]
    upcasters: Mapping[tuple[str, int], Upcaster]

    def version(self, name: str) -> int:
        """The version that is written today: one more than the newest that is upcast."""
        return 1 + max((old for event, old in self.upcasters if event == name), default=0)

    def decode(self, name: str, version: int, body: bytes) -> Event:
        """The event of a stored body, upcast to today's shape."""
        event_type, newest = self.types.get(name), self.version(name)
        if event_type is None or not 1 <= version <= newest:
            raise LedgerError(
                f"event {name} version {version} is not known to this release: "
                "it was written by a newer one, or changed"
            )
        try:
            if version == newest:
                return msgspec.json.decode(body, type=event_type)
            fields = msgspec.json.decode(body, type=dict[str, Any])
            for old in range(version, newest):
                fields = self.upcasters[name, old](fields)
            return msgspec.convert(fields, event_type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LedgerError(f"the body of event {name} cannot be read: {error}") from error


CODEC = Codec({name: event_type for event_type, name in EVENT_NAMES.items()}, UPCASTERS)
"""The codec of this release."""

WRITTEN_AS: dict[type[Event], tuple[str, int]] = {
    event_type: (name, CODEC.version(name)) for event_type, name in EVENT_NAMES.items()
}
"""Event type -> the name and version under which it is written."""
