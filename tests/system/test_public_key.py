"""Public keys of agents: read from PEM and OpenSSH files, and from nothing else."""

from base64 import urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from dragoman.system.keys import parse_public_key
from dragoman.system.safe_fs import BadKey
from tests.requirements import proves

pytestmark = proves("IDENTITY-SIGNED")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = urlsafe_b64encode(KEY.public_key().public_bytes_raw()).rstrip(b"=").decode()
PRIVATE = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
OTHER = X25519PrivateKey.from_private_bytes(bytes(32)).public_key()


@pytest.mark.parametrize(
    ("encoding", "form"),
    [
        (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        (Encoding.OpenSSH, PublicFormat.OpenSSH),
    ],
)
def test_key_is_read_from_pem_and_openssh(encoding: Encoding, form: PublicFormat) -> None:
    assert parse_public_key(KEY.public_key().public_bytes(encoding, form), "key.pub") == RAW


@proves("IDENTITY-SECRET")
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not hold a public key"),
        (b"ssh-ed25519 AAAA", "does not hold a public key"),
        (PRIVATE, "does not hold a public key"),
        (OTHER.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "is not Ed25519"),
    ],
    ids=range(4),
)
def test_other_content_is_refused_with_remedy(data: bytes, why: str) -> None:
    with pytest.raises(BadKey, match=f"key.pub .*{why}") as caught:
        parse_public_key(data, "key.pub")
    assert "openssl genpkey" in caught.value.detail
    assert PRIVATE.splitlines()[1].decode() not in caught.value.detail
