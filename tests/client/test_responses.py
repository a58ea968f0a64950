"""Parsing of responses, without a connection."""

from itertools import islice
from typing import Any

import pytest

from dragoman.client import BadAnswer, LeaseLost, Refused
from dragoman.client.answers import (
    AGAIN,
    FOR_GOOD,
    Later,
    Reply,
    pauses,
    read_batch,
    read_reply,
)
from dragoman.client.requests import Request, operations, task, work
from dragoman.core.errors import FAULTS
from dragoman.surfaces.http.problems import STATUS, problem
from dragoman.text.strict_json import to_json
from tests.requirements import proves

pytestmark = proves("SDK-CRASH-SAFE")

SHOW_TASK: Request = task("TASK-2026-02-09-001")


def _problem_response(code: str) -> Reply:
    found = problem(code, "because")
    document = {"code": code, "detail": found.detail, "status": found.status, "title": found.title}
    return Reply(found.status, to_json(document))


@pytest.mark.parametrize("code", sorted(STATUS))
def test_problem_is_a_refusal_or_retried(code: str) -> None:
    is_retryable = STATUS[code] in AGAIN and code not in FOR_GOOD
    if is_retryable:
        assert read_reply(SHOW_TASK, _problem_response(code)) == Later(f"{code}: because")
        return
    with pytest.raises(Refused) as caught:
        read_reply(SHOW_TASK, _problem_response(code))
    assert (caught.value.code, caught.value.detail) == (code, "because")
    assert isinstance(caught.value, LeaseLost) == (code == "lease_lost")


def test_permanent_codes_are_faults_of_the_hub() -> None:
    assert set(FAULTS) >= FOR_GOOD


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)]
)
def test_retry_after_is_respected(header: str, seconds: float) -> None:
    later = read_reply(SHOW_TASK, Reply(503, b"<p>busy</p>", header))
    assert later == Later("HTTP status 503", seconds)


@pytest.mark.parametrize("status", [301, 404, 418])
def test_error_without_problem_document_is_a_bad_answer(status: int) -> None:
    with pytest.raises(BadAnswer, match=f"HTTP status {status}"):
        read_reply(SHOW_TASK, Reply(status, b"\xff<p>"))


@pytest.mark.parametrize("lines", [b"<p>", b"[]", b"{}", b'{"ok":true}', b'{"ok":1}', b"\xff"])
def test_invalid_batch_response_is_a_bad_answer(lines: bytes) -> None:
    with pytest.raises(BadAnswer, match="answer to a batch"):
        read_batch(lines)


def test_empty_response_is_valid_only_for_a_long_poll() -> None:
    assert read_reply(work("ada", "", 1_000, 0, "k"), Reply(204, b"")) is None
    with pytest.raises(BadAnswer, match="is not what this client knows"):
        read_reply(SHOW_TASK, Reply(204, b""))


def test_description_without_paths_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match=r"GET /openapi\.json"):
        read_reply(operations(), Reply(200, b'{"openapi":"3.1.0"}'))


def test_backoff_is_bounded_and_has_jitter() -> None:
    delays, other_delays = list(islice(pauses("mine"), 12)), list(islice(pauses("yours"), 12))
    assert delays != other_delays
    assert delays == list(islice(pauses("mine"), 12))
    assert 0.05 <= delays[0] <= 0.1
    assert all(2.5 <= pause <= 5.0 for pause in delays[6:])


@proves("ACP-RESPONSE")
def test_refusal_in_dialect_form_is_a_response() -> None:
    refusal = Reply(409, b'{"success":false}', media="application/json")
    request = Request("POST", "/v1/acp/acp_handoff", Any)
    assert read_reply(request, refusal) == {"success": False}
    with pytest.raises(BadAnswer):
        read_reply(SHOW_TASK, refusal)
