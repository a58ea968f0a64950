"""The owner's token, `token` in the data directory: made on first start, for its owner's eyes only.

Whoever can read the file is the person whose hub this is; on one's own machine nothing asks more.
"""

import re
from pathlib import Path
from typing import Final

from dragoman.system.files import create_atomically
from dragoman.system.private_file import OWNER_ONLY, BadKey, read_private_file
from dragoman.system.tokens import new_secret

CREDENTIAL_FILE: Final = "token"
_TOKEN_PATTERN: Final = re.compile(rb"(drgo_[A-Za-z0-9_-]{43})\n?")


def load_token(data: Path) -> bytes:
    """Load the token of a data directory; FileNotFoundError where no hub has started before."""
    path = data / CREDENTIAL_FILE
    found = _TOKEN_PATTERN.fullmatch(read_private_file(path, _token_remedy(path)))
    if found is None:
        # The content is not quoted: most of it may be right.
        raise BadKey(f"The file {path} does not hold a token. {_token_remedy(path)}")
    return found[1]


def load_or_create_token(data: Path) -> bytes:
    """Load the token; created on first use, the same for concurrent callers."""
    path = data / CREDENTIAL_FILE
    if not path.exists():
        create_atomically(path, f"drgo_{new_secret()}\n".encode(), mode=OWNER_ONLY)
    return load_token(data)


def _token_remedy(path: Path) -> str:
    return f"Move {path} away, and the next start makes a new one."
