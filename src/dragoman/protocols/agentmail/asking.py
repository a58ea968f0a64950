"""What operations of Agent Mail have in common: how arguments are read, and those that only ask."""

from collections.abc import Callable
from typing import Any, Final, get_args

from dragoman.core.actors import Actor
from dragoman.core.events import Role
from dragoman.engine.faults import validate_shape
from dragoman.engine.incoming import candidate_messages
from dragoman.engine.operation import Facts, Operation
from dragoman.text.strict_json import get_field

ALL_ROLES: Final[frozenset[Role]] = frozenset(get_args(Role))


def argument_parser(shape: Any) -> Callable[[Any], Any]:
    """Return a parser of arguments in this shape."""
    return lambda value: validate_shape(value, shape)


def unwrap_letter(value: Any, body_names: tuple[str, ...] = ("body_md",)) -> Any:
    """Find the object with a subject and a body, bare or wrapped like any message, or None.

    `body_names` are the keys under which the body may stand.
    """
    for inner in candidate_messages(value):
        if isinstance(get_field(inner, "subject"), str) and any(
            name in inner for name in body_names
        ):
            return inner
    return None


def query_operation(
    name: str,
    shape: Any,
    query: Callable[[Any, Actor, Facts], Any],
    summary: str,
    *,
    is_empty: Callable[[Any], bool] | None = None,
    event_family: str = "",
) -> Operation:
    """Build a read-only operation that every role may call."""
    return Operation(
        name=name,
        input_type=shape,
        validate=argument_parser(shape),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=ALL_ROLES,
        query=query,
        is_empty_reply=is_empty,
        wakes_on=event_family,
        summary=summary,
    )
