"""What is not there: one sentence for each code, harmless, with a command that shows what is."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.core import missing
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.surfaces.cli.commands import FILES, GROUPS
from tests.requirements import proves

pytestmark = proves("MISSING-WORDS")

SOURCE = Path(dragoman.__file__).parent
CODES = frozenset(code for code in REFUSALS if code.endswith("_not_found"))
SENTENCES: dict[str, Callable[..., Refusal]] = {
    name: made
    for name, made in inspect.getmembers(missing, inspect.isfunction)
    if made.__module__ == missing.__name__
}
OF_WHAT_IS_THERE = {"token", "task_then", "intent_of", "reservations_of"}
"""Those that begin with the name of somebody or something that there is."""
_COMMAND = re.compile(r"`dragoman ([a-z]+)(?: ([a-z]+))?")


def said_of(name: str, word: str) -> Refusal:
    made = SENTENCES[name]
    more = {"token": ("t-1",), "task_then": (7,)}.get(name, ())
    return made(word, *more)


def commands() -> Iterator[str]:
    yield from (word for words in FILES.values() for word in words)
    for group, below in GROUPS.items():
        yield from (f"{group} {word}" for words in below.files.values() for word in words)


def test_there_is_a_sentence_for_every_code() -> None:
    assert {said_of(name, "nope").code for name in SENTENCES} == CODES


@pytest.mark.parametrize("name", SENTENCES)
def test_it_names_what_is_missing_and_a_command_that_there_is(name: str) -> None:
    said = said_of(name, "nope")
    assert "nope" in said.detail
    named = [" ".join(filter(None, found)) for found in _COMMAND.findall(said.detail)]
    known = set(commands())
    assert named, said
    assert all(one in known or one.partition(" ")[0] in known for one in named), said


@pytest.mark.parametrize("name", sorted(set(SENTENCES) - OF_WHAT_IS_THERE))
def test_what_is_no_name_is_shown_in_quotes_and_short(name: str) -> None:
    said = said_of(name, "a\x1b[2J\u202e" + "x" * 10_000)
    assert said.detail.isprintable()
    assert said.detail.isascii()
    assert "'a\\x1b[2J" in said.detail
    assert len(said.detail) < 400


def test_nobody_else_words_it() -> None:
    second = re.compile(rf'(?:Refusal|Fault)\(\s*"(?:{"|".join(CODES)})"')
    files = [file for file in SOURCE.rglob("*.py") if second.search(file.read_text())]
    assert files == [SOURCE / "core" / "missing.py"]
