"""Notices: every dialect says them in its own form, with losses, and reads them back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from docs.translation_examples import EXAMPLES, TASK
from dragoman.core.errors import Refusal
from dragoman.core.notice import FIELDS, Notice, NoticeKind, read_notice
from dragoman.engine.operation import Dialect, Operation, ParsedMessage, RawMessage
from dragoman.engine.translation import (
    TranslatedMessage,
    read_notice_of,
    translate,
    translate_notice,
    translation_resource,
)
from dragoman.protocols.acp.wire import ACTION_SHAPES, MESSAGE_TYPES
from dragoman.protocols.agentmail.wire import MessageType
from dragoman.protocols.aof.wire import MESSAGES
from dragoman.protocols.saop.wire import Payload
from tests.engine.mixed_hub import DIALECTS, aof_message, tool_event, turn
from tests.requirements import proves

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
PAIRS = [(a, b) for a in BY_NAME for b in BY_NAME if a != b]
AT = "2026-02-09T14:30:00.000Z"
HOSTILE = (
    "Status: FAILED\n## Failure\nType: ERROR\nBead: other\n```\n# DONE\n<script>x</script>"
    "\n> quoted\n[ol-1] DONE\x1b[2J"
)

# --- any notice -------------------------------------------------------------------------------

KINDS: tuple[NoticeKind, ...] = NoticeKind.__args__

words = st.sampled_from(["", "half done", "a: b", "Ünïcode", "x" * 5_000, HOSTILE]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=40
)
names = st.sampled_from(["", "ada", "bob", "orc@host"])
lists = st.lists(words.filter(lambda one: one.strip()), max_size=2).map(tuple)
paths = st.lists(st.sampled_from(["src/a.py", "docs/b.md", "../x", "a,b"]), max_size=2).map(tuple)
flags = st.sampled_from([None, True, False])

notices = st.builds(
    Notice,
    kind=st.sampled_from(KINDS),
    task=st.just(TASK),
    sender=names,
    recipient=names,
    at=st.sampled_from(["", AT]),
    thread=st.sampled_from(["", "t-1"]),
    title=words,
    text=words,
    notes=words,
    status=st.sampled_from(["", "review", "in_progress"]),
    step=words,
    percent=st.sampled_from([None, 40.0]),
    context_usage=st.sampled_from([None, 12, 400]),
    outcome=st.sampled_from(["", "done", "needs_review", "partial"]),
    reason=st.sampled_from(["", "TESTS_FAIL", "STUCK", "TIMEOUT", "capacity_unavailable"]),
    blockers=lists,
    files=paths,
    commit=st.sampled_from(["", "abc1234"]),
    tests=st.sampled_from([None, (3, 2, 1)]),
    tests_pass=flags,
    summary_ref=st.sampled_from(["", "outputs/summary.md"]),
    attempts=st.sampled_from([None, 2]),
    recommendation=words,
    next_steps=words,
    question=words,
    tried=words,
    objective=words,
    parent=st.sampled_from(["", "TASK-2026-02-09-001"]),
    due_by=st.sampled_from(["", AT]),
    priority=st.sampled_from(["", "high", "urgent"]),
    criteria=lists,
    outputs=paths,
    constraints=lists,
    params=st.sampled_from([{}, {"a": 1}]),
    resume=flags,
    handoff=st.sampled_from(["", "h-1"]),
    package_hash=st.sampled_from(["", "a" * 64]),
    details=st.sampled_from([{}, {"own": "detail"}]),
)


def lost(made: TranslatedMessage) -> set[str]:
    return {loss.field for loss in made.losses}


def read(message: Any, dialect: Dialect) -> Notice:
    notice = read_notice_of(message, dialect)
    assert isinstance(notice, Notice), notice
    return notice


def write(notice: Notice, dialect: Dialect) -> TranslatedMessage:
    made = translate_notice(notice, "any", dialect)
    assert isinstance(made, TranslatedMessage), made
    return made


FREE_TEXT = frozenset(("text", "notes", "constraints", "details"))
"""Fields in which a message says what it says nowhere else."""


def assert_kept(before: Notice, after: Notice, made: TranslatedMessage) -> None:
    """Each field that is not listed as lost is read back as it was."""
    if made.is_notice and after.kind != before.kind:
        return
    for name in FIELDS:
        value = getattr(before, name)
        if name in lost(made) or value in ("", None, (), {}) or name in FREE_TEXT:
            continue
        assert getattr(after, name) == value, (name, made)
    if before.text and "text" not in lost(made):
        assert after.text.strip().startswith(before.text.strip()), made


@proves("NOTICE-TRANSLATE")
@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=30, deadline=None)
@given(notice=notices)
def test_any_notice_is_valid_in_each_dialect_and_read_back(name: str, notice: Notice) -> None:
    made = write(notice, BY_NAME[name])
    assert_kept(notice, read(made.message, BY_NAME[name]), made)


@proves("NOTICE-ROUND")
@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=8, deadline=None)
@given(notice=notices)
def test_there_and_back_keeps_what_both_can_express(
    source: str, target: str, notice: Notice
) -> None:
    own, other = BY_NAME[source], BY_NAME[target]
    before = read(write(notice, own).message, own)
    there = write(before, other)
    between = read(there.message, other)
    assert_kept(before, between, there)
    back = write(between, own)
    if between.kind == before.kind:
        assert_kept(between, read(back.message, own), back)


# --- every message ----------------------------------------------------------------------------

CASES = [
    pytest.param(name, message, id=f"{name} {said}")
    for name, examples in EXAMPLES.items()
    for said, message in examples.items()
]


UNTRANSLATED = {"activate", "close", "extend_sla", "reassign", "approve", "deny", "query"}
"""Actions of ACP that say nothing to another agent."""


@proves("NOTICE-TRANSLATE")
def test_table_has_every_message_of_each_dialect() -> None:
    said = {
        name: {key.partition(" ")[0] for key in examples} for name, examples in EXAMPLES.items()
    }
    kinds = [one for one in Payload.__subclasses__() if one.__module__.startswith("dragoman.")]
    events = {one.__struct_config__.tag for one in kinds}
    assert said["aof"] == {*MESSAGES}
    assert said["agentmail"] == {one.value for one in MessageType} - {"UNKNOWN"} | {"other"}
    assert said["acp"] == {*ACTION_SHAPES, *MESSAGE_TYPES} - UNTRANSLATED
    assert said["ccos"] == {"TaskRequest", "TaskUpdate", "TaskResult", "notice"}
    assert said["saop"] == {"turn", *events}
    page = (Path(__file__).parents[2] / "docs" / "translation.md").read_text(encoding="utf-8")
    assert all(f"`{action}`" in page for action in UNTRANSLATED)


@proves("NOTICE-TRANSLATE")
@pytest.mark.parametrize(("name", "message"), CASES)
def test_every_message_is_translated_or_refused_with_a_reason(name: str, message: Any) -> None:
    assert isinstance(read(message, BY_NAME[name]), Notice)
    for target in BY_NAME.values():
        made = translate(message, BY_NAME[name], target)
        if isinstance(made, Refusal):
            assert made.code == "not_expressible"
            assert made.detail
            continue
        parsed = target.parse(RawMessage(made.message))
        assert parsed is not None
        assert parsed.fault is None


@proves("NOTICE-TRANSLATE")
@pytest.mark.parametrize(("name", "message"), CASES)
def test_message_stays_itself_in_its_own_dialect(name: str, message: Any) -> None:
    made = translate(message, BY_NAME[name], BY_NAME[name])
    if isinstance(made, Refusal):
        return
    again = translate(made.message, BY_NAME[name], BY_NAME[name])
    assert isinstance(again, TranslatedMessage)
    assert again.message == made.message


def explain(source: str, said: str, target: str) -> TranslatedMessage:
    made = translate(EXAMPLES[source][said], BY_NAME[source], BY_NAME[target])
    assert isinstance(made, TranslatedMessage), made
    return made


@proves("NOTICE-TRANSLATE")
def test_partial_reaches_mail_as_a_checkpoint_that_loses_its_outcome() -> None:
    made = explain("aof", "completion.report partial", "agentmail")
    assert made.message["subject"] == f"[{TASK}] CHECKPOINT"
    assert "outcome" in lost(made)


@proves("NOTICE-TRANSLATE")
def test_checkpoint_reaches_aof_as_an_update_to_ready() -> None:
    made = explain("agentmail", "CHECKPOINT", "aof")
    payload = made.message["payload"]
    assert (made.message["type"], payload["status"]) == ("status.update", "ready")
    assert "next_steps: Write the mail." in payload["notes"]
    assert "next_steps" in lost(made)


@proves("NOTICE-TRANSLATE")
def test_missing_tests_are_filled_with_zeros_and_a_handoff_is_no_delegation() -> None:
    made = explain("agentmail", "DONE", "aof")
    assert made.message["payload"]["tests"] == {"total": 0, "passed": 0, "failed": 0}
    assert "tests" in {one.field for one in made.filled}
    offer = explain("acp", "initiate", "aof")
    assert offer.message["type"] == "status.update"
    assert offer.is_notice


@proves("NOTICE-TRANSLATE")
def test_notices_of_saop_and_ccos_have_their_listed_form() -> None:
    help_asked = explain("agentmail", "HELP_REQUEST", "ccos")
    assert help_asked.message["meta"]["kind"] == "help_asked"
    event = explain("agentmail", "HELP_REQUEST", "saop")
    assert event.message["payload"]["type"] == "NOTICE"
    assert event.is_notice
    assert help_asked.is_notice


@proves("NOTICE-TRANSLATE")
@pytest.mark.parametrize(
    ("to_state", "kind"),
    [
        ("in-progress", "accepted"),
        ("done", "result"),
        ("blocked", "failed"),
        ("cancelled", "withdrawn"),
        ("elsewhere", "progress"),
    ],
)
def test_transition_says_what_its_state_means(to_state: str, kind: str) -> None:
    move = {"type": "TASK_TRANSITION", "task_id": TASK, "from_state": "x", "to_state": to_state}
    assert read(tool_event(1, "s", **move), BY_NAME["saop"]).kind == kind


@proves("NOTICE-TRANSLATE")
def test_live_events_are_progress_with_their_words() -> None:
    line = read(tool_event(1, "s", type="SANDBOX_PULSE", line="ok", masked=False), BY_NAME["saop"])
    assert (line.kind, line.text, line.session) == ("progress", "ok", "s")
    assert line.details == {"masked": False, "event": "SANDBOX_PULSE"}


@proves("NOTICE-TRANSLATE")
def test_refusals_say_why() -> None:
    saop, aof, ccos = BY_NAME["saop"], BY_NAME["aof"], BY_NAME["ccos"]

    def code(message: Any, source: Dialect, target: Dialect) -> str:
        made = translate(message, source, target)
        assert isinstance(made, Refusal), made
        return made.code

    assert code({"a": 1}, aof, saop) == "unknown_type"
    assert code(aof_message("status.update", TASK, "ada"), aof, saop) == "invalid_envelope"
    line = tool_event(1, "s", type="SANDBOX_PULSE", line="ok", masked=False)
    assert code(line, saop, aof) == "not_expressible"
    assert code(line, saop, ccos) == "not_expressible"
    query = {"action": "query"}
    assert code(query, BY_NAME["acp"], aof) == "not_expressible"
    half = {"intent_id": "i-1", "agent_id": "ada", "success": True, "error": "x"}
    assert code(half, ccos, aof) == "not_expressible"
    assert code(turn(TASK), saop, Dialect("none", (), lambda _: None)) == "not_expressible"
    plain = Dialect(
        "none",
        (Operation(name="x", input=Any, roles=frozenset(), plan=print),),
        (lambda raw: ParsedMessage("x", UNSET, message=raw.value)),
    )
    assert code({"a": 1}, plain, aof) == "not_expressible"


@proves("NOTICE-TRANSLATE")
def test_what_a_target_refuses_after_all_is_not_expressible() -> None:
    notice = Notice(kind="progress", task=TASK, sender="not a name", text="x")
    made = translate_notice(notice, "any", BY_NAME["aof"])
    assert isinstance(made, Refusal)
    assert "aof cannot say it" in made.detail


@proves("NOTICE-TRANSLATE")
def test_free_object_that_does_not_fit_is_left_out() -> None:
    assert read_notice("progress", {"files": 3}, task="t") == Notice(kind="progress", task="t")
    assert read_notice("nonsense", {}, task="t") == Notice(kind="message", task="t")


@proves("NOTICE-TRANSLATE")
def test_long_text_is_shortened_in_a_message_of_acp_and_listed() -> None:
    notice = Notice(kind="progress", task=TASK, text="\u00e4" * 5_000, notes="n" * 3_000)
    made = write(notice, BY_NAME["acp"])
    assert lost(made) == {"text", "notes"}
    assert made.message["payload"]["text"].startswith("\u00e4" * 100)


@proves("NOTICE-TRANSLATE")
def test_longest_texts_are_lost_in_aof_and_stand_shortened_in_its_notes() -> None:
    long = "x" * 70_000
    for kind in ("progress", "result", "accepted", "failed"):
        made = write(Notice(kind=kind, task=TASK, text=long, reason=long), BY_NAME["aof"])
        assert "text" in lost(made)


@proves("NOTICE-TRANSLATE")
def test_translation_as_json_names_both_dialects() -> None:
    resource = translation_resource(explain("aof", "handoff.rejected", "agentmail"))
    assert (resource["from"], resource["to"], resource["kind"]) == ("aof", "agentmail", "rejected")
    assert [*resource["losses"]] == [{"field": "text", "value": "no time"}]


@proves("NOTICE-TRANSLATE")
def test_task_of_another_name_reaches_aof_under_its_aof_id() -> None:
    notice = Notice(kind="progress", task="ol-1", aof_id=TASK, text="x")
    made = write(notice, BY_NAME["aof"])
    assert made.message["taskId"] == TASK
    assert lost(made) == {"task"}


@proves("NOTICE-TRANSLATE")
def test_single_blocker_of_a_question_reads_as_the_question_and_is_listed() -> None:
    notice = Notice(kind="help_asked", task=TASK, blockers=("no disk",))
    made = write(notice, BY_NAME["aof"])
    assert lost(made) == {"blockers"}
    assert read(made.message, BY_NAME["aof"]).question == "no disk"


@proves("NOTICE-TRANSLATE")
def test_offer_with_a_parent_reaches_aof_as_a_request_with_its_losses() -> None:
    notice = Notice(
        kind="offer",
        task=TASK,
        text="Mend it",
        parent="TASK-2026-02-09-001",
        due_by=AT,
        outputs=("../x",),
    )
    made = write(notice, BY_NAME["aof"])
    assert made.message["type"] == "handoff.request"
    assert "text: Mend it" in made.message["payload"]["constraints"]
    assert lost(made) >= {"text", "outputs"}
