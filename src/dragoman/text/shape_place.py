"""What a shape has to say about one place in it: the values, the fields, its own words."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType
from msgspec.structs import fields

_NULL_TYPES: Final = (None, NoneType, UnsetType)
_CACHE_SIZE: Final = 512


class AllowedValues(Struct, frozen=True):
    """Allowed values at a path of a shape; empty where the shape leaves it open."""

    types: tuple[Any, ...] = ()
    """Allowed types, except null."""
    requirement: str = ""
    """Requirement in words, from the shape itself: `Meta(extra={"reason": …})`."""

    @property
    def is_choice(self) -> bool:
        """True if only `choices` are allowed."""
        return bool(self.types) and all(map(_literal_values, self.types))

    @property
    def choices(self) -> tuple[str, ...]:
        """Literal values by name, if there are any; without an empty one."""
        values = (f"{one}" for kind in self.types for one in _literal_values(kind))
        return tuple(dict.fromkeys(filter(None, values)))

    @property
    def names(self) -> tuple[str, ...]:
        """Fields of the object; none if it may be one of several, or is open."""
        return tuple(_field_types(self.types[0])) if len(self.types) == 1 else ()


def find_allowed(shape: Any, steps: list[str]) -> AllowedValues:
    """Find what is allowed at a path.

    A step is a field's name, `[3]` of a list, `[...]` of a table, or `[key]`: a name in that.
    """
    found = list(_union_members(shape))
    for step in steps:
        found = [
            one
            for kind, _ in found
            for inner in _child_types(kind, step)
            for one in _union_members(inner)
        ]
    words = {words for _, words in found}
    return AllowedValues(tuple(kind for kind, _ in found), words.pop() if len(words) == 1 else "")


def _union_members(shape: Any, requirement: str = "") -> Iterator[tuple[Any, str]]:
    """Types that a shape allows, each with its requirement in words."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is Annotated:
        extra = [one.extra for one in inner[1:] if isinstance(one, Meta) and one.extra]
        yield from _union_members(inner[0], next((one["reason"] for one in extra), requirement))
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _union_members(one, requirement)
    elif shape not in _NULL_TYPES:
        yield shape, requirement


def _child_types(kind: Any, step: str) -> Iterator[Any]:
    """Types one step further down."""
    if not step.startswith("["):
        yield from filter(None, [_field_types(kind).get(step)])
        return
    inner = get_args(kind)
    if step == "[...]":
        yield from inner[1:]
    elif Ellipsis in inner or get_origin(kind) is not tuple:
        yield from inner[:1]
    else:
        index = int(step[1:-1])
        yield from inner[index : index + 1]


@lru_cache(_CACHE_SIZE)
def _field_types(kind: Any) -> Mapping[str, Any]:
    """Fields of an object and their types; its tag is a field with one value."""
    struct = get_origin(kind) or kind
    if not (isinstance(struct, type) and issubclass(struct, Struct)):
        return {}
    config = struct.__struct_config__
    tag = {config.tag_field: Literal[config.tag]} if config.tag_field else {}
    return {field.encode_name: field.type for field in fields(kind)} | tag


def _literal_values(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()
