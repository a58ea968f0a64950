"""Published JSON Schemas give the patterns of names, so that clients can check them."""

import re
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from dragoman.core.ids import check_agent, check_id
from dragoman.protocols.agentmail.wire import InboxQuery, LetterRef, SummaryQuery, ThreadQuery
from dragoman.protocols.ccos import wire
from tests.requirements import proves

NAMES = ("ol-527.1", "a", "x" * 128, "x" * 129, "-a", "a b", "a/b", "ada@host", "@host", "naïve")


def pattern(shape: type[Struct], field: str) -> re.Pattern[str]:
    """Return the pattern of a field in the schema of a shape."""
    schema: dict[str, Any] = msgspec.json.schema(shape)
    schema_of_field = schema["$defs"][shape.__name__]["properties"][field]
    (text,) = [
        one for one in schema_of_field.get("anyOf", [schema_of_field]) if one["type"] == "string"
    ]
    return re.compile(text["pattern"])


@proves("CCOS-HTTP", "MAIL-HTTP")
@pytest.mark.parametrize(
    ("shape", "field", "is_optional"),
    [
        (LetterRef, "id", False),
        (ThreadQuery, "thread_id", False),
        (SummaryQuery, "thread_id", False),
        (wire.WhyQuery, "intent_id", False),
        (wire.Cancel, "intent_id", False),
        (wire.IntentQuery, "intent_id", False),
        (wire.Delegate, "intent_id", False),
        (wire.Delegate, "plan_id", True),
        (wire.Delegate, "follows", True),
    ],
)
def test_published_id_patterns_match_the_check(
    shape: type[Struct], field: str, is_optional: bool
) -> None:
    published = pattern(shape, field)
    for name in NAMES:
        assert bool(published.search(name)) == (check_id(name, "id") is None), name
    assert bool(published.search("")) == is_optional


@proves("CCOS-HTTP", "MAIL-HTTP")
@pytest.mark.parametrize(
    ("shape", "field", "is_optional"),
    [
        (InboxQuery, "agent", True),
        (wire.Register, "agent_id", False),
        (wire.RequestsQuery, "agent_id", True),
    ],
)
def test_published_agent_name_patterns_match_the_check(
    shape: type[Struct], field: str, is_optional: bool
) -> None:
    published = pattern(shape, field)
    for name in NAMES:
        assert bool(published.search(name)) == (check_agent(name) is None), name
    assert bool(published.search("")) == is_optional
