"""A ledger entry: one JSON line, and what the store keeps beside it.

The line is what is hashed: everything that was said is in it, and nothing that the store could
assign later (the position is the leaf number in the tree instead).
"""

from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError

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
    said: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
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
