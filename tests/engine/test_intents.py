"""Intents on a hub: recorded events, refusals, and recovery after failures."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal, StoreUnavailable
from dragoman.core.intent.candidate import Policy, Requirements
from dragoman.core.intent.state import DelegateIntent, Intent, ReceiveResult
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, NoteTask
from dragoman.core.wave import AdvanceWave, StartWave, WaveBead
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.engine.group_commit import Engine
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.entries import stream_state
from dragoman.engine.queries.intents import awaited_agent, find_intent_of_task
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.request import Request
from dragoman.ledger.entry import read_line
from tests.engine.lab import ALICE, BOB, HUMAN, START, Lab, assert_accepted, code, findings
from tests.requirements import proves

GOAL = "Write python tests"
DONE = ReceiveResult("i", "alice", success=True, output={"lines": 3})


def register_agents(lab: Lab, *names: str) -> None:
    """Register agents with the skills for the goal."""
    for name in names:
        lab.do(HUMAN, RegisterAgent(name), DescribeAgent(name, ("python", "tests")))


def delegate_command(lab: Lab, id: str = "i", goal: str = GOAL) -> DelegateIntent:
    """Make a delegation with the current candidates."""
    found = CandidateIndex(lab.store).shortlist(Requirements(goal), Policy(), lab.clock.now())
    return DelegateIntent(goal, id, candidates=found)


def intent(lab: Lab, id: str = "i") -> Intent:
    """Load the stored intent."""
    row = lab.store.stream(f"intent:{id}")
    assert row is not None
    state = stream_state(lab.store, row)
    assert isinstance(state, Intent)
    return state


def delegate_to_alice(lab: Lab) -> None:
    """Delegate an intent that alice is asked for."""
    register_agents(lab, "alice", "bob")
    lab.do(HUMAN, delegate_command(lab))


@proves("CCOS-PROMPT")
def test_intent_is_found_by_the_name_of_its_task(lab: Lab) -> None:
    delegate_to_alice(lab)
    lab.do(HUMAN, CreateTask("x", "x", aliases=("intent:none",)))
    found = [find_task(lab.store, name) for name in ("i", "x")]
    known = [find_intent_of_task(lab.store, one.task) for one in found if isinstance(one, TaskView)]
    assert known == [intent(lab), None]


@proves("CCOS-LIFE", "CCOS-FEEDBACK")
def test_all_events_of_a_result_share_its_cause(lab: Lab) -> None:
    delegate_to_alice(lab)
    head = lab.store.head()
    lab.do(ALICE, DONE)
    entries = lab.store.entries(head, 100)
    assert [(entry.stream, entry.event) for entry in entries] == [
        ("task:i", "task.claimed"),
        ("task:i", "task.reported"),
        ("task:i", "task.transitioned"),
        ("task:i", "task.transitioned"),
        ("intent:i", "intent.completed"),
        ("reputation:alice", "agent.rated"),
        ("intent:i", "intent.feedback_applied"),
        ("intent:i", "intent.satisfied"),
    ]
    assert len({read_line(entry.line).cause for entry in entries}) == 1
    assert lab.task("intent:i").status == "done"
    assert intent(lab).state == "Satisfied"


@proves("CCOS-RECEIPT")
def test_anomaly_is_recorded_in_its_intent_and_refused(lab: Lab) -> None:
    delegate_to_alice(lab)
    before = lab.lines()
    assert lab.code(BOB, replace(DONE, agent="bob")) == "anomaly"
    assert lab.lines()[len(before) :] == [("intent:i", "intent.anomaly")]
    assert lab.code(BOB, replace(DONE, agent="bob")) == "anomaly"
    assert len(lab.lines()) == len(before) + 2
    assert intent(lab).anomalies == 2


@proves("CCOS-RECEIPT")
def test_anomaly_about_an_unknown_intent_is_recorded_with_its_sender(lab: Lab) -> None:
    assert lab.code(ALICE, replace(DONE, intent="none")) == "anomaly"
    assert lab.lines() == [("actor:agent:alice", "command.refused")]


@proves("CCOS-RECEIPT")
def test_anomaly_refuses_the_other_commands_of_its_request(lab: Lab) -> None:
    delegate_to_alice(lab)
    before = lab.lines()
    note = NoteTask("i", "here it comes")
    assert lab.code(ALICE, note, replace(DONE, request_id="i.9")) == "anomaly"
    assert lab.lines()[len(before) :] == [("intent:i", "intent.anomaly")]
    assert lab.task("i").notes == 0


@proves("CCOS-RECEIPT")
def test_anomaly_in_an_effect_leaves_the_commands_accepted(lab: Lab) -> None:
    delegate_to_alice(lab)
    done = lab.hub.submit(ALICE, NoteTask("i", "said"), effect=(replace(DONE, request_id="i.9"),))
    assert done.declined is not None
    assert done.declined.code == "anomaly"
    assert lab.task("i").notes == 1
    assert intent(lab).anomalies == 1


@proves("CCOS-RECEIPT")
def test_repeated_key_returns_the_first_answer(lab: Lab) -> None:
    delegate_to_alice(lab)
    first = assert_accepted(lab.ask(ALICE, DONE, key="k"))
    lab.do(HUMAN, delegate_command(lab, "j"))
    again = assert_accepted(lab.ask(ALICE, DONE, key="k"))
    assert again.repeated
    assert again.receipts == first.receipts
    assert lab.code(ALICE, replace(DONE, output=4), key="k2") == "anomaly"
    assert code(lab.ask(ALICE, replace(DONE, output=4), key="k")) == "key_reused"


@proves("CCOS-UNWRITABLE")
def test_failed_commit_delegates_nothing(lab: Lab) -> None:
    register_agents(lab, "alice")
    before = lab.store.picture()
    lab.store.faults.append(StoreUnavailable("the disk is full"))
    with pytest.raises(StoreUnavailable):
        lab.do(HUMAN, delegate_command(lab))
    assert lab.store.picture() == before
    assert lab.store.list_page(ListQuery("requests")) == []
    lab.do(HUMAN, delegate_command(lab))
    assert [place.row.name for place in lab.store.list_page(ListQuery("requests"))] == ["intent:i"]


@proves("CCOS-RESEND")
def test_crash_after_the_commit_leaves_the_request_open_under_its_id() -> None:
    """A sender of requests finds the open one again, and answers to either sending count once."""

    class Crash(Exception):
        pass

    def fail_after_commit(point: str) -> None:
        if point == "committed" and is_armed:
            raise Crash

    is_armed = False
    lab = Lab(failpoint=fail_after_commit)
    register_agents(lab, "alice")
    is_armed = True
    with pytest.raises(Crash):
        lab.do(HUMAN, delegate_command(lab))
    engine = Engine(lab.store, lab.clock, b"secret")
    for _ in range(2):
        found = lab.store.list_page(ListQuery("requests:alice"))
        state = stream_state(lab.store, found[0].row)
        assert isinstance(state, Intent)
        assert state.request is not None
        assert state.request.id == "i.1"
    for number in range(2):
        answer = engine.handle_now(
            Request(ALICE, (replace(DONE, request_id="i.1"),), f"after-{number}")
        )
        assert not isinstance(answer, Refusal)
    assert intent(lab).state == "Satisfied"
    rated = [event for _, event in lab.lines() if event == "agent.rated"]
    assert rated == ["agent.rated"]
    assert findings(lab.store) == []


@proves("CCOS-OTHERS")
def test_wave_can_hold_back_the_task_of_an_intent(lab: Lab) -> None:
    delegate_to_alice(lab)
    lab.do(HUMAN, StartWave((WaveBead("i"),), 1, "w"))
    assert lab.task("i").status == "backlog"
    assert intent(lab).request is None
    lab.do(HUMAN, AdvanceWave("w"))
    assert lab.task("i").status == "ready"
    again = intent(lab).request
    assert again is not None
    assert again.agent == "alice"
    lab.do(HUMAN, MoveTask("i", "cancelled"))
    assert intent(lab).state == "NeedsFollowUp"


@proves("CCOS-LIFE")
def test_whole_numbers_survive_storage(lab: Lab) -> None:
    register_agents(lab, "alice")
    lab.do(HUMAN, DescribeAgent("alice", ("python", "tests"), cost=1))
    lab.do(HUMAN, replace(delegate_command(lab), policy=Policy(cost_ceiling=2)))
    assert intent(lab).policy.cost_ceiling == 2
    assert findings(lab.store) == []


@proves("CCOS-LIFE")
def test_concurrent_delegations_share_one_batch(lab: Lab) -> None:
    register_agents(lab, "alice", "bob")
    commands = [delegate_command(lab, f"i{number}") for number in range(20)]
    answers = lab.batch(*(lab.request(HUMAN, command) for command in commands))
    assert {answer.receipts[0].status for answer in answers} == {"ready"}
    results = [replace(DONE, intent=f"i{number}") for number in range(20)]
    answers = lab.batch(*(lab.request(ALICE, command) for command in results))
    assert {answer.receipts[0].status for answer in answers} == {"done"}
    known = CandidateIndex(lab.store).reputation("alice", START)
    assert known is not None
    assert (known.successes, known.open) == (20, 0)


@proves("CCOS-GOVERNED-DOORS")
def test_claim_of_the_next_task_skips_ineligible_intents(
    lab: Lab,
) -> None:
    delegate_to_alice(lab)
    lab.do(HUMAN, EditTask("i", assignee=""))
    for name in ("one", "two"):
        lab.do(HUMAN, CreateTask(name, name, ready=True))
    stranger = Actor("agent", "stranger")
    answers = lab.batch(
        *(lab.request(one, ClaimTask("", one.name)) for one in (stranger, stranger, ALICE, BOB))
    )
    claimed = [code(one) or one.receipts[-1].task for one in answers]
    assert claimed == ["one", "two", "i", "nothing_ready"]
    assert findings(lab.store) == []


@proves("CCOS-DEADLINE")
def test_awaited_agent_is_known_only_while_a_request_is_open(lab: Lab) -> None:
    assert awaited_agent(lab.store, "i") == ""
    delegate_to_alice(lab)
    assert awaited_agent(lab.store, "i") == "alice"
    lab.do(HUMAN, MoveTask("i", "blocked"))
    assert awaited_agent(lab.store, "i") == ""
