"""Redaction: text without secrets, whole, in pieces, or as JSON.

`rules` are the formats, one row each, which `prefixed` finds; `known` finds what the hub knows,
`broken` that over lines, `blocks` private keys, `lines` those over lines that are kept one by one,
`assignments` what a name stands before (`forms`: how; `values`: up to where; `objects`: where in
one), `logins` and `commands` what its place tells. A text is read (`reading`) without what is
`hidden` in it, and with the signs that are `escaped`. `finder` puts them together, `redactor` takes
out what they find and leaves `placeholders`, `stream` does so in pieces, and `pending` is what it
waits for.
"""

from dragoman.text.redact.finder import Found
from dragoman.text.redact.known import MIN_SECRET_LENGTH, Secret
from dragoman.text.redact.lines import NO_OPEN_KEY
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
