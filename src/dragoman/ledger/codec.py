"""Event names and versions <-> event structs. Old versions are lifted when they are read."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.events import EVENT_NAMES, AnyEvent, Event

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

    def decode(self, name: str, version: int, body: bytes) -> AnyEvent:
        """The event of a stored body, upcast to today's shape."""
        event_type, newest = self.types.get(name), self.version(name)
        if event_type is None or not 1 <= version <= newest:
            raise LedgerError(
                f"event {name} version {version} is not known to this release: "
                "it was written by a newer one, or changed"
            )
        try:
            if version == newest:
                return cast(AnyEvent, msgspec.json.decode(body, type=event_type))
            fields = msgspec.json.decode(body, type=dict[str, Any])
            for old in range(version, newest):
                fields = self.upcasters[name, old](fields)
            return cast(AnyEvent, msgspec.convert(fields, event_type))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LedgerError(f"the body of event {name} cannot be read: {error}") from error


CODEC = Codec({name: event_type for event_type, name in EVENT_NAMES.items()}, UPCASTERS)
"""The codec of this release."""

WRITTEN_AS: dict[type[Event], tuple[str, int]] = {
    event_type: (name, CODEC.version(name)) for event_type, name in EVENT_NAMES.items()
}
"""Event type -> the name and version under which it is written."""
