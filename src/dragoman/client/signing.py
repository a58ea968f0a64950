"""Signed messages: they prove their sender to a hub that knows the agent's public key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

from dragoman.client.requests import Message
from dragoman.core.errors import SettingsError
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Clock
from dragoman.engine.signed_requests import sign_message
from dragoman.system.clock import SystemClock, new_id
from dragoman.system.safe_fs import read_private_file
from dragoman.text.error_messages import describe_exception
from dragoman.text.strict_json import StrictJsonError, encode_json, parse_json

VALID_MS: Final = 60_000
"""Validity of a signed message: it is under way for less than that; its hub would accept five
minutes."""
_OPENSSH: Final = b"-----BEGIN OPENSSH PRIVATE KEY-----"


class Signer:
    """Signs the messages of an agent to one hub."""

    def __init__(
        self,
        agent: str,
        key: Ed25519PrivateKey | Path | str,
        audience: str,
        *,
        clock: Clock | None = None,
    ) -> None:
        """`key`: the private key, or its file (PEM or OpenSSH); `audience`: the hub's ledger."""
        self.agent = agent
        self.audience = audience
        self._key = key if isinstance(key, Ed25519PrivateKey) else _load_key(Path(key))
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"Signer({self.agent})"  # a key must not reach a log

    def sign(self, message: Message, key: str = "") -> bytes:
        """Sign a message as `POST /v1/signed` expects it: valid for a minute, and once.

        `key`: an idempotency key. If no answer comes, sign the same message under the same key
        again.
        """
        envelope = {
            "agent": self.agent,
            "nonce": new_id(),
            "audience": self.audience,
            "expires": to_rfc3339(self._clock.now() + VALID_MS),
        }
        if key:
            envelope["key"] = key
        return encode_json(sign_message(_parse_object(message), envelope, self._key))


def find_signer(environ: Mapping[str, str]) -> Signer | None:
    """Return the signer that the environment names; None: nothing is signed."""
    file = environ.get("DRAGOMAN_KEY", "")
    if not file:
        return None
    agent, audience = environ.get("DRAGOMAN_AGENT", ""), environ.get("DRAGOMAN_AUDIENCE", "")
    if not agent or not audience:
        raise SettingsError(
            f"DRAGOMAN_KEY is {file}, so that messages are signed: set DRAGOMAN_AGENT to the name "
            "under which the key is registered, and DRAGOMAN_AUDIENCE to the id of the hub's "
            "ledger, which `dragoman doctor` shows"
        )
    return Signer(agent, file, audience)


def _parse_object(message: Message) -> Any:
    """Parse a message that is to be signed; it must be one that everybody parses alike."""
    if isinstance(message, str | bytes):
        try:
            message = parse_json(message)
        except StrictJsonError as error:
            raise ValueError(f"only a JSON object can be signed: {error}") from None
    if not isinstance(message, Mapping):
        raise ValueError("only a JSON object can be signed")
    return dict(message)


def _load_key(path: Path) -> Ed25519PrivateKey:
    remedy = "It is the private half of what `dragoman agent add NAME --key` was given."
    try:
        pem = read_private_file(path, remedy)
        load = load_ssh_private_key if pem.startswith(_OPENSSH) else load_pem_private_key
        key = load(pem, password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        detail = f"{path} is no private key that can be read: {describe_exception(error)}"
        raise SettingsError(f"{detail}. {remedy}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(f"{path} is no Ed25519 key: `ssh-keygen -t ed25519` makes one")
    return key
