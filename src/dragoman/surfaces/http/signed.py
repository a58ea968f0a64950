"""`POST /v1/signed`: a message that proves by itself whose it is; no token is asked for."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.plan import Rejected
from dragoman.engine.signed import Signature
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.messages import (
    Sent,
    accepted_response,
    count_message,
    unrecognized_problem,
)
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.problems import HttpProblem, problem_from_refusal
from dragoman.surfaces.http.stays import VIA
from dragoman.text.shape_words import join_path


class Signed(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of any dialect that is an object, and the signature of its sender."""

    envelope: dict[str, Any]
    signature: Signature


async def send_signed(call: Call) -> Sent:
    """Send a signed message as the agent whose registered key has signed it."""
    context = call.context
    opened = await context.envelopes.verify_async(call.raw, VIA)
    assert opened is not None, "its shape was checked"
    if isinstance(opened, Refusal):
        raise Refused(opened)
    actor = opened.principal.actor
    context.check_rate(actor.label)
    # A fixed order of keys, as it was signed: the same members in another order are the same
    # message.
    text = msgspec.json.encode(opened.envelope, order="deterministic")
    routed = context.deps.router.parse(text)
    if routed is None:
        raise HttpProblem(unrecognized_problem(context, ""))
    content = routed.parsed.dedup_content
    key = opened.idempotency_key(context.hub.content_key(content) if content else "")
    with context.track_write_failures():
        answer = await context.deps.router.answer_async(routed, actor, key=key)
    count_message(context, answer)
    if isinstance(answer, Rejected):
        problem = problem_from_refusal(answer)
        raise HttpProblem(
            replace(problem, path=problem.path and join_path("envelope", problem.path))
        )
    return accepted_response(answer)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/signed",
        "Send a signed message, without a token",
        send_signed,
        Sent,
        body=Signed,
        is_open=True,
    ),
)
