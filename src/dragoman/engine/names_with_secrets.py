"""Names that hold a secret: they cannot be masked, since nothing would be found by them again."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, inspect

from dragoman.core.free_text import FREE_TEXT_FIELDS, OTHER_TEXT_FIELDS
from dragoman.core.ids import is_numbered_aof_id
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor
from dragoman.text.redact.assignments import placeholder_kind
from dragoman.text.redact.looks import looks_random
from dragoman.text.redact.rules import RULES

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
def _name_fields(command: type[Any]) -> tuple[str, ...]:
    """The fields of a command that may hold names."""
    others = OTHER_TEXT_FIELDS.union(FREE_TEXT_FIELDS.get(command, ()))
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
