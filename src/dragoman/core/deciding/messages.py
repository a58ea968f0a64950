"""Decider of messages that are no command: refused, so that the refusal is recorded."""

from dragoman.core.commands import RejectMessage
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.core.limits import MAX_REASON, check_text
from dragoman.core.reading import Read

_MAX_SHOWN_DETAIL = 1_000


def decide_reject_message(command: RejectMessage, read: Read, now: int) -> Refusal:
    """Refuse with what a dialect found wrong."""
    del read, now
    if command.code not in REFUSALS:
        return Refusal("invalid_field", f"{command.code[:40]!a} is not the code of a refusal")
    detail = command.detail
    if check_text("detail", detail, MAX_REASON):
        # It quotes text from outside that cannot be written as it is.
        detail = ascii(detail[:_MAX_SHOWN_DETAIL]) + "…"
    return Refusal(command.code, detail, command.kind)
