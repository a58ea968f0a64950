"""Completion reports: four outcomes, time of effect, warnings, tools and the end of a session."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.task_state import MoveTask
from dragoman.engine.request import Accepted, Rejected
from tests.protocols.aof.hub import (
    BACKEND,
    BOSS,
    CHILD,
    PARENT,
    PERSON,
    QA,
    UNKNOWN,
    AofHub,
    report,
    update,
)
from tests.requirements import proves

OTHER = "TASK-2026-02-09-058"

OUTCOMES = [
    ("done", True, ["review"]),
    ("done", False, ["review", "done"]),
    ("blocked", True, ["blocked"]),
    ("needs_review", True, ["review"]),
    ("needs_review", False, ["review"]),
    ("partial", True, ["review"]),
    ("partial", False, ["review"]),
]


def transitions(hub: AofHub, after: int) -> list[tuple[str, str]]:
    """Return (from, to) of every transition logged after a position."""
    payloads = [ln["payload"] for ln in hub.lines(after) if ln["type"] == "task.transitioned"]
    return [(payload["from"], payload["to"]) for payload in payloads]


@proves("AOF-COMPLETION", "AOF-SESSION-END")
@pytest.mark.parametrize(("outcome", "review", "statuses"), OUTCOMES)
def test_report_applies_at_the_end_of_its_session(
    hub: AofHub, outcome: str, review: bool, statuses: list[str]
) -> None:
    hub.create_held(OTHER, BACKEND, session="s-1", review_required=review)
    before = hub.head()

    answer = hub.accept(report(outcome) | {"taskId": OTHER})

    assert answer.reply["status"] == "in-progress"
    assert transitions(hub, before) == []
    assert "task.completed" in hub.types(before)

    assert isinstance(hub.end_session("s-1", BACKEND), Accepted)
    assert transitions(hub, before) == list(zip(["in-progress", *statuses], statuses, strict=False))
    assert hub.task(OTHER).status == statuses[-1]


@proves("AOF-COMPLETION")
@pytest.mark.parametrize(("outcome", "review", "statuses"), OUTCOMES)
def test_report_applies_at_once_when_configured(
    outcome: str, review: bool, statuses: list[str]
) -> None:
    hub = AofHub(at_once=True)
    hub.create_held(OTHER, BACKEND, review_required=review)
    before = hub.head()

    hub.accept(report(outcome) | {"taskId": OTHER})

    assert transitions(hub, before) == list(zip(["in-progress", *statuses], statuses, strict=False))
    types = hub.types(before)
    assert types.index("task.completed") < types.index("task.transitioned")


@proves("AOF-COMPLETION")
def test_report_is_stored_with_its_attempt(hub: AofHub) -> None:
    hub.accept(report("blocked", blockers=["Awaiting API key", "No database"]))

    reported = hub.task().reported
    assert reported is not None
    assert (reported.outcome, reported.agent, reported.attempt) == ("blocked", "swe-backend", 1)
    assert reported.blockers == ("Awaiting API key", "No database")
    assert reported.notes == "As far as it goes"
    assert reported.details == {
        "summaryRef": "outputs/summary.md",
        "handoffRef": "outputs/handoff.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 3, "passed": 2, "failed": 1},
    }


@proves("AOF-COMPLETION")
def test_latest_report_counts(hub: AofHub) -> None:
    hub.accept(report("partial"))
    hub.accept(report("blocked"))
    hub.end_session()

    assert hub.task().status == "blocked"


@proves("AOF-REASONS", "AOF-REPEAT")
@pytest.mark.parametrize("sent_at", ["2026-02-09T21:00:00.000Z", "2026-02-09T23:00:00.000Z"])
def test_report_about_a_done_task_changes_nothing(hub: AofHub, sent_at: str) -> None:
    hub.complete_parent()
    before = hub.task()

    assert hub.code(report() | {"sentAt": sent_at}) == ""

    assert hub.task() == before
    assert "task.completed" not in hub.types(hub.head() - 1)


@proves("AOF-REASONS")
def test_report_about_an_unknown_task_is_refused(hub: AofHub) -> None:
    before = hub.head()
    assert hub.code(report() | {"taskId": UNKNOWN}) == "task_not_found"
    (line,) = hub.lines(before)
    assert (line["type"], line["taskId"]) == ("protocol.message.rejected", UNKNOWN)
    assert line["payload"]["reason"] == "task_not_found"


@proves("AOF-AUTHORITY")
def test_report_must_come_from_the_holder(hub: AofHub) -> None:
    assert hub.code(report() | {"fromAgent": "swe-qa"}) == "unauthorized_agent"
    assert hub.code(report() | {"taskId": CHILD}) == "unassigned_task"


@proves("AOF-AUTHORITY")
def test_expired_attempt_gets_lease_lost(hub: AofHub) -> None:
    hub.lab.clock.advance(400_000)
    assert hub.code(report()) == "lease_lost"


@proves("AOF-WARNINGS")
@pytest.mark.parametrize(
    ("fields", "files", "warned"),
    [
        ({}, ["outputs/summary.md"], []),
        ({}, [], ["missing_summary"]),
        ({"summaryRef": "outputs/other.md"}, ["outputs/summary.md"], ["missing_summary"]),
        ({"handoffRef": "outputs/handoff.md"}, ["outputs/summary.md"], ["missing_handoff"]),
        ({"handoffRef": "work/h.md"}, [], ["missing_summary", "missing_handoff"]),
        ({"handoffRef": "work/h.md"}, ["outputs/summary.md", "work/h.md"], []),
    ],
)
def test_missing_file_is_only_a_warning(
    hub: AofHub, fields: dict[str, Any], files: list[str], warned: list[str]
) -> None:
    hub.files = {(PARENT, ref) for ref in files}
    before = hub.head()

    answer = hub.accept(report(**fields))

    assert len(answer.warnings) == len(warned)
    lines = [ln for ln in hub.lines(before) if ln["type"] == "protocol.message.warning"]
    assert [line["payload"]["reason"] for line in lines] == warned
    hub.end_session()
    assert hub.task().status == "review"


@proves("AOF-WARNINGS")
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_missing_file_is_only_a_warning_under_an_attempt_credential(
    outcome: str, at_once: bool
) -> None:
    hub = AofHub(at_once=at_once)
    hub.files.clear()
    if not at_once:
        hub.do(PERSON, MoveTask(PARENT, "ready"))
        hub.claim(PARENT, BACKEND)  # without a session id: the report ends the session
    speaker, before = hub.attempt_actor(), hub.head()

    answer = hub.accept(report(outcome), speaker)

    assert len(answer.warnings) == 1
    assert hub.task().status == ("blocked" if outcome == "blocked" else "review")
    assert hub.types(before)[-1] == "protocol.message.warning"
    assert hub.accept(report(outcome), speaker).repeated


@proves("AOF-WARNINGS", "AOF-TOOLS")
def test_missing_file_is_only_a_warning_for_the_tool() -> None:
    hub = AofHub(at_once=True)
    hub.files.clear()
    payload = {"taskId": PARENT, **report()["payload"]}
    answer = hub.call("aof_task_complete", payload, hub.attempt_actor())
    assert isinstance(answer, Accepted)
    assert len(answer.warnings) == 1
    assert hub.task().status == "review"


@proves("AOF-WARNINGS", "AOF-REPEAT")
def test_repeat_is_recognized_after_the_file_was_written(hub: AofHub) -> None:
    hub.files.clear()
    hub.accept(report())
    before = hub.head()
    hub.files = {(PARENT, "outputs/summary.md")}

    assert hub.accept(report()).repeated
    assert hub.head() == before


@proves("AOF-WARNINGS", "AOF-REPEAT", "IDEM-REPEAT")
def test_repeat_has_the_warnings_of_the_first_report(hub: AofHub) -> None:
    hub.files.clear()
    first = hub.accept(report())
    hub.files.add((PARENT, "outputs/summary.md"))
    there = hub.accept(report())
    hub.end_session()
    over = hub.accept(report())

    assert first.warnings
    assert [(one.repeated, one.warnings, one.reply) for one in (there, over)] == [
        (True, first.warnings, first.reply)
    ] * 2
    other = report(notes="now with its summary") | {"sentAt": "2026-02-09T22:00:00.000Z"}
    assert hub.accept(other).warnings == ()


@proves("AOF-WARNINGS")
def test_done_task_gets_no_warnings(hub: AofHub) -> None:
    hub.complete_parent()
    hub.files.clear()
    before = hub.task()

    hub.accept(report() | {"sentAt": "2026-02-09T23:00:00Z"})
    assert hub.task() == before


# Tools


def tool_arguments(message: dict[str, Any]) -> dict[str, Any]:
    """Build the tool arguments that correspond to a message."""
    return message["payload"] | {"taskId": message["taskId"]}


@proves("AOF-TOOLS")
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_tool_completes_as_the_message_does(outcome: str) -> None:
    by_message, by_tool = AofHub(), AofHub()
    for hub in (by_message, by_tool):
        hub.files.clear()
    by_message.accept(report(outcome))
    answer = by_tool.call("aof_task_complete", tool_arguments(report(outcome)), BACKEND)

    assert isinstance(answer, Accepted)
    assert answer.reply["taskId"] == PARENT
    assert answer.reply["status"] == "in-progress"
    assert len(answer.reply["warnings"]) == 1
    assert by_tool.task() == by_message.task()
    without_received = [t for t in by_message.types() if t != "protocol.message.received"]
    assert by_tool.types() == without_received


@proves("AOF-TOOLS")
@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({}, "invalid_envelope", "outcome"),
        (tool_arguments(report()) | {"taskId": "nope"}, "invalid_envelope", "taskId"),
        (tool_arguments(report("blocked", blockers=[])), "invalid_envelope", "blockers"),
        (tool_arguments(report(summaryRef="../x")), "invalid_envelope", "summaryRef"),
        (tool_arguments(report()) | {"taskId": UNKNOWN}, "task_not_found", ""),
        (tool_arguments(report()) | {"taskId": CHILD}, "unassigned_task", ""),
        (tool_arguments(report(agentId="eve")) | {"taskId": UNKNOWN}, "task_not_found", ""),
        (tool_arguments(report(agentId="eve")), "identity_mismatch", "agentId"),
        (tool_arguments(report(fromAgent="eve")), "identity_mismatch", "fromAgent"),
        ("[1]", "invalid_envelope", ""),
        ("{", "invalid_json", ""),
        ('{"a":1,"a":1}', "invalid_json", "a"),
        ('"' + "x" * 262_144 + '"', "message_too_large", ""),
    ],
)
def test_tool_refuses_with_code_and_path(hub: AofHub, arguments: Any, code: str, path: str) -> None:
    before = hub.head()
    answer = hub.call("aof_task_complete", arguments, BACKEND)

    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == (code, path)
    assert hub.head() == before + 1
    assert hub.task().reported is None


@proves("AOF-SESSION-END", "AOF-TOOLS")
@pytest.mark.parametrize(
    ("operation", "arguments", "path"),
    [
        ("session_end", {"session": "s-other"}, "session"),
        ("session_end", {"sessionid": "s-other"}, "sessionid"),
        ("aof_task_update", {"taskId": PARENT, "statsu": "blocked", "notes": "x"}, "statsu"),
        ("aof_task_complete", tool_arguments(report()) | {"blokers": "none"}, "blokers"),
    ],
)
def test_mistyped_field_is_refused_and_ends_no_session(
    hub: AofHub, operation: str, arguments: dict[str, Any], path: str
) -> None:
    hub.accept(report())
    before = hub.task()
    answer = hub.call(operation, arguments, PERSON if operation == "session_end" else BACKEND)

    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("invalid_envelope", path)
    assert "did you mean" in answer.detail
    assert hub.task() == before


@proves("AOF-SESSION-END")
@pytest.mark.parametrize("is_tool", [False, True])
def test_unnamed_session_ends_with_its_report(hub: AofHub, is_tool: bool) -> None:
    hub.create_held(OTHER, BACKEND)
    message = report() | {"taskId": OTHER}
    if is_tool:
        hub.call("aof_task_complete", tool_arguments(message) | {"taskId": OTHER}, BACKEND)
    else:
        hub.accept(message)
    assert hub.task(OTHER).status == "review"


@proves("AOF-TOOLS")
def test_unknown_fields_of_a_message_are_accepted(hub: AofHub) -> None:
    assert isinstance(hub.call("status.update", update(mood="good", notes="x"), BACKEND), Accepted)
    hub.accept(report(mood="good"))


@proves("AOF-TOOLS")
def test_update_tool_works_as_the_message_does(hub: AofHub) -> None:
    answer = hub.call("aof_task_update", {"taskId": PARENT, "progress": "Half"}, BACKEND)
    assert isinstance(answer, Accepted)
    assert answer.reply == {"taskId": PARENT, "status": "in-progress"}
    assert hub.task().notes == 1

    blocked = {"taskId": PARENT, "status": "blocked", "blockers": ["No key"]}
    hub.call("aof_task_update", blocked, BACKEND)
    assert hub.task().status == "blocked"
    assert hub.lines()[-1]["payload"]["reason"] == "No key"


@proves("AOF-TOOLS", "AOF-REPEAT")
def test_equal_calls_count_twice_without_an_idempotency_key(hub: AofHub) -> None:
    arguments = {"taskId": PARENT, "progress": "Half"}
    for _ in range(2):
        hub.call("aof_task_update", arguments, BACKEND)
    for _ in range(2):
        hub.router.call("aof_task_update", arguments, BACKEND, key="k-1")

    assert hub.task().notes == 3


@proves("AOF-TOOLS", "AOF-REPEAT")
def test_message_type_is_callable_as_operation(hub: AofHub) -> None:
    answer = hub.call("completion.report", report(), BACKEND)
    assert isinstance(answer, Accepted)
    assert hub.accept(report()).repeated

    assert isinstance(hub.call("status.update", report(), BACKEND), Rejected)
    bare = hub.call("completion.report", {"taskId": PARENT}, BACKEND)
    assert isinstance(bare, Rejected)
    assert (bare.code, bare.path) == ("invalid_envelope", "protocol")


# End of a session


@proves("AOF-SESSION-END")
def test_session_end_applies_to_attempts_of_that_session_only(hub: AofHub) -> None:
    hub.create_held(OTHER, BACKEND, session="s-other")
    for task in (PARENT, OTHER):
        hub.accept(report() | {"taskId": task})

    answer = hub.end_session("s-backend", BACKEND)

    assert isinstance(answer, Accepted)
    assert answer.reply == {
        "sessionId": "s-backend",
        "tasks": [{"taskId": PARENT, "status": "review"}],
    }
    assert hub.task(OTHER).status == "in-progress"


@proves("AOF-SESSION-END")
def test_session_end_leaves_unreported_attempts(hub: AofHub) -> None:
    answer = hub.end_session("s-backend", BACKEND)

    assert isinstance(answer, Accepted)
    assert answer.reply["tasks"] == [{"taskId": PARENT, "status": "in-progress"}]


@proves("AOF-SESSION-END")
def test_agent_ends_its_own_attempts_only(hub: AofHub) -> None:
    hub.create_held(OTHER, QA, session="s-backend")
    hub.accept(report())
    hub.accept(report() | {"taskId": OTHER, "fromAgent": "swe-qa"})

    hub.end_session("s-backend", QA)

    assert hub.task(OTHER).status == "review"
    assert hub.task(PARENT).status == "in-progress"


@proves("AOF-SESSION-END")
@pytest.mark.parametrize("actor", [PERSON, BOSS])
def test_session_end_without_id_ends_all_reported_attempts(hub: AofHub, actor: Actor) -> None:
    hub.create_held(OTHER, QA, session="s-qa")
    silent = "TASK-2026-02-09-070"
    hub.create_held(silent, QA, session="s-qa")
    hub.accept(report())
    hub.accept(report("blocked") | {"taskId": OTHER, "fromAgent": "swe-qa"})

    answer = hub.end_session("", actor)

    assert isinstance(answer, Accepted)
    ended = {task["taskId"]: task["status"] for task in answer.reply["tasks"]}
    assert ended == {PARENT: "review", OTHER: "blocked"}
    assert hub.task(silent).status == "in-progress"


@proves("AOF-SESSION-END", "AOF-AUTHORITY")
def test_agent_cannot_end_sessions_without_an_id(hub: AofHub) -> None:
    answer = hub.end_session("", BACKEND)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("unauthorized_agent", "sessionId")


@proves("AOF-SESSION-END")
def test_unknown_session_ends_nothing(hub: AofHub) -> None:
    before = hub.head()
    answer = hub.end_session("s-nobody", BACKEND)

    assert isinstance(answer, Accepted)
    assert answer.reply == {"sessionId": "s-nobody", "tasks": []}
    assert hub.head() == before


@proves("AOF-SESSION-END")
def test_invalid_session_id_is_refused(hub: AofHub) -> None:
    answer = hub.end_session("a b", PERSON)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("invalid_envelope", "sessionId")


@proves("AOF-SESSION-END")
def test_empty_session_id_is_not_absent(hub: AofHub) -> None:
    hub.accept(report())

    answer = hub.call("session_end", {"sessionId": ""}, PERSON)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("invalid_envelope", "sessionId")
    assert hub.task(PARENT).status == "in-progress"

    assert isinstance(hub.call("session_end", {}, PERSON), Accepted)
    assert hub.task(PARENT).status == "review"


@proves("AOF-SESSION-END")
def test_attempt_credential_ends_its_attempt_only() -> None:
    hub, other = AofHub(), "TASK-2026-02-09-077"
    hub.create_held(other, BACKEND, session="s-backend")
    hub.accept(report())
    hub.accept(report() | {"taskId": other})
    answer = hub.end_session("s-backend", hub.attempt_actor())
    assert isinstance(answer, Accepted), answer
    assert answer.reply["tasks"] == [{"taskId": PARENT, "status": "review"}]
    assert hub.task(other).status == "in-progress"


@proves("AOF-SESSION-END")
def test_session_end_lists_tasks_by_aof_id(hub: AofHub) -> None:
    hub.create_held("ol-527.1", BACKEND, session="s-bead")
    own = hub.task("ol-527.1").aof_id
    hub.accept(report() | {"taskId": own})

    answer = hub.end_session("s-bead", BACKEND)

    assert isinstance(answer, Accepted)
    assert answer.reply["tasks"] == [{"taskId": own, "status": "review"}]


@proves("AOF-AUTHORITY")
def test_registered_orchestrator_acts_in_its_role(hub: AofHub) -> None:
    hub.do(PERSON, RegisterAgent("boss", "orchestrator", ("aof",)))
    from_boss = {"fromAgent": "boss", "taskId": PARENT}
    payload = {"taskId": PARENT, "agentId": "boss", "status": "blocked", "notes": "Stop"}

    hub.accept(report() | from_boss | {"type": "status.update", "payload": payload})

    assert hub.task().status == "blocked"
    assert hub.lab.store.entries(0, 99)[-1].stream == f"task:{PARENT}"


@proves("AOF-SESSION-END")
def test_expired_attempt_does_not_block_the_others_of_its_session(hub: AofHub) -> None:
    hub.create_held(OTHER, BACKEND, session="s-backend")
    hub.lab.clock.advance(200_000)
    hub.accept(report())
    hub.lab.clock.advance(200_000)

    for _ in range(2):
        assert isinstance(hub.end_session("s-backend", BACKEND), Accepted)
        assert (hub.task(PARENT).status, hub.task(OTHER).status) == ("review", "in-progress")


@proves("AOF-SESSION-END", "ROLE-HOLDER")
def test_coordinator_ends_its_own_attempts_only(hub: AofHub) -> None:
    hub.accept(report())
    coordinator = Actor("coordinator", "cora", "test")

    answer = hub.end_session("s-backend", coordinator)

    assert isinstance(answer, Accepted)
    assert answer.reply["tasks"] == []
    assert hub.task(PARENT).status == "in-progress"


@proves("AOF-WARNINGS")
def test_missing_file_with_a_long_name_is_only_a_warning(hub: AofHub) -> None:
    ref = "a/" * 1_985 + "b"

    answer = hub.accept(report(summaryRef=ref))

    assert len(answer.warnings[0]) < 400
    assert answer.warnings[0].startswith("there is no file a/a/")
    reported = hub.task(PARENT).reported
    assert reported is not None
    assert reported.details["summaryRef"] == ref
