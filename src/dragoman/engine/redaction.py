"""A request without secrets: nothing that is written down has held one.

Each request is redacted once, when it is made, whatever door it came through. A document that was
hashed or signed cannot be altered: one that holds a secret is refused.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.free_text import FREE_TEXT
from dragoman.engine.operation import SAID_OF_UNREADABLE
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor

_SPELLED: Final = (b"\\u", b"\\/")
"""With these JSON spells characters so that no word can be found in it."""
_SHOWN: Final = 8
"""So many findings are named."""


class Redaction:
    """Takes secrets out of requests."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.tell: Callable[[str], object] = lambda _: None
        """Told what was taken out of a request that is no message; who sends one is answered."""

    def of(self, request: Request) -> Request:
        """The request without secrets; the very same, if it has none."""
        request, in_beginning = self._cut(request)
        # The commands of a message are made of its words: where these hold nothing, they do not.
        words = b"" if request.said is msgspec.UNSET else bytes(request.said)
        if words and not in_beginning and not self._may_hold(words):
            return request
        found = list[tuple[str, str]]()
        commands = tuple(self._command(command, found) for command in request.commands)
        effect = tuple(self._command(command, found) for command in request.effect)
        said, in_said = self._said(request.said)
        found = found or in_said or in_beginning
        if not found:
            return request
        masked = _told(tuple(found))
        if said is msgspec.UNSET:
            for remark in masked:
                self.tell(remark)
        return replace(request, commands=commands, effect=effect, said=said, masked=masked)

    def _cut(self, request: Request) -> tuple[Request, list[tuple[str, str]]]:
        """Of words that are no JSON the beginning is kept, without a secret that the cut cuts."""
        said = b"" if request.said is msgspec.UNSET else bytes(request.said)
        if len(said) <= SAID_OF_UNREADABLE or not said.startswith(b'"'):
            return request, []
        masked = self.redactor.text(msgspec.json.decode(said, type=str))
        kept = Raw(msgspec.json.encode(masked.text[:SAID_OF_UNREADABLE]))
        return replace(request, said=kept), [("", one.kind) for one in masked.found]

    def refusal(self, document: Any) -> Refusal | None:
        """Why a document that must not be altered cannot be taken: a secret is in it."""
        found = self.redactor.tree(document).found
        if not found:
            return None
        path, kind = found[0]
        detail = f"{path or 'a key'} holds a secret ({kind}), and what is signed cannot be masked: "
        return Refusal("policy_violation", detail + "send it again without, and change the secret")

    def _may_hold(self, said: bytes) -> bool:
        return any(sign in said for sign in _SPELLED) or self.redactor.may_hold(said)

    def _command(self, command: AnyCommand, found: list[tuple[str, str]]) -> AnyCommand:
        fields = FREE_TEXT.get(type(command), ())
        texts = {field: value for field in fields if (value := getattr(command, field))}
        masked = self.redactor.tree(texts)
        if not masked.found:
            return command
        found += masked.found
        kept = {
            field: tuple(value) if isinstance(texts[field], tuple) else value
            for field, value in masked.value.items()
        }
        return replace(command, **kept)

    def _said(
        self, said: Raw | msgspec.UnsetType
    ) -> tuple[Raw | msgspec.UnsetType, list[tuple[str, str]]]:
        if said is msgspec.UNSET:
            return said, []
        masked = self.redactor.tree(msgspec.json.decode(bytes(said)))
        if not masked.found:
            return said, []
        return Raw(msgspec.json.encode(masked.value)), list(masked.found)


def _told(found: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What the sender is told about what was taken out."""
    told = dict.fromkeys(f"a secret was masked: {path} ({kind})" for path, kind in found)
    return tuple(told)[:_SHOWN]
