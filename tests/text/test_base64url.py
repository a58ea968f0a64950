"""Base64url in one spelling only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.base64url import decode_base64url, encode_base64url
from tests.requirements import proves

pytestmark = proves("IDENTITY-TOKEN")


@given(data=st.binary(max_size=80))
def test_bytes_round_trip(data: bytes) -> None:
    text = encode_base64url(data)
    assert decode_base64url(text) == data
    assert "=" not in text


@pytest.mark.parametrize(
    "text", ["A", "AB", "AA==", "AA=", "A A", "+/8", "AA\n", "\u00fc", "\ud800"]
)
def test_noncanonical_spelling_is_refused(text: str) -> None:
    assert decode_base64url(text) is None


@given(text=st.text(max_size=80))
def test_accepted_text_encodes_to_itself(text: str) -> None:
    data = decode_base64url(text)
    assert data is None or encode_base64url(data) == text
