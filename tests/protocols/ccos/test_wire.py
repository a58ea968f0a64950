"""TaskRequest, TaskResult and TaskUpdate: shapes, the one-of rule, JSON and CBOR."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocols.ccos import wire
from dragoman.protocols.ccos.wire import TaskRequest, TaskResult, TaskUpdate
from dragoman.text.strict_json import StrictJsonError
from tests.requirements import proves

SEED_REQUEST: dict[str, Any] = {
    "intent_id": "i-1",
    "agent_id": "ada",
    "goal": "Sum up the report",
    "params": {},
}
SEED_SUCCESS: dict[str, Any] = {
    "intent_id": "i-1",
    "agent_id": "ada",
    "success": True,
    "output": {"pages": 3},
}
SEED_FAILURE: dict[str, Any] = {
    "intent_id": "i-1",
    "agent_id": "ada",
    "success": False,
    "error": "no report",
}


def result(**fields: Any) -> TaskResult:
    """Decode a result with these fields."""
    return msgspec.convert({"intent_id": "i-1", "agent_id": "ada", **fields}, TaskResult)


@proves("CCOS-FORMS")
@pytest.mark.parametrize(
    ("shape", "seed"),
    [(TaskRequest, SEED_REQUEST), (TaskResult, SEED_SUCCESS), (TaskResult, SEED_FAILURE)],
)
def test_seed_messages_round_trip(
    shape: type[TaskRequest | TaskResult], seed: dict[str, Any]
) -> None:
    message = msgspec.convert(seed, shape)
    assert wire.as_value(message) == seed
    assert json.loads(wire.as_json(message)) == seed


@proves("CCOS-FORMS")
def test_additional_fields_round_trip_and_the_version_is_not_written() -> None:
    more = {
        "request_id": "i-1.1",
        "attempt": 1,
        "deadline": "2026-02-09T14:30:00Z",
        "meta": {"kind": "notice"},
    }
    request = msgspec.convert(SEED_REQUEST | more | {"protocol_version": 1}, TaskRequest)
    assert wire.as_value(request) == SEED_REQUEST | more
    with pytest.raises(msgspec.ValidationError, match="protocol_version 2 is not spoken"):
        msgspec.convert(SEED_REQUEST | {"protocol_version": 2}, TaskRequest)


@proves("CCOS-ONE-OF")
def test_success_without_output_has_output_null() -> None:
    assert result(success=True).output is None
    assert wire.as_value(result(success=True))["output"] is None


@proves("CCOS-ONE-OF")
def test_null_error_is_absent() -> None:
    read = result(success=True, output=1, error=None)
    assert "error" not in wire.as_value(read)
    assert read.error_text == ""


@proves("CCOS-ONE-OF")
def test_failure_with_output_null_has_no_output() -> None:
    assert "output" not in wire.as_value(result(success=False, error="no", output=None))


@proves("CCOS-ONE-OF")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"success": True, "output": 1, "error": "no"}, "a success has no error"),
        ({"success": True, "error": "no"}, "a success has no error"),
        ({"success": False, "output": 1, "error": "no"}, "a failure has no output"),
        ({"success": False, "output": 1}, "a failure has no output"),
        ({"success": False}, "a failure has an error"),
        ({"success": False, "error": None}, "a failure has an error"),
        ({"success": False, "error": "  "}, "a failure has an error"),
        ({"success": 1, "output": 1}, "Expected `bool`"),
    ],
)
def test_contradicting_results_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        result(**fields)


@proves("CCOS-ONE-OF")
def test_constructors_copy_the_request_ids_and_validate() -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g", request_id="i.1", attempt=1)
    good, bad = wire.succeeded(request, [1]), wire.failed(request, "it rained")
    for answer in (good, bad):
        assert (answer.intent_id, answer.agent_id) == ("i", "a")
        assert (answer.request_id, answer.attempt) == ("i.1", 1)
    assert (good.success, good.output) == (True, [1])
    assert (bad.success, bad.error_text) == (False, "it rained")
    with pytest.raises(ValueError, match="a failure has an error"):
        wire.failed(request, "")


@proves("CCOS-FORMS")
def test_empty_goals_and_updates_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="goal is empty"):
        msgspec.convert(SEED_REQUEST | {"goal": " "}, TaskRequest)
    with pytest.raises(msgspec.ValidationError, match="at least one of"):
        msgspec.convert({"intent_id": "i", "agent_id": "a"}, TaskUpdate)
    for empty in ("", " \n"):
        with pytest.raises(msgspec.ValidationError, match="at least one of"):
            msgspec.convert({"intent_id": "i", "agent_id": "a", "message": empty}, TaskUpdate)


@proves("CCOS-CBOR")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=10,
    )
)
def test_result_is_the_same_as_json_and_as_cbor(output: Any) -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g")
    message = wire.succeeded(request, output)
    assert wire.read(wire.as_cbor(message), TaskResult) == message
    assert wire.read(wire.as_json(message), TaskResult) == message


@proves("CCOS-CBOR")
@pytest.mark.parametrize("write", [wire.as_json, wire.as_cbor])
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ({"share": [1, float("nan")]}, "output.share[1]: nan is not a number in JSON"),
        (float("-inf"), "output: -inf is not a number in JSON"),
        (2**70, "output: the whole number is beyond ±9007199254740991"),
        ({"a": {1: "a"}}, "output.a: the key 1 is not a text"),
        ({"\ud83d": 1}, r"output: the key '\ud83d' is not a text"),
        (["half \ud83d"], "output[0]: it has half of a surrogate pair"),
    ],
)
def test_unrepresentable_output_is_not_written(
    write: Callable[[TaskResult], bytes], output: Any, reason: str
) -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g")
    with pytest.raises(StrictJsonError, match=re.escape(reason)):
        write(wire.succeeded(request, output))


@proves("CCOS-CBOR")
def test_oversized_input_is_refused() -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g")
    written = wire.as_cbor(wire.succeeded(request, "x" * 100))
    with pytest.raises(StrictJsonError, match="more than 50 bytes"):
        wire.read(written, TaskResult, 50)


@proves("CCOS-FORMS")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (SEED_REQUEST, "TaskRequest"),
        (SEED_SUCCESS, "TaskResult"),
        ({"progress": 0.5}, "TaskUpdate"),
        ({"message": "half"}, "TaskUpdate"),
        ({"partial": [1]}, "TaskUpdate"),
        ({"intent_id": "i"}, ""),
    ],
)
def test_message_kind_is_detected_by_its_fields(value: dict[str, Any], kind: str) -> None:
    assert wire.detect_kind(value) == kind


@proves("CCOS-FORMS")
def test_documentation_example_runs() -> None:
    page = Path(__file__).parents[3] / "docs" / "dialects" / "ccos.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "ccos.md", "exec"), namespace)  # noqa: S102  our own page
    request = TaskRequest(intent_id="i-1", agent_id="ada", goal="Count the pages")
    answer = namespace["work"](wire.as_cbor(request))
    assert wire.read(answer, TaskResult).output == {"pages": 3}
