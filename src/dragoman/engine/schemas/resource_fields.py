"""Resources that repeat fields of what they describe."""

from functools import cache
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from dragoman.core.timestamps import to_rfc3339

S = TypeVar("S", bound=Struct)


def project(shape: type[S], source: Any, **others: Any) -> S:
    """A resource with the fields that its source has by the same name, and others as they are
    given: a time is written as text, and an empty text or time is null where the shape says so."""
    for name, is_text, is_optional in _field_kinds(shape):
        if name in others:
            continue
        value = getattr(source, name)
        if is_optional and not value:
            value = None
        elif is_text and isinstance(value, int):
            value = to_rfc3339(value)
        others[name] = value
    return shape(**others)


@cache
def _field_kinds(shape: type[Struct]) -> tuple[tuple[str, bool, bool], ...]:
    """The fields of a resource: whether they are text, and whether the text may be null."""
    optional: Any = str | None
    return tuple(
        (one.name, one.type in (str, optional), one.type == optional) for one in fields(shape)
    )
