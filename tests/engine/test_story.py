"""The story of a task: all its streams, in the order of the ledger."""

from functools import partial
from typing import Any

import msgspec
import pytest

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.errors import Refusal
from dragoman.core.mail import AckMail, PostMail
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, NoteTask
from dragoman.core.trace import RecordTrace, RecordTurn
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem
from dragoman.engine.queries import story as module
from dragoman.engine.queries.story import (
    Story,
    StoryItem,
    read_story,
    task_of_entry,
    whole_story,
)
from dragoman.engine.queries.visibility import find_reader
from dragoman.engine.schemas.story import story_page
from dragoman.protocols import aof
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, START, Lab
from tests.engine.mixed_hub import DIALECTS, MixedHub, aof_message, tool_event, turn
from tests.requirements import proves


def tell(lab: Lab, name: str = "t1", **more: Any) -> Story:
    found = read_story(lab.store, name, DIALECTS, **more)
    assert isinstance(found, Story), found
    return found


def one(story: Story, type: str) -> StoryItem:
    (found,) = (item for item in story.items if item.type == type)
    return found


@pytest.fixture
def mixed() -> MixedHub:
    """A task that was delegated as an intent, worked on in AOF, SAOP and mail, and handed over."""
    hub = MixedHub()
    hub.register("alice", "aof", saop="developer")
    hub.register("bob", "agentmail")
    hub.call("ccos.register", ALICE, agent_id="alice", skills=["python"])
    hub.call("ccos.delegate", HUMAN, goal="Write python tests", intent_id="t1")
    hub.do(ALICE, ClaimTask("t1", "alice", session="s-1"))
    hub.clock.advance(1_000)
    aof_id = hub.task("t1").aof_id
    hub.send(aof_message("status.update", aof_id, "alice", agentId="alice", progress="half"))
    hub.send(turn("t1"), ALICE)
    call = {"call_id": "c", "tool": "pytest"}
    hub.send(tool_event(1, "s-1", type="TOOL_LIFECYCLE_INVOKED", arguments={"q": 1}, **call), ALICE)
    ended = {"status": "success", "duration_ms": 40.4}
    hub.send(tool_event(2, "s-1", type="TOOL_LIFECYCLE_COMPLETED", **call, **ended), ALICE)
    letter = {
        "subject": "[t1] HELP_REQUEST",
        "body_md": "Status: BLOCKED\nRe login",
        "to": ["bob"],
        "from": "alice",
    }
    hub.send(letter, ALICE)
    hub.clock.advance(2_000)
    return hub


@proves("STORY-ORDER")
def test_story_has_all_streams_in_the_order_of_the_ledger(mixed: MixedHub) -> None:
    story = tell(mixed)

    positions = [item.position for item in story.items]
    assert positions == sorted(positions)
    assert {item.stream.partition(":")[0] for item in story.items} == {
        "task",
        "intent",
        "turns",
        "trace",
        "mail",
    }
    assert {item.kind for item in story.items} >= {
        "task",
        "attempt",
        "intent",
        "turn",
        "tool",
        "letter",
        "question",
    }
    assert story.next is None


@proves("STORY-ORDER")
def test_item_has_dialect_words_cause_duration_and_the_original(mixed: MixedHub) -> None:
    story = tell(mixed)

    progress = one(story, "task.progressed")
    assert (progress.dialect, progress.text, progress.attempt) == ("aof", "half", 1)
    assert b'"status.update"' in bytes(progress.original)  # type: ignore[arg-type]
    assert progress.actor == "agent:alice"
    recorded = one(story, "turn.recorded")
    assert recorded.dialect == "saop"
    assert recorded.text.startswith("thought: I look at the test.")
    assert one(story, "mail.posted").dialect == "agentmail"
    assert one(story, "question.asked").cause == one(story, "mail.posted").cause
    assert one(story, "intent.created").dialect == "ccos"
    assert one(story, "task.claimed").dialect == ""
    calls = [item for item in story.items if item.kind == "tool"]
    assert [item.duration_ms for item in calls] == [None, 40]
    assert calls[0].text == '{"q":1}'
    assert one(story, "task.created").status == "backlog"
    assert one(story, "task.claimed").status == "in-progress"


@proves("STORY-ORDER")
def test_durations_count_from_what_began(mixed: MixedHub) -> None:
    mixed.do(HUMAN, AnswerQuestion("t1", "yes"))
    asked_to_answered = one(tell(mixed), "question.answered").duration_ms
    assert asked_to_answered == 2_000
    mixed.do(ALICE, ReportOutcome("t1", "done", "all of it", apply=True))
    assert one(tell(mixed), "task.reported").duration_ms == 3_000
    completed = one(tell(mixed), "intent.completed")
    assert (completed.duration_ms, completed.text) == (3_000, '{"notes":"all of it"}')


@proves("STORY-ORDER")
@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"success": True, "output": {"lines": 3}}, '{"lines":3}'),
        ({"success": True, "output": "three lines"}, "three lines"),
        ({"success": False, "error": "no compiler"}, "no compiler"),
    ],
)
def test_result_is_told_as_text_or_json(mixed: MixedHub, result: Any, text: str) -> None:
    mixed.send({"intent_id": "t1", "agent_id": "alice", **result}, ALICE)
    assert one(tell(mixed), "intent.completed").text == text


@proves("STORY-ORDER")
def test_handoff_and_its_letters_belong_to_the_story(lab: Lab) -> None:
    handoffs.life(lab)
    lab.do(BOB, PostMail(("alice",), "x", "Words", id="m-1", bead="t1", thread="elsewhere"))
    lab.do(ALICE, AckMail("m-1"))
    story = tell(lab)

    steps = [item for item in story.items if item.type == "handoff.transitioned"]
    assert {item.dialect for item in story.items if item.kind == "handoff"} == {"acp"}
    assert steps[-1].title.endswith("closed (thanks)")
    assert one(story, "handoff.proposed").text == (
        "People can log in\n\nThe token is read too late."
    )
    assert [item.text for item in story.items if item.stream == "mail:m-1"] == ["Words", ""]
    assert one(story, "mail.acked").duration_ms == 0


@proves("STORY-ORDER")
def test_terse_records_are_told_without_words(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("alice", saop_role="developer"))
    lab.do(HUMAN, CreateTask("One", "t1", ready=True, aliases=("workq:i-1",)))
    lab.do(ALICE, ClaimTask("t1", "alice", session="s"))
    lab.do(ALICE, RecordTurn("t1", 0, "developer", 0.5, {}, "d0"))
    event = "00000000-0000-4000-8000-000000000001"
    lab.do(ALICE, RecordTrace(event, "s", "OTHER", {}, "d1", task="t1"))
    lab.do(HUMAN, EditTask("t1", title="Two"))

    told = [(item.kind, item.text) for item in tell(lab).items if item.position > 3]

    assert told == [("turn", ""), ("trace", ""), ("task", "")]


@proves("STORY-PAGES")
def test_pages_join_to_the_whole_story_and_split_no_request(mixed: MixedHub) -> None:
    whole = tell(mixed)
    first = tell(mixed, limit=1)
    assert first.next is not None
    assert len({item.cause for item in first.items}) == 1

    paged = whole_story(first, lambda after: tell(mixed, after=after, limit=1))

    assert tuple(paged) == whole.items


@proves("STORY-PAGES")
def test_page_starts_in_a_long_stream_of_turns(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    lab.do(HUMAN, RegisterAgent("alice", saop_role="developer"))
    lab.do(HUMAN, CreateTask("One", "t1", ready=True))
    lab.do(ALICE, ClaimTask("t1", "alice", session="s"))
    for number in range(5):
        lab.do(ALICE, RecordTurn("t1", number, "developer", 0.5, {}, f"d{number}"))
        event = f"00000000-0000-4000-8000-{number:012}"
        lab.do(ALICE, RecordTrace(event, "s", "OTHER", {}, f"e{number}", task="t1"))
    whole = tell(lab)
    for item in whole.items:
        rest = tuple(later for later in whole.items if later.position > item.position)
        assert tell(lab, after=item.position).items == rest


@proves("STORY-PAGES")
def test_page_ends_where_it_gets_too_long(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGE_BYTES", 10)
    lab.do(HUMAN, CreateTask("One", "t1", ready=True, body="x" * 11))
    lab.do(HUMAN, NoteTask("t1", "more"))
    assert len(tell(lab).items) == 1


@proves("STORY-PAGES")
def test_page_ends_with_its_last_readable_part(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("One", "t1", ready=True))
    first = tell(lab, limit=1)
    lab.do(HUMAN, MoveTask("t1", "cancelled"))
    stopped = whole_story(tell(lab, limit=1), lambda _: Refusal("task_not_found", "gone"))
    assert tuple(stopped) == first.items


class Members:
    """Teamspace of alice and bob."""

    members = ("alice", "bob")
    coordinators = ()


@proves("STORY-PAGES")
def test_hidden_handoffs_are_not_told(lab: Lab) -> None:
    handoffs.make(lab)
    handoffs.offer(lab, teamspace="secret")
    lab.do(ALICE, PostMail(("bob",), "x", '{"handoff_id": "h1"}', bead="t1"))
    teams = {"secret": Members()}

    def streams(reader: Actor) -> set[str]:
        return {item.stream for item in tell(lab, reader=find_reader(reader, teams)).items}

    assert "handoff:h1" in streams(BOB)
    assert any(stream.startswith("mail:") for stream in streams(BOB))
    assert streams(CAROL) == {"task:t1"}


@proves("STORY-PAGES")
def test_unknown_task_has_no_story(lab: Lab) -> None:
    found = read_story(lab.store, "none")
    assert isinstance(found, Refusal)
    assert found.code == "task_not_found"


@proves("STORY-ORDER")
def test_resource_has_nulls_for_what_is_not_there(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("One", "t1", ready=True))
    lab.do(ALICE, ClaimTask("t1", "alice"))
    lab.do(ALICE, AskQuestion("t1", "why?"))
    page = story_page(tell(lab), START)
    created, claimed, asked = page.items
    assert (created.attempt, created.dialect, created.via) == (None, None, None)
    assert (claimed.attempt, claimed.duration_ms) == (1, 0)
    assert (asked.title, asked.text) == ("asks q1: why?", "why?")
    assert page.task.id == "t1"


@proves("STORY-INERT")
def test_title_steers_nothing(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a\x1b[2Jb\u202ec\nd", "t1", ready=True))
    (created,) = tell(lab).items
    assert created.title == 'created, ready: "ab\ufffdc\u23ced"'


@proves("STORY-ORDER", "EVIDENCE-CHECKS")
def test_checks_are_told_with_their_results_and_output(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("One", id="t1", ready=True, checks=("make lint", "make test")))
    lab.do(ALICE, ClaimTask("t1", "alice"))
    lab.do(ALICE, ReportOutcome("t1", "done", apply=True))
    results = (
        CheckResult("make lint", 0),
        CheckResult("make test", 2, output_sha256="ab" * 32, output="1 failed"),
        CheckResult("make doc", None, "it had not ended after 1 s"),
    )
    lab.do(HUB_ACTOR, RecordChecks("t1", 1, results))

    told = one(tell(lab), "task.checked")
    assert told.title == "ran 3 checks of attempt 1: failed"
    assert told.text == (
        "make lint: passed, exit code 0\n\n"
        f"make test: failed, exit code 2, SHA-256 of its output {'ab' * 32}\n\n1 failed\n\n"
        "make doc: failed, it had not ended after 1 s"
    )


@proves("STORY-ORDER", "EVIDENCE-CHECKS")
@pytest.mark.parametrize(
    ("checks", "proof"),
    [
        ((), "(a claim: no checks)"),
        (("a",), "(proven: 1 check passed)"),
        (("a", "b", "c"), "(proven: 3 checks passed)"),
    ],
)
def test_done_work_is_told_as_proven_or_as_a_claim(
    lab: Lab, checks: tuple[str, ...], proof: str
) -> None:
    lab.do(HUMAN, CreateTask("One", id="t1", ready=True, checks=checks))
    lab.do(ALICE, ClaimTask("t1", "alice"))
    lab.do(ALICE, ReportOutcome("t1", "done", apply=True))
    if checks:
        results = tuple(CheckResult(check, 0) for check in checks)
        lab.do(HUB_ACTOR, RecordChecks("t1", 1, results))
    lab.do(HUMAN, MoveTask("t1", "done"))

    assert [item.title for item in tell(lab).items if item.status == "done"] == [
        f"review → done {proof}"
    ]


def tasks_of_letters(lab: Lab) -> dict[str, str]:
    """Task of each letter, by the id of the letter."""
    entries = (entry for entry in lab.store.entries(0, 1_000) if entry.event == "mail.posted")
    return {entry.stream[5:]: task_of_entry(lab.store, entry) for entry in entries}


@proves("AOF-EVENTS")
def test_letter_is_about_the_task_that_had_the_name_then(mixed: MixedHub) -> None:
    early = mixed.call("mail.send", ALICE, to=["bob"], subject="Hi", body_md="Bead: ol-7")["id"]
    adopting = mixed.call(
        "mail.send", ALICE, to=["bob"], subject="[ol-8] PROGRESS", body_md="Status: half"
    )["id"]
    mixed.do(HUMAN, CreateTask("Late", "t2", ready=True, aliases=("bead:ol-7",)))
    late = mixed.call("mail.send", ALICE, to=["bob"], subject="Hi", body_md="Bead: ol-7")["id"]
    odd = mixed.call("mail.send", ALICE, to=["bob"], subject="Hi", body_md="Bead: o l")["id"]

    found = tasks_of_letters(mixed)

    assert found[early] == ""
    assert found[odd] == ""
    assert found[late] == "t2"
    assert found[adopting] == mixed.task("bead:ol-8").id


@proves("AOF-EVENTS")
def test_entry_of_a_handoff_is_about_its_task(lab: Lab) -> None:
    handoffs.life(lab)
    steps = [entry for entry in lab.store.entries(0, 100) if entry.stream == "handoff:h1"]
    assert {task_of_entry(lab.store, entry) for entry in steps} == {"t1"}
    (created, *_) = lab.store.entries(0, 1)
    assert task_of_entry(lab.store, created) == ""


@proves("AOF-EVENTS")
def test_entry_of_a_work_item_is_about_the_task_that_has_its_name(lab: Lab) -> None:
    lab.do(ALICE, AddWorkItem("One", "w1"))
    lab.do(HUMAN, CreateTask("One", "t1", ready=True, aliases=("workq:w1",)))
    lab.do(ALICE, ClaimWorkItem("w1"))
    steps = [entry for entry in lab.store.entries(0, 100) if entry.stream == "workq:w1"]
    assert [task_of_entry(lab.store, entry) for entry in steps] == ["", "t1"]
    task_of = partial(task_of_entry, lab.store)
    (claimed,) = aof.render_lines(steps[1], lambda task: lab.task(task).aof_id, task_of)
    assert msgspec.json.decode(claimed)["taskId"] == lab.task("t1").aof_id
