"""Scripts of the golden ledgers `golden/NAME.jsonl`, which they must still write.

Print today's ledger of a script with `python -m tests.ledger.released NAME entries`. A golden
ledger of a release is never rewritten: one that adds something gets a new script and a new file.
The states that a ledger folds into, `NAME states`, follow the fold version.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from dragoman.core.actor import HUB_ACTOR, Actor, MessageReceived, RejectMessage
from dragoman.core.agent import (
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
)
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    FlagAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    Handoff,
    NoteHandoff,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.intent.candidate import Candidate, Policy, ScoreParts
from dragoman.core.intent.state import DelegateIntent, ExpireRequest, ReceiveResult, UpdateIntent
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.presence import ReportPresence
from dragoman.core.question_state import AnswerQuestion, AskQuestion, WithdrawQuestion
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    SendBackTask,
    UnlinkTask,
    UpdateTask,
    WarnTask,
)
from dragoman.core.trace import (
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)
from dragoman.core.wave import AdvanceWave, StartWave, WaveBead
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.request import Outcome
from dragoman.ledger.entry import Entry
from dragoman.ledger.stream_state import decode_state, replay
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds

START = 1_770_670_500_000
"""2026-02-09T20:55:00.000Z."""

FOLDER = Path(__file__).parent / "golden"

HERA = Actor("human", "hera", "cli")
ALICE = Actor("agent", "alice", "http")
BOB = Actor("agent", "bob@laptop")
CAROL = Actor("agent", "carol")
DAVE = Actor("agent", "dave", "inbox")
OTTO = Actor("observer", "otto")
OLGA = Actor("orchestrator", "olga", "http")
CORA = Actor("coordinator", "cora")
FIRST = "TASK-2026-02-09-001"


class Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """Line of a golden file."""

    position: int
    stream: str
    version: int
    event: str
    line: str
    previous: str
    hash: str


class Play:
    """Hub in memory with a scripted clock and counted ids."""

    def __init__(self, store: Store) -> None:
        self.clock = ManualClock(START)
        self.engine = Engine(store, self.clock, b"a secret of the test")
        self._hub = Hub(self.engine, SequentialIds())

    def ask(
        self,
        actor: Actor,
        *commands: Command,
        key: str = "",
        original_text: bytes | None = None,
        receipt: MessageReceived | None = None,
        effect: tuple[Command, ...] = (),
    ) -> Outcome:
        """Submit a request, a second after the last one."""
        self.clock.advance(1_000)
        words = msgspec.UNSET if original_text is None else Raw(original_text)
        request = self._hub.make_request(
            actor, *commands, key=key, original_text=words, receipt_event=receipt, effect=effect
        )
        return self._hub.engine.handle_now(request)


def play(store: Store) -> None:
    """Run every early kind of event, several kinds of refusal, and requests of every shape."""
    ask = Play(store).ask
    ask(
        HERA,
        CreateTask("Write the parser", ready=True, max_attempts=2),
        original_text=b'{"title":"Write the parser","x-unknown":{"kept":[1,2,null]}}',
    )
    ask(HERA, CreateTask("Design: na\u00efve \U0001f409 \x1b[31m", "design", priority="high"))
    ask(HERA, MoveTask("design", "ready", "it is time"))
    ask(
        HERA,
        CreateTask(
            "Build",
            "build",
            body="line one\nline two",
            ready=True,
            parent=FIRST,
            blocked_by=("design",),
            discovered_from="design",
            aliases=("bead:ol-527.1",),
            origin="a mail",
        ),
    )
    ask(ALICE, ClaimTask("", "alice", "tmux:1/alice", 120_000))
    ask(ALICE, RenewLease("design", 1))
    ask(ALICE, NoteTask("design", 'half way; "quoted" \\ and \u2028 kept'))
    ask(BOB, ClaimTask("bead:ol-527.1", "bob@laptop"))
    ask(BOB, ClaimTask("bead:ol-527.1", "bob@laptop"))
    ask(
        ALICE,
        ReportOutcome("design", "done", "drawn", details={"tests": {"passed": 3}, "files": ["a"]}),
    )
    ask(ALICE, EndAttempt("design"))
    ask(HERA, MoveTask("design", "done", "well drawn"))
    ask(BOB, ClaimTask("", "bob@laptop", ttl_ms=60_000))
    ask(
        BOB,
        NoteTask(FIRST, "never written"),
        ClaimTask(FIRST, "bob@laptop"),
        original_text=b'"a tuple"',
    )
    for _ in range(60):
        ask(HUB_ACTOR, ExpireLease(FIRST))
    ask(BOB, RenewLease(FIRST, 1))
    ask(CAROL, ClaimTask(FIRST, "carol"))
    ask(CAROL, ReportOutcome(FIRST, "failed", "no luck", apply=True))
    ask(HERA, MoveTask(FIRST, "ready", "try again"))
    ask(HERA, AliasTask(FIRST, "intent:goal-9"))
    ask(HERA, LinkTask(FIRST, "discovered-from", "build"))
    ask(
        DAVE,
        AdoptTask("bead", "x-9", "Born elsewhere", "a mail", review_required=False),
        ClaimTask("bead:x-9", "dave"),
        ReportOutcome("bead:x-9", "done", "all in one", apply=True),
        key="message-1",
        original_text=b'{"type":"DONE"}',
    )
    ask(CAROL, CreateTask("Once", "once", ready=True, assignee="carol"), key="k")
    ask(CAROL, CreateTask("Once", "once", ready=True, assignee="carol"), key="k")
    ask(CAROL, CreateTask("Twice", "twice"), key="k")
    ask(ALICE, ClaimTask("build", "alice"))
    ask(HERA, MoveTask("build", "cancelled", "not needed"))
    ask(ALICE, ReleaseTask("build"))
    ask(OTTO, MoveTask("once", "cancelled"))
    ask(CAROL, ClaimTask("once", "carol"))
    ask(CAROL, ReleaseTask("once", "lunch"))
    ask(CAROL, ClaimTask("once", "carol"))
    ask(CAROL, ReportOutcome("once", "blocked", blockers=("no key",), apply=True))
    ask(HERA, LinkTask("once", "blocked-by", FIRST))
    ask(HERA, MoveTask("a/../b", "done"))


def play_messages(store: Store) -> None:
    """Run updates, edits, warnings, delegation and registration."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("alice", speaks=("aof", "agentmail")))
    ask(HERA, RegisterAgent("alice", "coordinator", ("aof",)))
    ask(HERA, CreateTask("Write the parser", ready=True))
    ask(HERA, CreateTask("Test the parser", "part", ready=True))
    ask(ALICE, ClaimTask(FIRST, "alice"))
    ask(
        ALICE,
        UpdateTask(FIRST, None, "50/100 cases", "no issue | so far", ("a", "b; c"), START - 1),
        original_text=b'{"protocol":"aof","type":"status.update"}',
    )
    ask(ALICE, UpdateTask(FIRST, "done", "no way there"))
    ask(ALICE, WarnTask(FIRST, "missing_summary", "outputs/summary.md"))
    ask(HERA, EditTask("part", "Test it", "a body", "high", False, "bob@laptop"))
    ask(HERA, EditTask("part", assignee=""))
    request = RequestDelegation(
        "part",
        FIRST,
        "carol",
        START + 60_000,
        ("All tests pass",),
        ("tests/report.md",),
        ("src/api/users.ts",),
        ("No new dependencies",),
    )
    ask(ALICE, request)
    receipt_event = MessageReceived("aof", "handoff.request", "part")
    ask(ALICE, request, original_text=b'{"type":"handoff.request"}', receipt=receipt_event)
    ask(BOB, AcceptDelegation("part"))
    ask(CAROL, AcceptDelegation("part"))
    ask(CAROL, RequestDelegation(FIRST, "part", "dave", START))
    ask(HUB_ACTOR, EscalateDelegation("part"))
    ask(CAROL, RejectDelegation("part", "no test plan"))
    ask(ALICE, RequestDelegation("part", FIRST, "dave", START))
    ask(HUB_ACTOR, EscalateDelegation("part"))
    ask(ALICE, UpdateTask(FIRST, "blocked", blockers=("no key", "no test plan")))
    ask(DAVE, RejectMessage("invalid_envelope", "payload.tests: missing", "part", "status.update"))
    ask(
        DAVE,
        RejectMessage("invalid_json", "half \ud800", "a/../b", "\x1b[31m"),
        original_text=b'"\\u001b"',
    )


def play_credentials(store: Store) -> None:
    """Run tokens that are issued and revoked, and keys of agents."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("alice", speaks=("aof",)), IssueToken("alice", *_token(1, START)))
    ask(HERA, SetAgentKey("alice", "A" * 43))
    ask(HERA, IssueToken("alice", *_token(2, START + 86_400_000)))
    ask(ALICE, IssueToken("alice", *_token(3, START)))
    ask(HERA, IssueToken("bob@laptop", *_token(4, START)))
    ask(HERA, RevokeToken("alice", "000000000002"))
    ask(HERA, RevokeToken("alice", "00000000000f"))
    ask(HERA, RegisterAgent("alice", "observer"))
    ask(HERA, IssueToken("alice", *_token(5, START)))
    ask(HERA, RevokeToken("alice"))
    ask(HERA, SetAgentKey("alice", ""))
    ask(HERA, IssueToken("alice", *_token(6, START)))


def play_letters(store: Store) -> None:
    """Run letters and their states, and tasks that mail claims and hands on."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("alice", speaks=("agentmail",)))
    original_text = b'{"subject":"BEAD_ACCEPTED","body_md":"Accepted bead: ol-1"}'
    accepted = PostMail(("olga",), "BEAD_ACCEPTED", "Accepted bead: ol-1", "BEAD_ACCEPTED")
    effect = (AdoptTask("bead", "ol-1", claim_for="alice", ttl_ms=1_200_000, origin="agentmail"),)
    ask(
        ALICE,
        replace(accepted, bead="ol-1", thread="ol-1"),
        original_text=original_text,
        effect=effect,
    )
    ask(BOB, replace(accepted, bead="ol-1"), effect=(ClaimTask("ol-1", "bob@laptop"),))
    question = PostMail(
        ("chiron", "bob@laptop"),
        "[ol-1] HELP_REQUEST",
        "Which way?\n\u202eleft",
        "HELP_REQUEST",
        "m-1",
        cc=("hera",),
        auto_copied=("olga",),
        bead="ol-1",
        importance="urgent",
        ack_wanted=True,
        answer_wanted=True,
        due_in_ms=2_000,
        attachments=("out/a.md",),
        sent_at=START,
    )
    ask(ALICE, question)
    ask(ALICE, question)
    ask(HERA, ReadMail("m-1"))
    ask(BOB, AckMail("m-1"))
    ask(CAROL, AckMail("m-1"))
    ask(HUB_ACTOR, EscalateMail("m-1", ("olga", "otis")))
    answer = PostMail(("alice",), "HELP_RESPONSE", "Left.", "HELP_RESPONSE", reply_to="m-1")
    ask(CAROL, answer, AnswerMail("m-1", roles=("agent",)))
    left = CheckpointTask("ol-1", "CONTEXT_HIGH", "0a1b2c3", "half", "the other half")
    ask(ALICE, left)
    ask(
        HERA,
        CheckpointTask("ol-1", "RESUME", "ffff"),
        MoveTask("ol-1", "ready", unless_in_progress=True),
    )
    ask(BOB, ClaimTask("ol-1", "bob@laptop"))
    ask(BOB, ReportOutcome("ol-1", "done", apply=True))


def play_waves(store: Store) -> None:
    """Run waves and file reservations."""
    ask = Play(store).ask
    ask(HERA, CreateTask("One", "one", ready=True))
    ask(HERA, CreateTask("Two", "two", ready=True))
    ask(ALICE, ReserveFiles(("src/a/**", "b.md"), 60_000, reason="big change"))
    ask(ALICE, ReserveFiles(("src/a/**", "b.md"), 120_000))
    ask(BOB, ReserveFiles(("src/**",), 60_000))
    beads = (WaveBead("one", ("x.py",)), WaveBead("two", ("x.py",)))
    ask(HERA, StartWave(beads, 2, "w-1", {"TESTS_FAIL": 1}), AdvanceWave("w-1"))
    ask(ALICE, ReleaseReservations())
    ask(HERA, MoveTask("one", "cancelled"))
    ask(HUB_ACTOR, AdvanceWave("w-1"))
    ask(HERA, MoveTask("two", "cancelled"))
    ask(HUB_ACTOR, AdvanceWave("w-1"))


def _token(number: int, after: int) -> tuple[str, str, int]:
    """Make the id, digest and expiry of a token."""
    return f"{number:012x}", f"{number:064x}", after + 90 * 86_400_000


def play_pauses(store: Store) -> None:
    """Run pauses of agents, until a time or by hand, and their end."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("alice"), RegisterAgent("bob"))
    ask(
        HUB_ACTOR,
        PauseAgent("alice", "alice has used 2 of 2 (attempts_per_day)", START + 86_400_000),
    )
    ask(ALICE, ResumeAgent("alice"))
    ask(HERA, ResumeAgent("alice"))
    ask(HERA, PauseAgent("bob"))


def play_presence(store: Store) -> None:
    """Run sessions of agents that wait, go on and end."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("alice"))
    ask(ALICE, ReportPresence("alice", "s-1", "waiting", "Run the tests?"))
    ask(ALICE, ReportPresence("alice", "s-2", "working"))
    ask(ALICE, ReportPresence("alice", "s-1", "idle"))
    ask(ALICE, ReportPresence("alice", "s-2", "ended"))


def play_dispatch(store: Store) -> None:
    """Run a claim for another agent: it is recorded, and its maker cannot approve the work."""
    ask = Play(store).ask
    ask(HERA, RegisterAgent("olga", "orchestrator"), CreateTask("One", "one", ready=True))
    ask(OLGA, ClaimTask("one", "alice"))
    ask(ALICE, ReportOutcome("one", "done", apply=True))
    ask(OLGA, MoveTask("one", "done"))
    ask(HERA, MoveTask("one", "done"))


def play_handoffs(store: Store) -> None:
    """Run handoffs with checks, rejections and escalations, and a work queue."""
    ask = Play(store).ask
    first = _offer("T-1", "carol", "H-1", package=handoff_package("T-1"))
    first = replace(first, sla_ms={"accepted": 1_000})
    ask(ALICE, AdoptTask("acp", "T-1", "A thing", ready=True), first)
    ask(BOB, _offer("T-1", "dave", "H-9"))
    looked_at = AcceptHandoff("H-1", _hash(store, "H-1"), ("schema",), waits_for="a disk")
    ask(CAROL, looked_at)
    ask(HERA, ApproveHandoff("H-1", note="fine"))
    accepted = replace(looked_at, waits_for="", artifacts={"a-1": "0" * 64}, left_out=("a-2",))
    ask(CAROL, accepted)
    ask(HUB_ACTOR, EscalateHandoff("H-1", ("cora",)))
    ask(CORA, ExtendHandoff("H-1", 60_000))
    ask(CAROL, ActivateHandoff("H-1", "s-1", 1_000, {"percent_complete": 50}))
    ask(HUB_ACTOR, NoteHandoff("H-1", "workq_integration", "degraded", {"item": "I-1"}))
    ask(HUB_ACTOR, ExpireLease("T-1", notify=("cora",)))
    ask(CAROL, ClaimTask("T-1", "carol"))
    ask(CAROL, _offer("T-1", "dave", "H-2", supersedes="H-1", due_at=START + 9_000_000))
    ask(CORA, ReassignHandoff("H-2", "erin", "dave is away"))
    ask(CAROL, WithdrawHandoff(_handoff(store, "H-2").superseded_by, "not now"))
    ask(CAROL, _offer("T-1", "dave", "H-3", sla_ms={"proposed": 60_000}))
    ask(DAVE, RejectHandoff("H-3", "timeout_risk", "not by then", "ask erin"))
    ask(CAROL, _offer("T-1", "dave", "H-4", supersedes="H-3"))
    failed = AcceptHandoff("H-4", _hash(store, "H-4"), ("schema",), (("missing_artifact", "a-1"),))
    ask(DAVE, failed)
    ask(CAROL, _offer("T-1", "dave", "H-5"))
    ask(DAVE, AcceptHandoff("H-5", _hash(store, "H-5"), ("schema",)))
    ask(DAVE, ActivateHandoff("H-5"))
    ask(DAVE, CompleteHandoff("H-5", "it works", ({"artifact_id": "out"},)))
    ask(CAROL, CloseHandoff("H-5", "thanks"))
    ask(DAVE, _offer("T-1", "erin", "H-6"))
    ask(HERA, MoveTask("T-1", "done"))
    ask(ALICE, AddWorkItem("See to it", "I-1"))
    ask(ALICE, ClaimWorkItem("I-1"))
    ask(ALICE, ReleaseWorkItem("I-1"))


def play_overdue(store: Store) -> None:
    """Run transitions that the hub makes: a late handoff, and one that a rewind withdraws."""
    play = Play(store)
    ask, offer = play.ask, _offer("T-1", "carol", "H-1", sla_ms={"proposed": 1_000})
    ask(ALICE, AdoptTask("acp", "T-1", "A thing", ready=True), offer)
    play.clock.advance(60_000)
    ask(CAROL, AcceptHandoff("H-1", _hash(store, "H-1"), ("schema",)))
    ask(CAROL, ActivateHandoff("H-1"))
    ask(HERA, RewindTask("T-1", 2, reason="a wrong turn"))


def play_attempts(store: Store) -> None:
    """Run an attempt without progress: flagged, escalated, and ended because it takes too long."""
    play = Play(store)
    ask = play.ask
    ask(HERA, CreateTask("Silent work", "T-1", ready=True))
    ask(ALICE, ClaimTask("T-1", "alice"))
    play.clock.advance(60_000)
    ask(HUB_ACTOR, FlagAttempt("T-1", 1_000))
    ask(HUB_ACTOR, FlagAttempt("T-1", 1_000, 2_000))
    ask(HUB_ACTOR, ExpireLease("T-1", max_ms=3_000))


def handoff_package(task: str) -> dict[str, Any]:
    """Build a package with the required fields only."""
    return {
        "task": {"task_id": task, "success_criteria": ["it works"]},
        "context": {"summary": "half done: na\u00efve"},
        "work_state": {"status": "in_progress", "next_step": "the other half"},
        "policy": {"classification": "internal", "requires_human_approval": True},
        "verification": {"schema_version": "1.0.0"},
    }


def _offer(task: str, recipient: str, id: str, **fields: Any) -> ProposeHandoff:
    package: dict[str, Any] | None = fields.pop("package", None)
    if package is None:
        package = {**handoff_package(task), "policy": {"classification": "internal"}}
    return ProposeHandoff(task, recipient, package, id, **fields)


def _hash(store: Store, id: str) -> str:
    return _handoff(store, id).package_hash


def _handoff(store: Store, id: str) -> Handoff:
    row = store.stream(handoff_stream(id))
    assert row is not None
    state = decode_state(row.name, row.state)
    assert isinstance(state, Handoff)
    return state


def play_intents(store: Store) -> None:
    """Run intents from their goal to their end, and the agents' learned reputation."""
    play = Play(store)
    ask = play.ask
    ask(OLGA, RegisterAgent("alice"), RegisterAgent("carol"))
    ask(OLGA, DescribeAgent("alice", ("python", "tests"), ("gdpr",), ("eu",), "T2", 0.5))
    ask(CAROL, DescribeAgent("carol", ("python",), latency_ms=500, capacity=3, reach="queue"))
    first = Candidate("alice", 0.7125, ScoreParts(0.5, 0.2, 0.0125, cost=-0.1), 0.25, ("python",))
    second = Candidate("carol", 0.55, ScoreParts(0.3, 0.1, newcomer=0.15), 0.25, ("python",))
    rules = Policy(1.0, "T0", (), ("python",), ("delete everything",))
    goal = DelegateIntent(
        "Write python tests",
        "parse",
        {"path": "src", "deep": [1, None]},
        ("gdpr",),
        ("python",),
        60_000,
        "plan-1",
        max_agents=2,
        candidates=(first, second),
        policy=rules,
    )
    ask(OLGA, goal, original_text=b'{"goal":"Write python tests"}')
    ask(ALICE, UpdateIntent("parse", "alice", 50, "half", "parse.1", 1, {"lines": 3}))
    ask(BOB, ReceiveResult("parse", "bob@laptop", success=True))
    ask(ALICE, ReceiveResult("parse", "alice", success=False, error="no parser"))
    ask(CAROL, ReceiveResult("parse", "carol", success=True, output={"lines": 9}))
    ask(OLGA, replace(goal, goal="Delete everything", id="no", follows="parse"))
    handed = replace(goal, id="handed", params={}, follows="")
    ask(HERA, handed)
    ask(HERA, EditTask("handed", assignee="carol"))
    play.clock.advance(70_000)
    ask(HUB_ACTOR, ExpireRequest("handed"))
    ask(HERA, replace(goal, id="stopped", params={}))
    ask(HERA, MoveTask("intent:stopped", "cancelled"))


def play_traces(store: Store) -> None:
    """Run turns, traces, duplicates, moves with a commit, and entropy signs."""
    played = Play(store)
    ask, developer = played.ask, Actor("agent", "developer")
    played.engine.current_commit = lambda: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
    ask(HERA, RegisterAgent("dev", saop_role="developer"))
    ask(developer, RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d0", masked=True))
    ask(developer, RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d0"))
    thought = RecordTrace(
        _event(1), "s-1", "THOUGHT_STREAM", {"n": 1}, "d1", agent="developer", turn=0
    )
    ask(developer, thought)
    ask(developer, replace(thought, event_id=_event(2), is_final=True))
    ask(developer, replace(thought, event_id=_event(3), is_final=True))
    call = RecordTrace(_event(4), "s-1", "TOOL_LIFECYCLE_INVOKED", {"n": 4}, "d4", call="c-1")
    ask(developer, call)
    ask(developer, replace(call, event_id=_event(5), ends_call=True))
    ask(developer, replace(call, event_id=_event(6), ends_call=True))
    ask(developer, RequestTransition("one", "blocked", _event(7), "f" * 40))
    ask(HUB_ACTOR, EscalateEntropy("one", "loop", "round and round", (0, 1), 2.0, 2.0))
    ask(HUB_ACTOR, SettleEntropy("one", "loop", 1.0))
    ask(HERA, RewindTask("one", 2, "e" * 40, "rewind/one", "a wrong turn"))


def play_reviews(store: Store) -> None:
    """Run turns of reviewers, which are counted for each of them."""
    ask, developer = Play(store).ask, Actor("agent", "developer")
    ask(HERA, RegisterAgent("rita", saop_role="reviewer"))
    ask(developer, RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d0"))
    ask(developer, ReportOutcome("one", "done", apply=True))
    for number, name in enumerate(("reviewer", "rita", "reviewer")):
        shown = RecordTurn("one", number // 2, "reviewer", 0.5, {"n": number}, f"r{number}")
        ask(Actor("agent", name), shown)


def play_questions(store: Store) -> None:
    """Run questions: asked, answered, withdrawn, by letter and by a report; and a review."""
    ask = Play(store).ask
    ask(HERA, CreateTask("One", "one", ready=True))
    ask(ALICE, ClaimTask("one", "alice"))
    ask(ALICE, AskQuestion("one", "Which port?"))
    ask(ALICE, AskQuestion("one", "Which host?"))
    ask(ALICE, WithdrawQuestion("one", "q2"))
    ask(HERA, AnswerQuestion("one", "8080"))
    letter = PostMail(("bob@laptop",), "HELP_REQUEST", "Which key?", "HELP_REQUEST", "m-1")
    ask(
        ALICE,
        replace(letter, bead="one", answer_wanted=True, due_in_ms=2_000),
        effect=(AskQuestion("one", "Which key?", by_letter=True, mail="m-1"),),
    )
    answer = PostMail(("alice",), "HELP_RESPONSE", "The blue one.", reply_to="m-1")
    ask(BOB, answer, AnswerMail("m-1", text="The blue one."))
    ask(ALICE, ReportOutcome("one", "blocked", blockers=("no door",), apply=True))
    ask(HERA, AnswerQuestion("one", "There is one now."))
    ask(ALICE, ClaimTask("one", "alice"))
    ask(ALICE, ReportOutcome("one", "done", apply=True))
    ask(HERA, SendBackTask("one", "The door is open."))
    ask(ALICE, AskQuestion("one", "Which door?"))
    ask(HERA, MoveTask("one", "cancelled"))


def _event(number: int) -> str:
    return f"01890a5d-ac96-774b-bcce-{number:012x}"


def play_edits(store: Store) -> None:
    """Assign held work, change deadlines and dependencies, reopen what has ended."""
    ask = Play(store).ask
    ask(HERA, CreateTask("One", "one", ready=True, deadline=START + 60_000))
    ask(HERA, CreateTask("Two", "two", ready=True, blocked_by=("one",)))
    ask(HERA, UnlinkTask("two", "one"))
    ask(HERA, EditTask("two", deadline=START + 90_000))
    ask(HERA, EditTask("two", deadline=0))
    ask(ALICE, ClaimTask("two", "alice"))
    ask(HERA, EditTask("two", assignee="carol", take=True, reason="she knows it"))
    ask(HERA, MoveTask("one", "cancelled"))
    ask(HERA, RewindTask("one", 0, reason="needed after all"))


def play_checks(store: Store) -> None:
    """Run checks: of a task and of an agent, failed, passed, and taken away."""
    ask = Play(store).ask
    ask(HERA, CreateTask("One", "one", ready=True, review_required=False, checks=("make test",)))
    ask(HUB_ACTOR, ClaimTask("one", "alice", checks=("make lint",)))
    ask(ALICE, ReportOutcome("one", "done", apply=True))
    failed = CheckResult("make test", 2, "", 70, "ab" * 32, "no rule")
    ask(HUB_ACTOR, RecordChecks("one", 1, (failed,)))
    ask(ALICE, ClaimTask("one", "alice"))
    ask(ALICE, ReportOutcome("one", "done", apply=True))
    ask(HUB_ACTOR, RecordChecks("one", 2, (CheckResult("make test", 0),)))
    ask(HERA, CreateTask("Two", "two", checks=("true",)))
    ask(HERA, EditTask("two", checks=()))


SCRIPTS: dict[str, Callable[[Store], None]] = {
    "tasks": play,
    "messages": play_messages,
    "credentials": play_credentials,
    "waves": play_waves,
    "pauses": play_pauses,
    "presence": play_presence,
    "dispatch": play_dispatch,
    "letters": play_letters,
    "traces": play_traces,
    "intents": play_intents,
    "reviews": play_reviews,
    "overdue": play_overdue,
    "handoffs": play_handoffs,
    "attempts": play_attempts,
    "questions": play_questions,
    "edits": play_edits,
    "checks": play_checks,
}
"""Name of a golden ledger -> script that writes it."""


def to_stored(entry: Entry) -> Stored:
    """Convert an entry to a line of a golden file."""
    return Stored(
        entry.position,
        entry.stream,
        entry.version,
        entry.event,
        entry.line.decode(),
        entry.previous.hex(),
        entry.hash.hex(),
    )


def stored_entries(store: Store) -> list[Stored]:
    """Convert the ledger to lines of a golden file."""
    return [to_stored(entry) for entry in store.entries(0, 1_000)]


def stored_states(store: Store) -> dict[str, Any]:
    """Decode every stream's state with all its fields, so that a changed default shows."""
    return {
        row.name: to_json_values(decode_state(row.name, row.state))
        for row in store.rows(0, 1_000)
        if row.state
    }


def to_json_values(value: Any) -> Any:
    """Convert a state to JSON values, with all fields."""
    if isinstance(value, Struct):
        return {name: to_json_values(field) for name, field in asdict(value).items()}
    if isinstance(value, tuple):
        return [to_json_values(item) for item in cast(tuple[Any, ...], value)]
    return value


def golden_entries(name: str) -> list[Stored]:
    """Load a golden ledger."""
    lines = (FOLDER / f"{name}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Stored) for line in lines]


def golden_states(name: str) -> dict[str, Any]:
    """Load the recorded states of a golden ledger."""
    return json.loads((FOLDER / f"{name}.states.json").read_bytes())


def by_stream(entries: Sequence[Stored]) -> dict[str, list[Stored]]:
    """Group entries by stream, in order."""
    streams: dict[str, list[Stored]] = {}
    for entry in entries:
        streams.setdefault(entry.stream, []).append(entry)
    return streams


def replay_states(entries: Sequence[Stored]) -> dict[str, Any]:
    """Replay entries into states."""
    return {
        stream: to_json_values(replay(entry.line.encode() for entry in part))
        for stream, part in by_stream(entries).items()
    }


def main() -> None:
    """Print the ledger that a script writes, or the states that a golden ledger folds into."""
    name, output = sys.argv[1:]
    if output == "states":
        states = replay_states(golden_entries(name))
        sys.stdout.write(json.dumps(states, indent=1, sort_keys=True) + "\n")
        return
    store = MemoryStore("released")
    SCRIPTS[name](store)
    for line in map(msgspec.json.encode, stored_entries(store)):
        sys.stdout.buffer.write(line + b"\n")


if __name__ == "__main__":
    main()
