"""Terminal output: no control characters, and colours on a terminal only."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.surfaces.cli.render import Column, Screen, to_ascii_json
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console, Terminal

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x9b2J",
    "left\u202eright",
    "zero\u200bwidth",
    "two\nlines",
    "carriage\rreturn",
    "bell\x07",
    "del\x7f",
    "[red]markup[/red]",
    "[link=http://x]here[/link]",
    ":smile:",
    "\u2028separator",
]


def has_control_characters(text: str) -> bool:
    """Check for characters with which a terminal does more than show them."""
    return any(
        ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u200b\u2028\u2066\ufeff" for c in text
    )


@proves("CLI-SAFE-TEXT")
@pytest.mark.parametrize("title", HOSTILE, ids=ascii)
def test_hostile_title_is_harmless_in_every_command(dragoman: Console, title: str) -> None:
    dragoman.make(title, "--id", "T-1", "--ready", "--body", title, "--now", NOON)
    dragoman.ask("task", "log", "T-1", title)

    for args in (
        ("task", "list"),
        ("task", "show", "T-1"),
        ("task", "log", "T-1"),
        ("events",),
        ("task", "claim", "T-1", "--agent", "ada"),
    ):
        result = dragoman(*args)
        assert result.code == 0
        assert not any(map(has_control_characters, result.out.split("\n"))), ascii(result.out)
        if title.startswith("["):
            assert title in result.out, "markup is text"


@proves("CLI-SAFE-TEXT")
@pytest.mark.parametrize("title", HOSTILE, ids=ascii)
def test_hostile_title_is_whole_and_harmless_in_json(dragoman: Console, title: str) -> None:
    dragoman.make(title, "--id", "T-1")

    result = dragoman("task", "show", "T-1", "--json")
    assert result.out.isascii()
    assert result.out.rstrip("\n").isprintable()
    assert result.json["title"] == title


@proves("CLI-SAFE-TEXT")
def test_body_cannot_imitate_a_field_and_keeps_its_lines(dragoman: Console) -> None:
    dragoman.make("x", "--id", "T-1", "--body", "a\r\n  status      done\n\x1b[2Jb")

    body = dragoman("task", "show", "T-1").out.partition("  body\n")[2]
    assert body.splitlines() == ["    | a", "    |   status      done", "    | b"]


@proves("CLI-SAFE-TEXT")
@given(st.text())
def test_no_text_controls_the_terminal(text: str) -> None:
    for stream in (io.StringIO(), Terminal()):
        screen = Screen(stream)
        screen.line(text, (text, "bold"))
        screen.line(text)
        screen.table([Column("A"), Column("B")], [[text, text]])
        screen.block(text, "| ")
        shown = stream.getvalue()
        if not isinstance(stream, Terminal):
            assert not any(
                has_control_characters(line.replace("\t", "")) for line in shown.split("\n")
            )
        assert "\x07" not in shown
        assert "\u202e" not in shown


@proves("CLI-SAFE-TEXT")
@given(st.text())
def test_json_is_printable_ascii_and_round_trips(text: str) -> None:
    line = to_ascii_json({"text": text})

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"text": text}


@proves("CLI-PLAIN")
def test_long_cell_widens_its_own_row_only_beyond_the_width_of_its_column() -> None:
    stream = io.StringIO()
    rows = [("a", "one"), ("abcdef", "two"), ("abc", "three")]
    Screen(stream).table([Column("X", max_width=3), Column("Y")], rows)
    assert stream.getvalue().splitlines() == ["X    Y", "a    one", "abcdef  two", "abc  three"]


@proves("CLI-PLAIN")
def test_colours_appear_on_a_terminal_only(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    dragoman.make("One", "--id", "T-1", "--ready")

    for args in (("task", "list"), ("task", "show", "T-1"), ("events",), ("doctor",), ("demo",)):
        assert "\x1b[" not in dragoman(*args).out
        assert "\x1b[" in dragoman.on_terminal(*args).out, args


@proves("CLI-PLAIN")
def test_no_color_variable_is_honoured(dragoman: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    dragoman.make("One", "--id", "T-1", "--ready")

    shown = dragoman.on_terminal("task", "list").out
    assert not any(colour in shown for colour in ("\x1b[36m", "\x1b[33m", "\x1b[32m"))


@proves("CLI-PLAIN")
def test_long_title_is_cut_on_a_terminal_only(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    dragoman.make("x" * 400, "--id", "T-1")

    assert "x" * 400 in dragoman("task", "list").out
    on_terminal = dragoman.on_terminal("task", "list").out
    assert "x…" in on_terminal
    assert "x" * 80 not in on_terminal


@proves("CLI-VERIFY", "CLI-PLAIN")
def test_progress_is_shown_on_a_terminal_only(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    dragoman.make("One")

    assert dragoman("verify").err == ""
    assert "entries" in dragoman.on_terminal("verify").err
