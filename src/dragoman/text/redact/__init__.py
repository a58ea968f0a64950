"""Redaction: masks secrets in text, in streams of text, in lines, and in JSON.

`rules` has the formats of credentials, one row each; `known` finds values that the hub knows,
`private_keys` PEM and PuTTY keys, also line by line; `assignments` finds values behind a name
(`name_patterns` has the spellings), `logins` and `command_lines` those that their position gives
away. `likelihood` tells random values from words. `normalized_text` reads a text without hidden
characters and escapes. `finder` combines all of them, `redactor` replaces what it finds, and
`stream` does so for text that comes in pieces.
"""

from dragoman.text.redact.chunks import Stream
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
