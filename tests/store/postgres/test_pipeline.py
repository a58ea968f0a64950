"""Pipeline: parameters in PostgreSQL's binary format are read as they were meant."""

from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import astuple

from dragoman.store.postgres.connect import connect, parse_url
from dragoman.store.postgres.pipeline import (
    Call,
    Pipeline,
    Scalar,
    blobs,
    nullable_numbers,
    nullable_texts,
    numbers,
    scalar,
    texts,
)
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT")

ECHO = {
    "scalars": "SELECT $1::bigint, $2::text, $3::bytea",
    "lists": "SELECT $1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::text[]",
}

_numbers = st.integers(-(2**63), 2**63 - 1)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


class Values(Struct, frozen=True):
    """Values of every kind."""

    number: int
    text: str
    blob: bytes
    numbers: list[int]
    texts: list[str]
    blobs: list[bytes]
    some_numbers: list[int | None]
    some_texts: list[str | None]


_values = st.builds(
    Values,
    number=_numbers,
    text=_texts,
    blob=st.binary(),
    numbers=st.lists(_numbers, max_size=5),
    texts=st.lists(_texts, max_size=5),
    blobs=st.lists(st.binary(), max_size=5),
    some_numbers=st.lists(st.none() | _numbers, max_size=5),
    some_texts=st.lists(st.none() | _texts, max_size=5),
)


@pytest.fixture(scope="module")
def pipeline(postgres_server: str) -> Generator[Pipeline]:
    """Pipeline whose statements return their parameters."""
    pipeline = Pipeline(connect(parse_url(postgres_server)), ECHO, None)
    yield pipeline
    pipeline.close()


@given(values=_values)
def test_binary_parameters_are_returned_unchanged(pipeline: Pipeline, values: Values) -> None:
    scalars: tuple[Scalar, ...] = (values.number, values.text, values.blob)
    lists = (
        numbers(values.numbers),
        texts(values.texts),
        blobs(values.blobs),
        nullable_numbers(values.some_numbers),
        nullable_texts(values.some_texts),
    )

    found = pipeline.run([Call("scalars", tuple(map(scalar, scalars))), Call("lists", lists)])

    assert found == [[scalars], [astuple(values)[3:]]]
