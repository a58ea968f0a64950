"""Parse SAOP messages against their schemas, event types and turn versions (S-SAOP-2, S-SAOP-8).

The usual case is one typed decoding. Only a message that fails it is checked again, field by field,
to name every place that is wrong.

>>> from msgspec import Struct
>>> class Coffee(Payload, frozen=True, tag="COFFEE_BREAK"):
...     minutes: int
>>> TYPES.plus(Coffee).payload.parse('{"type": "COFFEE_BREAK", "minutes": 5}')
Coffee(minutes=5)
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, Union, cast, get_args

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import FieldInfo, fields

from dragoman.protocols.saop import wire
from dragoman.protocols.saop.errors import Issue, SaopError
from dragoman.text.error_messages import MISSING, NO_OBJECT, choice_message, join_path, shape_fault
from dragoman.text.strict_json import get_field

# --- schemas ----------------------------------------------------------------------------------

T = TypeVar("T")

RawMessage = bytes | str | Mapping[str, Any]
"""JSON text, or an object that was parsed elsewhere."""


class Parsed(Struct, Generic[T], frozen=True):
    """Result of `safe_parse`: `ok` and the `data`, or the `issues`."""

    ok: bool
    data: T | None = None
    issues: tuple[Issue, ...] = ()


class Schema(Generic[T]):
    """A shape that messages are checked against."""

    def __init__(self, shape: Any, tagged: Mapping[str, type[Struct]] | None = None) -> None:
        """`tagged`: shapes of tagged unions, by the value of `type`."""
        self.shape = shape
        self._tagged = tagged or {}
        self._decode = msgspec.json.Decoder(shape).decode

    def parse(self, raw: RawMessage) -> T:
        """Parse a message; raises SaopError if it does not fit.

        Of two equal keys the last one counts, as in other parsers; a hub refuses both.
        """
        try:
            if isinstance(raw, bytes | str):
                return self._decode(raw)
            return msgspec.convert(raw, self.shape)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise SaopError(self._explain_failure(raw, error)) from None

    def safe_parse(self, raw: RawMessage) -> Parsed[T]:
        """Parse a message without an exception."""
        try:
            return Parsed(True, self.parse(raw))
        except SaopError as error:
            return Parsed(False, issues=error.issues)

    def issues(self, value: Any) -> tuple[Issue, ...]:
        """List everything that is wrong with a parsed JSON value."""
        return tuple(self._find_issues(value, self.shape, ""))

    def _explain_failure(self, raw: RawMessage, error: Exception) -> tuple[Issue, ...]:
        value: Any = raw
        if isinstance(raw, bytes | str):
            try:
                value = msgspec.json.decode(raw)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as unreadable:
                return (Issue("", f"this is not JSON: {unreadable}"),)
        return self.issues(value) or (_to_issue(error, self.shape, ""),)

    def _find_issues(self, value: Any, shape: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield Issue(path, NO_OBJECT)
            return
        known = cast(dict[str, Any], value)
        if not _is_struct(shape):
            shape = self._shape_by_tag(known)
            if isinstance(shape, str):
                yield Issue(join_path(path, "type"), shape)
                return
        for field in fields(shape):
            yield from self._find_field_issues(known, field, join_path(path, field.encode_name))

    def _find_field_issues(
        self, known: dict[str, Any], field: FieldInfo, path: str
    ) -> Iterator[Issue]:
        if field.encode_name not in known:
            if field.required:
                yield Issue(path, MISSING)
            return
        value = known[field.encode_name]
        if _is_struct(field.type) or self._is_tagged(field.type):
            yield from self._find_issues(value, field.type, path)
            return
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            yield _to_issue(error, field.type, path)

    def _is_tagged(self, shape: Any) -> bool:
        return bool(self._tagged) and any(map(_is_struct, get_args(shape)))

    def _shape_by_tag(self, known: dict[str, Any]) -> type[Struct] | str:
        """Return the shape for the value of `type`, or the reason why there is none."""
        if "type" not in known:
            return MISSING
        name = known["type"]
        if isinstance(name, str) and name in self._tagged:
            return self._tagged[name]
        return choice_message(f"{str(name)[:60]!a}", self._tagged)


def _is_struct(shape: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, Struct)


def _to_issue(error: Exception, shape: Any, path: str) -> Issue:
    fault = shape_fault(error, shape)
    return Issue(join_path(path, fault.path), fault.reason)


# --- event types ------------------------------------------------------------------------------


class EventTypes:
    """Registry of event types by name, with the schemas of their payloads and events."""

    def __init__(self, first: type[wire.Payload], *others: type[wire.Payload]) -> None:
        self._shapes = shapes = (first, *others)
        self.by_name: dict[str, type[wire.Payload]] = {
            str(shape.__struct_config__.tag): shape for shape in shapes
        }
        if len(self.by_name) < len(shapes):
            raise ValueError("two types of event have the same name")
        one_of: Any = Union[shapes] if others else first  # noqa: UP007  made here
        self.payload: Schema[wire.Payload] = Schema(one_of, tagged=self.by_name)
        shape = defstruct(
            "Event",
            [("event_id", wire.EventId), ("session_id", wire.SessionId), ("payload", one_of)],
            bases=(wire.Event,),
            namespace={"__doc__": wire.Event.__doc__},
            frozen=True,
            gc=False,
        )
        self.event: Schema[wire.Event] = Schema(shape, tagged=self.by_name)

    def plus(self, *shapes: type[wire.Payload]) -> "EventTypes":
        """Return a registry with further types."""
        return EventTypes(*self._shapes, *shapes)


TYPES: Final = EventTypes(
    wire.ThoughtStream,
    wire.ToolInvoked,
    wire.ToolCompleted,
    wire.TaskTransition,
    wire.SandboxPulse,
    wire.NoticePayload,
)
"""Every known event type. To add one, write a class in `wire` and add a line here."""


# --- versions of a turn -----------------------------------------------------------------------

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts a turn, as parsed JSON, to the next version, including its `metadata.version`."""


class Version(Struct, frozen=True):
    """Shape of a turn in one version, and its upgrade to the next."""

    shape: type[Struct]
    upgrade: Upgrade | None = None
    """None: the newest version."""


VERSIONS: Final[Mapping[str, Version]] = {
    "1.0.0": Version(wire.TurnEnvelope),
}
"""`metadata.version` -> its shape, oldest first.

A new required field of a turn is a new shape, a new version, and the function that upgrades an
older turn to it. Senders of older versions stay understood.
"""


class VersionedTurnSchema(Schema[Any]):
    """Schema that accepts turns of every known version and upgrades them to the newest."""

    def __init__(self, versions: Mapping[str, Version] = VERSIONS) -> None:
        self._versions = dict(versions)
        self._schemas: dict[str, Schema[Any]] = {
            name: Schema(version.shape) for name, version in versions.items()
        }
        self._names = list(versions)
        super().__init__(versions[self._names[-1]].shape)

    def parse(self, raw: RawMessage) -> Any:
        """Parse a turn; raises SaopError if it fits no version."""
        try:
            return super().parse(raw)
        except SaopError:
            value = _decode_json(raw)
            version = _stated_version(value)
            if version not in self._names[:-1]:
                raise
        return super().parse(self.upgrade(value))

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


SCHEMAS: Final[Mapping[str, Schema[Any]]] = {
    "turn": VersionedTurnSchema(),
    "event": TYPES.event,
    "payload": TYPES.payload,
}
"""Kind of message -> its schema."""
