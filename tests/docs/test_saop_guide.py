"""The page about SAOP: its examples run, and its picture is what the detector says."""

import re
from typing import Any

import msgspec

from docs.entropy_plot import PLOT, draw, marks, recorded
from docs.generate import DOCS
from tests.protocols.saop.hub import turn
from tests.requirements import proves

PAGE = (DOCS / "dialects" / "saop.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(example: str) -> dict[str, Any]:
    """Names that an example of the page defines."""
    namespace: dict[str, Any] = {"__name__": "guide"}
    exec(compile(example, "saop.md", "exec"), namespace)  # noqa: S102  our own page
    return namespace


@proves("SAOP-PARSE", "SAOP-TYPES", "PROJECT-DOCS")
def test_the_examples_run_as_they_stand() -> None:
    library, registration = map(run, EXAMPLES)

    assert library["confidence"](msgspec.json.encode(turn())) == 0.9
    assert library["problems"](b'{"event_id": 1}')[0].startswith("event_id: ")
    assert registration["event"].payload.verdict == "yes"


@proves("SAOP-ENTROPY", "PROJECT-DOCS")
def test_the_picture_is_of_the_recorded_example() -> None:
    found = [(mark.turn, mark.sign, mark.is_over) for mark in marks(recorded())]

    assert PLOT.read_text(encoding="utf-8") == draw(recorded()), "run docs/generate.py"
    assert [sign for _, sign, over in found if not over] == [
        "falling_confidence",
        "repeated_error",
        "loop",
    ]
    assert sum(over for _, _, over in found) == 3
