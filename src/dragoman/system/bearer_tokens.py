"""Bearer tokens: new ones for agents, and the owner's token in the file `token`.

The owner's token is made on first start and readable by its owner only. Whoever can read the
file is the owner of the hub; on one's own machine nothing more is asked for.
"""

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dragoman.core.agent import digest_token, format_token
from dragoman.system.safe_fs import OWNER_ONLY, BadKey, create_atomically, read_private_file

# --- new tokens -------------------------------------------------------------------------------

_SECRET_BYTES: Final = 32

_ID_BYTES: Final = 6


@dataclass(frozen=True)
class NewToken:
    """A token that was just created. It is shown once, and only its digest is kept."""

    id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """Digest that the ledger keeps."""
        return digest_token(self.text)


def new_token(agent: str) -> NewToken:
    """Create a token for an agent, with a secret of 256 bits."""
    token_id = secrets.token_hex(_ID_BYTES)
    return NewToken(token_id, format_token(agent, token_id, new_secret()))


def new_secret() -> str:
    """256 random bits in base64url."""
    return secrets.token_urlsafe(_SECRET_BYTES)


# --- the owner's token ------------------------------------------------------------------------

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
