"""Hypothesis strategies for any value of a type that is encoded as JSON."""

from functools import cache
from types import UnionType
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

_ANY_JSON: Final = st.none() | st.text() | st.integers(-9, 9)
_SPECIAL: Final[dict[Any, st.SearchStrategy[Any]]] = {
    object: _ANY_JSON,
    dict[str, object]: st.dictionaries(st.text(), _ANY_JSON),
    # Python accepts an int where a type says float.
    float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
}
"""Types whose values JSON cannot fully express, or Python does not restrict."""


@cache
def values_of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Generate any value of a type that JSON can express."""
    if hint in _SPECIAL:
        return _SPECIAL[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = get_type_hints(hint)
        return st.builds(hint, **{name: values_of_type(field) for name, field in fields.items()})
    parts, origin = get_args(hint), get_origin(hint)
    if isinstance(hint, UnionType):
        return st.one_of(*map(values_of_type, parts))
    if origin is Literal:
        return st.sampled_from(parts).map(_new_object)
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(values_of_type(parts[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of_type, parts))
    if origin is dict:
        return st.dictionaries(*map(values_of_type, parts), max_size=3)
    return st.from_type(cast(type[Any], hint))


def _new_object(word: Any) -> Any:
    """Copy a string: equal to the literal, but not the same object."""
    return "".join(list(word)) if isinstance(word, str) else word
