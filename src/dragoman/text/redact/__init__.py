"""Redaction: masks secrets in text, in streams of text, in lines, and in JSON.

`rules` has the tables: formats of credentials, programs that take passwords. `named_values` finds
values behind a name, `positional_secrets` those that their position gives away, `private_keys` PEM
and PuTTY keys, also line by line, and `known` values that the hub knows. `likelihood` tells random
values from words. `normalized_text` reads a text without hidden characters and escapes. `finder`
combines all of them, `redactor` works on lines and JSON, and `stream` on text that comes in pieces.
"""

from dragoman.text.redact.finder import Found
from dragoman.text.redact.known import MIN_SECRET_LENGTH, Secret
from dragoman.text.redact.private_keys import NO_OPEN_KEY
from dragoman.text.redact.redactor import (
    Masked,
    MaskedLine,
    MaskedTree,
    Redactor,
    is_secret_variable,
)
from dragoman.text.redact.stream import Stream

__all__ = [
    "MIN_SECRET_LENGTH",
    "NO_OPEN_KEY",
    "Found",
    "Masked",
    "MaskedLine",
    "MaskedTree",
    "Redactor",
    "Secret",
    "Stream",
    "is_secret_variable",
]
