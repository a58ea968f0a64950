"""New tokens: the chance that their secrets are made of."""

import secrets
from dataclasses import dataclass, field
from typing import Final

from dragoman.core.tokens import digest_token, format_token

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
