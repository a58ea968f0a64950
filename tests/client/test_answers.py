"""What an answer means is decided without a connection."""

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

ASKED: Request = task("TASK-2026-02-09-001")


def _told(code: str) -> Reply:
    told = problem(code, "because")
    document = {"code": code, "detail": told.detail, "status": told.status, "title": told.title}
    return Reply(told.status, to_json(document))


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_problem_of_the_hub_is_a_refusal_or_worth_another_try(code: str) -> None:
    is_passing = STATUS[code] in AGAIN and code not in FOR_GOOD
    if is_passing:
        assert read_reply(ASKED, _told(code)) == Later(f"{code}: because")
        return
    with pytest.raises(Refused) as caught:
        read_reply(ASKED, _told(code))
    assert (caught.value.code, caught.value.detail) == (code, "because")
    assert isinstance(caught.value, LeaseLost) == (code == "lease_lost")


def test_what_no_waiting_heals_is_a_fault_of_the_hub() -> None:
    assert set(FAULTS) >= FOR_GOOD


@pytest.mark.parametrize(
    ("said", "seconds"), [("7", 7.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)]
)
def test_a_hub_that_says_when_to_come_back_is_heard(said: str, seconds: float) -> None:
    later = read_reply(ASKED, Reply(503, b"<p>busy</p>", said))
    assert later == Later("HTTP status 503", seconds)


@pytest.mark.parametrize("status", [301, 404, 418])
def test_what_is_no_problem_document_is_no_hub_s_answer(status: int) -> None:
    with pytest.raises(BadAnswer, match=f"HTTP status {status}"):
        read_reply(ASKED, Reply(status, b"\xff<p>"))


@pytest.mark.parametrize("lines", [b"<p>", b"[]", b"{}", b'{"ok":true}', b'{"ok":1}', b"\xff"])
def test_a_batch_that_is_answered_by_no_hub_is_a_bad_answer(lines: bytes) -> None:
    with pytest.raises(BadAnswer, match="answer to a batch"):
        read_batch(lines)


def test_nothing_is_an_answer_only_to_who_asks_whether_there_is_something() -> None:
    assert read_reply(work("ada", "", 1_000, 0, "k"), Reply(204, b"")) is None
    with pytest.raises(BadAnswer, match="is not what this client knows"):
        read_reply(ASKED, Reply(204, b""))


def test_a_description_that_names_no_addresses_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match=r"GET /openapi\.json"):
        read_reply(operations(), Reply(200, b'{"openapi":"3.1.0"}'))


def test_pauses_grow_to_a_bound_and_differ_from_caller_to_caller() -> None:
    mine, yours = list(islice(pauses("mine"), 12)), list(islice(pauses("yours"), 12))
    assert mine != yours
    assert mine == list(islice(pauses("mine"), 12))
    assert 0.05 <= mine[0] <= 0.1
    assert all(2.5 <= pause <= 5.0 for pause in mine[6:])


@proves("ACP-RESPONSE")
def test_a_dialect_s_own_no_is_an_answer() -> None:
    own = Reply(409, b'{"success":false}', media="application/json")
    anything = Request("POST", "/v1/acp/acp_handoff", Any)
    assert read_reply(anything, own) == {"success": False}
    with pytest.raises(BadAnswer):
        read_reply(ASKED, own)
