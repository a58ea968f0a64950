"""Effects of a request: atomic on their own, and reported again to a repeat."""

import asyncio

import pytest
from msgspec.structs import replace

from dragoman.core.actor import REFUSALS_PER_MINUTE, RejectMessage
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.mail import AnswerMail, PostMail
from dragoman.core.task_state import AdoptTask, AliasTask, CreateTask, NoteTask, UpdateTask
from dragoman.engine.queries.mail import find_letter
from dragoman.engine.request import Committed, Request
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore, assert_accepted, findings
from tests.requirements import proves

pytestmark = proves("ENGINE-EFFECT")

LETTER = PostMail(("bob",), "half way", "", id="m-1")
CLAIM_BEAD: tuple[Command, ...] = (AdoptTask("bead", "b-1"), ClaimTask("bead:b-1", "alice"))


class Crash(Exception):
    """Crash of the process."""


def request(lab: Lab, *commands: Command, effect: tuple[Command, ...], key: str = "") -> Request:
    """Make a request of alice with an effect."""
    return lab.hub.make_request(ALICE, *commands, effect=effect, key=key)


def ask(lab: Lab, *commands: Command, effect: tuple[Command, ...], key: str = "") -> Committed:
    """Submit a request of alice with an effect; it must be accepted."""
    return assert_accepted(lab.engine.handle_now(request(lab, *commands, effect=effect, key=key)))


def test_effect_runs_after_the_commands_and_its_receipts_come_last() -> None:
    lab = Lab()
    done = ask(lab, LETTER, effect=CLAIM_BEAD)
    assert done.declined is None
    assert [receipt.stream or receipt.task for receipt in done.receipts] == [
        "mail:m-1",
        "b-1",
        "b-1",
    ]
    assert lab.task("b-1").status == "in-progress"


def test_second_answer_to_a_letter_is_declined_as_already_answered() -> None:
    lab = Lab()
    question = PostMail(("alice", "bob"), "where to?", "", id="q-1", answer_wanted=True)
    assert_accepted(lab.engine.handle_now(lab.hub.make_request(HUMAN, question)))
    for sender, id in ((BOB, "a-1"), (ALICE, "a-2")):
        answer = PostMail(("human",), "left", "", id=id)
        request = lab.hub.make_request(sender, answer, effect=(AnswerMail("q-1", id),))
        done = assert_accepted(lab.engine.handle_now(request))
    assert done.declined is not None
    assert (done.declined.code, done.declined.detail) == (
        "nothing_changed",
        "no effect: letter q-1 is already answered",
    )


def test_refused_effect_leaves_the_commands_accepted() -> None:
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
    assert lab.store.find_aliases("b-1") == []
    assert findings(lab.store) == []


@proves("ENGINE-EFFECT", "REFUSAL-RECORDED")
def test_refused_effect_is_recorded_after_each_request() -> None:
    lab = Lab()
    many = REFUSALS_PER_MINUTE + 1
    for _ in range(many):
        ask(lab, PostMail(("bob",), "half way", ""), effect=(NoteTask("nowhere", "x"),))
    recorded = [event for _, event in lab.lines()]
    assert recorded == ["mail.posted", "command.refused"] * many
    assert not isinstance(
        lab.engine.handle_now(request(lab, NoteTask("a", "x"), effect=())), Committed
    )
    assert len(lab.lines()) == 2 * many, "what leaves nothing else is bounded"


def test_refused_request_runs_no_effect() -> None:
    lab = Lab()
    ask(lab, LETTER, effect=())
    other = replace(LETTER, body="another")
    again = lab.engine.handle_now(request(lab, other, effect=CLAIM_BEAD))
    assert not isinstance(again, Committed)
    assert lab.store.stream("task:b-1") is None


def test_refused_effect_is_undone_without_its_commands() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("known", "T"))
    first = (CreateTask("one", "A"), NoteTask("A", "x"))
    done = ask(lab, *first, effect=(NoteTask("A", "y"), NoteTask("nowhere", "z")))
    assert (len(done.receipts), done.declined and done.declined.code) == (2, "task_not_found")
    assert lab.task("A").notes == 1
    refused = lab.engine.handle_now(
        request(lab, NoteTask("A", "x"), NoteTask("nowhere", "x"), effect=(NoteTask("A", "y"),))
    )
    assert not isinstance(refused, Committed)
    assert lab.task("A").notes == 1
    assert findings(lab.store) == []


def test_effect_reads_what_the_commands_changed() -> None:
    lab = Lab()
    done = ask(lab, CreateTask("t", "T", ready=True), effect=(ClaimTask("T", "alice"),))
    assert (done.receipts[-1].status, done.receipts[-1].fence) == ("in-progress", 1)


@proves("IDEM-REPEAT")
@pytest.mark.parametrize(
    "effect", [CLAIM_BEAD, (NoteTask("nowhere", "x"),)], ids=["done", "declined"]
)
def test_repeat_returns_the_same_answer_and_changes_nothing(effect: tuple[Command, ...]) -> None:
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
def test_request_with_effect_counts_as_one_heartbeat() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    about = PostMail(("bob",), "half way", "", bead="T")
    ask(lab, about, effect=(UpdateTask("T", progress="x"), NoteTask("T", "y")), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.heartbeats == 2
    ask(lab, about, effect=(UpdateTask("T", progress="x"), NoteTask("T", "y")), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.heartbeats == 3, "a repeat is another one"
    ask(lab, about, effect=(NoteTask("nowhere", "y"),))
    lease = lab.lease("T")
    assert lease is not None
    assert lease.heartbeats == 4, "and what is not to be does not take it back"


def test_effects_in_one_batch_see_earlier_requests() -> None:
    lab = Lab()
    claims = [
        lab.hub.make_request(
            actor,
            PostMail(("olga",), "mine", ""),
            effect=(AdoptTask("bead", "b-1"), ClaimTask("bead:b-1", actor.name)),
        )
        for actor in (ALICE, BOB)
    ]
    notes = [
        request(lab, PostMail(("olga",), "note", ""), effect=(NoteTask(f"T{number % 3}", "x"),))
        for number in range(30)
    ]
    lab.do(HUMAN, CreateTask("t", "T0"))
    answers = [assert_accepted(answer) for answer in lab.batch(*claims, *notes)]
    codes = [answer.declined.code if answer.declined else "" for answer in answers]
    assert codes[:2] == ["", "already_claimed"]
    assert codes[2:] == ["", "task_not_found", "task_not_found"] * 10
    assert lab.task("b-1").assignee == "alice"
    assert lab.task("T0").notes == 10
    assert len([event for _, event in lab.lines() if event == "mail.posted"]) == 32
    assert findings(lab.store) == []


@proves("ENGINE-EFFECT", "REFUSAL-RECORDED")
def test_rejected_message_as_effect_is_recorded_with_its_detail() -> None:
    lab = Lab()
    effect = (RejectMessage("invalid_field", "it names no bead", kind="DONE"),)
    done = ask(lab, LETTER, effect=effect)
    assert done.declined is not None
    assert done.declined.detail == "it names no bead"
    assert lab.refused(ALICE) == ["invalid_field"]


@pytest.mark.parametrize("point", ["decided", "written", "committed"])
@pytest.mark.parametrize(
    "effect", [CLAIM_BEAD, (NoteTask("nowhere", "x"),)], ids=["done", "declined"]
)
def test_crash_leaves_commands_and_effect_or_neither(
    point: str, effect: tuple[Command, ...]
) -> None:
    def crash(name: str) -> None:
        if name == point:
            raise Crash

    store = OpenStore()
    with pytest.raises(Crash):
        ask(Lab(store, failpoint=crash), LETTER, effect=effect, key="k")
    is_committed = point == "committed"
    assert (store.stream("mail:m-1") is not None) == is_committed
    assert (store.stream("task:b-1") is not None) == (is_committed and effect == CLAIM_BEAD)
    after = ask(Lab(store), LETTER, effect=effect, key="k")
    assert after.repeated == is_committed
    assert (after.declined is None) == (effect == CLAIM_BEAD)
    assert store.stream("mail:m-1") is not None
    assert findings(store) == []


def test_async_hub_passes_the_effect_on() -> None:
    lab = Lab()

    async def run() -> Committed:
        return await lab.hub.submit_async(ALICE, LETTER, effect=(NoteTask("nowhere", "x"),))

    done = asyncio.run(run())
    assert done.declined is not None
    assert lab.hub.submit(ALICE, PostMail(("bob",), "x", ""), effect=CLAIM_BEAD).declined is None
    lab.engine.close()


@proves("MAIL-REPEAT")
def test_repeated_command_under_another_key_does_not_run_its_effect() -> None:
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
