"""`POST /v1/signed`: a message that proves by itself whose it is; no token is asked for."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.plan import Turned
from dragoman.engine.signed import Seal
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.messages import Sent, count, nobodys, sent
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.problems import HttpProblem, of_refusal
from dragoman.surfaces.http.stays import VIA
from dragoman.text.shape_words import below


class Signed(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of any dialect that is an object, and the signature of its sender."""

    envelope: dict[str, Any]
    signature: Seal


async def send(call: Call) -> Sent:
    """Send a signed message as the agent whose registered key has signed it."""
    office = call.office
    opened = await office.envelopes.open_soon(call.raw, VIA)
    assert opened is not None, "its shape was checked"
    if isinstance(opened, Refusal):
        raise Refused(opened)
    actor = opened.principal.actor
    office.check_rate(actor.label)
    # A fixed order of keys, as it was signed: the same members in another order are the same
    # message.
    said = msgspec.json.encode(opened.envelope, order="deterministic")
    spoken = office.door.interpreter.hear(said)
    if spoken is None:
        raise HttpProblem(nobodys(office, ""))
    content = spoken.heard.content
    key = opened.counts_by(office.hub.content_key(content) if content else "")
    with office.writing():
        answer = await office.door.interpreter.answer_soon(spoken, actor, key=key)
    count(office, answer)
    if isinstance(answer, Turned):
        told = of_refusal(answer)
        raise HttpProblem(replace(told, path=told.path and below("envelope", told.path)))
    return sent(answer)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/signed",
        "Send a signed message, without a token",
        send,
        Sent,
        body=Signed,
        is_open=True,
    ),
)
