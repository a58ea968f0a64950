"""The description of the API is complete and valid, and the API does what it says."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# Because the types of schemathesis are known in parts only.

import json
import os
from itertools import count
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask
from dragoman.surfaces.http.problems import STATUS
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.surfaces.http.house import OWNER_TOKEN, House

pytestmark = proves("HTTP-OPENAPI")

EXAMPLES = 300 if os.environ.get(LONG_RUN) else 8


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def in_lines(_: Any, value: Any) -> bytes:
    """A batch of one line."""
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
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.missing_required_header,
    checks.unsupported_method,
    checks.ignored_auth,
]


@FINITE.parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_the_api_does_what_its_description_says(case: Any) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {OWNER_TOKEN}"}, checks=CHECKS)


def _document() -> dict[str, Any]:
    return SCHEMA.raw_schema


def test_every_route_is_described_and_nothing_else() -> None:
    described = {
        (method.upper(), path)
        for path, methods in _document()["paths"].items()
        for method in methods
    }
    hidden = {("GET", "/openapi.json"), ("GET", "/docs")}
    assert described == {(one.method, one.path) for one in HOUSE.app.endpoints} - hidden


def test_every_reference_leads_somewhere_and_every_name_is_one_s_own() -> None:
    document = _document()
    operations = [it for methods in document["paths"].values() for it in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for reference in _references(document):
        part: Any = document
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]
    SCHEMA.validate()


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        inside = cast(dict[str, Any], part)
        own = [inside["$ref"]] if isinstance(inside.get("$ref"), str) else []
        return [*own, *(one for value in inside.values() for one in _references(value))]
    if isinstance(part, list):
        return [one for value in cast(list[Any], part) for one in _references(value)]
    return []


def test_every_code_is_named_with_its_status() -> None:
    words = _document()["components"]["responses"]["Problem"]["description"]
    assert [code for code, status in STATUS.items() if f"`{code}` ({status})" not in words] == []
