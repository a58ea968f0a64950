"""JSON in a shape, or everything that is wrong with it: `parse` raises, `safe_parse` returns.

The usual case is one typed decoding. Only what fails is looked at a second time, field by field, to
name every place that is wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from dragoman.text.shape_words import MISSING, NO_OBJECT, choice_message, join_path, shape_fault

T = TypeVar("T")

RawMessage = bytes | str | Mapping[str, Any]
"""JSON text, or an object that was parsed elsewhere."""


class Issue(Struct, frozen=True):
    """A fault and its path, such as `metadata.confidence`; an empty path is the whole message."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class SaopError(ValueError):
    """A message does not fit its schema; `issues` names every place."""

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        super().__init__("; ".join(map(str, issues)))
        self.issues = issues


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
