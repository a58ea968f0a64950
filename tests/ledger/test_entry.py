"""Lines of the ledger: one encoding, strict decoding, and a hash over all of it."""

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.core.errors import LedgerError
from dragoman.core.task_state import TaskNoted
from dragoman.ledger.entry import GENESIS, Line, link_hash, read_line, write_line
from tests.requirements import proves

LINE = Line("task:T", 3, "task.noted", 1, 17, "agent:alice", "r-1", TaskNoted("hello"))
WRITTEN = (
    b'{"stream":"task:T","version":3,"event":"task.noted","v":1,"at":17,'
    b'"actor":"agent:alice","cause":"r-1","body":{"text":"hello"}}'
)


@proves("LEDGER-LINE")
def test_line_has_one_encoding() -> None:
    assert write_line(LINE) == WRITTEN


@proves("LEDGER-LINE", "LEDGER-SAID")
def test_surface_and_original_text_come_last_if_present() -> None:
    original = b'{ "b":1 ,"a":"\xc3\xa9","b":2}'
    line = msgspec.structs.replace(LINE, via="http", original_text=Raw(original))
    assert write_line(line) == WRITTEN[:-1] + b',"via":"http","original_text":' + original + b"}"
    read = read_line(write_line(line))
    assert isinstance(read.original_text, Raw)
    assert bytes(read.original_text) == original, "as they came, to the byte"


@proves("LEDGER-LINE")
@given(
    st.text(st.characters(codec="utf-8")),
    st.integers(1, 2**53),
    st.integers(-(2**53), 2**53),
    st.text(st.characters(codec="utf-8")),
)
def test_line_is_read_as_written(stream: str, version: int, at: int, text: str) -> None:
    line = Line(stream, version, "task.noted", 1, at, "a", "c", TaskNoted(text), "v")
    data = write_line(line)
    assert b"\n" not in data
    read = read_line(data)
    assert (read.stream, read.version, read.at, read.via) == (stream, version, at, "v")
    assert msgspec.json.decode(read.body) == {"text": text}


@proves("LEDGER-LINE")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\x00",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b"not json",
        WRITTEN[:-1],
        WRITTEN + b"}",
        WRITTEN + WRITTEN,
        WRITTEN.replace(b'"version":3', b'"version":"3"'),
        WRITTEN.replace(b'"version":3', b'"version":3.5'),
        WRITTEN.replace(b'"stream"', b'"strean"'),
        WRITTEN.replace(b"task:T", b"task:\xff"),
        WRITTEN.replace(b',"body":{"text":"hello"}', b""),
        WRITTEN.replace(b"hello", b"hel\nlo"),
    ],
    ids=range(17),
)
def test_malformed_line_is_refused(data: bytes) -> None:
    with pytest.raises(LedgerError, match="a stored line is not an entry"):
        read_line(data)


@proves("LEDGER-LINE")
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(LedgerError):
        read_line(data)


@proves("LEDGER-LINE")
def test_truncated_line_is_refused() -> None:
    for length in range(len(WRITTEN)):
        with pytest.raises(LedgerError):
            read_line(WRITTEN[:length])


@proves("LEDGER-CHAIN")
def test_chain_starts_at_zero_and_covers_previous_hash_and_line() -> None:
    assert bytes(32) == GENESIS
    assert link_hash(GENESIS, b"line") == sha256(bytes(32) + b"line").digest()
    assert link_hash(GENESIS, b"").hex() == (
        "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
    )


@proves("LEDGER-CHAIN")
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=64), st.data())
def test_other_line_or_previous_hash_gives_another_hash(
    previous: bytes, line: bytes, data: st.DataObject
) -> None:
    other = data.draw(st.binary(max_size=64).filter(lambda value: value != line))
    past = data.draw(st.binary(min_size=32, max_size=32).filter(lambda value: value != previous))
    assert link_hash(previous, line) != link_hash(previous, other)
    assert link_hash(previous, line) != link_hash(past, line)
