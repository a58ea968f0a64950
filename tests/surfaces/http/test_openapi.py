"""The description of the API is complete and valid, and the API does what it says."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# Because the types of schemathesis are known in parts only.

import json
import os
import re
from itertools import count
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python import asgi
from schemathesis.python._constants.orchestrator import make_constants_value_source

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask
from dragoman.surfaces.http.problems import STATUS
from dragoman.text.strict_cbor import to_cbor
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.surfaces.http.house import OWNER_TOKEN, House

pytestmark = proves("HTTP-OPENAPI")

EXAMPLES = 300 if os.environ.get(LONG_RUN) else 8


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def in_lines(_: Any, value: Any) -> bytes:
    """A batch of one line."""
    return json.dumps(value).encode()


@schemathesis.serializer("application/cbor")
def in_cbor(_: Any, value: Any) -> bytes:
    """The same as CBOR; what it cannot say goes as JSON, which is refused there too."""
    try:
        return to_cbor(value)
    except (TypeError, ValueError):
        return json.dumps(value).encode()


def _house() -> House:
    """A hub whose time runs so fast that no wait is long."""
    http = HttpSettings(port=0, rate_per_second=0, allowed_hosts=("localhost", "testserver"))
    hours = count(step=3_600)
    house = House(http=http, monotonic=lambda: float(next(hours)))
    house.welcome("ada")
    house.do(CreateTask("One", ready=True, id="one"))
    return house


HOUSE = _house()
CONFIG = schemathesis.Config.from_dict(
    # What is too large is rejected too, by another status than the usual ones.
    {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", HOUSE.app, config=CONFIG)
# A stream has no end; tests/surfaces/http/test_stream.py reads it.
FINITE = SCHEMA.exclude(path="/v1/stream")

FORM_IS_THE_CORE_S = ("/v1/do", "/v1/say", "/v1/agentmail/", "/v1/ccos/")
"""Where the description does not say how names are written."""
NOT_TO_BE_DESCRIBED: dict[str, frozenset[str]] = {
    "invalid_envelope": frozenset(
        {
            # What the fields say together.
            *("", "payload", "tests", "blockers", "accepted"),
            # A path that is safe to follow, a text that can be seen.
            *("summaryRef", "handoffRef", "deliverables", "expectedOutputs", "contextRefs"),
            "projectId",
        }
    ),
    # A place among turns is one of an attempt; what is blocked says by what.
    "invalid_field": frozenset({"", "attempt", "blockers"}),
    "invalid_request": frozenset({""}),
    "key_reused": frozenset({""}),
    "not_recognized": frozenset({""}),
    "taskId_mismatch": frozenset({"taskId"}),
}
"""Code -> the fields for which what fits the description may be refused: no schema can say it."""
NOT_WHOLE = "not a number with a point"
"""What is said of 1.0, which a schema takes for a whole number."""
NOTHING_SHOWS = "is empty; give it a text"
"""What is said of a text of characters that nobody sees."""


OWN_NO = "/v1/acp/"
"""Where each action has arguments of its own, and a no has the form of the dialect."""


def _is_about_meaning(path: str, response: Any) -> bool:
    if response.status_code not in (400, 422):
        return False
    if path.startswith(OWN_NO):
        return True
    problem = response.json()
    # What is written so that readers differ about it is not trusted, in fields without a form too.
    if problem["code"] == "invalid_json":
        return True
    if any(said in problem["detail"] for said in (NOT_WHOLE, NOTHING_SHOWS)):
        return True
    if path.startswith(FORM_IS_THE_CORE_S):
        return response.status_code == 422
    field = re.sub(r"\[\d+\]$", "", problem.get("path", "")).rpartition(".")[2]
    return field in NOT_TO_BE_DESCRIBED.get(problem["code"], ())


def what_fits_is_taken(context: Any, response: Any, case: Any) -> bool | None:
    """Unless it is refused for what no schema can say."""
    if _is_about_meaning(case.operation.path, response):
        return None
    return checks.positive_data_acceptance(context, response, case)


def what_does_not_fit_is_refused(context: Any, response: Any, case: Any) -> bool | None:
    """By a problem, or where a no of a dialect is an answer, by that."""
    if case.operation.path == "/v1/say" and "turned" in response.json():
        return None
    return checks.negative_data_rejection(context, response, case)


CHECKS = [
    what_fits_is_taken,
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    what_does_not_fit_is_refused,
    checks.missing_required_header,
    checks.unsupported_method,
    checks.ignored_auth,
]


FOUND = (cast(Any, found).ok() for found in FINITE.get_all_operations())
OPERATIONS: dict[str, Any] = {operation.label: operation for operation in FOUND}
CONSTANTS = make_constants_value_source(FINITE)
LOOKED_AT = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
CLIENT = asgi.get_client(cast(Any, HOUSE.app))
# Else every request looks through the environment for a proxy on the way to this very process.
CLIENT.trust_env = False


def _does_what_its_description_says(case: Any) -> None:
    owner = {"Authorization": f"Bearer {OWNER_TOKEN}"}
    case.call_and_validate(headers=owner, session=CLIENT, checks=CHECKS)


@pytest.mark.parametrize("label", OPERATIONS)
def test_the_api_does_what_its_description_says(label: str) -> None:
    # Its cases are made here, because the parametrize of schemathesis makes those of all operations
    # when tests are collected, which every worker does.
    # Two names of it are private: its strategies alone lack the examples and the edge cases, and
    # its lazy parametrize does not run under this pytest.
    load_all_checks()
    trial = build_operation_test(
        config=FINITE.config,
        operation=OPERATIONS[label],
        test_func=_does_what_its_description_says,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=CONSTANTS),
        explicit_settings=LOOKED_AT,
    )
    trial()


def _document() -> dict[str, Any]:
    return SCHEMA.raw_schema


def test_every_route_is_described_and_nothing_else() -> None:
    described = {
        (method.upper(), path)
        for path, methods in _document()["paths"].items()
        for method in methods
    }
    hidden = {("GET", "/"), ("GET", "/openapi.json"), ("GET", "/docs")}
    assert described == {(one.method, one.path) for one in HOUSE.app.endpoints} - hidden


def test_every_reference_leads_somewhere_and_every_name_is_one_s_own() -> None:
    document = _document()
    operations = [it for methods in document["paths"].values() for it in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for reference in _all_under("$ref", document):
        part: Any = document
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]
    SCHEMA.validate()


def _all_under(key: str, part: Any) -> list[str]:
    """Every text that stands under a key, anywhere in a document."""
    if isinstance(part, dict):
        inside = cast(dict[str, Any], part)
        own = [inside[key]] if isinstance(inside.get(key), str) else []
        return [*own, *(one for value in inside.values() for one in _all_under(key, value))]
    if isinstance(part, list):
        return [one for value in cast(list[Any], part) for one in _all_under(key, value)]
    return []


def test_every_pattern_is_one_for_everybody_and_not_for_python_alone() -> None:
    patterns = _all_under("pattern", _document())
    ours_alone = re.compile(r"\\[AZz]|\(\?P|\(\?#|\(\?>|\(\?[aiLmsux]|[*+?}]\+")
    assert len(patterns) > 50
    assert [one for one in patterns if ours_alone.search(one)] == []


def test_every_operation_of_a_dialect_says_what_it_is_for() -> None:
    paths = _document()["paths"]
    said = {path: of["post"]["summary"] for path, of in paths.items() if "post" in of}
    assert said["/v1/aof/handoff.request"] == "aof: An agent delegates a child task."
    assert said["/v1/aof/aof_task_complete"].startswith("AOF/1: report how your work")
    assert all(len(words) > 10 for words in said.values())


def test_the_forms_of_names_are_published() -> None:
    document = _document()
    schemas, paths = document["components"]["schemas"], document["paths"]
    tool = schemas["CompleteTask"]["properties"]
    ids = ("TASK-2026-02-09-057", "TASK-2026-02-09-N0RcQ0bF")
    assert all(re.fullmatch(tool["taskId"]["pattern"], name) for name in ids)
    assert not re.fullmatch(tool["taskId"]["pattern"], "TASK-1")
    assert re.fullmatch(tool["agentId"]["pattern"], "ada@here")
    assert not re.fullmatch(tool["agentId"]["pattern"], "ada@")
    assert schemas["StatusMessage"]["properties"]["sentAt"]["format"] == "date-time"
    new = schemas["NewTask"]["properties"]
    assert all(re.fullmatch(new["parent"]["pattern"], name) for name in ("", "bead:ol-527.1", "a"))
    assert not re.fullmatch(new["aliases"]["items"]["pattern"], "a")
    asked = {one["name"]: one["schema"] for one in paths["/v1/events"]["get"]["parameters"]}
    assert asked["dialect"]["enum"] == ["aof", "agentmail", "acp", "ccos", "saop"]
    assert {"task", "task.claimed"} <= set(asked["type"]["enum"])


def test_every_code_is_named_with_its_status() -> None:
    words = _document()["components"]["responses"]["Problem"]["description"]
    assert [code for code, status in STATUS.items() if f"`{code}` ({status})" not in words] == []


def test_every_page_says_what_its_after_counts() -> None:
    assert {
        path: parameter["description"]
        for path, methods in _document()["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", [])
        if parameter["name"] == "after"
    } == {
        "/v1/agents": "`next` of the page before; else the first.",
        "/v1/events": "Begin after this position.",
        "/v1/runs/{name}": "Begin after this attempt, by its number.",
        "/v1/stream": "Begin after this position.",
        "/v1/tasks/{name}/trace": "Begin after this position.",
        "/v1/tasks/{name}/turns": "Begin after this turn of the attempt.",
        "/v1/tasks/{name}/events": "Begin after this `version`: no position of the ledger.",
        "/v1/handoffs/{id}/events": "Begin after this `version`: no position of the ledger.",
    }


def test_the_description_says_where_no_token_is_needed() -> None:
    paths = _document()["paths"]
    free = {
        path for path, methods in paths.items() for one in methods.values() if "security" in one
    }
    assert free == {"/healthz", "/readyz", "/v1/signed"}


def test_what_has_a_tag_or_a_place_says_so() -> None:
    paths = _document()["paths"]
    tasks = paths["/v1/tasks"]
    assert "Location" in tasks["post"]["responses"]["201"]["headers"]
    for path in ("/v1/tasks", "/v1/runs/{name}", "/v1/events", "/v1/agents", "/v1/agents/{name}"):
        answers = paths[path]["get"]["responses"]
        assert "ETag" in answers["200"]["headers"]
        assert "304" in answers
        assert "If-None-Match" in {one["name"] for one in paths[path]["get"]["parameters"]}
