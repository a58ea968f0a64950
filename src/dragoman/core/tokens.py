"""The grammar of agents' tokens, drg_<agent>_<id>_<secret>, and the digest that is kept of one."""

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent

# Both ends have a fixed length, so that an underscore in name or secret is not ambiguous.
_TOKEN_RE: Final = re.compile(
    r"drg_([A-Za-z0-9][A-Za-z0-9._@-]{0,256})_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII
)
_TOKEN_ID_RE: Final = re.compile(r"[0-9a-f]{12}", re.ASCII)
_TOKEN_DIGEST_RE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class TokenClaim(Struct, frozen=True):
    """Agent and id that a token claims. Its digest shows if that is true."""

    agent: str
    id: str


def format_token(agent: str, token_id: str, secret: str) -> str:
    """Format a token, as its agent is given it, once."""
    return f"drg_{agent}_{token_id}_{secret}"


def parse_token(text: str) -> TokenClaim | None:
    """Parse a token; None: it is no token of an agent."""
    found = _TOKEN_RE.fullmatch(text)
    if found is None or check_agent(found[1]):
        return None
    return TokenClaim(found[1], found[2])


def digest_token(token: str) -> str:
    """Digest that is stored of a token. 256 bits of secret need no salt or slow hash."""
    return sha256(token.encode()).hexdigest()


def check_token_id(text: str) -> Refusal | None:
    """Refuse unless `text` can be the id of a token."""
    if _TOKEN_ID_RE.fullmatch(text):
        return None
    # Not quoted: it may be the token itself, by mistake.
    return Refusal("invalid_id", "this is not the id of a token: it has 12 of the digits 0-9 a-f")


def check_token_digest(text: str) -> Refusal | None:
    """Refuse unless `text` can be the digest of a token."""
    if _TOKEN_DIGEST_RE.fullmatch(text):
        return None
    return Refusal("invalid_field", "digest is not a SHA-256 in hexadecimal, 64 digits 0-9 a-f")
