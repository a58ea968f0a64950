"""Documentation page of the library: its examples run and its lists are complete."""

import json
import re
from pathlib import Path
from typing import Any

from bench.mail import rows
from dragoman.protocols.agentmail import Parser, compose
from dragoman.protocols.agentmail.errors import PROBLEM_NAMES
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from tests.protocols.agentmail.letters import row
from tests.requirements import proves

PAGE = (Path(__file__).parents[3] / "docs" / "dialects" / "agent-mail.md").read_text(
    encoding="utf-8"
)
READING, WRITING = re.findall(
    r"```python\n(.*?)```", PAGE.partition("## The library")[2], re.DOTALL
)[:2]


def run_example(example: str) -> dict[str, Any]:
    """Run an example and return its namespace."""
    namespace: dict[str, Any] = {}
    exec(compile(example, "agent-mail.md", "exec"), namespace)  # noqa: S102  our own page
    return namespace


@proves("MAIL-LIBRARY")
def test_reading_example_parses_one_letter() -> None:
    report = run_example(READING)["report"]
    reports = {kind: report(json.dumps(row(kind)).encode()) for kind in MESSAGE_TYPES}

    assert reports["OFFERING_READY"] == "Complete: abc123d"
    assert reports["FAILED"] == "Failed: two tests fail"
    assert reports["HELP_REQUEST"] == "Help needed: Why?"
    assert reports["DONE"] == "DONE"


@proves("MAIL-LIBRARY")
def test_reading_example_filters_many_letters() -> None:
    letters = json.dumps([row(kind) for kind in MESSAGE_TYPES]).encode()
    assert run_example(READING)["sift"](letters) == {
        "completions": 4,
        "successes": 2,
        "pending": 3,
        "about ol-527.1": 10,
    }


@proves("MAIL-LIBRARY", "MAIL-COMPOSE")
def test_writing_example_composes_a_letter() -> None:
    namespace = run_example(WRITING)
    letter = namespace["letter"]
    read = Parser(strict=True).parse({"subject": letter.subject, "body_md": letter.body_md})

    assert read.parsed == namespace["draft"].parsed
    assert "\n\\## not a heading" in letter.body_md


@proves("MAIL-LIBRARY")
def test_page_names_every_problem_and_field() -> None:
    assert {name for name in PROBLEM_NAMES if f"`{name}`" not in PAGE} == set()
    named = {name for kind in MESSAGE_TYPES.values() for name in compose.draft_fields(kind)}
    assert [name for name in named if f"`{name}`" not in PAGE] == []


@proves("BENCH-MAIL-BYTES")
def test_benchmark_letters_are_one_of_each_type_with_600_bytes() -> None:
    letters = [json.loads(raw) for raw in rows()]
    assert [Parser(strict=True).parse(letter).type for letter in letters] == list(MESSAGE_TYPES)
    assert {len(letter["body_md"].encode()) for letter in letters} == {600}
