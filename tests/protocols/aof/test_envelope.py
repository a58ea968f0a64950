"""Fields of the envelope and the payloads: allowed values, and refusals with their path."""

import json
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.core.limits import MAX_LINKS, MAX_REASON, MAX_TEXT
from dragoman.core.timestamps import parse_rfc3339
from dragoman.protocols.aof.parse import ShapedMessage, parse_envelope
from dragoman.protocols.aof.validation import message_faults
from tests.protocols.aof.hub import (
    CHILD,
    MESSAGES,
    PARENT,
    UNKNOWN,
    AofHub,
    accepted,
    rejected,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-ENVELOPE")

MISSING = object()


def with_value(message: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Copy the message with another value at a path, or without it."""
    message = deepcopy(message)
    *outer, last = path.split(".")
    inside = message
    for name in outer:
        inside = inside[name]
    if value is MISSING:
        del inside[last]
    else:
        inside[last] = value
    return message


UNSAFE = ["", "/etc/passwd", "../x", "a/../../x", "C:/x", "a\\b", "a\x00b", "https://x/y", "a\nb"]
NO_TEXT: list[Any] = [MISSING, None, 5, True, ["x"], {}]
NO_ID: list[Any] = [
    *NO_TEXT,
    "",
    "057",
    "TASK-2026-02-09-57",
    "task-2026-02-09-057",
    f"{PARENT}\n",
    "x" * 999,
]
NO_AGENT: list[Any] = [*NO_TEXT, "", "a b", "agent:x", "ä", "x" * 999, "x\n", "@x"]
NO_TIME: list[Any] = [
    *NO_TEXT,
    "",
    "now",
    "2026-02-09",
    "2026-02-09T21:00:00",
    "2026-02-30T21:00:00Z",
    "1e9",
]
NO_COUNT: list[Any] = [MISSING, None, -1, 1.5, "3", True, []]
NO_LIST: list[Any] = [
    None,
    "x",
    5,
    {},
    [1],
    [None],
    [["x"]],
    ["x"] * (MAX_LINKS + 1),
    ["x" * (MAX_REASON + 1)],
]
NO_WORDS: list[Any] = [None, 5, [], "x" * (MAX_TEXT + 1)]
NO_LINE: list[Any] = [None, 5, [], "x" * (MAX_REASON + 1)]
NO_REF: list[Any] = [*NO_TEXT, *UNSAFE]

ENVELOPE: dict[str, list[Any]] = {
    "version": [MISSING, None, 0, 2, "1", True, 1.5],
    "type": NO_TEXT,
    "taskId": NO_ID,
    "fromAgent": NO_AGENT,
    "toAgent": NO_AGENT,
    "sentAt": NO_TIME,
    "payload": [MISSING, None, "x", 5, []],
    "projectId": [None, 5, [], "x" * 999, "a\nb"],
}
REPORT: dict[str, list[Any]] = {
    "payload.outcome": [*NO_TEXT, "", "Done", "failed"],
    "payload.summaryRef": NO_REF,
    "payload.handoffRef": [None, 5, *UNSAFE],
    "payload.deliverables": NO_LIST,
    "payload.tests": [MISSING, None, [], 3],
    "payload.tests.total": NO_COUNT,
    "payload.tests.passed": NO_COUNT,
    "payload.tests.failed": NO_COUNT,
    "payload.blockers": NO_LIST,
    "payload.notes": [MISSING, *NO_WORDS],
    "payload.taskId": NO_ID[1:],
    "payload.agentId": NO_AGENT[1:],
    "payload.fromAgent": NO_AGENT[1:],
    "payload.toAgent": NO_AGENT[1:],
}
UPDATE: dict[str, list[Any]] = {
    "payload.taskId": NO_ID,
    "payload.agentId": NO_AGENT,
    "payload.status": [None, 5, "", "flying", "Done"],
    "payload.progress": NO_WORDS,
    "payload.blockers": NO_LIST,
    "payload.notes": NO_WORDS,
}
REQUEST: dict[str, list[Any]] = {
    "payload.taskId": NO_ID,
    "payload.parentTaskId": NO_ID,
    "payload.fromAgent": NO_AGENT,
    "payload.toAgent": NO_AGENT,
    "payload.dueBy": NO_TIME,
    "payload.expectedOutputs": NO_LIST,
    "payload.contextRefs": NO_LIST,
    "payload.constraints": NO_LIST,
}
ANSWER: dict[str, list[Any]] = {
    "payload.taskId": NO_ID,
    "payload.accepted": [MISSING, None, 1, "true", []],
    "payload.reason": NO_LINE,
}


def cases(message: dict[str, Any], fields: dict[str, list[Any]]) -> list[Any]:
    """Build one test case for each wrong value of each field."""
    return [
        pytest.param(message, path, value, id=f"{message['type']} {path} {n}")
        for path, values in fields.items()
        for n, value in enumerate(values)
    ]


WRONG = [
    *cases(report(), ENVELOPE | REPORT),
    *cases(update(notes="x"), UPDATE),
    *cases(request(), REQUEST),
    *cases(accepted(), ANSWER),
    *cases(rejected(), ANSWER),
]


@pytest.mark.parametrize(("message", "path", "value"), WRONG)
@proves("AOF-REASONS")
def test_wrong_value_is_refused_with_its_path(
    hub: AofHub, message: dict[str, Any], path: str, value: Any
) -> None:
    rejection = hub.reject(with_value(message, path, value))

    assert rejection.code == "invalid_envelope", rejection
    assert rejection.path.startswith(path)
    assert rejection.detail.startswith(f"{rejection.path}: ")
    assert hub.types()[-1] == "protocol.message.rejected"


@pytest.mark.parametrize("field", ["deliverables", "expectedOutputs", "contextRefs"])
@pytest.mark.parametrize("ref", UNSAFE)
@proves("AOF-WARNINGS")
def test_unsafe_reference_in_a_list_is_refused(hub: AofHub, field: str, ref: str) -> None:
    message = report() if field == "deliverables" else request()
    rejection = hub.reject(with_value(message, f"payload.{field}", ["docs/ok.md", ref]))

    assert (rejection.code, rejection.path) == ("invalid_envelope", f"payload.{field}[1]")


RULES: dict[str, tuple[dict[str, Any], str, str]] = {
    "blocked without blockers": (report("blocked", blockers=[]), "payload.blockers", "Required"),
    "blocked by blanks": (report("blocked", blockers=["", " \t"]), "payload.blockers", "Required"),
    "more passed than there are": (
        report(tests={"total": 3, "passed": 3, "failed": 1}),
        "payload.tests",
        "more than 3",
    ),
    "an update that says nothing": (update(), "payload", "at least one of"),
    "accepted false": (accepted(accepted=False), "payload.accepted", "handoff.rejected"),
    "rejected true": (rejected(accepted=True), "payload.accepted", "handoff.accepted"),
}


@pytest.mark.parametrize(("message", "path", "reason"), RULES.values(), ids=RULES)
def test_contradicting_fields_are_refused(
    hub: AofHub, message: dict[str, Any], path: str, reason: str
) -> None:
    rejection = hub.reject(message)

    assert (rejection.code, rejection.path) == ("invalid_envelope", path)
    assert reason in rejection.detail


RIGHT: dict[str, dict[str, Any]] = {
    "no lists": with_value(
        with_value(report(), "payload.deliverables", MISSING), "payload.blockers", MISSING
    ),
    "empty notes": report(notes=""),
    "no tests": report(tests={"total": 0, "passed": 0, "failed": 0}),
    "tests that were skipped": report(tests={"total": 9, "passed": 1, "failed": 1}),
    "longest notes": report(notes="x" * MAX_TEXT),
    "most deliverables": report(deliverables=["a/b"] * MAX_LINKS),
    "a dot and a folder": report(deliverables=["./src/a.ts", "docs/"]),
    "an agent on a host": update(notes="x") | {"toAgent": "dispatcher@host-1"},
    "the payload repeats its envelope": report(
        taskId=PARENT, agentId="swe-backend", fromAgent="swe-backend", toAgent="dispatcher"
    ),
    "a project": report() | {"projectId": "apollo"},
    "only blockers": update(blockers=["x"]),
    "empty blockers": update(blockers=[]),
}


@pytest.mark.parametrize("message", RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("unknown", [{}, {"traceId": "t-1"}], ids=["plain", "with more"])
def test_allowed_values_are_accepted(
    hub: AofHub, message: dict[str, Any], unknown: dict[str, Any]
) -> None:
    assert hub.code(message | unknown) == ""


@pytest.mark.parametrize("kind", MESSAGES)
def test_unknown_fields_are_recorded_without_effect(kind: str) -> None:
    plain, rich = AofHub(), AofHub()
    message = MESSAGES[kind]()
    more = {**message, "x": {"deep": [1.5, None]}, "payload": {**message["payload"], "status2": 1}}
    for each in (plain, rich):
        if kind in ("handoff.accepted", "handoff.rejected"):
            each.accept(request())

    assert rich.accept(more).receipts == plain.accept(message).receipts
    assert rich.types() == plain.types()
    recorded = [
        json.loads(entry.line).get("original_text") for entry in rich.lab.store.entries(0, 99)
    ]
    assert more in recorded


@proves("AOF-TIMES")
@pytest.mark.parametrize(
    "moment",
    ["2026-02-09T21:00:00Z", "2026-02-09T22:00:00.000+01:00", "2026-02-09t21:00:00.0z"],
)
def test_times_are_normalized_to_utc(hub: AofHub, moment: str) -> None:
    hub.accept(update(notes="x") | {"sentAt": moment})
    hub.accept(request(dueBy=moment))

    (logged,) = [line for line in hub.lines() if line["type"] == "task.updated"]
    (requested,) = [line for line in hub.lines() if line["type"] == "delegation.requested"]
    assert logged["payload"]["sentAt"] == "2026-02-09T21:00:00.000Z"
    assert requested["payload"]["dueBy"] == "2026-02-09T21:00:00.000Z"


@proves("AOF-TIMES")
@given(st.datetimes(), st.from_regex(r"\A[0-9TZ:.-]{20,24}\Z"))
def test_time_check_agrees_with_the_parser(moment: datetime, noise: str) -> None:
    for text in (moment.isoformat(timespec="milliseconds") + "Z", noise):
        read = parse_envelope(report() | {"sentAt": text}, Raw())
        assert isinstance(read, ShapedMessage)
        try:
            parse_rfc3339(text)
        except ValueError:
            assert [fault.path for fault in message_faults(read.message)] == ["sentAt"]
        else:
            assert message_faults(read.message) == []


@proves("AOF-TIMES")
def test_project_id_is_recorded(hub: AofHub) -> None:
    hub.accept(report() | {"projectId": "apollo"})

    (received,) = [ln for ln in hub.lines() if ln["type"] == "protocol.message.received"]
    assert received["payload"]["projectId"] == "apollo"


@proves("AOF-ENVELOPE")
def test_long_task_ids_are_accepted(hub: AofHub) -> None:
    late = "TASK-2026-02-09-00001000"
    hub.create_ready(late)
    assert hub.code(with_value(accepted(taskId=late), "taskId", late)) == "invalid_transition"


@proves("AOF-ENVELOPE")
def test_other_name_of_a_task_is_refused_with_a_hint(hub: AofHub) -> None:
    rejection = hub.reject(update(notes="n") | {"taskId": "ol-1"})

    assert (rejection.code, rejection.path) == ("invalid_envelope", "taskId")
    assert rejection.detail.endswith("dragoman task show prints it as aofId")


ORDER: dict[str, tuple[Any, str]] = {
    "JSON before envelope": ('{"protocol":"aof","version":2,"version":2}', "invalid_json"),
    "envelope before type": ({**report(), "type": "what.ever", "version": 2}, "invalid_envelope"),
    "type before task": ({**report(), "type": "what.ever", "taskId": UNKNOWN}, "unknown_type"),
    "shape before taskId": (update(taskId=CHILD), "invalid_envelope"),
    "taskId before task": ({**update(notes="x"), "taskId": UNKNOWN}, "taskId_mismatch"),
    "taskId before identity": (
        {**update(notes="x", agentId="eve"), "taskId": CHILD},
        "taskId_mismatch",
    ),
    "task before identity": (
        {**update(notes="x", agentId="eve", taskId=UNKNOWN), "taskId": UNKNOWN},
        "task_not_found",
    ),
    "identity before authority": (
        update(notes="x", agentId="eve") | {"fromAgent": "bob"},
        "identity_mismatch",
    ),
    "authority before state": (
        update(status="backlog", notes="x", agentId="eve") | {"fromAgent": "eve"},
        "unauthorized_agent",
    ),
}


@proves("AOF-ORDER")
@pytest.mark.parametrize(("message", "code"), ORDER.values(), ids=ORDER)
def test_checks_run_in_order(hub: AofHub, message: Any, code: str) -> None:
    assert hub.code(message) == code


@proves("AOF-ORDER")
def test_size_is_checked_before_json(hub: AofHub) -> None:
    assert hub.code('{"protocol":"aof",' + " " * 262_144) == "message_too_large"


@proves("AOF-ORDER")
def test_already_done_is_checked_before_authority(hub: AofHub) -> None:
    hub.complete_parent()
    late = report() | {"fromAgent": "eve"}
    assert hub.code(late) == ""


@proves("AOF-REASONS")
def test_unknown_type_is_logged_as_unknown(hub: AofHub) -> None:
    before = hub.head()
    rejection = hub.reject({**report(), "type": "status.query", "payload": {"anything": 1}})

    assert rejection.code == "unknown_type"
    (line,) = hub.lines(before)
    assert line["type"] == "protocol.message.unknown"
    assert line["payload"]["type"] == "status.query"
    assert (line["taskId"], line["actor"]) == (PARENT, "swe-backend")
