"""Lint of AOF/1 messages: recognition, type and findings of any JSON value."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.engine.lint import lint_text
from dragoman.protocols.aof import dialect
from dragoman.protocols.aof.lint import lint
from tests.protocols.aof.hub import MESSAGES, example, report, request, update
from tests.requirements import proves

pytestmark = proves("AOF-LINT")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("strict", [True, False])
def test_seed_examples_pass(number: int, strict: bool) -> None:
    message = example(number)
    linted = lint(message, "", strict)

    assert (linted.ok, linted.type, linted.issues) == (True, message["type"], ())
    assert linted.message == message


def test_wrapped_message_passes() -> None:
    linted = lint({"content": report()}, "", True)
    assert (linted.ok, linted.message) == (True, report())


def test_every_finding_of_the_content_is_listed_with_its_path() -> None:
    message = report("blocked", blockers=[], summaryRef="/x", deliverables=["ok", "../x"])
    linted = lint(message | {"fromAgent": "a b", "sentAt": "now"}, "", False)

    assert not linted.ok
    assert [issue["path"] for issue in linted.issues] == [
        "fromAgent",
        "sentAt",
        "payload.summaryRef",
        "payload.deliverables[1]",
        "payload.blockers",
    ]
    assert all(issue["reason"] for issue in linted.issues)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"protocol": "acp"}, "protocol"),
        ([], "protocol"),
        ("AOF/1 {}", "protocol"),
        ({"content": "AOF/1 {"}, ""),
        (report() | {"version": 2}, "version"),
        (report() | {"type": "what.ever"}, "type"),
        (update(taskId="TASK-2026-02-09-001", notes="x"), "payload.taskId"),
    ],
)
def test_invalid_messages_fail_with_their_path(value: Any, path: str) -> None:
    linted = lint(value, "", False)

    assert not linted.ok
    assert [issue["path"] for issue in linted.issues] == [path]


@pytest.mark.parametrize("kind", MESSAGES)
def test_message_must_have_the_requested_type(kind: str) -> None:
    assert lint(MESSAGES[kind](), kind, True).ok
    other = lint(MESSAGES[kind](), "other.kind", True)
    assert [issue["path"] for issue in other.issues] == ["type"]


STRICT_ONLY = {
    "an unknown field": (report() | {"traceId": 1}, "traceId"),
    "an unknown field of the payload": (report(mood="fine"), "payload.mood"),
    "a type in the payload": (report(type="x"), "payload.type"),
    "criteria": (request(acceptanceCriteria="x"), "payload.acceptanceCriteria"),
    "a cost in words": (report(cost="5 USD"), "payload.cost"),
    "a cost below nothing": (report(cost=-0.5), "payload.cost"),
    "a cost that is none": (report(cost=True), "payload.cost"),
    "a cost of an update": (update(progress="x", cost=1), "payload.cost"),
    "a cost of the envelope": (report() | {"cost": 1}, "cost"),
}


@proves("REPORT-COST")
@pytest.mark.parametrize("cost", [0, 0.25, 3, 1e300])
def test_cost_of_a_report_passes_strict_lint(cost: float) -> None:
    assert paths(report(cost=cost), strict=True) == []


@pytest.mark.parametrize(("message", "path"), STRICT_ONLY.values(), ids=STRICT_ONLY)
def test_tolerated_oddities_fail_only_in_strict_mode(message: dict[str, Any], path: str) -> None:
    lenient, strict = lint(message, "", False), lint(message, "", True)

    assert (lenient.ok, strict.ok) == (True, False)
    assert [issue["path"] for issue in lenient.issues] == [path]
    assert lenient.issues == strict.issues


@pytest.mark.parametrize(
    ("text", "path"), [(b"{", ""), (b'{"a":1,"a":2}', "a"), (b"\xff", ""), (b"NaN", "")]
)
def test_invalid_json_is_one_finding(text: bytes, path: str) -> None:
    linted = lint_text(dialect(), text, "", strict=False)

    assert (linted.ok, linted.type, linted.message) == (False, "", None)
    assert [issue["path"] for issue in linted.issues] == [path]


@given(JSON, st.booleans())
def test_any_value_can_be_linted(value: Any, strict: bool) -> None:
    lint(value, "", strict)
    lint({"protocol": "aof", "type": "completion.report", "payload": value}, "", strict)
    lint(report() | {"payload": value}, "", strict)


@pytest.mark.parametrize("strict", [True, False])
def test_unknown_field_is_found_at_any_depth(strict: bool) -> None:
    tests = {"total": 3, "passed": 2, "failed": 1, "skipped": 0}
    linted = lint(report(tests=tests, mood="good"), "", strict)

    assert linted.ok is not strict
    assert {issue["path"] for issue in linted.issues} == {"payload.tests.skipped", "payload.mood"}


def paths(value: Any, *, strict: bool = False) -> list[str]:
    """Return the paths of all findings."""
    return [issue["path"] for issue in lint(value, "", strict).issues]


def test_shape_fault_is_the_only_finding() -> None:
    message = report("blocked", blockers=[], tests={"total": 1, "passed": 2}) | {"fromAgent": "a b"}
    assert paths(message) == ["payload.tests.failed"]


def test_consequences_of_a_malformed_field_are_not_reported() -> None:
    assert paths(report("blocked", blockers="none")) == ["payload.blockers"]
    assert paths(update(status="gone")) == ["payload.status"]
    assert paths(update(progress="x") | {"taskId": 7}) == ["taskId"]
    assert paths(update(progress="x") | {"fromAgent": None}) == ["fromAgent"]
    assert paths(request() | {"toAgent": 1}) == ["toAgent"]
    assert paths(report() | {"payload": []}) == ["payload"]
    assert paths({"content": "AOF/1 []"}) == [""]


def test_message_without_a_known_type_is_checked_too() -> None:
    assert paths({"protocol": "aof"}) == ["version"]
    unknown = report() | {"type": "what.ever", "sentAt": "now"}
    assert paths(unknown) == ["sentAt", "type"]


REFUSED_BY_ANY_HUB = {
    "for another": (update(agentId="eve", progress="x"), "payload.agentId"),
    "from two": (request(fromAgent="eve"), "payload.fromAgent"),
    "to two": (request(toAgent="eve") | {"toAgent": "swe-qa"}, "payload.toAgent"),
    "its own parent": (request(parentTaskId=request()["taskId"]), "payload.parentTaskId"),
}


@pytest.mark.parametrize(("message", "path"), REFUSED_BY_ANY_HUB.values(), ids=REFUSED_BY_ANY_HUB)
def test_contradictions_that_any_hub_refuses_are_found(message: dict[str, Any], path: str) -> None:
    assert paths(message) == [path]
    assert not lint(message, "", False).ok
