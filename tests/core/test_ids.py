"""Grammar of names: whole, ASCII, bounded; and the AOF ids of tasks."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.core.errors import Refusal
from dragoman.core.ids import (
    actor_stream,
    check_agent,
    check_alias,
    check_key,
    check_session,
    check_task_id,
    format_aof_id,
    is_aof_id,
    is_numbered_aof_id,
    is_task_name,
    safe_name,
    task_stream,
)
from tests.requirements import proves

pytestmark = proves("NAME-GRAMMAR")

HOSTILE = (
    "",
    " ",
    ".",
    "..",
    "../etc/passwd",
    "..\\up",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\x00b",
    "a\n",
    "\na",
    "a\r",
    "a\u2028",
    "a b",
    " a",
    "a ",
    "-a",
    "_a",
    ".hidden",
    "~root",
    "a:b:c",
    "C:",
    "a%2e",
    "a;b",
    "$(id)",
    "TASK-2026-02-09-00１",
    "TASK-２026-02-09-001",
    "раypal",
    "ａ",
    "é",
    "e\u0301",
    "a\u200bb",
    "a\u202eb",
    "\ufeffa",
    "a\ud800",
    "\U0001f409",
    "a" * 129,
    "a" * 100_000,
)
FIRST = string.ascii_letters + string.digits
REST = FIRST + "._-"


def is_id(text: str) -> bool:
    """Grammar of S-NAME, spelt out without a regular expression."""
    return 1 <= len(text) <= 128 and text[0] in FIRST and all(c in REST for c in text[1:])


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_names_are_refused(text: str) -> None:
    for refusal in (check_task_id(text), check_agent(text), check_alias(f"bead:{text}")):
        assert refusal is not None
        assert refusal.code == "invalid_id"
        assert refusal.detail.isascii()
        assert refusal.detail.isprintable()
        assert len(refusal.detail) < 600


@pytest.mark.parametrize(("length", "fits"), [(1, True), (127, True), (128, True), (129, False)])
def test_name_has_at_most_128_characters(length: int, fits: bool) -> None:
    text = "a" * length
    assert (check_task_id(text) is None) is fits
    assert (check_agent(text) is None) is fits
    assert (check_agent(f"{text}@{text}") is None) is fits
    assert (check_alias(f"bead:{text}") is None) is fits
    assert is_task_name(text) is fits
    assert is_task_name(f"bead:{text}") is fits


@given(st.text(st.sampled_from(REST + "/:@ \nａé"), max_size=6) | st.text(max_size=6))
@example("a\n")
@example("1")
def test_ids_follow_the_grammar(text: str) -> None:
    assert (check_task_id(text) is None) == is_id(text)
    name, at, host = text.partition("@")
    assert (check_agent(text) is None) == (is_id(name) and (not at or is_id(host)))
    assert is_task_name(text) == (is_id(text) or check_alias(text) is None)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("bead:ol-527.1", True),
        ("workq:7", True),
        ("intent:a_b", True),
        ("a1:x", True),
        ("abcdefghijklmnop:x", True),
        ("abcdefghijklmnopq:x", False),
        ("Bead:x", False),
        ("1a:x", False),
        ("be-ad:x", False),
        ("bead", False),
        ("bead:", False),
        (":x", False),
        ("bead::x", False),
        ("bead:x:y", False),
        ("bead: x", False),
        ("bead\n:x", False),
        ("béad:x", False),
        ("bead：x", False),
    ],
)
def test_alias_is_kind_colon_name(text: str, fits: bool) -> None:
    assert (check_alias(text) is None) is fits
    assert is_task_name(text) is (fits or is_id(text))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("s", True),
        ("tmux:1/agent@host", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("", False),
        ("/x", False),
        ("a b", False),
        ("a\n", False),
        ("é", False),
    ],
)
def test_session_grammar_is_wider(text: str, fits: bool) -> None:
    assert (check_session(text) is None) is fits


@pytest.mark.parametrize(
    ("text", "fits"),
    [("k", True), (" a key! ~", True), ("k" * 256, True), ("k" * 257, False), ("", False)]
    + [(f"k{bad}", False) for bad in ("\n", "\x00", "\x7f", "é", "\ud800")],
)
def test_key_is_printable_ascii(text: str, fits: bool) -> None:
    assert (check_key(text) is None) is fits


@proves("NAME-AOF-ID")
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("TASK-2026-02-09-057", True),
        ("TASK-2026-02-09-999", True),
        ("TASK-2026-02-09-00001000", True),
        ("TASK-2026-02-09-aZ0_-9xY", True),
        ("TASK-2026-02-09-57", False),
        ("TASK-2026-02-09-0057", False),
        ("TASK-2026-02-09-abc", False),
        ("TASK-2026-02-09-aZ0_-9x", False),
        ("TASK-2026-02-09-aZ0_-9xYz", False),
        ("task-2026-02-09-057", False),
        ("TASK-26-02-09-057", False),
        ("TASK-2026-02-09-057\n", False),
        ("XTASK-2026-02-09-057", False),
        ("TASK-2026-02-09-０５７", False),
        ("", False),
    ],
)
def test_aof_id_is_recognized_by_its_form(text: str, fits: bool) -> None:
    assert is_aof_id(text) is fits


@proves("NAME-AOF-ID")
@given(st.integers(1, 99_999_999))
def test_numbered_aof_id_is_a_valid_task_id(number: int) -> None:
    name = format_aof_id("2026-02-09", number)
    assert is_aof_id(name)
    assert is_numbered_aof_id(name)
    assert check_task_id(name) is None
    assert int(name.rpartition("-")[2]) == number


@proves("LEDGER-NAMES")
def test_streams_are_named_by_kind_and_name() -> None:
    assert task_stream("TASK-2026-02-09-001") == "task:TASK-2026-02-09-001"
    assert actor_stream("agent", "alice@host") == "actor:agent:alice@host"


@pytest.mark.parametrize("text", HOSTILE[1:], ids=ascii)
def test_hostile_name_is_shown_short_and_escaped(text: str) -> None:
    shown = safe_name(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= 40 * 10 + 2


def test_valid_name_is_shown_unchanged() -> None:
    for text in ("", "T", "bead:ol-527.1", "a" * 128):
        assert safe_name(text) == text


def test_refusal_of_name_states_the_grammar() -> None:
    refusal = check_task_id("a/b")
    assert refusal == Refusal(
        "invalid_id",
        "'a/b' is not a valid task id: use 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter "
        "or digit, ASCII only",
    )
