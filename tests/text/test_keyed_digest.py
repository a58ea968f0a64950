"""Keyed digest: a prefix of the standard HMAC."""

import hmac

import pytest

from dragoman.text.keyed_digest import keyed_digest
from tests.requirements import proves


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("key", [b"", b"k", b"k" * 64, b"k" * 65, b"k" * 200])
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1_000])
def test_digest_is_a_prefix_of_hmac_sha256(key: bytes, length: int) -> None:
    """Digests that an earlier release computed with the library stay valid."""
    data = b"x" * length
    assert keyed_digest(key, data) == hmac.digest(key, data, "sha256")[:16]
