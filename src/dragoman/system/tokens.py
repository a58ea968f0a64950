"""New tokens: the chance that their secrets are made of."""

import secrets
from dataclasses import dataclass, field
from typing import Final

from dragoman.core.tokens import digest_of, write_token

_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 6


@dataclass(frozen=True)
class NewToken:
    """A token that nobody has seen yet. It is shown once, and only its digest is kept."""

    id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """What the ledger keeps of it."""
        return digest_of(self.text)


def new_token(agent: str) -> NewToken:
    """A token for an agent, with a secret of 256 bits."""
    token_id = secrets.token_hex(_ID_BYTES)
    return NewToken(token_id, write_token(agent, token_id, new_secret()))


def new_secret() -> str:
    """256 bits in base64url."""
    return secrets.token_urlsafe(_SECRET_BYTES)
