"""A request without secrets: nothing that is written down has held one.

Each request is redacted once, when it is made, whatever door it came through. What was hashed or
signed cannot be altered, nor can a name: one that holds a secret is refused.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.core.actors import NAMELESS
from dragoman.core.commands import (
    AnyCommand,
    RecordTrace,
    RecordTurn,
    RejectMessage,
    command_name,
)
from dragoman.core.errors import Refusal
from dragoman.core.free_text import FREE_TEXT
from dragoman.engine.incoming import SAID_OF_UNREADABLE
from dragoman.engine.names_with_secrets import Names, Telling
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor

_SPELLED: Final = (b"\\u", b"\\/")
"""Escapes that JSON may spell characters with, so that no keyword is found."""
_SHOWN: Final = 8
"""Limit of findings that are listed."""
_BETWEEN: Final = "|"
"""A separator that every rule takes for the end of a text."""
_PIECE: Final = re.compile(r"[^\s'\"…\\]{8,}")
"""A word that is long enough to be the beginning of a secret."""

Findings = Sequence[tuple[str, str]]
"""Paths at which a secret was found, and its kind."""


class Redaction:
    """Masks secrets in requests."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._names = Names(redactor)
        self.tell: Callable[[str], object] = lambda _: None
        """Called with warnings for a request that is no message; the sender of a message gets a
        reply."""

    def of(self, request: Request) -> Request:
        """The request with its secrets masked; the same object, if it has none.

        A name cannot be altered: if one holds a secret, the result is a rejection of the request.
        """
        words = b"" if request.said is msgspec.UNSET else bytes(request.said)
        kept, in_beginning = self._cut(words) if words else (words, ())
        if kept is not words:
            request = replace(request, said=Raw(kept))
        # The commands of a message are made of its text: if that holds no secret, they hold none.
        may_hold = not words or bool(in_beginning) or self._may_hold(kept)
        telling = self._names.telling(request, in_commands=may_hold)
        if telling is not None:
            return self._misnamed(request, telling)
        if not may_hold or (not words and not self._may_hold_in_commands(request)):
            return request
        return self._cleaned(request, words, in_beginning)

    def of_others(
        self, commands: Sequence[AnyCommand]
    ) -> tuple[tuple[AnyCommand, ...], tuple[str, ...]]:
        """Redact commands of another process, which may not know all secrets, in the fields that
        only that process has redacted; returns them with warnings."""
        found = list[tuple[str, str]]()
        return tuple(self._of_other(one, found) for one in commands), told_of(found)

    def _of_other(self, command: AnyCommand, found: list[tuple[str, str]]) -> AnyCommand:
        if not isinstance(command, RecordTurn | RecordTrace):
            return command
        if not self.redactor.knows(msgspec.json.encode(command.envelope)):
            return command
        masked = self.redactor.tree(command.envelope)
        found += masked.found
        envelope: dict[str, Any] = masked.value
        payload: Any = envelope.get("payload", {})
        if isinstance(payload, dict) and "masked" in payload:
            # A line of a terminal has its own flag for that.
            envelope = {**envelope, "payload": {**payload, "masked": True}}
        return replace(command, envelope=envelope, masked=True)

    def _misnamed(self, request: Request, telling: Telling) -> Request:
        """The rejection of a request with a secret in a name."""
        actor, command, heard = request.actor, request.commands[0], request.heard
        detail = f"{telling.what} holds a secret ({telling.kind}), and a name cannot be masked: "
        no = RejectMessage(
            "policy_violation",
            detail + "send it again under another name, and change the secret",
            self.redactor.text(heard.target if heard else command.about).text,
            heard.kind if heard else command_name(command),
        )
        return Request(
            replace(actor, name=NAMELESS) if telling.is_of_sender else actor,
            (no,),
            request.id,
            said=self._said(request.said)[0],
        )

    def _cleaned(self, request: Request, words: bytes, known: Findings) -> Request:
        """The request with its secrets masked; `known`: what was found in its text before."""
        found = list[tuple[str, str]]()
        commands = tuple(self._command(command, found) for command in request.commands)
        effect = tuple(self._command(command, found) for command in request.effect)
        said, in_said = self._said(request.said)
        masked = told_of(found or in_said or known)
        if not masked:
            return request
        if said is msgspec.UNSET:
            for remark in masked:
                self.tell(remark)
        else:
            commands = tuple(_without_pieces(one, words, bytes(said)) for one in commands)
        return replace(request, commands=commands, effect=effect, said=said, masked=masked)

    def _cut(self, said: bytes) -> tuple[bytes, Findings]:
        """Truncate text that is not JSON; a secret is masked before it can be cut in two."""
        if len(said) <= SAID_OF_UNREADABLE or not said.startswith(b'"'):
            return said, ()
        masked = self.redactor.text(msgspec.json.decode(said, type=str))
        kept = msgspec.json.encode(masked.text[:SAID_OF_UNREADABLE])
        return kept, [("", one.kind) for one in masked.found]

    def refusal(self, document: Any) -> Refusal | None:
        """Refuse a document that must not be altered if it holds a secret."""
        found = self.redactor.tree(document).found
        if not found:
            return None
        path, kind = found[0]
        detail = f"{path or 'a key'} holds a secret ({kind}), and what is signed cannot be masked: "
        return Refusal("policy_violation", detail + "send it again without, and change the secret")

    def _may_hold(self, said: bytes) -> bool:
        return any(sign in said for sign in _SPELLED) or self.redactor.may_hold(said)

    def _may_hold_in_commands(self, request: Request) -> bool:
        """A quick check of the free-text fields: False if no rule can match."""
        texts = list[str]()
        for command in request.commands + request.effect:
            for field in FREE_TEXT.get(type(command), ()):
                value = getattr(command, field)
                if value.__class__ is str:
                    texts.append(value)
                elif value:
                    return True
        # All at once: a call costs more than scanning a short text.
        return self.redactor.may_hold(_as_bytes(_BETWEEN.join(texts)))

    def _command(self, command: AnyCommand, found: list[tuple[str, str]]) -> AnyCommand:
        kept = dict[str, Any]()
        for field in FREE_TEXT.get(type(command), ()):
            value = getattr(command, field)
            masked = self.redactor.tree(value, field) if value else None
            if masked and masked.found:
                found += masked.found
                kept[field] = tuple(masked.value) if isinstance(value, tuple) else masked.value
        return replace(command, **kept) if kept else command

    def _said(self, said: Raw | msgspec.UnsetType) -> tuple[Raw | msgspec.UnsetType, Findings]:
        if said is msgspec.UNSET:
            return said, ()
        masked = self.redactor.tree(msgspec.json.decode(bytes(said)))
        if not masked.found:
            return said, ()
        return Raw(msgspec.json.encode(masked.value)), masked.found


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _without_pieces(command: AnyCommand, words: bytes, kept: bytes) -> AnyCommand:
    """Mask beginnings of secrets in a rejection, which may quote the text and cut it anywhere.

    A word that was in the text and is not in the redacted text was part of a secret.
    """
    if not isinstance(command, RejectMessage):
        return command
    before, after = (msgspec.json.encode(msgspec.json.decode(one)) for one in (words, kept))

    def left(piece: re.Match[str]) -> str:
        text = piece[0].encode(errors="surrogatepass")
        return "[REDACTED]" if text in before and text not in after else piece[0]

    texts = {name: _PIECE.sub(left, getattr(command, name)) for name in FREE_TEXT[RejectMessage]}
    return replace(command, **texts)


def told_of(found: Findings) -> tuple[str, ...]:
    """Warnings for the sender about what was masked."""
    told = dict.fromkeys(f"a secret was masked: {path} ({kind})" for path, kind in found)
    return tuple(told)[:_SHOWN]
