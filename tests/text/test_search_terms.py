"""Search terms: one way to split every text, and one query language."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.search_terms import (
    MAX_OCCURRENCES,
    MAX_QUERY_WORDS,
    MAX_WORD_BYTES,
    MAX_WORD_LENGTH,
    MAX_WORDS,
    SKIPPED_WORD,
    SearchQuery,
    SearchTerm,
    extract_words,
    parse_query,
)
from tests.requirements import proves

pytestmark = proves("SEARCH-WORDS")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \t\n-_*'\"\\:&|!<->()\0\x1b\u200b", ()),
        ("Token expired, again!", ("token", "expired", "again")),
        ("src/auth_login.py:42", ("src", "auth", "login", "py", "42")),
        ("it's a\\b 'c' \"d\" e\0f", ("it", "s", "a", "b", "c", "d", "e", "f")),
        ("STRASSE straße \ufb01n \uff21\u2460", ("strasse", "strasse", "fin", "a1")),
        ("cafe\u0301 caf\u00e9", ("caf\u00e9", "caf\u00e9")),
        ("日本語、テスト", ("日", "本", "語", "テ", "ス", "ト")),
        (
            "ﾃｽﾄ GPT4の設定.md 한국어 佐々木",
            (*"テスト", "gpt4", *"の設定", "md", "한국어", *"佐々木"),
        ),
        ("rocket 🚀 launch", ("rocket", "launch")),
        ("a lone \ud800surrogate", ("a", "lone", "surrogate")),
    ],
)
def test_text_is_split_into_words_of_letters_and_digits(text: str, words: tuple[str, ...]) -> None:
    assert extract_words(text) == words


@given(st.text())
def test_splitting_is_idempotent(text: str) -> None:
    words = extract_words(text)
    assert extract_words(" ".join(words)) == words
    assert all(word.isalnum() and word == normalize("NFKC", word.casefold()) for word in words)


def test_long_word_is_indexed_by_its_prefix() -> None:
    long = "x" * (MAX_WORD_LENGTH + 9)
    assert extract_words(long) == ("x" * MAX_WORD_LENGTH,)
    assert parse_query(long) == ((SearchTerm(("x" * MAX_WORD_LENGTH,)),),)


def test_long_text_is_indexed_by_its_first_words() -> None:
    words = extract_words(" ".join(f"w{n}" for n in range(MAX_WORDS + 9)))
    assert words == tuple(f"w{n}" for n in range(MAX_WORDS))


def test_indexed_words_fit_the_byte_limit() -> None:
    letters = [chr(0x17000 + n) * MAX_WORD_LENGTH for n in range(6_000)]  # Tangut
    words = extract_words(" ".join(letters))
    assert words == tuple(letters[: len(words)])
    assert (
        MAX_WORD_BYTES - 4 * MAX_WORD_LENGTH
        < sum(len(word.encode()) for word in words)
        <= MAX_WORD_BYTES
    )


def test_too_frequent_word_is_replaced_but_keeps_its_position() -> None:
    words = extract_words("again " * (MAX_OCCURRENCES + 2) + "end")
    assert words == ("again",) * MAX_OCCURRENCES + (SKIPPED_WORD,) * 2 + ("end",)
    assert parse_query(f"{SKIPPED_WORD} end") == ((SearchTerm(("end",)),),)


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("red", ((SearchTerm(("red",)),),)),
        ("Red  BLUE", ((SearchTerm(("red",)), SearchTerm(("blue",))),)),
        ('"blue green"', ((SearchTerm(("blue", "green")),),)),
        ('"blue green', ((SearchTerm(("blue", "green")),),)),
        ("blue-green", ((SearchTerm(("blue", "green")),),)),
        ("dep*", ((SearchTerm(("dep",), is_prefix=True),),)),
        ("a.dep*", ((SearchTerm(("a", "dep"), is_prefix=True),),)),
        ("dep* * !!", ((SearchTerm(("dep",), is_prefix=True),),)),
        ('"dep*"', ((SearchTerm(("dep",)),),)),
        (
            'red -grey -"no go" -sub*',
            (
                (
                    SearchTerm(("red",)),
                    SearchTerm(("grey",), is_excluded=True),
                    SearchTerm(("no", "go"), is_excluded=True),
                    SearchTerm(("sub",), is_prefix=True, is_excluded=True),
                ),
            ),
        ),
        (
            "red OR blue green",
            ((SearchTerm(("red",)),), (SearchTerm(("blue",)), SearchTerm(("green",)))),
        ),
        ("red or", ((SearchTerm(("red",)), SearchTerm(("or",))),)),
        ('"OR"', ((SearchTerm(("or",)),),)),
    ],
)
def test_query_is_parsed(query: str, groups: SearchQuery) -> None:
    assert parse_query(query) == groups


@pytest.mark.parametrize("query", ["", " ", "-red", "!!", '""', "-"])
def test_query_without_a_wanted_word_is_refused_with_an_example(query: str) -> None:
    message = parse_query(query)
    assert isinstance(message, str)
    assert "at least one word" in message


@pytest.mark.parametrize("query", ["red OR", "OR red", "a OR -b"])
def test_incomplete_or_is_refused(query: str) -> None:
    message = parse_query(query)
    assert isinstance(message, str)
    assert "on each side of OR" in message


def test_query_length_is_limited() -> None:
    assert not isinstance(parse_query("x " * MAX_QUERY_WORDS), str)
    for query in ("x " * (MAX_QUERY_WORDS + 1), f'"{"x " * 99}"', "x-" * 500_000, '"x' * 40):
        message = parse_query(query)
        assert isinstance(message, str)
        assert str(MAX_QUERY_WORDS) in message


@given(st.text(st.sampled_from("ab1 -*\"OR\\'&|!()\0é🚀")))
def test_any_query_is_parsed_or_refused(query: str) -> None:
    groups = parse_query(query)
    if not isinstance(groups, str):
        assert all(any(not term.is_excluded for term in group) for group in groups)
        assert all(term.words for group in groups for term in group)
