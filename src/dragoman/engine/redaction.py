"""A request without secrets: nothing that is written down has held one.

Each request is redacted once, when it is made, whatever door it came through. A document that was
hashed or signed cannot be altered: one that holds a secret is refused.
"""

from collections.abc import Callable, Sequence
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

_Findings = Sequence[tuple[str, str]]
"""Where something was found, and of which kind."""


class Redaction:
    """Takes secrets out of requests."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.tell: Callable[[str], object] = lambda _: None
        """Told what was taken out of a request that is no message; who sends one is answered."""

    def of(self, request: Request) -> Request:
        """The request without secrets; the very same, if it has none."""
        if request.said is msgspec.UNSET:
            return request if _is_without_words(request) else self._cleaned(request)
        words = bytes(request.said)
        kept, in_beginning = self._cut(words)
        if kept is not words:
            request = replace(request, said=Raw(kept))
        # The commands of a message are made of its words: where these hold nothing, they do not.
        if in_beginning or self._may_hold(kept):
            return self._cleaned(request, in_beginning)
        return request

    def _cleaned(self, request: Request, known: _Findings = ()) -> Request:
        """The request without what is found in it; `known`: what was found before."""
        found = list[tuple[str, str]]()
        commands = tuple(self._command(command, found) for command in request.commands)
        effect = tuple(self._command(command, found) for command in request.effect)
        said, in_said = self._said(request.said)
        masked = _told(found or in_said or known)
        if not masked:
            return request
        if said is msgspec.UNSET:
            for remark in masked:
                self.tell(remark)
        return replace(request, commands=commands, effect=effect, said=said, masked=masked)

    def _cut(self, said: bytes) -> tuple[bytes, _Findings]:
        """Of words that are no JSON the beginning is kept, without a secret that the cut cuts."""
        if len(said) <= SAID_OF_UNREADABLE or not said.startswith(b'"'):
            return said, ()
        masked = self.redactor.text(msgspec.json.decode(said, type=str))
        kept = msgspec.json.encode(masked.text[:SAID_OF_UNREADABLE])
        return kept, [("", one.kind) for one in masked.found]

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
        kept = dict[str, Any]()
        for field in FREE_TEXT.get(type(command), ()):
            value = getattr(command, field)
            masked = self.redactor.tree(value, field) if value else None
            if masked and masked.found:
                found += masked.found
                kept[field] = tuple(masked.value) if isinstance(value, tuple) else masked.value
        return replace(command, **kept) if kept else command

    def _said(self, said: Raw | msgspec.UnsetType) -> tuple[Raw | msgspec.UnsetType, _Findings]:
        if said is msgspec.UNSET:
            return said, ()
        masked = self.redactor.tree(msgspec.json.decode(bytes(said)))
        if not masked.found:
            return said, ()
        return Raw(msgspec.json.encode(masked.value)), masked.found


def _is_without_words(request: Request) -> bool:
    """Whether there is nothing in its commands that anybody has written freely."""
    for command in (*request.commands, *request.effect):
        for field in FREE_TEXT.get(type(command), ()):
            if getattr(command, field):
                return False
    return True


def _told(found: _Findings) -> tuple[str, ...]:
    """What the sender is told about what was taken out."""
    told = dict.fromkeys(f"a secret was masked: {path} ({kind})" for path, kind in found)
    return tuple(told)[:_SHOWN]
