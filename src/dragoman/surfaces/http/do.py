"""`POST /v1/do`: commands as they are, for the person whose data directory this is.

Our own command line uses it while a hub runs: the caller says for whom it speaks, as it may without
a hub.
"""

import msgspec
from msgspec import Raw, Struct, UnsetType

from dragoman.engine.errand import Do, Done
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.office import Call


class _Said(Struct, frozen=True):
    """The original text of a request, byte by byte."""

    said: Raw | UnsetType = msgspec.UNSET


async def do(call: Call) -> Done:
    """Run commands in anybody's name."""
    ask: Do = call.body
    said = msgspec.json.decode(call.raw, type=_Said).said
    hub = call.office.hub
    commands, masked = hub.redaction.of_others(ask.commands)
    with call.office.writing():
        accepted = await hub.do_soon(
            ask.actor,
            *commands,
            key=ask.key or call.key,
            said=said,
            per_attempt=ask.per_attempt,
            sent_at=ask.sent_at,
            heard=ask.heard,
            effect=ask.effect,
        )
    told = (*masked, *accepted.masked)
    return Done(accepted.receipts, accepted.repeated, accepted.declined, told)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/do",
        "Run commands as any actor (owner only)",
        do,
        Done,
        body=Do,
        owner_only=True,
    ),
)
