"""Roles × commands × statuses: each cell of the permissions, against a table written by hand.

A letter stands for a role or, for agents, for a relation to the task:

    h human, o orchestrator, s the hub itself, c coordinator, x observer, f an edited file,
    t a trusted one, H the holder, O the agent that held it before and lost it, a the assignee
    while it is not held, d the agent that it was delegated to, n any other agent

A cell lists the actors whose command has an effect: an entry is added, or a lease begins, is
renewed or ends. For all others it is refused or a no-op.
"""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.agent import (
    AgentRecord,
    DescribeAgent,
    IssueToken,
    Pause,
    PauseAgent,
    RegisterAgent,
    Reputation,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
    TokenRecord,
)
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    FlagAttempt,
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import Report
from dragoman.core.base import Command, Status, command_name
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.deciders import DECIDERS
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    Handoff,
    HandoffStatus,
    NoteHandoff,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent.state import (
    CancelIntent,
    DelegateIntent,
    ExpireRequest,
    Intent,
    OpenRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, Mail, PostMail, ReadMail
from dragoman.core.presence import ReportPresence
from dragoman.core.question_state import AnswerQuestion, AskQuestion, Question, WithdrawQuestion
from dragoman.core.reservation import (
    ReleaseReservations,
    Reservation,
    Reservations,
    ReserveFiles,
)
from dragoman.core.task_state import (
    ActiveHandoff,
    AdoptTask,
    AliasTask,
    CreateTask,
    Delegation,
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
    TurnLog,
)
from dragoman.core.wave import AdvanceWave, StartWave, Wave, WaveBead
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem, WorkItem
from tests.core.handoffs import package
from tests.core.world import (
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TRUSTED_FILE,
    TTL,
    World,
    lease,
    task,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)
ACTORS = {
    "h": HUMAN,
    "o": ORCHESTRATOR,
    "s": HUB,
    "c": COORDINATOR,
    "x": OBSERVER,
    "f": FILE,
    "t": TRUSTED_FILE,
    "H": Actor("agent", "hal"),
    "O": Actor("agent", "old"),
    "a": Actor("agent", "ann"),
    "d": Actor("agent", "dan"),
    "n": Actor("agent", "ned"),
}
DAY = 86_400_000
EVENT = "01890a5d-ac96-774b-bcce-b302099a8057"
TOKEN = TokenRecord("0" * 12, "0" * 64, NOW, NOW + 10_000)


LETTER = Mail(
    "m",
    "pat",
    ("ann",),
    "m",
    "",
    "a",
    "b",
    ack_wanted=True,
    answer_wanted=True,
    due_by=NOW,
    posted_at=NOW,
)


def commands(name: str) -> tuple[Command, ...]:
    """One command of each kind about T; a name that must be the caller's own is `name`."""
    return (
        CreateTask("found"),
        AdoptTask("bead", "x-1"),
        MoveTask("T", "cancelled"),
        ClaimTask("T", name),
        RenewLease("T"),
        ReleaseTask("T"),
        LimitAttempt("T"),
        ReportOutcome("T", "needs_review", "said"),
        EndAttempt("T"),
        ExpireLease("T"),
        FlagAttempt("T", 0),
        LinkTask("T", "discovered-from", "UU"),
        UnlinkTask("T", "UU"),
        AliasTask("T", "bead:b"),
        NoteTask("T", "said"),
        UpdateTask("T", progress="said"),
        EditTask("T", "another title"),
        WarnTask("T", "odd"),
        RequestDelegation("UU", "T", "bob", NOW + 1),
        AcceptDelegation("T"),
        RejectDelegation("T"),
        EscalateDelegation("T"),
        RegisterAgent("known", speaks=("aof",)),
        SetAgentKey("known", "A" * 43),
        IssueToken("known", "1" * 12, "1" * 64, NOW + 10_000),
        RevokeToken("known", "0" * 12),
        PauseAgent("known", "enough"),
        ResumeAgent("paused"),
        ReportPresence("known", "s-1", "working"),
        RejectMessage("not_authorized", "x"),
        CheckpointTask("T", "MANUAL", "0a1b2c3"),
        PostMail(("ann",), "said", ""),
        ReadMail("m"),
        AckMail("m"),
        AnswerMail("m", roles=("human", "orchestrator", "coordinator", "system")),
        EscalateMail("m"),
        StartWave((WaveBead("free"),), 1),
        AdvanceWave("w"),
        ReserveFiles(("a",), TTL),
        ReleaseReservations(("r",)),
        ProposeHandoff("proposing", "zoe", package()),
        AcceptHandoff("proposed", "", failed=(("other", "no"),)),
        RejectHandoff("proposed", "other", "no"),
        WithdrawHandoff("proposed"),
        ActivateHandoff("accepted"),
        CompleteHandoff("activated"),
        CloseHandoff("rejected"),
        ApproveHandoff("proposed"),
        EscalateHandoff("proposed"),
        ExtendHandoff("proposed", 60_000),
        ReassignHandoff("proposed", "zoe"),
        NoteHandoff("proposed", "remark", "said"),
        AddWorkItem("x"),
        ClaimWorkItem("free"),
        ReleaseWorkItem("taken"),
        DescribeAgent("known", ("python",)),
        DelegateIntent("write it", "new"),
        ReceiveResult("i", name, success=True),
        UpdateIntent("i", name, 50),
        ExpireRequest("i"),
        CancelIntent("intent:i"),
        RewindTask("T", 1),
        RecordTurn("T", 0, "developer", 0.5, {}, "digest"),
        RecordTrace(EVENT, "s-1", "ANY", {}, "digest"),
        RequestTransition("T", "cancelled", EVENT),
        EscalateEntropy("T", "loop", "round and round", (1, 2), 2.0, 2.0),
        SettleEntropy("T", "falling_confidence", 0.0),
        AskQuestion("T", "Which port?"),
        AnswerQuestion("T", "8080", "q1"),
        WithdrawQuestion("T", "q1"),
        SendBackTask("T", "no tests"),
        RecordChecks("T", 2, (CheckResult("true", 0),)),
    )


NAMES = tuple(map(command_name, commands("ned")))


def world(status: Status) -> World:
    """T in this status: held by hal if in progress, else assigned to ann; delegated to dan."""
    is_held = status == "in-progress"
    owner = "hal" if is_held else "ann"
    found = replace(
        task("T", status, owner, attempts=2, agents=("old", owner)),
        delegation=Delegation("P", "pat", "dan", NOW),
        blocked_by=("UU",),
        reported=Report(2, "hal", "partial", at=NOW) if is_held else None,
        questions=(Question("q1", "Which host?", NOW, "ann"),),
        asked=1,
        checks=("true",),
    )
    built = World(
        found, task("UU"), task("free"), leases=[("T", lease("hal", 2))] if is_held else ()
    )
    built.agents["known"] = AgentRecord("known", "agent", (), NOW, "", (TOKEN,))
    built.agents["paused"] = AgentRecord("paused", "agent", (), NOW, pause=Pause("enough", NOW))
    built.mails["m"] = LETTER
    built.turn_logs["T"] = TurnLog("T", 1, {"falling_confidence": 0.1})
    built.waves["w"] = Wave("w", (WaveBead("UU"),), 1, "hera", NOW)
    built.reservations = Reservations((Reservation("r", ("b",), "ann", NOW + TTL),))
    built.put(task("UU", "backlog"))
    built.put(task("proposing", "ready", "ann"))
    for state in ("proposed", "accepted", "activated", "rejected"):
        _add_handoff(built, state)
    built.work_items["free"] = WorkItem("free", "", "open", NOW)
    built.work_items["taken"] = WorkItem("taken", "", "claimed", NOW, "ann")
    built.put(replace(task("III", "ready", "ann"), reserved_for="ann", aliases=("intent:i",)))
    request = OpenRequest("i.1", "ann", 1, NOW, 0, NOW + TTL)
    built.intents["i"] = Intent(
        "i", "III", "write it", "hera", NOW, "TaskDispatched", request=request
    )
    built.reputations["ann"] = Reputation("ann", open=1)
    built.past["T", 1] = replace(task("T"), title="as it was called then")
    return built


def _add_handoff(built: World, state: HandoffStatus) -> None:
    """Add a handoff from ann to dan of a task of its own, both named by the state."""
    is_active = state != "rejected"
    is_taken = state == "activated"
    offered_task = task(state, "in-progress" if is_taken else "ready", "dan" if is_taken else "ann")
    active_handoff = ActiveHandoff(state, "ann", "dan", is_taken) if is_active else None
    built.put(replace(offered_task, chain=("ann",), handoff=active_handoff))
    if is_taken:
        built.leases[state] = lease("dan", 0)
    built.handoffs[state] = Handoff(
        state, "ann", "dan", state, NOW - DAY, NOW - DAY, package(), state, thread=state
    )


def has_effect(actor: Actor, name: str, status: Status) -> bool:
    """Decide the command; true if it adds an entry or changes a lease."""
    command = commands(actor.name)[NAMES.index(name)]
    now = NOW + TTL if isinstance(command, ExpireLease | ExpireRequest) else NOW
    answer = world(status).decide(actor, command, now)
    if isinstance(answer, Refusal) or answer.refusal is not None:
        return False
    return bool(answer.events or answer.lease)


_OPEN: tuple[Status, ...] = ("backlog", "ready", "in-progress", "blocked", "review")

EXPECTED_ACTORS: dict[str, tuple[str, dict[Status, str]]] = {
    "task.create": ("hoscHOadn", {}),
    "task.adopt": ("hoscHOadn", {}),
    "task.move": ("", dict.fromkeys(_OPEN, "hosc")),
    "task.claim": ("", {"ready": "hosHOadn", "review": "a"}),
    "task.heartbeat": ("", {"in-progress": "H"}),
    "task.release": ("", {"in-progress": "sH"}),
    "attempt.limit": ("", {"in-progress": "sH"}),
    "task.report": ("", {"in-progress": "sH"}),
    "attempt.end": ("", {"in-progress": "hosH"}),
    "lease.expire": ("", {"in-progress": "hos"}),
    "attempt.flag": ("", {"in-progress": "hos"}),
    "task.link": ("hoscHadn", {}),
    "task.unlink": ("hosca", {"in-progress": "hoscH"}),
    "task.alias": ("hoscHadn", {}),
    "task.note": ("hoscHadn", {}),
    "task.update": ("hosca", {"in-progress": "hoscH"}),
    "task.edit": ("hoscfta", {"in-progress": "hoscftH"}),
    "task.warn": ("hoscHOadn", {}),
    "delegation.request": ("hosc", {"in-progress": "hoscH"}),
    "delegation.accept": ("d", {}),
    "delegation.reject": ("d", {}),
    "delegation.escalate": ("hos", {"done": "", "cancelled": ""}),
    "agent.register": ("hos", {}),
    "agent.key": ("hos", {}),
    "agent.pause": ("hos", {}),
    "agent.resume": ("ho", {}),
    "agent.presence": ("hos", {}),
    "token.issue": ("hos", {}),
    "token.revoke": ("hos", {}),
    "message.reject": ("", {}),
    "task.checkpoint": ("hos", {"in-progress": "H", "done": "", "cancelled": ""}),
    "mail.post": ("hoscHOadn", {}),
    "mail.read": ("a", {}),
    "mail.ack": ("a", {}),
    "mail.answer": ("hosca", {}),
    "mail.escalate": ("hos", {}),
    "wave.start": ("hosc", {}),
    "wave.advance": ("hosc", {}),
    "reservation.take": ("hoscHOadn", {}),
    "reservation.release": ("hosca", {}),
    "handoff.propose": ("a", {}),
    "handoff.accept": ("d", {}),
    "handoff.reject": ("hoscd", {}),
    "handoff.withdraw": ("a", {}),
    "handoff.activate": ("d", {}),
    "handoff.complete": ("d", {}),
    "handoff.close": ("hosca", {}),
    "handoff.approve": ("h", {}),
    "handoff.escalate": ("hos", {}),
    "handoff.extend": ("hosc", {}),
    "handoff.reassign": ("hosc", {}),
    "handoff.note": ("hoscad", {}),
    "workq.add": ("hoscHOadn", {}),
    "workq.claim": ("hoscHOadn", {}),
    "workq.release": ("hosca", {}),
    "agent.describe": ("hos", {}),
    "intent.delegate": ("hoscHOadn", {}),
    "intent.result": ("a", {}),
    "intent.update": ("a", {}),
    "intent.expire": ("hos", {}),
    "intent.cancel": ("hosc", {}),
    "task.rewind": ("ho", {}),
    # Agents may if they have the SAOP role: tested with the other rules of turns.
    "turn.record": ("hos", {}),
    "trace.record": ("hoscHOadn", {}),
    "task.transition": ("", dict.fromkeys(_OPEN, "hosc")),
    "entropy.escalate": ("hos", {}),
    "entropy.settle": ("hos", {}),
    "task.ask": ("hosca", {"in-progress": "hoscH", "done": "", "cancelled": ""}),
    "task.answer": ("hos", {}),
    # The one who asked may, while it speaks for the work.
    "task.withdraw-question": ("hosa", {"in-progress": "hos"}),
    "task.send-back": ("", {"review": "hosct"}),
    "task.record-checks": ("", {"review": "s"}),
}
"""Command -> actors for whom it has an effect: in any status, and in those that differ."""


@proves("ROLE-CELLS")
def test_role_table_covers_every_command() -> None:
    every = {str(kind.__struct_config__.tag) for kind in tuple(DECIDERS)}
    assert set(EXPECTED_ACTORS) == set(NAMES) == every


@proves("ROLE-CELLS", "ROLE-TABLE")
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", NAMES)
def test_effect_of_command_by_role_matches_the_table(name: str, status: Status) -> None:
    default, by_status = EXPECTED_ACTORS[name]
    expected = by_status.get(status, default)
    for letter, actor in ACTORS.items():
        assert has_effect(actor, name, status) == (letter in expected), letter
