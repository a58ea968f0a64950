"""Search: for any texts and queries every store finds what the oracle finds."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.engine.ports import Changes, ListItem, Store
from dragoman.store.memory import MemoryStore
from dragoman.text.search_terms import (
    MAX_OCCURRENCES,
    MAX_WORD_LENGTH,
    MAX_WORDS,
    SearchQuery,
    extract_words,
    parse_query,
)
from tests.conformance.store.changes import begin_stream, make_entry, make_row, write
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.storages import Storages
from tests.conformance.store.threads import run_concurrently
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-SEARCH")

ALL = 1_000


def parsed_query(query: str) -> SearchQuery:
    """Parse a valid query."""
    groups = parse_query(query)
    assert not isinstance(groups, str), groups
    return groups


def index_all(store: Store, *texts: str) -> None:
    """Create and index a stream for each text; text n is at position n."""
    for n in range(1, len(texts) + 1):
        begin_stream(store, f"mail:{n}")
    store.index_texts([(n, extract_words(text)) for n, text in enumerate(texts, 1)], len(texts))


def found(store: Store, query: str) -> list[int]:
    """List the positions that a query finds."""
    return [one.position for one in store.search(parsed_query(query), None, ALL)]


def test_empty_store_finds_nothing(store: Store) -> None:
    assert store.indexed_position() == 0
    assert found(store, "red") == []
    store.index_texts([], 0)
    assert store.indexed_position() == 0


@proves("SEARCH-WORDS")
@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("red", [4, 2, 1]),
        ("RED green", [2]),
        ("red blue", [4, 1]),
        ('"red blue"', [1]),
        ('"blue red"', [4]),
        ('"blue red"* OR green', [4, 3, 2]),
        ("red -blue", [2]),
        ('red -"red blue"', [4, 2]),
        ("gre*", [3, 2]),
        ('red -gre* OR "grey green"', [4, 3, 1]),
        ("a.gre*", [2]),
        ("gre", []),
        ("nothing OR grey OR blue", [4, 3, 1]),
    ],
)
def test_words_phrases_prefixes_and_exclusions_match(
    store: Store, query: str, positions: list[int]
) -> None:
    index_all(store, "red blue", "Red, a green", "grey green", "blue; red!")

    assert found(store, query) == positions


@proves("SEARCH-WORDS")
@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("日本語", [2, 1]),
        ("テキスト", [1]),
        ("本日", [3]),
        ("日本語 -設定", [1]),
        ("日*", [3, 2, 1]),
        ("GPT4の設定", [2]),
        ('"語テ"', [1]),
    ],
)
def test_text_without_spaces_is_found_by_any_part(
    store: Store, query: str, positions: list[int]
) -> None:
    index_all(store, "日本語テキスト", "GPT4の設定（日本語）", "本日は晴天なり")

    assert found(store, query) == positions


@proves("CLI-PAGED")
def test_pages_go_from_newest_to_oldest(store: Store) -> None:
    index_all(store, *["red", "red blue", "blue", "red", "red"])

    first = store.search(parsed_query("red"), None, 2)
    second = store.search(parsed_query("red"), first[-1].position, 2)
    third = store.search(parsed_query("red"), second[-1].position, 2)

    pages = [[one.position for one in page] for page in (first, second, third)]
    assert pages == [[5, 4], [2, 1], []]


def test_found_stream_is_shown_as_it_is_now(store: Store) -> None:
    begin_stream(store, "mail:0")
    number = begin_stream(store, "mail:1")
    store.index_texts([(2, ("red",))], 2)
    row = make_row(number, "mail:1", 2)
    write(store, Changes([make_entry(number, 2)], [row]))

    assert store.search(parsed_query("red"), None, 9) == [ListItem(2, row)]


def test_indexed_position_is_kept_and_never_lowered(open_store: OpenStore) -> None:
    store, other = open_store(), open_store()
    index_all(store, "red", "blue")
    assert other.indexed_position() == 2

    other.index_texts([], 5)
    store.index_texts([(1, ("red",))], 1)

    assert store.indexed_position() == other.indexed_position() == 5
    assert found(store, "red") == found(other, "red") == [1]


def test_texts_indexed_by_another_process_are_not_indexed_again(open_store: OpenStore) -> None:
    store, other = open_store(), open_store()
    index_all(store, "red", "red blue", "grey")

    other.index_texts([(2, ("red", "blue")), (3, ("grey",)), (4, ("red",))], 4)
    begin_stream(store, "mail:4")

    assert store.indexed_position() == 4
    assert found(store, "red") == [4, 2, 1]
    assert found(store, "red -blue") == [4, 1]
    assert found(store, "grey") == [3]


def test_concurrent_indexers_give_a_complete_index(open_store: OpenStore) -> None:
    stores = open_store(), open_store()
    for n in range(30):
        begin_stream(stores[0], f"mail:{n}")

    def index(store: Store, size: int) -> None:
        after = store.indexed_position()
        while after < 30:
            end = min(after + size, 30)
            store.index_texts([(n, ("red", f"n{n}")) for n in range(after + 1, end + 1)], end)
            after = end

    run_concurrently([lambda n=n: index(stores[n % 2], 3 + n) for n in range(4)])

    assert stores[0].indexed_position() == 30
    assert found(stores[1], "red") == [*range(30, 0, -1)]
    assert [found(stores[0], f"n{n}") for n in range(1, 31)] == [[n] for n in range(1, 31)]


HOSTILE = (
    "it's 'quoted' ''twice''",
    'say "red" ""',
    "back\\slash \\' \\\\",
    "a & b | !c <-> d:* (e)",
    'NEAR(a b) words: x {y} ^z + - AND NOT "',
    "nul\0nul \0",
    "🚀 rocket 👩‍👩‍👧 family",
    "x" * 10_000,
    "\u202eright to left\u202c \u200bzero",
    "%s %(name)s $1 ?1 :name @x",
    "'; DROP TABLE texts; --",
    "\ufffd\ufffe\uffff\U0010ffff",
    "ﷺ ﬁ ß İ ǅ ʼn",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_or_query_contains_operators(store: Store, text: str) -> None:
    index_all(store, text, "red")
    words = extract_words(text)

    assert found(store, "red") == ([2, 1] if "red" in words else [2])
    for word in words:
        assert 1 in found(store, word)
    if words:
        assert found(store, text.replace('"', "").replace(" ", ".").lstrip("-")) == [1]


def test_longest_texts_are_indexed_alike(store: Store) -> None:
    many = " ".join(f"w{n}" for n in range(MAX_WORDS + 5))
    wide = " ".join(chr(0x20000 + n) * MAX_WORD_LENGTH for n in range(10_000))
    index_all(store, many, wide)

    assert found(store, f"w{MAX_WORDS - 1}") == [1]
    assert found(store, f'"w{MAX_WORDS - 2} w{MAX_WORDS - 1}"') == [1]
    assert found(store, f"w{MAX_WORDS}") == []
    assert found(store, chr(0x20000) + "*") == [2]


def test_frequent_word_is_indexed_by_its_first_positions(store: Store) -> None:
    again = [f"again x{n}" for n in range(1, MAX_OCCURRENCES + 10)]
    index_all(store, " ".join(again))

    assert found(store, f'"again x{MAX_OCCURRENCES}"') == [1]
    assert found(store, f'"again x{MAX_OCCURRENCES + 1}"') == []
    assert found(store, f'"x{MAX_OCCURRENCES} x{MAX_OCCURRENCES + 1}"') == []
    assert found(store, f"again x{MAX_OCCURRENCES + 1}") == [1]


WORDS = ("a", "ab", "abc", "b", "é", "straße", "STRASSE", "日本", "0", "1x", "🚀", "it's", "x-y")

texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=6)
any_texts = st.lists(st.text(), max_size=4)
terms = st.builds(
    "{}{}{}".format,
    st.sampled_from(("", "", "", "-")),
    st.one_of(
        st.sampled_from(WORDS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda w: f'"{" ".join(w)}"'),
    ),
    st.sampled_from(("", "", "*")),
)
queries = st.lists(st.one_of(terms, terms, terms, st.just("OR"), st.text(max_size=5)), max_size=5)


@proves("SEARCH-WORDS")
@given(texts=st.one_of(texts, any_texts), queries=st.lists(queries.map(" ".join), max_size=12))
def test_every_store_finds_the_same(
    storages: Storages, texts: Sequence[str], queries: Sequence[str]
) -> None:
    oracle = MemoryStore("oracle")
    index_all(oracle, *texts)
    with storages.new() as storage:
        store = storage.open()
        index_all(store, *texts)

        # Parts of the texts are searched for as well, so that something is found.
        for query in (*queries, *texts, *(text[: len(text) // 2] + "*" for text in texts)):
            groups = parse_query(query)
            if not isinstance(groups, str):
                assert found(store, query) == found(oracle, query), query
