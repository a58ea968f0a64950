"""Translation of a message from one dialect to another: pure, with its losses."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, to_builtins

from dragoman.core.errors import Refusal
from dragoman.core.notice import Filled, Loss, Notice
from dragoman.engine.operation import Dialect, RawMessage


class TranslatedMessage(Struct, frozen=True):
    """A message in another dialect, and what it says otherwise than the source."""

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


def read_notice_of(text: bytes | str | Mapping[str, Any], source: Dialect) -> Notice | Refusal:
    """Read a message of a dialect as a notice."""
    raw = RawMessage(text, source.limits.max_bytes)
    parsed = source.parse(raw)
    if parsed is None:
        return Refusal("unknown_type", f"this is no message of {source.name}: {source.hint}")
    if parsed.fault is not None:
        return Refusal(parsed.fault.code, parsed.fault.detail, path=parsed.fault.path)
    notice = source.to_notice(parsed.message)
    if notice is None:
        return Refusal(
            "not_expressible", f"a {parsed.kind} of {source.name} says nothing to another agent"
        )
    return notice


def translate(
    text: bytes | str | Mapping[str, Any], source: Dialect, target: Dialect
) -> TranslatedMessage | Refusal:
    """Translate a message of one dialect to another."""
    notice = read_notice_of(text, source)
    if isinstance(notice, Refusal):
        return notice
    return translate_notice(notice, source.name, target)


def translate_notice(notice: Notice, source: str, target: Dialect) -> TranslatedMessage | Refusal:
    """Write a notice in a dialect; `source` is where it comes from."""
    made = target.from_notice(notice)
    if made.message is None:
        return Refusal("not_expressible", made.reason)
    # The values of a notice were parsed: what is checked is the shape of the message.
    text = msgspec.json.encode(made.message)
    value = msgspec.json.decode(text)
    parsed = target.parse(RawMessage(text, target.limits.max_bytes, value=value))
    if parsed is None or parsed.fault is not None:
        detail = (
            "it would be no message"
            if parsed is None
            else str(parsed.fault and parsed.fault.detail)
        )
        return Refusal("not_expressible", f"{target.name} cannot say it: {detail}")
    return TranslatedMessage(
        source, target.name, notice.kind, made.message, made.losses, made.filled, made.is_notice
    )


def translation_resource(made: TranslatedMessage) -> dict[str, Any]:
    """The JSON object of a translation."""
    fields: dict[str, Any] = to_builtins(made)
    return {"from": fields.pop("from_"), **fields}
