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

from dragoman.core.actors import UNKNOWN_SENDER
from dragoman.core.commands import (
    AnyCommand,
    RecordTrace,
    RecordTurn,
    RejectMessage,
    command_name,
)
from dragoman.core.errors import Refusal
from dragoman.core.free_text import FREE_TEXT_FIELDS
from dragoman.engine.incoming import UNREADABLE_CHARS_KEPT
from dragoman.engine.names_with_secrets import SecretName, SecretNameFinder
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor

_JSON_ESCAPES: Final = (b"\\u", b"\\/")
"""Escapes that JSON may spell characters with, so that no keyword is found."""
_MAX_WARNINGS: Final = 8
"""Limit of findings that are listed."""
_SEPARATOR: Final = "|"
"""A separator that every rule takes for the end of a text."""
_LONG_WORD: Final = re.compile(r"[^\s'\"…\\]{8,}")
"""A word that is long enough to be the beginning of a secret."""

Findings = Sequence[tuple[str, str]]
"""Paths at which a secret was found, and its kind."""


class RequestRedactor:
    """Masks secrets in requests."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._name_finder = SecretNameFinder(redactor)
        self.on_masked: Callable[[str], object] = lambda _: None
        """Called with warnings for a request that is no message; the sender of a message gets a
        reply."""

    def redact(self, request: Request) -> Request:
        """The request with its secrets masked; the same object, if it has none.

        A name cannot be altered: if one holds a secret, the result is a rejection of the request.
        """
        original = b"" if request.original_text is msgspec.UNSET else bytes(request.original_text)
        text, in_beginning = self._truncate_unreadable(original) if original else (original, ())
        if text is not original:
            request = replace(request, original_text=Raw(text))
        # The commands of a message are made of its text: if that holds no secret, they hold none.
        may_hold = not original or bool(in_beginning) or self._may_contain_secret(text)
        secret_name = self._name_finder.find(request, in_commands=may_hold)
        if secret_name is not None:
            return self._refuse_secret_name(request, secret_name)
        if not may_hold or (not original and not self._commands_may_contain_secret(request)):
            return request
        return self._redact_fields(request, original, in_beginning)

    def redact_forwarded(
        self, commands: Sequence[AnyCommand]
    ) -> tuple[tuple[AnyCommand, ...], tuple[str, ...]]:
        """Redact commands of another process, which may not know all secrets, in the fields that
        only that process has redacted; returns them with warnings."""
        found = list[tuple[str, str]]()
        return tuple(
            self._redact_forwarded_command(one, found) for one in commands
        ), redaction_warnings(found)

    def _redact_forwarded_command(
        self, command: AnyCommand, found: list[tuple[str, str]]
    ) -> AnyCommand:
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

    def _refuse_secret_name(self, request: Request, secret_name: SecretName) -> Request:
        """The rejection of a request with a secret in a name."""
        actor, command, receipt_event = request.actor, request.commands[0], request.receipt_event
        detail = (
            f"{secret_name.subject} holds a secret ({secret_name.kind}), and a name cannot "
            "be masked: "
        )
        rejection = RejectMessage(
            "policy_violation",
            detail + "send it again under another name, and change the secret",
            self.redactor.text(receipt_event.target if receipt_event else command.target_task).text,
            receipt_event.kind if receipt_event else command_name(command),
        )
        return Request(
            replace(actor, name=UNKNOWN_SENDER) if secret_name.is_sender else actor,
            (rejection,),
            request.id,
            original_text=self._redact_text(request.original_text)[0],
        )

    def _redact_fields(self, request: Request, original: bytes, known: Findings) -> Request:
        """The request with its secrets masked; `known`: what was found in its text before."""
        found = list[tuple[str, str]]()
        commands = tuple(self._redact_command(command, found) for command in request.commands)
        effect = tuple(self._redact_command(command, found) for command in request.effect)
        redacted_text, in_text = self._redact_text(request.original_text)
        masked = redaction_warnings(found or in_text or known)
        if not masked:
            return request
        if redacted_text is msgspec.UNSET:
            for remark in masked:
                self.on_masked(remark)
        else:
            commands = tuple(
                _without_quoted_secrets(one, original, bytes(redacted_text)) for one in commands
            )
        return replace(
            request,
            commands=commands,
            effect=effect,
            original_text=redacted_text,
            redaction_warnings=masked,
        )

    def _truncate_unreadable(self, text: bytes) -> tuple[bytes, Findings]:
        """Truncate text that is not JSON; a secret is masked before it can be cut in two."""
        if len(text) <= UNREADABLE_CHARS_KEPT or not text.startswith(b'"'):
            return text, ()
        masked = self.redactor.text(msgspec.json.decode(text, type=str))
        truncated = msgspec.json.encode(masked.text[:UNREADABLE_CHARS_KEPT])
        return truncated, [("", one.kind) for one in masked.found]

    def check_document(self, document: Any) -> Refusal | None:
        """Refuse a document that must not be altered if it holds a secret."""
        found = self.redactor.tree(document).found
        if not found:
            return None
        path, kind = found[0]
        detail = f"{path or 'a key'} holds a secret ({kind}), and what is signed cannot be masked: "
        return Refusal("policy_violation", detail + "send it again without, and change the secret")

    def _may_contain_secret(self, text: bytes) -> bool:
        return any(sign in text for sign in _JSON_ESCAPES) or self.redactor.may_contain(text)

    def _commands_may_contain_secret(self, request: Request) -> bool:
        """A quick check of the free-text fields: False if no rule can match."""
        texts = list[str]()
        for command in request.commands + request.effect:
            for field in FREE_TEXT_FIELDS.get(type(command), ()):
                value = getattr(command, field)
                if value.__class__ is str:
                    texts.append(value)
                elif value:
                    return True
        # All at once: a call costs more than scanning a short text.
        return self.redactor.may_contain(_as_bytes(_SEPARATOR.join(texts)))

    def _redact_command(self, command: AnyCommand, found: list[tuple[str, str]]) -> AnyCommand:
        redacted = dict[str, Any]()
        for field in FREE_TEXT_FIELDS.get(type(command), ()):
            value = getattr(command, field)
            masked = self.redactor.tree(value, field) if value else None
            if masked and masked.found:
                found += masked.found
                redacted[field] = tuple(masked.value) if isinstance(value, tuple) else masked.value
        return replace(command, **redacted) if redacted else command

    def _redact_text(
        self, text: Raw | msgspec.UnsetType
    ) -> tuple[Raw | msgspec.UnsetType, Findings]:
        if text is msgspec.UNSET:
            return text, ()
        masked = self.redactor.tree(msgspec.json.decode(bytes(text)))
        if not masked.found:
            return text, ()
        return Raw(msgspec.json.encode(masked.value)), masked.found


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _without_quoted_secrets(command: AnyCommand, original: bytes, redacted: bytes) -> AnyCommand:
    """Mask beginnings of secrets in a rejection, which may quote the text and cut it anywhere.

    A word that was in the text and is not in the redacted text was part of a secret.
    """
    if not isinstance(command, RejectMessage):
        return command
    before, after = (msgspec.json.encode(msgspec.json.decode(one)) for one in (original, redacted))

    def mask_if_secret(word: re.Match[str]) -> str:
        text = word[0].encode(errors="surrogatepass")
        return "[REDACTED]" if text in before and text not in after else word[0]

    texts = {
        name: _LONG_WORD.sub(mask_if_secret, getattr(command, name))
        for name in FREE_TEXT_FIELDS[RejectMessage]
    }
    return replace(command, **texts)


def redaction_warnings(found: Findings) -> tuple[str, ...]:
    """Warnings for the sender about what was masked."""
    warnings = dict.fromkeys(f"a secret was masked: {path} ({kind})" for path, kind in found)
    return tuple(warnings)[:_MAX_WARNINGS]
