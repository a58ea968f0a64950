"""`POST /v1/translate`: a message of one dialect in another; nothing is sent or recorded."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from dragoman.core.errors import Refusal, Refused
from dragoman.core.notice import Filled, Loss
from dragoman.engine.translation import translate
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint

_RENAMED = {"from_": "from"}.get


class TranslationBody(Body, frozen=True, rename=_RENAMED):
    """A message, the dialect that it is in, and the one that it shall be in."""

    from_: Annotated[str, Meta(max_length=16)]
    to: Annotated[str, Meta(max_length=16)]
    message: dict[str, Any] | str


class Translated(Struct, frozen=True, rename=_RENAMED):
    """The message in the other dialect."""

    from_: str
    to: str
    kind: str
    """Its content, in no dialect's words."""
    message: dict[str, Any]
    losses: tuple[Loss, ...]
    """Fields that the target cannot say; they stand in its free text."""
    filled: tuple[Filled, ...]
    """Required fields of the target that the source lacks, with their neutral values."""
    is_notice: bool
    """True if the target has no such message: it travels in the dialect's form of a notice."""


async def translate_message(call: Call) -> Translated:
    """Translate a message from one dialect to another."""
    body: TranslationBody = call.body
    source = call.context.find_dialect(body.from_, "from")
    target = call.context.find_dialect(body.to, "to")
    made = translate(body.message, source, target)
    if isinstance(made, Refusal):
        raise Refused(made)
    return Translated(
        made.from_, made.to, made.kind, made.message, made.losses, made.filled, made.is_notice
    )


ENDPOINTS = (
    Endpoint("POST", "/v1/translate", translate_message, Translated, body=TranslationBody),
)
