"""`POST /v1/do`: commands as they are, for the person whose data directory this is.

Our own command line uses it while a hub runs: the caller says for whom it speaks, as it may without
a hub.
"""

import msgspec
from msgspec import Raw, Struct, UnsetType

from dragoman.engine.errand import ForwardedCommands, ForwardedResult
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.office import Call


class _OriginalText(Struct, frozen=True):
    """The original text of a request, byte by byte."""

    said: Raw | UnsetType = msgspec.UNSET


async def run_commands(call: Call) -> ForwardedResult:
    """Run commands in anybody's name."""
    request: ForwardedCommands = call.body
    original_text = msgspec.json.decode(call.raw, type=_OriginalText).said
    hub = call.context.hub
    commands, masked = hub.redaction.redact_forwarded(request.commands)
    with call.context.track_write_failures():
        accepted = await hub.submit_async(
            request.actor,
            *commands,
            key=request.key or call.key,
            original_text=original_text,
            per_attempt=request.per_attempt,
            sent_at=request.sent_at,
            receipt_event=request.heard,
            effect=request.effect,
        )
    warnings = (*masked, *accepted.redaction_warnings)
    return ForwardedResult(accepted.receipts, accepted.repeated, accepted.declined, warnings)


DO_ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/do",
        "Run commands as any actor (owner only)",
        run_commands,
        ForwardedResult,
        body=ForwardedCommands,
        owner_only=True,
    ),
)
