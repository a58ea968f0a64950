"""The types of event that are known: one table, in which a new one is one line (S-SAOP-8).

>>> from msgspec import Struct
>>> class Coffee(Payload, frozen=True, tag="COFFEE_BREAK"):
...     minutes: int
>>> TYPES.plus(Coffee).payload.parse('{"type": "COFFEE_BREAK", "minutes": 5}')
Coffee(minutes=5)
"""

from typing import Any, Final, Union

from msgspec import defstruct

from dragoman.protocols.saop.schema import Schema
from dragoman.protocols.saop.shapes import (
    Event,
    EventId,
    Payload,
    SandboxPulse,
    SessionId,
    TaskTransition,
    ThoughtStream,
    ToolCompleted,
    ToolInvoked,
)


class EventTypes:
    """Registry of event types by name, with the schemas of their payloads and events."""

    def __init__(self, first: type[Payload], *others: type[Payload]) -> None:
        self._shapes = shapes = (first, *others)
        self.by_name: dict[str, type[Payload]] = {
            str(shape.__struct_config__.tag): shape for shape in shapes
        }
        if len(self.by_name) < len(shapes):
            raise ValueError("two types of event have the same name")
        one_of: Any = Union[shapes] if others else first  # noqa: UP007  made here
        self.payload: Schema[Payload] = Schema(one_of, tagged=self.by_name)
        shape = defstruct(
            "Event",
            [("event_id", EventId), ("session_id", SessionId), ("payload", one_of)],
            bases=(Event,),
            namespace={"__doc__": Event.__doc__},
            frozen=True,
            gc=False,
        )
        self.event: Schema[Event] = Schema(shape, tagged=self.by_name)

    def plus(self, *shapes: type[Payload]) -> "EventTypes":
        """Return a registry with further types."""
        return EventTypes(*self._shapes, *shapes)


TYPES: Final = EventTypes(
    ThoughtStream,
    ToolInvoked,
    ToolCompleted,
    TaskTransition,
    SandboxPulse,
)
"""Every known event type. To add one, write a class in `wire` and add a line here."""
