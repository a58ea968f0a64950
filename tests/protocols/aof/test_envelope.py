"""Every field of the envelope and the payloads: what it may hold, and where it is wrong."""

import json
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.core.limits import LINKS, REASON, TEXT
from dragoman.core.moments import parse_rfc3339
from dragoman.protocols.aof.check import message_faults
from dragoman.protocols.aof.read import Shaped, shaped
from tests.protocols.aof.scene import (
    CHILD,
    MESSAGES,
    PARENT,
    UNKNOWN,
    Scene,
    accepted,
    rejected,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-ENVELOPE")

MISSING = object()


def bent(message: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The message with another value at a path, or without it."""
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
    ["x"] * (LINKS + 1),
    ["x" * (REASON + 1)],
]
NO_WORDS: list[Any] = [None, 5, [], "x" * (TEXT + 1)]
NO_LINE: list[Any] = [None, 5, [], "x" * (REASON + 1)]
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
    """Each wrong value of each field, as a case."""
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
def test_what_is_wrong_is_named_with_its_path(
    scene: Scene, message: dict[str, Any], path: str, value: Any
) -> None:
    turned = scene.turned(bent(message, path, value))

    assert turned.code == "invalid_envelope", turned
    assert turned.path.startswith(path)
    assert turned.detail.startswith(f"{turned.path}: ")
    assert scene.types()[-1] == "protocol.message.rejected"


@pytest.mark.parametrize("field", ["deliverables", "expectedOutputs", "contextRefs"])
@pytest.mark.parametrize("ref", UNSAFE)
@proves("AOF-WARNINGS")
def test_a_list_of_references_leads_nowhere_else(scene: Scene, field: str, ref: str) -> None:
    message = report() if field == "deliverables" else request()
    turned = scene.turned(bent(message, f"payload.{field}", ["docs/ok.md", ref]))

    assert (turned.code, turned.path) == ("invalid_envelope", f"payload.{field}[1]")


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
def test_what_the_fields_say_together_is_checked(
    scene: Scene, message: dict[str, Any], path: str, reason: str
) -> None:
    turned = scene.turned(message)

    assert (turned.code, turned.path) == ("invalid_envelope", path)
    assert reason in turned.detail


RIGHT: dict[str, dict[str, Any]] = {
    "no lists": bent(bent(report(), "payload.deliverables", MISSING), "payload.blockers", MISSING),
    "empty notes": report(notes=""),
    "no tests": report(tests={"total": 0, "passed": 0, "failed": 0}),
    "tests that were skipped": report(tests={"total": 9, "passed": 1, "failed": 1}),
    "longest notes": report(notes="x" * TEXT),
    "most deliverables": report(deliverables=["a/b"] * LINKS),
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
def test_what_is_allowed_is_accepted(
    scene: Scene, message: dict[str, Any], unknown: dict[str, Any]
) -> None:
    assert scene.code(message | unknown) == ""


@pytest.mark.parametrize("kind", MESSAGES)
def test_unknown_fields_are_kept_and_decide_nothing(kind: str) -> None:
    plain, rich = Scene(), Scene()
    message = MESSAGES[kind]()
    more = {**message, "x": {"deep": [1.5, None]}, "payload": {**message["payload"], "status2": 1}}
    for each in (plain, rich):
        if kind in ("handoff.accepted", "handoff.rejected"):
            each.taken(request())

    assert rich.taken(more).receipts == plain.taken(message).receipts
    assert rich.types() == plain.types()
    said = [json.loads(entry.line).get("said") for entry in rich.lab.store.entries(0, 99)]
    assert more in said


@proves("AOF-TIMES")
@pytest.mark.parametrize(
    "moment",
    ["2026-02-09T21:00:00Z", "2026-02-09T22:00:00.000+01:00", "2026-02-09t21:00:00.0z"],
)
def test_times_have_a_zone(scene: Scene, moment: str) -> None:
    scene.taken(update(notes="x") | {"sentAt": moment})
    scene.taken(request(dueBy=moment))

    (logged,) = [line for line in scene.lines() if line["type"] == "task.updated"]
    (asked,) = [line for line in scene.lines() if line["type"] == "delegation.requested"]
    assert logged["payload"]["sentAt"] == "2026-02-09T21:00:00.000Z"
    assert asked["payload"]["dueBy"] == "2026-02-09T21:00:00.000Z"


@proves("AOF-TIMES")
@given(st.datetimes(), st.from_regex(r"\A[0-9TZ:.-]{20,24}\Z"))
def test_what_looks_like_a_usual_time_is_one(moment: datetime, noise: str) -> None:
    for text in (moment.isoformat(timespec="milliseconds") + "Z", noise):
        read = shaped(report() | {"sentAt": text}, Raw())
        assert isinstance(read, Shaped)
        try:
            parse_rfc3339(text)
        except ValueError:
            assert [fault.path for fault in message_faults(read.message)] == ["sentAt"]
        else:
            assert message_faults(read.message) == []


@proves("AOF-TIMES")
def test_a_project_is_kept(scene: Scene) -> None:
    scene.taken(report() | {"projectId": "apollo"})

    (received,) = [ln for ln in scene.lines() if ln["type"] == "protocol.message.received"]
    assert received["payload"]["projectId"] == "apollo"


@proves("AOF-ENVELOPE")
def test_ids_have_both_tails(scene: Scene) -> None:
    late = "TASK-2026-02-09-00001000"
    scene.ready(late)
    assert scene.code(bent(accepted(taskId=late), "taskId", late)) == "invalid_transition"


@proves("AOF-ENVELOPE")
def test_another_name_of_a_task_is_answered_with_where_its_id_is_told(scene: Scene) -> None:
    turned = scene.turned(update(notes="n") | {"taskId": "ol-1"})

    assert (turned.code, turned.path) == ("invalid_envelope", "taskId")
    assert turned.detail.endswith("is told by dragoman task show, as aofId")


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
@pytest.mark.parametrize(("said", "code"), ORDER.values(), ids=ORDER)
def test_checks_come_in_their_order(scene: Scene, said: Any, code: str) -> None:
    assert scene.code(said) == code


@proves("AOF-ORDER")
def test_size_comes_before_json(scene: Scene) -> None:
    assert scene.code('{"protocol":"aof",' + " " * 262_144) == "message_too_large"


@proves("AOF-ORDER")
def test_already_there_comes_before_authority(scene: Scene) -> None:
    scene.do_done()
    late = report() | {"fromAgent": "eve"}
    assert scene.code(late) == ""


@proves("AOF-REASONS")
def test_a_type_that_we_do_not_know_is_logged_as_unknown(scene: Scene) -> None:
    before = scene.size()
    turned = scene.turned({**report(), "type": "status.query", "payload": {"anything": 1}})

    assert turned.code == "unknown_type"
    (line,) = scene.lines(before)
    assert line["type"] == "protocol.message.unknown"
    assert line["payload"]["type"] == "status.query"
    assert (line["taskId"], line["actor"]) == (PARENT, "swe-backend")
