"""The public half of an agent's key, from the file that the agent's owner hands over."""

from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

from dragoman.system.private_file import BadKey
from dragoman.text.base64url import encode_base64url

_MAX_BYTES: Final = 65_536


def read_public_key(path: Path) -> str:
    """Public key as 32 bytes in base64url, from PEM or OpenSSH format."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        raise BadKey(
            f"The file {path} cannot be read: {error.strerror}. {_HOW_TO_MAKE_ONE}"
        ) from error
    load = load_ssh_public_key if data.startswith(b"ssh-") else load_pem_public_key
    try:
        key = load(data)
    except (ValueError, UnsupportedAlgorithm):
        # The content is not quoted: it may be the private key, by mistake.
        raise BadKey(f"The file {path} does not hold a public key. {_HOW_TO_MAKE_ONE}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey(f"The file {path} holds a key that is not Ed25519. {_HOW_TO_MAKE_ONE}")
    return encode_base64url(key.public_bytes_raw())


_HOW_TO_MAKE_ONE: Final = (
    "Make one with `openssl genpkey -algorithm ed25519 -out agent.key` and hand over what "
    "`openssl pkey -in agent.key -pubout` prints."
)
