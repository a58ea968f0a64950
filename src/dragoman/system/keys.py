"""Keys: the ledger's signing key, the hub's secret, and public keys of agents."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_public_key,
)

from dragoman.ledger.checkpoint import key_id
from dragoman.system.safe_fs import (
    OWNER_ONLY,
    BadKey,
    create_atomically,
    read_private_file,
    read_regular,
    sync_folder,
)
from dragoman.text.base64url import encode_base64url

# --- keys of the data directory ---------------------------------------------------------------

_KEY_FILES: Final = ("secret", "ledger.key", "ledger.pub")

_SECRET_BYTES: Final = 32


@dataclass(frozen=True)
class LedgerKey:
    """Private key that signs checkpoints, and the secret for keyed digests."""

    private: Ed25519PrivateKey = field(repr=False)
    secret: bytes = field(repr=False)

    @property
    def public(self) -> Ed25519PublicKey:
        return self.private.public_key()

    @property
    def id(self) -> str:
        """Short id of the key, as checkpoints carry it."""
        return key_id(self.public)


def load_keys(folder: Path) -> LedgerKey:
    """Load the keys of a data directory that has some."""
    keys = folder / "keys"
    loaded = LedgerKey(
        private=_load_private(keys / "ledger.key"), secret=_load_secret(keys / "secret")
    )
    _check_public(keys / "ledger.pub", _public_pem(loaded.public))
    return loaded


def has_keys(folder: Path) -> bool:
    """True when a data directory has had keys: the public key is written last."""
    return (folder / "keys" / "ledger.pub").exists()


def has_any_key_file(keys: Path) -> bool:
    """True when any key file exists in the folder of keys."""
    return any((keys / name).exists() for name in _KEY_FILES)


def load_or_create_keys(folder: Path) -> LedgerKey:
    """Load the keys of a data directory; created on first use, the same for concurrent callers."""
    keys = folder / "keys"
    if not keys.is_dir():
        keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(keys.parent)
    if not has_keys(folder):
        create_atomically(keys / "secret", secrets.token_bytes(_SECRET_BYTES), mode=OWNER_ONLY)
        create_atomically(keys / "ledger.key", _new_private_pem(), mode=OWNER_ONLY)
        private = _load_private(keys / "ledger.key")
        create_atomically(keys / "ledger.pub", _public_pem(private.public_key()))
    return load_keys(folder)


def _load_private(path: Path) -> Ed25519PrivateKey:
    pem = _read_key_file(path)
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _damaged_error(path, "does not hold a private key that can be read") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise _damaged_error(path, "does not hold an Ed25519 key")
    return private


def _load_secret(path: Path) -> bytes:
    secret = _read_key_file(path)
    if len(secret) != _SECRET_BYTES:
        raise _damaged_error(path, f"holds {len(secret)} bytes instead of {_SECRET_BYTES}")
    return secret


def _check_public(path: Path, pem: bytes) -> None:
    try:
        if read_regular(path) == pem:
            return
    except FileNotFoundError:
        pass
    raise BadKey(
        f"The public key {path} is missing, or does not belong to the private key beside it, so "
        f"that one of them was replaced. {keys_remedy(path.parent)}."
    )


def _read_key_file(path: Path) -> bytes:
    try:
        return read_private_file(path, f"{keys_remedy(path.parent)}.")
    except FileNotFoundError:
        if not has_any_key_file(path.parent):
            raise BadKey(
                f"There are no keys in {path.parent}. {keys_remedy(path.parent)}."
            ) from None
        raise _damaged_error(path, "is missing although others beside it are there") from None


def _damaged_error(path: Path, problem: str) -> BadKey:
    return BadKey(f"The file {path} {problem}. {keys_remedy(path.parent)}.")


def keys_remedy(keys: Path) -> str:
    """Advice on lost or damaged keys."""
    data = keys.parent
    quoted_data = quote(str(data))
    return (
        f"Take them out of a backup: `tar -xf BACKUP -C {quoted_data} --strip-components=1 "
        "files/keys`, "
        f"then `chmod -R go= {quote(str(keys))}`; or, if its store is shared (PostgreSQL), copy "
        "the folder keys from the data directory of a hub that works on it, in the place of "
        f"{keys}. If there is no copy, continue with new keys, which cannot verify the old "
        f"checkpoints: stop the hub if one runs, move {data / 'checkpoints.jsonl'} (while it is "
        f"there, no keys are made) and what is left of {keys} away, then run "
        f"`dragoman --data {quoted_data} init --new-keys`"
    )


def _new_private_pem() -> bytes:
    private = Ed25519PrivateKey.generate()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _public_pem(public: Ed25519PublicKey) -> bytes:
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


# --- public keys of agents --------------------------------------------------------------------

_MAX_BYTES: Final = 65_536


def parse_public_key(data: bytes, path: str) -> str:
    """Public key as 32 bytes in base64url, from PEM or OpenSSH format, as it stands in a file."""
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
