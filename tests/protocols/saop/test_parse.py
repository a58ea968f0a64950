"""Parsing of turns and events: schemas, issues, new event types and versions."""

import json
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from msgspec import Struct

from dragoman.engine.lint import lint_text, linter_of
from dragoman.protocols import saop
from dragoman.protocols.saop import (
    EventTypes,
    Payload,
    SaopError,
    Version,
    VersionedTurnSchema,
    parse,
    safe_parse,
)
from dragoman.protocols.saop.wire import Content, SaopRole, ThoughtStream, TurnEnvelope, TurnIndex
from tests.protocols.saop.hub import event, thought, turn
from tests.requirements import proves

TEXT = Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8")
CASES: list[dict[str, Any]] = [json.loads(line) for line in TEXT.split("\n") if line]
DIALECT = saop.dialect()


@proves("SAOP-SHAPES")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_case_is_valid_or_not_as_expected(case: dict[str, Any]) -> None:
    raw, kind = case["raw"], case["kind"]
    parsed = safe_parse(raw, kind)
    linted = lint_text(DIALECT, raw.encode(), kind, strict=True)

    assert (parsed.ok, linted.ok) == (case["valid"], case["valid"]), parsed.issues
    assert bool(parsed.issues) is not parsed.ok


@proves("SAOP-SHAPES")
@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({"turn_index": 1.0}, True),
        ({"turn_index": 2**53}, False),
        ({"turn_index": 1e300}, False),
        ({"turn_index": True}, False),
        ({"turn_index": "0"}, False),
        ({"metadata": {"timestamp": "2100-02-29T00:00:00Z"}}, False),
        ({"metadata": {"timestamp": "2000-02-29T00:00:00Z"}}, True),
        ({"metadata": {"timestamp": "2026-04-31T00:00:00Z"}}, False),
        ({"metadata": {"timestamp": "0000-02-29T00:00:00Z"}}, True),
        ({"metadata": {"timestamp": "0000-02-30T00:00:00Z"}}, False),
        ({"metadata": {"timestamp": "2026-02-21t10:00:00Z"}}, False),
        ({"metadata": {"timestamp": "２026-02-21T10:00:00Z"}}, False),
        ({"metadata": {"confidence": None}}, False),
        ({"metadata": {"more": {"keys": 1}}}, True),
        ({"role": "tester"}, False),
        ({"content": "text"}, False),
    ],
)
def test_turn_rules_hold_beyond_the_cases(changes: dict[str, Any], ok: bool) -> None:
    base = turn()
    content = changes.get("content", base["content"])
    metadata = {**base["metadata"], **changes.get("metadata", {})}
    value = {**base, **changes, "content": content, "metadata": metadata}

    assert safe_parse(json.dumps(value)).ok is ok
    assert safe_parse(value).ok is ok


@proves("SAOP-LARGE")
@pytest.mark.parametrize("kind", ["", "named"])
def test_lint_has_the_size_limit_of_each_kind(kind: str) -> None:
    long = "x" * 300_000
    for name, message, ok in (
        ("turn", turn(thought=long), True),
        ("event", event(1, thought(long)), False),
        ("payload", thought(long), False),
    ):
        text = json.dumps(message).encode()
        linted = lint_text(DIALECT, text, name if kind else "", strict=False)
        assert (linted.ok, bool(linted.issues)) == (ok, not ok)


@proves("SAOP-PARSE")
def test_parse_raises_and_safe_parse_returns_every_issue() -> None:
    wrong = turn(-1, agent_id="boss", metadata={"confidence": 2, "version": "9.0.0"})
    del wrong["role"]

    parsed = safe_parse(wrong)
    with pytest.raises(SaopError) as raised:
        parse(wrong)

    assert raised.value.issues == parsed.issues
    assert [issue.path for issue in parsed.issues] == [
        "turn_index",
        "agent_id",
        "role",
        "metadata.version",
        "metadata.confidence",
    ]
    assert "agent_id: 'boss' is not one of: researcher, architect" in str(raised.value)
    assert parse(json.dumps(turn()).encode()) == parse(turn())
    assert saop.TurnEnvelopeSchema.parse(turn()).agent_id == "developer"


@proves("SAOP-PARSE")
@pytest.mark.parametrize("raw", ["", "{", "[]", "null", '"\ud800"', b"\xff", "[" * 100_000])
def test_value_that_is_no_object_is_one_issue(raw: str | bytes) -> None:
    for kind in ("turn", "event", "payload"):
        parsed = safe_parse(raw, kind)
        assert (parsed.ok, len(parsed.issues), parsed.data) == (False, 1, None)


class Coffee(Payload, frozen=True, tag="COFFEE_BREAK"):
    """An event type that is registered by the test."""

    minutes: int


@proves("SAOP-TYPES")
def test_new_event_type_is_one_registration() -> None:
    raw = event(1, {"type": "COFFEE_BREAK", "minutes": 5})
    before = safe_parse(raw, "event")
    types = saop.TYPES.plus(Coffee)

    assert "'COFFEE_BREAK' is not one of: THOUGHT_STREAM" in before.issues[0].reason
    assert types.event.parse(raw).payload == Coffee(5)
    assert types.payload.parse(raw["payload"]) == Coffee(5)
    assert types.event.parse(event(1, thought("x"))).payload == parse(thought("x"), "payload")
    assert types.event.safe_parse(event(1, {"type": "COFFEE_BREAK"})).issues[0].path == (
        "payload.minutes"
    )
    assert not safe_parse(raw, "event").ok, "what others registered is theirs"
    assert EventTypes(Coffee).payload.parse(raw["payload"]) == Coffee(5)
    with pytest.raises(ValueError, match="same name"):
        saop.TYPES.plus(ThoughtStream)


class NewMetadata(Struct, frozen=True):
    """Metadata of version 2.0.0, with a required model."""

    version: Literal["2.0.0"]
    task_id: str
    model: str


class NewTurn(Struct, frozen=True):
    """A turn of version 2.0.0."""

    turn_index: TurnIndex
    agent_id: SaopRole
    content: Content
    metadata: NewMetadata


def upgrade(old: dict[str, Any]) -> dict[str, Any]:
    """Convert a turn of version 1.0.0."""
    return {**old, "metadata": {**old["metadata"], "version": "2.0.0", "model": "unknown"}}


@proves("SAOP-VERSIONS")
def test_older_turn_is_upgraded_to_the_newest_version() -> None:
    turns = VersionedTurnSchema(
        {"1.0.0": Version(TurnEnvelope, upgrade), "2.0.0": Version(NewTurn)}
    )
    new = upgrade(turn())

    assert turns.parse(turn()) == turns.parse(json.dumps(turn())) == turns.parse(new)
    assert turns.parse(new).metadata.model == "unknown"
    assert turns.safe_parse(turn(metadata={"confidence": 7})).issues[0].path == (
        "metadata.confidence"
    )
    assert not turns.safe_parse("{").ok
    assert not turns.safe_parse({"metadata": {"version": 1}}).ok
    assert not safe_parse(new).ok, "a version that nobody knows is refused"


@proves("SAOP-SHAPES")
def test_lint_detects_the_kind_of_message() -> None:
    lint = linter_of(DIALECT).check

    assert lint(turn(), "", False).type == "turn"
    assert lint(event(1, thought("x")), "", False).type == "THOUGHT_STREAM"
    assert lint(thought("x"), "", False).ok
    assert lint({"event_id": "x", "payload": {}}, "", False).type == "event"
    assert lint([], "", False).issues == ({"path": "", "reason": "it must be an object"},)
    for kind, message in (("turn", turn()), ("payload", thought("x"))):
        in_quotes = lint(json.dumps(message), kind, False)
        assert (in_quotes.ok, in_quotes.issues) == (False, lint([], "", False).issues)
    assert lint({"payload": 3}, "event", False).type == "event"
    assert not lint(turn(), "event", False).ok


@proves("SAOP-PARSE")
def test_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match="'nonsense' is no kind of message: use turn, event"):
        saop.parse(b"{}", cast(Any, "nonsense"))
