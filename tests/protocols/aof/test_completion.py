"""Completion: four outcomes, when they take effect, warnings, tools and the end of a session."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import MoveTask, RegisterAgent
from dragoman.engine.plan import Taken, Turned
from tests.protocols.aof.scene import (
    BACKEND,
    BOSS,
    CHILD,
    PARENT,
    PERSON,
    QA,
    UNKNOWN,
    Scene,
    report,
    update,
)
from tests.requirements import proves

OTHER = "TASK-2026-02-09-058"

WAYS = [
    ("done", True, ["review"]),
    ("done", False, ["review", "done"]),
    ("blocked", True, ["blocked"]),
    ("needs_review", True, ["review"]),
    ("needs_review", False, ["review"]),
    ("partial", True, ["review"]),
    ("partial", False, ["review"]),
]


def moves(scene: Scene, after: int) -> list[tuple[str, str]]:
    """(from, to) of every transition that was logged after a position."""
    payloads = [ln["payload"] for ln in scene.lines(after) if ln["type"] == "task.transitioned"]
    return [(payload["from"], payload["to"]) for payload in payloads]


@proves("AOF-COMPLETION", "AOF-SESSION-END")
@pytest.mark.parametrize(("outcome", "review", "way"), WAYS)
def test_a_report_waits_for_the_end_of_its_session(
    scene: Scene, outcome: str, review: bool, way: list[str]
) -> None:
    scene.held(OTHER, BACKEND, session="s-1", review_required=review)
    before = scene.size()

    answer = scene.taken(report(outcome) | {"taskId": OTHER})

    assert answer.reply["status"] == "in-progress"
    assert moves(scene, before) == []
    assert "task.completed" in scene.types(before)

    assert isinstance(scene.end("s-1", BACKEND), Taken)
    assert moves(scene, before) == list(zip(["in-progress", *way], way, strict=False))
    assert scene.task(OTHER).status == way[-1]


@proves("AOF-COMPLETION")
@pytest.mark.parametrize(("outcome", "review", "way"), WAYS)
def test_a_report_takes_effect_at_once_where_that_is_set(
    outcome: str, review: bool, way: list[str]
) -> None:
    scene = Scene(at_once=True)
    scene.held(OTHER, BACKEND, review_required=review)
    before = scene.size()

    scene.taken(report(outcome) | {"taskId": OTHER})

    assert moves(scene, before) == list(zip(["in-progress", *way], way, strict=False))
    types = scene.types(before)
    assert types.index("task.completed") < types.index("task.transitioned")


@proves("AOF-COMPLETION")
def test_what_the_report_says_is_kept_with_its_attempt(scene: Scene) -> None:
    scene.taken(report("blocked", blockers=["Awaiting API key", "No database"]))

    reported = scene.task().reported
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
def test_the_latest_report_counts(scene: Scene) -> None:
    scene.taken(report("partial"))
    scene.taken(report("blocked"))
    scene.end()

    assert scene.task().status == "blocked"


@proves("AOF-REASONS", "AOF-REPEAT")
@pytest.mark.parametrize("sent_at", ["2026-02-09T21:00:00.000Z", "2026-02-09T23:00:00.000Z"])
def test_a_report_about_a_task_that_is_done_changes_nothing(scene: Scene, sent_at: str) -> None:
    scene.do_done()
    before = scene.task()

    assert scene.code(report() | {"sentAt": sent_at}) == ""

    assert scene.task() == before
    assert "task.completed" not in scene.types(scene.size() - 1)


@proves("AOF-REASONS")
def test_a_report_about_no_task_is_refused(scene: Scene) -> None:
    before = scene.size()
    assert scene.code(report() | {"taskId": UNKNOWN}) == "task_not_found"
    (line,) = scene.lines(before)
    assert (line["type"], line["taskId"]) == ("protocol.message.rejected", UNKNOWN)
    assert line["payload"]["reason"] == "task_not_found"


@proves("AOF-AUTHORITY")
def test_a_report_comes_from_the_holder(scene: Scene) -> None:
    assert scene.code(report() | {"fromAgent": "swe-qa"}) == "unauthorized_agent"
    assert scene.code(report() | {"taskId": CHILD}) == "unassigned_task"


@proves("AOF-AUTHORITY")
def test_an_old_attempt_is_told_that_its_lease_is_lost(scene: Scene) -> None:
    scene.lab.clock.advance(400_000)
    assert scene.code(report()) == "lease_lost"


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
def test_a_missing_file_is_a_warning_and_no_obstacle(
    scene: Scene, fields: dict[str, Any], files: list[str], warned: list[str]
) -> None:
    scene.files = {(PARENT, ref) for ref in files}
    before = scene.size()

    answer = scene.taken(report(**fields))

    assert len(answer.warnings) == len(warned)
    lines = [ln for ln in scene.lines(before) if ln["type"] == "protocol.message.warning"]
    assert [line["payload"]["reason"] for line in lines] == warned
    scene.end()
    assert scene.task().status == "review"


@proves("AOF-WARNINGS")
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_nor_is_it_one_for_the_credential_of_the_attempt_that_the_report_ends(
    outcome: str, at_once: bool
) -> None:
    scene = Scene(at_once=at_once)
    scene.files.clear()
    if not at_once:
        scene.do(PERSON, MoveTask(PARENT, "ready"))
        scene.claim(PARENT, BACKEND)  # without the name of a session: its report ends it
    speaker, before = scene.of_the_attempt(), scene.size()

    answer = scene.taken(report(outcome), speaker)

    assert len(answer.warnings) == 1
    assert scene.task().status == ("blocked" if outcome == "blocked" else "review")
    assert scene.types(before)[-1] == "protocol.message.warning"
    assert scene.taken(report(outcome), speaker).repeated


@proves("AOF-WARNINGS", "AOF-TOOLS")
def test_nor_for_its_tool() -> None:
    scene = Scene(at_once=True)
    scene.files.clear()
    payload = {"taskId": PARENT, **report()["payload"]}
    answer = scene.call("aof_task_complete", payload, scene.of_the_attempt())
    assert isinstance(answer, Taken)
    assert len(answer.warnings) == 1
    assert scene.task().status == "review"


@proves("AOF-WARNINGS", "AOF-REPEAT")
def test_a_repeat_after_the_file_was_written_is_still_a_repeat(scene: Scene) -> None:
    scene.files.clear()
    scene.taken(report())
    before = scene.size()
    scene.files = {(PARENT, "outputs/summary.md")}

    assert scene.taken(report()).repeated
    assert scene.size() == before


@proves("AOF-WARNINGS", "AOF-REPEAT", "IDEM-REPEAT")
def test_a_repeat_warns_as_the_first_time_did_and_of_nothing_new(scene: Scene) -> None:
    scene.files.clear()
    first = scene.taken(report())
    scene.files.add((PARENT, "outputs/summary.md"))
    there = scene.taken(report())
    scene.end()
    over = scene.taken(report())

    assert first.warnings
    assert [(one.repeated, one.warnings, one.reply) for one in (there, over)] == [
        (True, first.warnings, first.reply)
    ] * 2
    other = report(notes="now with its summary") | {"sentAt": "2026-02-09T22:00:00.000Z"}
    assert scene.taken(other).warnings == ()


@proves("AOF-WARNINGS")
def test_nothing_is_missed_when_the_work_is_done(scene: Scene) -> None:
    scene.do_done()
    scene.files.clear()
    before = scene.task()

    scene.taken(report() | {"sentAt": "2026-02-09T23:00:00Z"})
    assert scene.task() == before


# Tools


def tool(message: dict[str, Any]) -> dict[str, Any]:
    """The arguments that say what a message says."""
    return message["payload"] | {"taskId": message["taskId"]}


@proves("AOF-TOOLS")
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_the_tool_completes_as_the_message_does(outcome: str) -> None:
    by_message, by_tool = Scene(), Scene()
    for scene in (by_message, by_tool):
        scene.files.clear()
    by_message.taken(report(outcome))
    answer = by_tool.call("aof_task_complete", tool(report(outcome)), BACKEND)

    assert isinstance(answer, Taken)
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
        (tool(report()) | {"taskId": "nope"}, "invalid_envelope", "taskId"),
        (tool(report("blocked", blockers=[])), "invalid_envelope", "blockers"),
        (tool(report(summaryRef="../x")), "invalid_envelope", "summaryRef"),
        (tool(report()) | {"taskId": UNKNOWN}, "task_not_found", ""),
        (tool(report()) | {"taskId": CHILD}, "unassigned_task", ""),
        (tool(report(agentId="eve")) | {"taskId": UNKNOWN}, "task_not_found", ""),
        (tool(report(agentId="eve")), "identity_mismatch", "agentId"),
        (tool(report(fromAgent="eve")), "identity_mismatch", "fromAgent"),
        ("[1]", "invalid_envelope", ""),
        ("{", "invalid_json", ""),
        ('{"a":1,"a":1}', "invalid_json", "a"),
        ('"' + "x" * 262_144 + '"', "message_too_large", ""),
    ],
)
def test_the_tool_says_what_is_wrong(scene: Scene, arguments: Any, code: str, path: str) -> None:
    before = scene.size()
    answer = scene.call("aof_task_complete", arguments, BACKEND)

    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == (code, path)
    assert scene.size() == before + 1
    assert scene.task().reported is None


@proves("AOF-SESSION-END", "AOF-TOOLS")
@pytest.mark.parametrize(
    ("operation", "arguments", "path"),
    [
        ("session_end", {"session": "s-other"}, "session"),
        ("session_end", {"sessionid": "s-other"}, "sessionid"),
        ("aof_task_update", {"taskId": PARENT, "statsu": "blocked", "notes": "x"}, "statsu"),
        ("aof_task_complete", tool(report()) | {"blokers": "none"}, "blokers"),
    ],
)
def test_a_call_with_a_mistyped_field_is_refused_and_ends_nobody_s_session(
    scene: Scene, operation: str, arguments: dict[str, Any], path: str
) -> None:
    scene.taken(report())
    before = scene.task()
    answer = scene.call(operation, arguments, PERSON if operation == "session_end" else BACKEND)

    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("invalid_envelope", path)
    assert "did you mean" in answer.detail
    assert scene.task() == before


@proves("AOF-SESSION-END")
@pytest.mark.parametrize("is_tool", [False, True])
def test_a_session_that_has_no_name_ends_with_its_report(scene: Scene, is_tool: bool) -> None:
    scene.held(OTHER, BACKEND)
    said = report() | {"taskId": OTHER}
    if is_tool:
        scene.call("aof_task_complete", tool(said) | {"taskId": OTHER}, BACKEND)
    else:
        scene.taken(said)
    assert scene.task(OTHER).status == "review"


@proves("AOF-TOOLS")
def test_a_message_keeps_fields_that_nobody_knows(scene: Scene) -> None:
    assert isinstance(scene.call("status.update", update(mood="good", notes="x"), BACKEND), Taken)
    scene.taken(report(mood="good"))


@proves("AOF-TOOLS")
def test_an_update_by_the_tool_is_one_by_the_message(scene: Scene) -> None:
    answer = scene.call("aof_task_update", {"taskId": PARENT, "progress": "Half"}, BACKEND)
    assert isinstance(answer, Taken)
    assert answer.reply == {"taskId": PARENT, "status": "in-progress"}
    assert scene.task().notes == 1

    blocked = {"taskId": PARENT, "status": "blocked", "blockers": ["No key"]}
    scene.call("aof_task_update", blocked, BACKEND)
    assert scene.task().status == "blocked"
    assert scene.lines()[-1]["payload"]["reason"] == "No key"


@proves("AOF-TOOLS", "AOF-REPEAT")
def test_two_equal_calls_are_two_calls_unless_they_have_a_key(scene: Scene) -> None:
    arguments = {"taskId": PARENT, "progress": "Half"}
    for _ in range(2):
        scene.call("aof_task_update", arguments, BACKEND)
    for _ in range(2):
        scene.door.call("aof_task_update", arguments, BACKEND, key="k-1")

    assert scene.task().notes == 3


@proves("AOF-TOOLS", "AOF-REPEAT")
def test_a_message_may_be_called_by_its_type(scene: Scene) -> None:
    answer = scene.call("completion.report", report(), BACKEND)
    assert isinstance(answer, Taken)
    assert scene.taken(report()).repeated

    assert isinstance(scene.call("status.update", report(), BACKEND), Turned)
    bare = scene.call("completion.report", {"taskId": PARENT}, BACKEND)
    assert isinstance(bare, Turned)
    assert (bare.code, bare.path) == ("invalid_envelope", "protocol")


# The end of a session


@proves("AOF-SESSION-END")
def test_it_touches_only_the_attempts_of_its_session(scene: Scene) -> None:
    scene.held(OTHER, BACKEND, session="s-other")
    for task in (PARENT, OTHER):
        scene.taken(report() | {"taskId": task})

    answer = scene.end("s-backend", BACKEND)

    assert isinstance(answer, Taken)
    assert answer.reply == {
        "sessionId": "s-backend",
        "tasks": [{"taskId": PARENT, "status": "review"}],
    }
    assert scene.task(OTHER).status == "in-progress"


@proves("AOF-SESSION-END")
def test_an_attempt_without_a_report_stays(scene: Scene) -> None:
    answer = scene.end("s-backend", BACKEND)

    assert isinstance(answer, Taken)
    assert answer.reply["tasks"] == [{"taskId": PARENT, "status": "in-progress"}]


@proves("AOF-SESSION-END")
def test_an_agent_ends_its_own_stay_only(scene: Scene) -> None:
    scene.held(OTHER, QA, session="s-backend")
    scene.taken(report())
    scene.taken(report() | {"taskId": OTHER, "fromAgent": "swe-qa"})

    scene.end("s-backend", QA)

    assert scene.task(OTHER).status == "review"
    assert scene.task(PARENT).status == "in-progress"


@proves("AOF-SESSION-END")
@pytest.mark.parametrize("actor", [PERSON, BOSS])
def test_without_a_name_all_that_have_reported_end(scene: Scene, actor: Actor) -> None:
    scene.held(OTHER, QA, session="s-qa")
    silent = "TASK-2026-02-09-070"
    scene.held(silent, QA, session="s-qa")
    scene.taken(report())
    scene.taken(report("blocked") | {"taskId": OTHER, "fromAgent": "swe-qa"})

    answer = scene.end("", actor)

    assert isinstance(answer, Taken)
    ended = {task["taskId"]: task["status"] for task in answer.reply["tasks"]}
    assert ended == {PARENT: "review", OTHER: "blocked"}
    assert scene.task(silent).status == "in-progress"


@proves("AOF-SESSION-END", "AOF-AUTHORITY")
def test_without_a_name_no_agent_may(scene: Scene) -> None:
    answer = scene.end("", BACKEND)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("unauthorized_agent", "sessionId")


@proves("AOF-SESSION-END")
def test_a_session_that_nobody_has_ends_nothing(scene: Scene) -> None:
    before = scene.size()
    answer = scene.end("s-nobody", BACKEND)

    assert isinstance(answer, Taken)
    assert answer.reply == {"sessionId": "s-nobody", "tasks": []}
    assert scene.size() == before


@proves("AOF-SESSION-END")
def test_the_name_of_a_session_follows_its_grammar(scene: Scene) -> None:
    answer = scene.end("a b", PERSON)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("invalid_envelope", "sessionId")


@proves("AOF-SESSION-END")
def test_an_empty_name_is_not_everybody(scene: Scene) -> None:
    scene.taken(report())

    answer = scene.call("session_end", {"sessionId": ""}, PERSON)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("invalid_envelope", "sessionId")
    assert scene.task(PARENT).status == "in-progress"

    assert isinstance(scene.call("session_end", {}, PERSON), Taken)
    assert scene.task(PARENT).status == "review"


@proves("AOF-SESSION-END")
def test_the_token_of_an_attempt_ends_that_one_and_leaves_the_others_of_its_session() -> None:
    scene, other = Scene(), "TASK-2026-02-09-077"
    scene.held(other, BACKEND, session="s-backend")
    scene.taken(report())
    scene.taken(report() | {"taskId": other})
    answer = scene.end("s-backend", scene.of_the_attempt())
    assert isinstance(answer, Taken), answer
    assert answer.reply["tasks"] == [{"taskId": PARENT, "status": "review"}]
    assert scene.task(other).status == "in-progress"


@proves("AOF-SESSION-END")
def test_it_is_done_for_a_task_by_its_aof_id(scene: Scene) -> None:
    scene.held("ol-527.1", BACKEND, session="s-bead")
    own = scene.task("ol-527.1").aof_id
    scene.taken(report() | {"taskId": own})

    answer = scene.end("s-bead", BACKEND)

    assert isinstance(answer, Taken)
    assert answer.reply["tasks"] == [{"taskId": own, "status": "review"}]


@proves("AOF-AUTHORITY")
def test_a_registered_orchestrator_speaks_in_its_role(scene: Scene) -> None:
    scene.do(PERSON, RegisterAgent("boss", "orchestrator", ("aof",)))
    from_boss = {"fromAgent": "boss", "taskId": PARENT}
    payload = {"taskId": PARENT, "agentId": "boss", "status": "blocked", "notes": "Stop"}

    scene.taken(report() | from_boss | {"type": "status.update", "payload": payload})

    assert scene.task().status == "blocked"
    assert scene.lab.store.entries(0, 99)[-1].stream == f"task:{PARENT}"


@proves("AOF-SESSION-END")
def test_a_lease_that_has_ended_does_not_keep_the_rest_of_its_session(scene: Scene) -> None:
    scene.held(OTHER, BACKEND, session="s-backend")
    scene.lab.clock.advance(200_000)
    scene.taken(report())
    scene.lab.clock.advance(200_000)

    for _ in range(2):
        assert isinstance(scene.end("s-backend", BACKEND), Taken)
        assert (scene.task(PARENT).status, scene.task(OTHER).status) == ("review", "in-progress")


@proves("AOF-SESSION-END", "ROLE-HOLDER")
def test_a_coordinator_ends_its_own_stay_only(scene: Scene) -> None:
    scene.taken(report())
    coordinator = Actor("coordinator", "cora", "test")

    answer = scene.end("s-backend", coordinator)

    assert isinstance(answer, Taken)
    assert answer.reply["tasks"] == []
    assert scene.task(PARENT).status == "in-progress"


@proves("AOF-WARNINGS")
def test_a_missing_file_with_a_long_name_warns_like_any_other(scene: Scene) -> None:
    ref = "a/" * 1_985 + "b"

    answer = scene.taken(report(summaryRef=ref))

    assert len(answer.warnings[0]) < 400
    assert answer.warnings[0].startswith("there is no file a/a/")
    reported = scene.task(PARENT).reported
    assert reported is not None
    assert reported.details["summaryRef"] == ref
