"""Parsing of responses, without a connection."""

from itertools import islice
from typing import Any

import pytest
from httpx2 import Response

from dragoman.client import BadAnswer, LeaseLost, Refused
from dragoman.client.models import Claim, Task
from dragoman.client.requests import ApiDescription, Request
from dragoman.client.transport import (
    PERMANENT_CODES,
    RETRYABLE_STATUSES,
    RetryAfter,
    backoff_delays,
    parse_batch,
    parse_response,
)
from dragoman.core.errors import FAULTS
from dragoman.surfaces.http.errors import STATUS_BY_CODE, problem
from dragoman.text.strict_json import encode_json
from tests.requirements import proves

pytestmark = proves("SDK-CRASH-SAFE")

SHOW_TASK = Request("GET", "/v1/tasks/TASK-2026-02-09-001", Task)


def _problem_response(code: str) -> Response:
    found = problem(code, "because")
    document = {"code": code, "detail": found.detail, "status": found.status, "title": found.title}
    return Response(found.status, content=encode_json(document))


@pytest.mark.parametrize("code", sorted(STATUS_BY_CODE))
def test_problem_is_a_refusal_or_retried(code: str) -> None:
    is_retryable = STATUS_BY_CODE[code] in RETRYABLE_STATUSES and code not in PERMANENT_CODES
    if is_retryable:
        assert parse_response(SHOW_TASK, _problem_response(code)) == RetryAfter(f"{code}: because")
        return
    with pytest.raises(Refused) as caught:
        parse_response(SHOW_TASK, _problem_response(code))
    assert (caught.value.code, caught.value.detail) == (code, "because")
    assert isinstance(caught.value, LeaseLost) == (code == "lease_lost")


def test_permanent_codes_are_faults_of_the_hub() -> None:
    assert set(FAULTS) >= PERMANENT_CODES


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)]
)
def test_retry_after_is_respected(header: str, seconds: float) -> None:
    later = parse_response(
        SHOW_TASK, Response(503, content=b"<p>busy</p>", headers={"retry-after": header})
    )
    assert later == RetryAfter("HTTP status 503", seconds)


@pytest.mark.parametrize("status", [301, 404, 418])
def test_error_without_problem_document_is_a_bad_answer(status: int) -> None:
    with pytest.raises(BadAnswer, match=f"HTTP status {status}"):
        parse_response(SHOW_TASK, Response(status, content=b"\xff<p>"))


@pytest.mark.parametrize("lines", [b"<p>", b"[]", b"{}", b'{"ok":true}', b'{"ok":1}', b"\xff"])
def test_invalid_batch_response_is_a_bad_answer(lines: bytes) -> None:
    with pytest.raises(BadAnswer, match="answer to a batch"):
        parse_batch(lines)


def test_empty_response_is_valid_only_for_a_long_poll() -> None:
    wait_for_work = Request("POST", "/v1/work", Claim | None)
    assert parse_response(wait_for_work, Response(204, content=b"")) is None
    with pytest.raises(BadAnswer, match="is not what this client knows"):
        parse_response(SHOW_TASK, Response(204, content=b""))


def test_description_without_paths_is_a_bad_answer() -> None:
    describe_api = Request("GET", "/openapi.json", ApiDescription)
    with pytest.raises(BadAnswer, match=r"GET /openapi\.json"):
        parse_response(describe_api, Response(200, content=b'{"openapi":"3.1.0"}'))


def test_backoff_is_bounded_and_has_jitter() -> None:
    delays, other_delays = (
        list(islice(backoff_delays("mine"), 12)),
        list(islice(backoff_delays("yours"), 12)),
    )
    assert delays != other_delays
    assert delays == list(islice(backoff_delays("mine"), 12))
    assert 0.05 <= delays[0] <= 0.1
    assert all(2.5 <= pause <= 5.0 for pause in delays[6:])


@proves("ACP-RESPONSE")
def test_refusal_in_dialect_form_is_a_response() -> None:
    refusal = Response(
        409, content=b'{"success":false}', headers={"content-type": "application/json"}
    )
    request = Request("POST", "/v1/acp/acp_handoff", Any)
    assert parse_response(request, refusal) == {"success": False}
    with pytest.raises(BadAnswer):
        parse_response(SHOW_TASK, refusal)
