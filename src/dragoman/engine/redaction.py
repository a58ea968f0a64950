"""Redaction of requests: secrets are masked before anything is written down.

Each request is redacted once, when it is made, whatever surface it came through. What was hashed or
signed cannot be altered, nor can a name: a request with a secret in one of those is refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct, inspect
from msgspec.structs import replace

from dragoman.core.actor import UNKNOWN_SENDER, RejectMessage
from dragoman.core.base import OTHER_TEXT_FIELDS, Command, command_name
from dragoman.core.errors import Refusal
from dragoman.core.ids import is_numbered_aof_id
from dragoman.engine.operation import UNREADABLE_CHARS_KEPT
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor
from dragoman.text.redact.likelihood import looks_random
from dragoman.text.redact.named_values import placeholder_kind
from dragoman.text.redact.rules import RULES

# --- names that hold a secret -----------------------------------------------------------------

_RULE_KINDS: Final = frozenset(rule.kind for rule in RULES)

_HASH_LIKE_KINDS: Final = frozenset({"mailgun_key", "mailchimp_key"})
"""Credentials that are a hash with a few letters beside it, as many names are."""

_NUMBER_TYPES: Final = (inspect.IntType, inspect.BoolType, inspect.FloatType, inspect.NoneType)

_UUID_LENGTH: Final = 36

_HEX: Final = "-0123456789abcdefABCDEF"

_MAX_CACHED_NAMES: Final = 4_096
"""Number of names whose result is cached: the same ones come again and again."""


class SecretName(Struct, frozen=True):
    """A name that holds a secret: its field, and the kind of the secret."""

    subject: str
    kind: str
    is_sender: bool = False


class SecretNameFinder:
    """Finds secrets in the names that a request uses."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._cached_kind = lru_cache(_MAX_CACHED_NAMES)(self._secret_kind)

    def find(self, request: Request, *, in_commands: bool) -> SecretName | None:
        """The first name that holds a secret; `in_commands`: False if commands cannot hold any."""
        if request.actor.role == "system":
            return None  # the hub's own names come from requests that were checked before
        if kind := self._cached_kind(request.actor.name):
            return SecretName("the name of the sender", kind, is_sender=True)
        # A key that the hub made of the content is a digest; other keys are new each time.
        if (
            request.key
            and not request.per_attempt
            and (kind := self._secret_kind_of_key(request.key))
        ):
            return SecretName("the key", kind)
        return self._find_in_commands(request) if in_commands else None

    def _find_in_commands(self, request: Request) -> SecretName | None:
        for command in request.commands + request.effect:
            for field in _name_fields(type(command)):
                value = getattr(command, field)
                if not value:
                    continue
                # This runs for every request, and nearly all of these fields are a text.
                is_text = value.__class__ is str
                kind = self._cached_kind(value) if is_text else self._secret_kind_in(value)
                if kind:
                    return SecretName(field, kind)
        return None

    def _secret_kind_in(self, value: Any) -> str:
        """The kind of the first secret in any text of a value; empty: there is none."""
        for name in _texts_in(value):
            if kind := self._cached_kind(name):
                return kind
        return ""

    def _secret_kind_of_key(self, key: str) -> str:
        """The kind of the first secret in a key. The usual key is a UUID, and no secret has that
        form."""
        is_uuid = len(key) == _UUID_LENGTH and key[8:24:5] == "----" and not key.strip(_HEX)
        return "" if is_uuid else self._secret_kind(key)

    def _secret_kind(self, name: str) -> str:
        """The kind of the first secret in a name; empty: there is none.

        Names such as `token:bd-7` and `sk-learn-pipeline` are common: a value behind a keyword
        counts only in a text, and one with a credential's prefix only if it is random.
        """
        # Most new names are of new tasks: no rule has a secret of this form.
        if is_numbered_aof_id(name) and not self._redactor.knows(name.encode()):
            return ""
        for found in self._redactor.text(name).found:
            before, value = name[: found.start], name[found.start : found.end]
            is_behind_word = before.endswith(":") and found.kind == placeholder_kind(before)
            is_words = found.kind in _RULE_KINDS and not looks_random(value)
            if not (is_behind_word or is_words or found.kind in _HASH_LIKE_KINDS):
                return found.kind
        return ""


@cache
def _name_fields(command: type[Command]) -> tuple[str, ...]:
    """The fields of a command that may hold names."""
    others = OTHER_TEXT_FIELDS.union(command.free_text)
    shape = cast(inspect.StructType, inspect.type_info(command))
    return tuple(
        field.name
        for field in shape.fields
        if field.name not in others and _can_be_text(field.type)
    )


def _can_be_text(shape: inspect.Type) -> bool:
    """True if a value of this type can be, or hold, a text."""
    if isinstance(shape, inspect.UnionType):
        return any(map(_can_be_text, shape.types))
    if isinstance(shape, inspect.StructType):
        return any(_can_be_text(field.type) for field in shape.fields)
    return not isinstance(shape, _NUMBER_TYPES)


def _texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts_in([*cast(dict[Any, Any], value).items()])
    elif isinstance(value, list | tuple):
        for item in cast(Sequence[Any], value):
            yield from _texts_in(item)
    elif isinstance(value, Struct):
        yield from _texts_in(msgspec.to_builtins(value))


# --- requests ---------------------------------------------------------------------------------

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
        text, in_prefix = self._truncate_unreadable(original) if original else (original, ())
        if text is not original:
            request = replace(request, original_text=Raw(text))
        # The commands of a message are made of its text: if that holds no secret, they hold none.
        may_hold = not original or bool(in_prefix) or self._may_contain_secret(text)
        secret_name = self._name_finder.find(request, in_commands=may_hold)
        if secret_name is not None:
            return self._refuse_secret_name(request, secret_name)
        if not may_hold or (not original and not self._commands_may_contain_secret(request)):
            return request
        return self._redact_fields(request, original, in_prefix)

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
        if any(sign in text for sign in _JSON_ESCAPES) or self.redactor.may_contain(text):
            return True
        # A rule looks for what stands in a text, not for how JSON writes its quotes and line ends.
        texts = _texts_in(msgspec.json.decode(text)) if b"\\" in text else ()
        return self.redactor.may_contain(_as_bytes(_SEPARATOR.join(texts)))

    def _commands_may_contain_secret(self, request: Request) -> bool:
        """A quick check of the free-text fields: False if no rule can match."""
        texts = list[str]()
        for command in request.commands + request.effect:
            for field in command.free_text:
                value = getattr(command, field)
                if value.__class__ is str:
                    texts.append(value)
                elif value:
                    return True
        # All at once: a call costs more than scanning a short text.
        return self.redactor.may_contain(_as_bytes(_SEPARATOR.join(texts)))

    def _redact_command(self, command: Command, found: list[tuple[str, str]]) -> Command:
        redacted = dict[str, Any]()
        for field in command.free_text:
            value = getattr(command, field)
            masked = self.redactor.tree(value, field) if value else None
            if masked and masked.found:
                found += masked.found
                redacted[field] = tuple(masked.value) if isinstance(value, tuple) else masked.value
            if isinstance(value, str) and value.startswith(("{", "[")):
                document = self._redact_document(redacted.get(field, value), field, found)
                redacted |= {} if document is None else {field: document}
        return replace(command, **redacted) if redacted else command

    def _redact_document(self, text: str, field: str, found: list[tuple[str, str]]) -> str | None:
        """A text that is JSON, with the secrets masked that its escapes hide; None: there are none,
        or it is no JSON."""
        try:
            masked = self.redactor.tree(msgspec.json.decode(text), field)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        found += masked.found
        return msgspec.json.encode(masked.value).decode() if masked.found else None

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


def _without_quoted_secrets(command: Command, original: bytes, redacted: bytes) -> Command:
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
        for name in RejectMessage.free_text
    }
    return replace(command, **texts)


def redaction_warnings(found: Findings) -> tuple[str, ...]:
    """Warnings for the sender about what was masked."""
    warnings = dict.fromkeys(f"a secret was masked: {path} ({kind})" for path, kind in found)
    return tuple(warnings)[:_MAX_WARNINGS]
