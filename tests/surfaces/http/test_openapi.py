"""OpenAPI document: complete, valid, and true of the API (schemathesis)."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# The types of schemathesis are partial.

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
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.http.errors import STATUS_BY_CODE
from dragoman.text.strict_cbor import encode_cbor
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.surfaces.http.hub_server import OWNER_TOKEN, HubServer

pytestmark = proves("HTTP-OPENAPI")

EXAMPLES = 300 if os.environ.get(LONG_RUN) else 8


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def to_json_lines(_: Any, value: Any) -> bytes:
    """Serialize a batch of one line."""
    return json.dumps(value).encode()


@schemathesis.serializer("application/cbor")
def to_cbor_or_json(_: Any, value: Any) -> bytes:
    """Serialize as CBOR; what it cannot express as JSON, which is refused there too."""
    try:
        return encode_cbor(value)
    except (TypeError, ValueError):
        return json.dumps(value).encode()


def _fast_server() -> HubServer:
    """Build a server whose clock runs so fast that no wait is long."""
    http = HttpSettings(port=0, rate_per_second=0, allowed_hosts=("localhost", "testserver"))
    hours = count(step=3_600)
    server = HubServer(http=http, monotonic=lambda: float(next(hours)))
    server.add_agent("ada")
    server.submit(CreateTask("One", ready=True, id="one"))
    return server


SERVER = _fast_server()
CONFIG = schemathesis.Config.from_dict(
    # Too large bodies are rejected by a status of their own.
    {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", SERVER.app, config=CONFIG)
# A stream has no end; tests/surfaces/http/test_stream.py reads it.
FINITE = SCHEMA.exclude(path="/v1/stream")

UNDESCRIBED_NAMES = ("/v1/internal/", "/v1/agentmail/", "/v1/ccos/")
"""Paths below which the description has no patterns of names."""
UNDESCRIBED_RULES: dict[str, frozenset[str]] = {
    "invalid_envelope": frozenset(
        {
            # Rules about several fields.
            *("", "payload", "tests", "blockers", "accepted"),
            # Safe paths, visible texts.
            *("summaryRef", "handoffRef", "deliverables", "expectedOutputs", "contextRefs"),
            "projectId",
        }
    ),
    # A turn needs its attempt, a blocked status its blockers; only a limit has an end.
    "invalid_field": frozenset({"", "attempt", "blockers", "outcome", "until"}),
    # The dialects of a translation are those of the hub, which may have more installed.
    "invalid_request": frozenset({"", "from", "to"}),
    "key_reused": frozenset({""}),
    # There are branches only where an agent of the settings has a repository.
    "bad_repository": frozenset({""}),
    "not_recognized": frozenset({""}),
    "taskId_mismatch": frozenset({"taskId"}),
}
"""Code -> fields with rules that no schema can express: valid data may be refused."""
NOT_WHOLE = "not a number with a point"
"""Refusal of 1.0, which a schema takes for a whole number."""
BLANK_TEXT = "is empty; give it a text"
"""Refusal of a text of invisible characters."""


OWN_ERROR_FORM = "/v1/acp/"
"""Path of actions with different arguments, where refusals have the form of the dialect."""


def _is_beyond_the_schema(path: str, response: Any) -> bool:
    if response.status_code not in (400, 422):
        return False
    if path.startswith(OWN_ERROR_FORM):
        return True
    problem = response.json()
    # Ambiguous JSON is refused, in fields of any shape too.
    if problem["code"] == "invalid_json":
        return True
    if any(phrase in problem["detail"] for phrase in (NOT_WHOLE, BLANK_TEXT)):
        return True
    if path.startswith(UNDESCRIBED_NAMES):
        return response.status_code == 422
    field = re.sub(r"\[\d+\]$", "", problem.get("path", "")).rpartition(".")[2]
    return field in UNDESCRIBED_RULES.get(problem["code"], ())


def accepts_valid_data(context: Any, response: Any, case: Any) -> bool | None:
    """Check that valid data is accepted, unless a rule refuses it that no schema can express."""
    if _is_beyond_the_schema(case.operation.path, response):
        return None
    return checks.positive_data_acceptance(context, response, case)


def refuses_invalid_data(context: Any, response: Any, case: Any) -> bool | None:
    """Check that invalid data is refused, by a problem or in the form of a forwarded reply."""
    if case.operation.path == "/v1/internal/operations" and "rejected" in response.json():
        return None
    return checks.negative_data_rejection(context, response, case)


CHECKS = [
    accepts_valid_data,
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    refuses_invalid_data,
    checks.missing_required_header,
    checks.unsupported_method,
    checks.ignored_auth,
]


FOUND = (cast(Any, found).ok() for found in FINITE.get_all_operations())
OPERATIONS: dict[str, Any] = {operation.label: operation for operation in FOUND}
CONSTANTS = make_constants_value_source(FINITE)
HYPOTHESIS_SETTINGS = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
CLIENT = asgi.get_client(cast(Any, SERVER.app))
# Otherwise every request searches the environment for a proxy to this very process.
CLIENT.trust_env = False


def _conforms_to_description(case: Any) -> None:
    owner = {"Authorization": f"Bearer {OWNER_TOKEN}"}
    case.call_and_validate(headers=owner, session=CLIENT, checks=CHECKS)


@pytest.mark.parametrize("label", OPERATIONS)
def test_api_conforms_to_its_description(label: str) -> None:
    # Cases are generated here, because the parametrize of schemathesis generates those of all
    # operations when tests are collected, in every worker.
    # Two of its names are private: its strategies alone lack the examples and the edge cases, and
    # its lazy parametrize does not run under this pytest.
    load_all_checks()
    trial = build_operation_test(
        config=FINITE.config,
        operation=OPERATIONS[label],
        test_func=_conforms_to_description,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=CONSTANTS),
        explicit_settings=HYPOTHESIS_SETTINGS,
    )
    trial()


def _document() -> dict[str, Any]:
    return SCHEMA.raw_schema


def test_description_has_exactly_the_routes() -> None:
    described = {
        (method.upper(), path)
        for path, methods in _document()["paths"].items()
        for method in methods
    }
    hidden = {("GET", "/openapi.json"), ("GET", "/docs")}
    assert described == {(one.method, one.path) for one in SERVER.app.endpoints} - hidden


def test_references_resolve_and_operation_ids_are_unique() -> None:
    document = _document()
    operations = [it for methods in document["paths"].values() for it in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for reference in _texts_under_key("$ref", document):
        part: Any = document
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]
    SCHEMA.validate()


def _texts_under_key(key: str, part: Any) -> list[str]:
    """Collect all texts under a key, anywhere in a document."""
    if isinstance(part, dict):
        mapping = cast(dict[str, Any], part)
        own_texts = [mapping[key]] if isinstance(mapping.get(key), str) else []
        return [
            *own_texts,
            *(text for value in mapping.values() for text in _texts_under_key(key, value)),
        ]
    if isinstance(part, list):
        return [text for value in cast(list[Any], part) for text in _texts_under_key(key, value)]
    return []


def test_patterns_use_no_python_syntax() -> None:
    patterns = _texts_under_key("pattern", _document())
    python_only = re.compile(r"\\[AZz]|\(\?P|\(\?#|\(\?>|\(\?[aiLmsux]|[*+?}]\+")
    assert len(patterns) > 50
    assert [pattern for pattern in patterns if python_only.search(pattern)] == []


def test_every_operation_has_a_summary() -> None:
    paths = _document()["paths"]
    summaries = {
        path: methods["post"]["summary"] for path, methods in paths.items() if "post" in methods
    }
    assert summaries["/v1/aof/handoff.request"] == "aof: An agent delegates a child task."
    assert summaries["/v1/aof/aof_task_complete"].startswith("AOF/1: report how your work")
    assert all(len(summary) > 10 for summary in summaries.values())


def test_patterns_of_names_are_published() -> None:
    document = _document()
    schemas, paths = document["components"]["schemas"], document["paths"]
    tool_fields = schemas["CompleteTaskArguments"]["properties"]
    ids = ("TASK-2026-02-09-057", "TASK-2026-02-09-N0RcQ0bF")
    assert all(re.fullmatch(tool_fields["taskId"]["pattern"], name) for name in ids)
    assert not re.fullmatch(tool_fields["taskId"]["pattern"], "TASK-1")
    assert re.fullmatch(tool_fields["agentId"]["pattern"], "ada@here")
    assert not re.fullmatch(tool_fields["agentId"]["pattern"], "ada@")
    assert schemas["StatusUpdateMessage"]["properties"]["sentAt"]["format"] == "date-time"
    task_fields = schemas["CreateTaskBody"]["properties"]
    assert all(
        re.fullmatch(task_fields["parent"]["pattern"], name) for name in ("", "bead:ol-527.1", "a")
    )
    assert not re.fullmatch(task_fields["aliases"]["items"]["pattern"], "a")
    query_schemas = {one["name"]: one["schema"] for one in paths["/v1/events"]["get"]["parameters"]}
    assert query_schemas["dialect"]["enum"] == ["aof", "agentmail", "acp", "ccos", "saop"]
    assert {"task", "task.claimed"} <= set(query_schemas["type"]["enum"])


def test_every_code_is_documented_with_its_status() -> None:
    description = _document()["components"]["responses"]["Problem"]["description"]
    assert [
        code for code, status in STATUS_BY_CODE.items() if f"`{code}` ({status})" not in description
    ] == []


def test_meaning_of_after_is_documented() -> None:
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
        "/v1/tasks/{name}/story": "Begin after this position.",
        "/v1/tasks/{name}/trace": "Begin after this position.",
        "/v1/tasks/{name}/turns": "Begin after this turn of the attempt.",
        "/v1/tasks/{name}/events": "Begin after this `version`: no position of the ledger.",
        "/v1/handoffs/{id}/events": "Begin after this `version`: no position of the ledger.",
    }


def test_endpoints_without_token_are_documented() -> None:
    paths = _document()["paths"]
    open_paths = {
        path for path, methods in paths.items() for one in methods.values() if "security" in one
    }
    assert open_paths == {"/healthz", "/readyz", "/v1/sign-in", "/v1/signed"}


def test_location_header_is_documented() -> None:
    responses = _document()["paths"]["/v1/tasks"]["post"]["responses"]
    assert "Location" in responses["201"]["headers"]
