"""TaskRequest, TaskResult and TaskUpdate: their shapes, the one-of rule, JSON and CBOR."""

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


def result(**said: Any) -> TaskResult:
    """A result that says this."""
    return msgspec.convert({"intent_id": "i-1", "agent_id": "ada", **said}, TaskResult)


@proves("CCOS-FORMS")
@pytest.mark.parametrize(
    ("shape", "seed"),
    [(TaskRequest, SEED_REQUEST), (TaskResult, SEED_SUCCESS), (TaskResult, SEED_FAILURE)],
)
def test_the_form_of_the_seed_is_written_as_it_was_read(
    shape: type[TaskRequest | TaskResult], seed: dict[str, Any]
) -> None:
    message = msgspec.convert(seed, shape)
    assert wire.as_value(message) == seed
    assert json.loads(wire.as_json(message)) == seed


@proves("CCOS-FORMS")
def test_additive_fields_travel_and_the_version_is_read_but_not_written() -> None:
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
def test_a_success_without_output_has_the_output_null() -> None:
    assert result(success=True).output is None
    assert wire.as_value(result(success=True))["output"] is None


@proves("CCOS-ONE-OF")
def test_a_null_error_is_absent() -> None:
    read = result(success=True, output=1, error=None)
    assert "error" not in wire.as_value(read)
    assert read.why == ""


@proves("CCOS-ONE-OF")
def test_a_failure_whose_output_is_null_has_none() -> None:
    assert "output" not in wire.as_value(result(success=False, error="no", output=None))


@proves("CCOS-ONE-OF")
@pytest.mark.parametrize(
    ("said", "reason"),
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
def test_anything_else_is_refused(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        result(**said)


@proves("CCOS-ONE-OF")
def test_constructors_answer_a_request_and_keep_the_rule() -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g", request_id="i.1", attempt=1)
    good, bad = wire.succeeded(request, [1]), wire.failed(request, "it rained")
    for answer in (good, bad):
        assert (answer.intent_id, answer.agent_id) == ("i", "a")
        assert (answer.request_id, answer.attempt) == ("i.1", 1)
    assert (good.success, good.output) == (True, [1])
    assert (bad.success, bad.why) == (False, "it rained")
    with pytest.raises(ValueError, match="a failure has an error"):
        wire.failed(request, "")


@proves("CCOS-FORMS")
def test_a_goal_says_something_and_an_update_too() -> None:
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
def test_a_result_is_the_same_as_json_and_as_cbor(output: Any) -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g")
    said = wire.succeeded(request, output)
    assert wire.read(wire.as_cbor(said), TaskResult) == said
    assert wire.read(wire.as_json(said), TaskResult) == said


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
def test_what_no_reader_would_take_is_not_written(
    write: Callable[[TaskResult], bytes], output: Any, reason: str
) -> None:
    request = TaskRequest(intent_id="i", agent_id="a", goal="g")
    with pytest.raises(StrictJsonError, match=re.escape(reason)):
        write(wire.succeeded(request, output))


@proves("CCOS-CBOR")
def test_what_is_too_long_is_told() -> None:
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
def test_what_a_message_is_shows_in_what_it_says(value: dict[str, Any], kind: str) -> None:
    assert wire.kind_of(value) == kind


@proves("CCOS-FORMS")
def test_the_example_of_the_page_runs_as_it_stands() -> None:
    page = Path(__file__).parents[3] / "docs" / "dialects" / "ccos.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "ccos.md", "exec"), namespace)  # noqa: S102  our own page
    request = TaskRequest(intent_id="i-1", agent_id="ada", goal="Count the pages")
    answer = namespace["work"](wire.as_cbor(request))
    assert wire.read(answer, TaskResult).output == {"pages": 3}
