"""Search terms: one way to split every text, and one query language."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.words import (
    MOST_ASKED,
    MOST_BYTES,
    MOST_LETTERS,
    MOST_TIMES,
    MOST_WORDS,
    PASSED_OVER,
    Term,
    Wanted,
    wanted,
    words_of,
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
    assert words_of(text) == words


@given(st.text())
def test_splitting_is_idempotent(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words
    assert all(word.isalnum() and word == normalize("NFKC", word.casefold()) for word in words)


def test_long_word_is_indexed_by_its_prefix() -> None:
    long = "x" * (MOST_LETTERS + 9)
    assert words_of(long) == ("x" * MOST_LETTERS,)
    assert wanted(long) == ((Term(("x" * MOST_LETTERS,)),),)


def test_long_text_is_indexed_by_its_first_words() -> None:
    words = words_of(" ".join(f"w{n}" for n in range(MOST_WORDS + 9)))
    assert words == tuple(f"w{n}" for n in range(MOST_WORDS))


def test_indexed_words_fit_the_byte_limit() -> None:
    letters = [chr(0x17000 + n) * MOST_LETTERS for n in range(6_000)]  # Tangut
    words = words_of(" ".join(letters))
    assert words == tuple(letters[: len(words)])
    assert MOST_BYTES - 4 * MOST_LETTERS < sum(len(word.encode()) for word in words) <= MOST_BYTES


def test_too_frequent_word_is_replaced_but_keeps_its_position() -> None:
    words = words_of("again " * (MOST_TIMES + 2) + "end")
    assert words == ("again",) * MOST_TIMES + (PASSED_OVER,) * 2 + ("end",)
    assert wanted(f"{PASSED_OVER} end") == ((Term(("end",)),),)


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("red", ((Term(("red",)),),)),
        ("Red  BLUE", ((Term(("red",)), Term(("blue",))),)),
        ('"blue green"', ((Term(("blue", "green")),),)),
        ('"blue green', ((Term(("blue", "green")),),)),
        ("blue-green", ((Term(("blue", "green")),),)),
        ("dep*", ((Term(("dep",), is_prefix=True),),)),
        ("a.dep*", ((Term(("a", "dep"), is_prefix=True),),)),
        ("dep* * !!", ((Term(("dep",), is_prefix=True),),)),
        ('"dep*"', ((Term(("dep",)),),)),
        (
            'red -grey -"no go" -sub*',
            (
                (
                    Term(("red",)),
                    Term(("grey",), is_unwanted=True),
                    Term(("no", "go"), is_unwanted=True),
                    Term(("sub",), is_prefix=True, is_unwanted=True),
                ),
            ),
        ),
        ("red OR blue green", ((Term(("red",)),), (Term(("blue",)), Term(("green",))))),
        ("red or", ((Term(("red",)), Term(("or",))),)),
        ('"OR"', ((Term(("or",)),),)),
    ],
)
def test_query_is_parsed(query: str, groups: Wanted) -> None:
    assert wanted(query) == groups


@pytest.mark.parametrize("query", ["", " ", "-red", "!!", '""', "-"])
def test_query_without_a_wanted_word_is_refused_with_an_example(query: str) -> None:
    message = wanted(query)
    assert isinstance(message, str)
    assert "at least one word" in message


@pytest.mark.parametrize("query", ["red OR", "OR red", "a OR -b"])
def test_incomplete_or_is_refused(query: str) -> None:
    message = wanted(query)
    assert isinstance(message, str)
    assert "on each side of OR" in message


def test_query_length_is_limited() -> None:
    assert not isinstance(wanted("x " * MOST_ASKED), str)
    for query in ("x " * (MOST_ASKED + 1), f'"{"x " * 99}"', "x-" * 500_000, '"x' * 40):
        message = wanted(query)
        assert isinstance(message, str)
        assert str(MOST_ASKED) in message


@given(st.text(st.sampled_from("ab1 -*\"OR\\'&|!()\0é🚀")))
def test_any_query_is_parsed_or_refused(query: str) -> None:
    groups = wanted(query)
    if not isinstance(groups, str):
        assert all(any(not term.is_unwanted for term in group) for group in groups)
        assert all(term.words for group in groups for term in group)
