"""Refusals for unknown names: one escaped sentence per code, with a command that lists them."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.core import not_found
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.surfaces.cli.commands import GROUPS, TOP_LEVEL
from tests.requirements import proves

pytestmark = proves("MISSING-WORDS")

SOURCE = Path(dragoman.__file__).parent
CODES = frozenset(code for code in REFUSALS if code.endswith("_not_found"))
SENTENCES: dict[str, Callable[..., Refusal]] = {
    name: made
    for name, made in inspect.getmembers(not_found, inspect.isfunction)
    if made.__module__ == not_found.__name__ and name != "linked_task"
}
BEGIN_WITH_EXISTING_NAME = {"token", "task_at_position", "intent_of", "question"}
"""Sentences that begin with a name that exists."""
_COMMAND = re.compile(r"`dragoman ([a-z]+)(?: ([a-z]+))?")


def refusal_of(name: str, missing_name: str) -> Refusal:
    build = SENTENCES[name]
    more = {
        "token": ("t-1",),
        "task_at_position": (7,),
    }.get(name, ())
    return build(missing_name, *more)


def cli_commands() -> Iterator[str]:
    yield from (command for commands in TOP_LEVEL.values() for command in commands)
    for group, below in GROUPS.items():
        yield from (
            f"{group} {command}" for commands in below.modules.values() for command in commands
        )


def test_sentence_exists_for_every_code() -> None:
    assert {refusal_of(name, "nope").code for name in SENTENCES} == CODES


@pytest.mark.parametrize("name", SENTENCES)
def test_sentence_names_missing_thing_and_existing_command(name: str) -> None:
    refusal = refusal_of(name, "nope")
    assert "nope" in refusal.detail
    named = [" ".join(filter(None, found)) for found in _COMMAND.findall(refusal.detail)]
    known = set(cli_commands())
    assert named, refusal
    assert all(one in known or one.partition(" ")[0] in known for one in named), refusal


@pytest.mark.parametrize("name", sorted(set(SENTENCES) - BEGIN_WITH_EXISTING_NAME))
def test_hostile_name_is_quoted_and_shortened(name: str) -> None:
    refusal = refusal_of(name, "a\x1b[2J\u202e" + "x" * 10_000)
    assert refusal.detail.isprintable()
    assert refusal.detail.isascii()
    assert "'a\\x1b[2J" in refusal.detail
    assert len(refusal.detail) < 400


def test_not_found_refusals_are_built_in_one_module() -> None:
    second = re.compile(rf'(?:Refusal|Fault)\(\s*"(?:{"|".join(CODES)})"')
    files = [file for file in SOURCE.rglob("*.py") if second.search(file.read_text())]
    assert files == [SOURCE / "core" / "not_found.py"]
