"""Words: one way to split every text, and one language to ask for them."""

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
def test_a_text_is_split_into_letters_and_digits(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_a_word_is_the_same_however_often_it_is_split(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words
    assert all(word.isalnum() and word == word.lower() for word in words)


def test_a_long_word_is_known_by_its_beginning() -> None:
    long = "x" * (MOST_LETTERS + 9)
    assert words_of(long) == ("x" * MOST_LETTERS,)
    assert wanted(long) == ((Term(("x" * MOST_LETTERS,)),),)


def test_a_long_text_is_known_by_its_first_words() -> None:
    words = words_of(" ".join(f"w{n}" for n in range(MOST_WORDS + 9)))
    assert words == tuple(f"w{n}" for n in range(MOST_WORDS))


def test_long_words_take_no_more_room_than_a_database_has() -> None:
    letters = [chr(0x17000 + n) * MOST_LETTERS for n in range(6_000)]  # Tangut
    words = words_of(" ".join(letters))
    assert words == tuple(letters[: len(words)])
    assert MOST_BYTES - 4 * MOST_LETTERS < sum(len(word.encode()) for word in words) <= MOST_BYTES


def test_a_word_that_comes_too_often_still_keeps_its_place() -> None:
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
def test_a_query_is_understood(query: str, groups: Wanted) -> None:
    assert wanted(query) == groups


@pytest.mark.parametrize("query", ["", " ", "-red", "!!", '""', "-"])
def test_a_query_that_wants_nothing_is_answered_with_an_example(query: str) -> None:
    said = wanted(query)
    assert isinstance(said, str)
    assert "at least one word" in said


@pytest.mark.parametrize("query", ["red OR", "OR red", "a OR -b"])
def test_a_query_with_half_an_or_is_told_so(query: str) -> None:
    said = wanted(query)
    assert isinstance(said, str)
    assert "on each side of OR" in said


def test_a_query_has_an_end() -> None:
    assert not isinstance(wanted("x " * MOST_ASKED), str)
    for query in ("x " * (MOST_ASKED + 1), f'"{"x " * 99}"', "x-" * 500_000, '"x' * 40):
        said = wanted(query)
        assert isinstance(said, str)
        assert str(MOST_ASKED) in said


@given(st.text(st.sampled_from("ab1 -*\"OR\\'&|!()\0é🚀")))
def test_any_query_is_understood_or_answered(query: str) -> None:
    groups = wanted(query)
    if not isinstance(groups, str):
        assert all(any(not term.is_unwanted for term in group) for group in groups)
        assert all(term.words for group in groups for term in group)
