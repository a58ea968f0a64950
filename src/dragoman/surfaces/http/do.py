"""`POST /v1/do`: commands as they are, for the person whose data directory this is.

Our own command line uses it while a hub runs: the caller says for whom it speaks, as it may without
a hub.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import MessageReceived
from dragoman.core.reading import Receipt
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.office import Call


class Do(Struct, frozen=True, forbid_unknown_fields=True):
    """Commands that succeed together or not at all, and in whose name."""

    actor: Actor
    commands: Annotated[tuple[AnyCommand, ...], Meta(min_length=1, max_length=1_000)]
    key: str = ""
    said: Any = msgspec.UNSET
    """The original words, which stay as they are."""
    per_attempt: bool = False
    """Whether the key is made of the content and counts within the task's present attempt."""
    heard: MessageReceived | None = None
    """What is recorded of a message that changes nothing."""


class Done(Struct, frozen=True):
    """A receipt for each command."""

    receipts: tuple[Receipt, ...]
    repeated: bool


class _Said(Struct, frozen=True):
    """The original words of a request, byte by byte."""

    said: Raw | UnsetType = msgspec.UNSET


async def do(call: Call) -> Done:
    """Run commands in anybody's name."""
    if not call.principal.is_owner:
        raise Refused(
            Refusal(
                "not_authorized",
                f"{call.principal.actor.label} may not speak for others: this takes the token of "
                "the data directory",
            )
        )
    ask: Do = call.body
    said = msgspec.json.decode(call.raw, type=_Said).said
    with call.office.writing():
        accepted = await call.office.hub.do_soon(
            ask.actor,
            *ask.commands,
            key=ask.key or call.key,
            said=said,
            per_attempt=ask.per_attempt,
            heard=ask.heard,
        )
    return Done(accepted.receipts, accepted.repeated)


ENDPOINTS = (
    Endpoint("POST", "/v1/do", "Run commands in anybody's name (owner only)", do, Done, body=Do),
)
