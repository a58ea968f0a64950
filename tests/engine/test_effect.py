"""What is to follow from a request: all or none by itself, and told again to whoever repeats."""

import asyncio

import pytest
from msgspec.structs import replace

from dragoman.core.actors import REFUSALS_PER_MINUTE
from dragoman.core.commands import (
    AdoptTask,
    AliasTask,
    AnswerMail,
    AnyCommand,
    ClaimTask,
    CreateTask,
    NoteTask,
    PostMail,
    RejectMessage,
    ReportOutcome,
    UpdateTask,
)
from dragoman.engine.reads.mailbox import find_letter
from dragoman.engine.request import Accepted, Request
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore, findings, yes
from tests.requirements import proves

pytestmark = proves("ENGINE-EFFECT")

LETTER = PostMail(("bob",), "half way", "", id="m-1")
TAKEN: tuple[AnyCommand, ...] = (AdoptTask("bead", "b-1"), ClaimTask("bead:b-1", "alice"))


class Crash(Exception):
    """The process dies here."""


def request(
    lab: Lab, *commands: AnyCommand, effect: tuple[AnyCommand, ...], key: str = ""
) -> Request:
    """Alice asks for something, from which something is to follow."""
    return lab.hub.request(ALICE, *commands, effect=effect, key=key)


def ask(lab: Lab, *commands: AnyCommand, effect: tuple[AnyCommand, ...], key: str = "") -> Accepted:
    """Her request, which must be accepted."""
    return yes(lab.engine.handle_now(request(lab, *commands, effect=effect, key=key)))


def test_it_follows_and_its_receipts_are_the_last_ones() -> None:
    lab = Lab()
    done = ask(lab, LETTER, effect=TAKEN)
    assert done.declined is None
    assert [receipt.stream or receipt.task for receipt in done.receipts] == [
        "mail:m-1",
        "b-1",
        "b-1",
    ]
    assert lab.task("b-1").status == "in-progress"


def test_who_answers_a_letter_after_somebody_else_is_told_that_it_is_answered() -> None:
    lab = Lab()
    question = PostMail(("alice", "bob"), "where to?", "", id="q-1", answer_wanted=True)
    yes(lab.engine.handle_now(lab.hub.request(HUMAN, question)))
    for sender, id in ((BOB, "a-1"), (ALICE, "a-2")):
        answer = PostMail(("human",), "left", "", id=id)
        asked = lab.hub.request(sender, answer, effect=(AnswerMail("q-1", id),))
        done = yes(lab.engine.handle_now(asked))
    assert done.declined is not None
    assert (done.declined.code, done.declined.detail) == (
        "nothing_changed",
        "nothing was left to change: letter q-1 is answered already",
    )


def test_refused_it_leaves_the_request_and_nothing_of_itself() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("known", "T"))
    before = lab.store.picture_of_tasks()
    effect = (
        AdoptTask("bead", "b-1"),
        CreateTask("numbered"),
        AliasTask("T", "bead:t"),
        NoteTask("T", "so far so good"),
        ReportOutcome("T", "done"),
    )
    done = ask(lab, LETTER, effect=effect)
    assert done.declined is not None
    assert done.declined.code == "unassigned_task"
    assert [receipt.stream for receipt in done.receipts] == ["mail:m-1"]
    after = lab.store.picture_of_tasks()
    assert {**after, "answers": {}} == {**before, "answers": {}}
    assert lab.refused(ALICE) == ["unassigned_task"]
    assert find_letter(lab.store, "m-1")
    assert lab.store.named("b-1") == []
    assert findings(lab.store) == []


@proves("ENGINE-EFFECT", "REFUSAL-RECORDED")
def test_each_refusal_is_on_record_behind_what_it_was_to_follow_from() -> None:
    lab = Lab()
    many = REFUSALS_PER_MINUTE + 1
    for _ in range(many):
        ask(lab, PostMail(("bob",), "half way", ""), effect=(NoteTask("nowhere", "x"),))
    recorded = [event for _, event in lab.lines()]
    assert recorded == ["mail.posted", "command.refused"] * many
    assert not isinstance(
        lab.engine.handle_now(request(lab, NoteTask("a", "x"), effect=())), Accepted
    )
    assert len(lab.lines()) == 2 * many, "what leaves nothing else is bounded"


def test_a_refused_request_is_followed_by_nothing() -> None:
    lab = Lab()
    ask(lab, LETTER, effect=())
    other = replace(LETTER, body="another")
    again = lab.engine.handle_now(request(lab, other, effect=TAKEN))
    assert not isinstance(again, Accepted)
    assert lab.store.stream("task:b-1") is None


def test_the_first_part_may_be_many_commands_and_is_undone_alone() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("known", "T"))
    first = (CreateTask("one", "A"), NoteTask("A", "x"))
    done = ask(lab, *first, effect=(NoteTask("A", "y"), NoteTask("nowhere", "z")))
    assert (len(done.receipts), done.declined and done.declined.code) == (2, "task_not_found")
    assert lab.task("A").notes == 1
    refused = lab.engine.handle_now(
        request(lab, NoteTask("A", "x"), NoteTask("nowhere", "x"), effect=(NoteTask("A", "y"),))
    )
    assert not isinstance(refused, Accepted)
    assert lab.task("A").notes == 1
    assert findings(lab.store) == []


def test_what_it_reads_is_what_the_first_part_has_made() -> None:
    lab = Lab()
    done = ask(lab, CreateTask("t", "T", ready=True), effect=(ClaimTask("T", "alice"),))
    assert (done.receipts[-1].status, done.receipts[-1].fence) == ("in-progress", 1)


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("effect", [TAKEN, (NoteTask("nowhere", "x"),)], ids=["done", "declined"])
def test_a_repeat_is_answered_the_same_and_does_nothing(effect: tuple[AnyCommand, ...]) -> None:
    lab = Lab()
    first = ask(lab, LETTER, effect=effect, key="k")
    head = lab.store.head()
    again = ask(lab, LETTER, effect=effect, key="k")
    assert again.repeated
    assert (again.receipts, again.declined) == (first.receipts, first.declined)
    restarted = ask(Lab(lab.store), LETTER, effect=effect, key="k")
    assert (restarted.receipts, restarted.declined) == (first.receipts, first.declined)
    assert lab.store.head() == head


@proves("LEASE-HEARTBEAT", "IDEM-REPEAT")
def test_a_request_is_one_sign_of_life_however_much_follows() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    about = PostMail(("bob",), "half way", "", bead="T")
    ask(lab, about, effect=(UpdateTask("T", progress="x"), NoteTask("T", "y")), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.beats == 2
    ask(lab, about, effect=(UpdateTask("T", progress="x"), NoteTask("T", "y")), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.beats == 3, "a repeat is another one"
    ask(lab, about, effect=(NoteTask("nowhere", "y"),))
    lease = lab.lease("T")
    assert lease is not None
    assert lease.beats == 4, "and what is not to be does not take it back"


def test_in_one_batch_each_decides_on_what_the_ones_before_have_left() -> None:
    lab = Lab()
    taking = [
        lab.hub.request(
            actor,
            PostMail(("olga",), "mine", ""),
            effect=(AdoptTask("bead", "b-1"), ClaimTask("bead:b-1", actor.name)),
        )
        for actor in (ALICE, BOB)
    ]
    noting = [
        request(lab, PostMail(("olga",), "note", ""), effect=(NoteTask(f"T{number % 3}", "x"),))
        for number in range(30)
    ]
    lab.do(HUMAN, CreateTask("t", "T0"))
    answers = [yes(answer) for answer in lab.batch(*taking, *noting)]
    codes = [answer.declined.code if answer.declined else "" for answer in answers]
    assert codes[:2] == ["", "already_claimed"]
    assert codes[2:] == ["", "task_not_found", "task_not_found"] * 10
    assert lab.task("b-1").assignee == "alice"
    assert lab.task("T0").notes == 10
    assert len([event for _, event in lab.lines() if event == "mail.posted"]) == 32
    assert findings(lab.store) == []


@proves("ENGINE-EFFECT", "REFUSAL-RECORDED")
def test_a_message_that_cannot_be_meant_is_recorded_with_its_words() -> None:
    lab = Lab()
    effect = (RejectMessage("invalid_field", "it names no bead", kind="DONE"),)
    done = ask(lab, LETTER, effect=effect)
    assert done.declined is not None
    assert done.declined.detail == "it names no bead"
    assert lab.refused(ALICE) == ["invalid_field"]


@pytest.mark.parametrize("point", ["decided", "written", "committed"])
@pytest.mark.parametrize("effect", [TAKEN, (NoteTask("nowhere", "x"),)], ids=["done", "declined"])
def test_a_crash_leaves_both_parts_or_neither(point: str, effect: tuple[AnyCommand, ...]) -> None:
    def die(name: str) -> None:
        if name == point:
            raise Crash

    store = OpenStore()
    with pytest.raises(Crash):
        ask(Lab(store, failpoint=die), LETTER, effect=effect, key="k")
    is_there = point == "committed"
    assert (store.stream("mail:m-1") is not None) == is_there
    assert (store.stream("task:b-1") is not None) == (is_there and effect == TAKEN)
    after = ask(Lab(store), LETTER, effect=effect, key="k")
    assert after.repeated == is_there
    assert (after.declined is None) == (effect == TAKEN)
    assert store.stream("mail:m-1") is not None
    assert findings(store) == []


def test_the_async_hub_passes_it_on() -> None:
    lab = Lab()

    async def soon() -> Accepted:
        return await lab.hub.do_soon(ALICE, LETTER, effect=(NoteTask("nowhere", "x"),))

    done = asyncio.run(soon())
    assert done.declined is not None
    assert lab.hub.do(ALICE, PostMail(("bob",), "x", ""), effect=TAKEN).declined is None
    lab.engine.close()


@proves("MAIL-REPEAT")
def test_what_was_said_before_under_another_key_is_not_tried_again() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("known", "T"))
    first = ask(lab, LETTER, effect=(NoteTask("T", "half way"),), key="k-1")
    head = lab.store.head()
    again = ask(lab, LETTER, effect=(NoteTask("T", "half way"),), key="k-2")
    assert (first.repeated, again.repeated, lab.store.head()) == (False, True, head)
    assert again.declined is not None
    assert again.declined.code == "already_exists"
    assert ask(lab, LETTER, effect=(NoteTask("T", "half way"),), key="k-2") == again
    assert ask(lab, LETTER, effect=(NoteTask("T", "half way"),), key="k-1").receipts == (
        first.receipts
    )
    assert findings(lab.store) == []
