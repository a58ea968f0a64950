"""Versions of a turn: each a key of one table, with the way to the next (S-SAOP-2).

A field that every turn must have from now on is a new shape, a new version, and the function that
makes an older turn one of it. Those who still send the older one are understood.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.protocols.saop.schema import Parsed, RawMessage, SaopError, Schema
from dragoman.protocols.saop.shapes import TurnEnvelope
from dragoman.text.strict_json import get_field

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts a turn, as parsed JSON, to the next version, including its `metadata.version`."""


class Version(Struct, frozen=True):
    """Shape of a turn in one version, and its upgrade to the next."""

    shape: type[Struct]
    upgrade: Upgrade | None = None
    """None: the newest version."""


VERSIONS: Final[Mapping[str, Version]] = {
    "1.0.0": Version(TurnEnvelope),
}
"""`metadata.version` -> its shape, oldest first.

A new required field of a turn is a new shape, a new version, and the function that upgrades an
older turn to it. Senders of older versions stay understood.
"""


class VersionedTurnSchema:
    """Schema that accepts turns of every known version and upgrades them to the newest."""

    def __init__(self, versions: Mapping[str, Version] = VERSIONS) -> None:
        self._versions = dict(versions)
        self._schemas: dict[str, Schema[Any]] = {
            name: Schema(version.shape) for name, version in versions.items()
        }
        self._names = list(versions)
        self._newest = self._schemas[self._names[-1]]
        self.shape = self._newest.shape

    def parse(self, raw: RawMessage) -> Any:
        """Parse a turn; raises SaopError if it fits no version."""
        try:
            return self._newest.parse(raw)
        except SaopError:
            value = _decode_json(raw)
            version = _stated_version(value)
            if version not in self._names[:-1]:
                raise
        return self._newest.parse(self.upgrade(value))

    def safe_parse(self, raw: RawMessage) -> Parsed[Any]:
        """Parse a turn without an exception."""
        try:
            return Parsed(True, self.parse(raw))
        except SaopError as error:
            return Parsed(False, issues=error.issues)

    def upgrade(self, value: dict[str, Any]) -> dict[str, Any]:
        """Upgrade a turn, as parsed JSON, to the newest version; raises SaopError."""
        for name in self._names[self._names.index(_stated_version(value)) :]:
            self._schemas[name].parse(value)
            step = self._versions[name].upgrade
            if step is not None:
                value = step(value)
        return value


def _decode_json(raw: RawMessage) -> Any:
    if not isinstance(raw, bytes | str):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _stated_version(value: Any) -> str:
    """Version that a value states, or an empty text."""
    version = get_field(get_field(value, "metadata"), "version")
    return version if isinstance(version, str) else ""
