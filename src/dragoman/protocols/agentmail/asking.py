"""What operations of Agent Mail have in common: how arguments are read, and those that only ask."""

from collections.abc import Callable
from typing import Any, Final, get_args

from dragoman.core.actors import Actor
from dragoman.core.events import Role
from dragoman.engine.faults import in_shape
from dragoman.engine.incoming import layers
from dragoman.engine.operation import Facts, Operation
from dragoman.text.strict_json import field_of

EVERYONE: Final[frozenset[Role]] = frozenset(get_args(Role))


def reader(shape: Any) -> Callable[[Any], Any]:
    """Return a parser of arguments in this shape."""
    return lambda value: in_shape(value, shape)


def letter_in(value: Any, body: tuple[str, ...] = ("body_md",)) -> Any:
    """Find the object with a subject and a body, bare or wrapped like any message, or None.

    `body_names` are the keys under which the body may stand.
    """
    for inner in layers(value):
        if isinstance(field_of(inner, "subject"), str) and any(name in inner for name in body):
            return inner
    return None


def asking(
    name: str,
    shape: Any,
    ask: Callable[[Any, Actor, Facts], Any],
    summary: str,
    *,
    is_empty: Callable[[Any], bool] | None = None,
    wakes: str = "",
) -> Operation:
    """Build a read-only operation that every role may call."""
    return Operation(
        name=name,
        shape=shape,
        read=reader(shape),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=EVERYONE,
        ask=ask,
        is_empty=is_empty,
        wakes=wakes,
        summary=summary,
    )
