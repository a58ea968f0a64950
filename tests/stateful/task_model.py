"""Reference model of tasks, written from the semantics and not from the code.

It knows status, owner, attempt, fence, failures, blockers, names, leases and delegations, and says
for every command whether it is accepted, and if not, with which code.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.actor import Actor
from dragoman.core.attempt import (
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.mail import PostMail
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    UpdateTask,
)
from tests.core.expected_transitions import EXPECTED_TRANSITIONS

RANKS = {"critical": 0, "high": 1, "normal": 2, "low": 3}
TRANSITIONS = {
    str(a): {str(b): who for b, who in targets.items()}
    for a, targets in EXPECTED_TRANSITIONS.items()
}
PRIVILEGED = ("human", "orchestrator", "system")
LETTERS = {"human": "h", "orchestrator": "o", "system": "s", "coordinator": "c", "observer": "x"}


class ModelRefusal(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class ModelLease:
    holder: str
    fence: int
    ttl: int
    ends: int


@dataclass
class ModelTask:
    id: str
    order: int
    created_at: int
    status: str = "backlog"
    owner: str = ""
    reserved: str = ""
    priority: str = "normal"
    reviewed: bool = True
    limit: int = 5
    attempt: int = 0
    failures: int = 0
    not_before: int = 0
    report: str = ""
    notes: int = 0
    names: list[str] = field(default_factory=list[str])
    blocked_by: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    agents: list[str] = field(default_factory=list[str])
    ended_by: str = ""
    """Agent that ended the last attempt itself; empty: its lease was lost."""
    lease: ModelLease | None = None
    parent: str = ""
    children: list[str] = field(default_factory=list[str])
    depth: int = 0
    offer: tuple[str, str, str, int] | None = None
    """Delegation: parent, from agent, to agent, due by."""
    answer: str = ""
    escalated: bool = False

    @property
    def is_waited_for(self) -> bool:
        """True if the delegated task is still to be done."""
        has_ended = self.status in ("done", "cancelled")
        return self.offer is not None and self.answer != "rejected" and not has_ended


Applied = tuple[ModelTask | None, bool]
"""Task of the command, and whether its lease may be renewed after it."""
Rules = dict[type[Command], Callable[[Actor, Any, int], Applied]]

Request = tuple[str, tuple[Command, ...]]
"""Actor and commands."""


class Model:
    """Tasks, and the effect of commands on them."""

    def __init__(self) -> None:
        self.tasks: dict[str, ModelTask] = {}
        self.answers: dict[tuple[str, str], tuple[Request, list[object]]] = {}
        self._order = 0
        self.cause = ""
        """Id of the current request."""

    def submit(
        self, actor: Actor, commands: tuple[Command, ...], key: str, now: int, cause: str = ""
    ) -> tuple[str, list[object]]:
        """Code of the refusal (empty if accepted), and a receipt for each command."""
        self.cause = cause
        scope = self._scope(actor, commands[0])
        if key and (scope, key) in self.answers:
            request, receipts = self.answers[scope, key]
            if request != (actor.label, commands):
                return "key_reused", []
            for command in commands:
                self._renew(actor, command, now)
            return "", receipts
        before = deepcopy(self.snapshot())
        try:
            receipts = [self._do(actor, command, now) for command in commands]
        except ModelRefusal as refusal:
            self.restore(before)
            return refusal.code, []
        if key:
            self.answers[scope, key] = (actor.label, commands), receipts
        return "", receipts

    def snapshot(self) -> tuple[Any, ...]:
        """State that a refusal leaves unchanged."""
        return (self.tasks,)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        (self.tasks,) = snapshot

    def expired(self, now: int) -> list[str]:
        """Tasks whose lease has expired."""
        return [t.id for t in self.tasks.values() if t.lease and t.lease.ends <= now]

    def overdue(self, now: int) -> list[str]:
        """Tasks whose delegation is overdue and not escalated."""
        return [
            t.id
            for t in self.tasks.values()
            if t.offer and t.is_waited_for and not t.escalated and t.offer[3] <= now
        ]

    def find(self, name: str) -> ModelTask:
        """Find a task by id, by KIND:NAME or by bare name."""
        if name in self.tasks:
            return self.tasks[name]
        found = [
            t for t in self.tasks.values() if any(name in (n, n.split(":")[1]) for n in t.names)
        ]
        if not found:
            raise ModelRefusal("task_not_found")
        if len(found) > 1:
            raise ModelRefusal("ambiguous_name")
        return found[0]

    def _scope(self, actor: Actor, first: Command) -> str:
        try:
            return (
                self.find(first.target_task).id
                if first.target_task
                else f"{actor.role}:{actor.name}"
            )
        except ModelRefusal:
            return f"{actor.role}:{actor.name}"

    def _do(self, actor: Actor, command: Command, now: int) -> object:
        task, keeps_lease = self._apply(actor, command, now)
        if keeps_lease:
            self._renew(actor, command, now)
        return (task.id, task.status, task.attempt) if task else ("", None, 0)

    def _renew(self, actor: Actor, command: Command, now: int) -> None:
        try:
            task = self.find(_heartbeat_task(command))
        except ModelRefusal:
            return
        if task.lease and holds(actor, task, now):
            task.lease.ends = max(task.lease.ends, now + task.lease.ttl)

    def _apply(self, actor: Actor, command: Command, now: int) -> Applied:
        return self.rules()[type(command)](actor, command, now)

    def rules(self) -> Rules:
        """Command -> its rule."""
        return {
            CreateTask: self._create,
            AdoptTask: self._adopt,
            MoveTask: self._move,
            ClaimTask: self._claim,
            RenewLease: self._heartbeat,
            ReleaseTask: self._release,
            ReportOutcome: self._report,
            EndAttempt: self._end,
            ExpireLease: self._expire,
            LinkTask: self._link,
            AliasTask: self._alias,
            NoteTask: self._note,
            UpdateTask: self._update,
            EditTask: self._edit,
            RequestDelegation: self._offer,
            AcceptDelegation: self._accept,
            RejectDelegation: self._reject,
            EscalateDelegation: self._escalate,
        }

    def _heartbeat(self, actor: Actor, command: RenewLease, now: int) -> Applied:
        task = self.find(command.task)
        check_holds(actor, task, command.fence, now)
        return task, True

    def _release(self, actor: Actor, command: ReleaseTask, now: int) -> Applied:
        task = self.find(command.task)
        check_holds(actor, task, command.fence, now)
        end_attempt(actor, task)
        self._enter(task, "ready")
        return task, False

    def _note(self, actor: Actor, command: NoteTask, now: int) -> Applied:
        task = self.find(command.task)
        check_may_comment(actor, task, now)
        task.notes += 1
        return task, True

    def _create(self, actor: Actor, command: CreateTask, now: int) -> Applied:
        check_may_write(actor)
        if actor.role == "agent" and not (command.review_required or command.may_skip_review):
            raise ModelRefusal("not_authorized")
        blockers = [self.find(name) for name in command.blocked_by]
        for name in (command.id, *command.aliases):
            self._check_free(name)
        self._order += 1
        task = ModelTask(
            command.id,
            self._order,
            now,
            "ready" if command.ready else "backlog",
            command.assignee,
            command.assignee,
            command.priority,
            command.review_required,
            command.max_attempts,
            names=list(command.aliases),
            blocked_by=[blocker.id for blocker in blockers],
            open=[b.id for b in blockers if b.status not in ("done", "cancelled")],
        )
        self.tasks[task.id] = task
        return task, False

    def _adopt(self, actor: Actor, command: AdoptTask, now: int) -> Applied:
        check_may_write(actor)
        name, alias = command.name, f"{command.kind}:{command.name}"
        for known in (alias, name):
            try:
                found = self.find(known)
                if alias not in found.names:
                    found.names.append(alias)
                return found, False
            except ModelRefusal as refusal:
                if refusal.code != "task_not_found":
                    raise
        return self._create(actor, CreateTask(name, name, ready=True, aliases=(alias,)), now)

    def _claim(self, actor: Actor, command: ClaimTask, now: int) -> Applied:
        if actor.role == "agent" and command.agent != actor.name:
            raise ModelRefusal("identity_mismatch")
        if actor.role not in ("agent", "human", "orchestrator", "system"):
            raise ModelRefusal("not_authorized")
        task = self.find(command.task) if command.task else self._next(command.agent, now)
        if task.lease:
            raise ModelRefusal("already_claimed")
        if task.status not in ("ready", "review"):
            raise ModelRefusal("not_ready")
        if task.status == "review" and task.owner != command.agent:
            raise ModelRefusal("unauthorized_agent")
        if task.reserved not in ("", command.agent):
            raise ModelRefusal("reserved_for_other")
        if task.open:
            raise ModelRefusal("blocked_by_dependency")
        task.attempt += 1
        task.status, task.owner, task.report, task.not_before = "in-progress", command.agent, "", 0
        task.ended_by = ""
        task.lease = ModelLease(command.agent, task.attempt, command.ttl_ms, now + command.ttl_ms)
        if command.agent not in task.agents:
            task.agents.append(command.agent)
        return task, False

    def _next(self, agent: str, now: int) -> ModelTask:
        ready = [
            task
            for task in self.tasks.values()
            if task.status == "ready"
            and not task.open
            and task.not_before <= now
            and task.reserved in ("", agent)
        ]
        if not ready:
            raise ModelRefusal("nothing_ready")
        return min(ready, key=lambda task: (RANKS[task.priority], task.created_at, task.order))

    def _report(self, actor: Actor, command: ReportOutcome, now: int) -> Applied:
        task = self.find(command.task)
        if command.outcome == "blocked" and not command.blockers:
            raise ModelRefusal("invalid_field")
        leads = {
            "done": "review" if task.reviewed else "done",
            "blocked": "blocked",
            "needs_review": "review",
            "partial": "review",
        }
        if task.status in ("done", leads.get(command.outcome)):
            check_may_repeat(actor, task, command.fence, now)
            return task, True
        check_holds(actor, task, command.fence, now)
        task.report = command.outcome
        if command.apply:
            self._conclude(task, now)
        return task, not command.apply

    def _end(self, actor: Actor, command: EndAttempt, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in PRIVILEGED:
            check_holds(actor, task, None, now)
        if not task.lease or not task.report:
            return task, True
        self._conclude(task, now)
        return task, False

    def _expire(self, actor: Actor, command: ExpireLease, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in PRIVILEGED:
            raise ModelRefusal("not_authorized")
        if task.lease and task.lease.ends <= now:
            self._conclude(task, now)
        return task, False

    def _conclude(self, task: ModelTask, now: int) -> None:
        """End the attempt: by its report, or else as a failure."""
        task.ended_by = task.owner if task.report else ""
        if task.report == "blocked":
            self._enter(task, "blocked")
        elif task.report in ("done", "needs_review", "partial"):
            self._enter(task, "review")
            if task.report == "done" and not task.reviewed:
                self._enter(task, "done")
        else:
            failures = task.failures + 1
            self._enter(task, "ready")
            task.failures = failures
            task.not_before = now + min(1_000 * 2 ** (failures - 1), 300_000)
            if failures >= task.limit:
                self._enter(task, "deadletter")

    def _move(self, actor: Actor, command: MoveTask, now: int) -> Applied:
        task = self.find(command.task)
        if task.status == command.to:
            check_may_repeat(actor, task, command.fence, now)
            return task, True
        check_may_move(actor, task, command.to, command.fence, now)
        end_attempt(actor, task)
        self._enter(task, command.to)
        return task, False

    def _update(self, actor: Actor, command: UpdateTask, now: int) -> Applied:
        task, to, has_words = self.find(command.task), command.to, bool(command.notes)
        check_may_write(actor)
        if to and to != "in-progress" and to in TRANSITIONS[task.status]:
            check_may_move(actor, task, to, command.fence, now)
            end_attempt(actor, task)
            self._enter(task, to)
            return task, False
        if not has_words and to in (None, task.status):
            check_may_repeat(actor, task, command.fence, now)
            return task, True
        check_owns(actor, task, command.fence, now)
        task.notes += has_words
        return task, True

    def _edit(self, actor: Actor, command: EditTask, now: int) -> Applied:
        task, assignee = self.find(command.task), command.assignee
        changed = (command.priority is not None, assignee is not None)
        if (actor.role == "observer" and any(changed)) or (actor.role == "agent" and changed[1]):
            raise ModelRefusal("not_authorized")
        check_owns(actor, task, command.fence, now)
        if task.lease and assignee not in (None, task.owner):
            raise ModelRefusal("already_claimed")
        task.priority = command.priority or task.priority
        if assignee is not None and not task.lease:
            task.reserved = task.owner = assignee
        return task, True

    def _offer(self, actor: Actor, command: RequestDelegation, now: int) -> Applied:
        check_may_write(actor)
        child, parent = self.find(command.task), self._parent(command.parent)
        offer = (parent.id, actor.name, command.to_agent, command.due_by)
        if child.offer == offer:
            return child, True
        if actor.role == "agent":
            try:
                check_holds(actor, parent, None, now)
            except ModelRefusal as refusal:
                raise ModelRefusal(
                    "lease_lost" if refusal.code == "lease_lost" else "unauthorized_agent"
                ) from refusal
            if is_arranged_by_others(child, parent, (actor.name, command.to_agent)):
                raise ModelRefusal("unauthorized_agent")
        if child.status in ("done", "cancelled"):
            raise ModelRefusal("invalid_transition")
        if parent.depth or any(self.tasks[part].is_waited_for for part in child.children):
            raise ModelRefusal("nested_delegation")
        above = parent
        while above.id != child.id and above.parent:
            above = self.tasks[above.parent]
        if above.id == child.id:
            raise ModelRefusal("link_cycle")
        child.offer, child.answer, child.escalated, child.depth = offer, "requested", False, 1
        if not child.parent:
            child.parent = parent.id
            parent.children.append(child.id)
        return child, True

    def _parent(self, name: str) -> ModelTask:
        try:
            return self.find(name)
        except ModelRefusal as refusal:
            raise ModelRefusal(
                refusal.code.replace("task_not_found", "parent_not_found")
            ) from refusal

    def _accept(self, actor: Actor, command: AcceptDelegation, now: int) -> Applied:
        del now
        task = self.find(command.task)
        if self._may_answer(actor, task, "accepted"):
            if task.answer == "rejected":
                raise ModelRefusal("invalid_transition")
            task.answer = "accepted"
        return task, True

    def _reject(self, actor: Actor, command: RejectDelegation, now: int) -> Applied:
        del now
        task = self.find(command.task)
        if not self._may_answer(actor, task, "rejected"):
            return task, True
        task.answer = "rejected"
        is_held_by_another = task.lease is not None and task.lease.holder != actor.name
        if task.status in ("backlog", "ready", "in-progress") and not is_held_by_another:
            end_attempt(actor, task)
            self._enter(task, "blocked")
        return task, True

    def _may_answer(self, actor: Actor, task: ModelTask, answer: str) -> bool:
        """True if the answer is new."""
        if task.offer is None:
            raise ModelRefusal("invalid_transition")
        check_may_write(actor)
        if task.answer != answer and task.offer[2] != actor.name:
            raise ModelRefusal("unauthorized_agent")
        return task.answer != answer

    def _escalate(self, actor: Actor, command: EscalateDelegation, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in PRIVILEGED:
            raise ModelRefusal("not_authorized")
        task.escalated = task.escalated or task.id in self.overdue(now)
        return task, False

    def _enter(self, task: ModelTask, to: str) -> None:
        if task.status == "deadletter" or to in ("review", "done"):
            task.failures = 0
        task.status, task.not_before, task.lease = to, 0, None
        if to == "ready":
            task.owner = task.reserved
        if to in ("done", "cancelled"):
            for other in self.tasks.values():
                if task.id in other.open:
                    other.open.remove(task.id)

    def _alias(self, actor: Actor, command: AliasTask, now: int) -> Applied:
        task = self.find(command.task)
        check_may_comment(actor, task, now)
        if command.alias not in task.names:
            self._check_free(command.alias)
            task.names.append(command.alias)
        return task, True

    def _check_free(self, name: str) -> None:
        try:
            self.find(name)
        except ModelRefusal as refusal:
            if refusal.code == "task_not_found":
                return
        raise ModelRefusal("already_exists")

    def _link(self, actor: Actor, command: LinkTask, now: int) -> Applied:
        task, target = self.find(command.task), self.find(command.target)
        check_may_comment(actor, task, now)
        if target.id in task.blocked_by:
            return task, True
        if self._waits_for(target, task.id):
            raise ModelRefusal("link_cycle")
        task.blocked_by.append(target.id)
        if target.status not in ("done", "cancelled"):
            task.open.append(target.id)
        return task, True

    def _waits_for(self, task: ModelTask, goal: str) -> bool:
        return task.id == goal or any(self._waits_for(self.tasks[n], goal) for n in task.blocked_by)


def _heartbeat_task(command: Command) -> str:
    """Task whose lease a command renews for its holder."""
    if isinstance(command, RequestDelegation):
        return command.parent
    return command.bead if isinstance(command, PostMail) else command.target_task


def holds(actor: Actor, task: ModelTask, now: int) -> bool:
    """True if the actor has a valid lease on the task."""
    lease = task.lease
    return bool(lease and actor.role == "agent" and lease.holder == actor.name and now < lease.ends)


def is_arranged_by_others(child: ModelTask, parent: ModelTask, sides: tuple[str, str]) -> bool:
    """True if a parent, owner or delegation of others forbids an agent to delegate the task."""
    if child.parent not in ("", parent.id) or child.owner not in ("", *sides):
        return True
    if child.offer is None or not child.is_waited_for or child.offer[1] == sides[0]:
        return False
    return child.offer[0] != parent.id or child.offer[1] not in parent.agents


def is_current_fence(task: ModelTask, fence: int, now: int) -> bool:
    """True if the fence is that of the current attempt."""
    return task.lease is not None and now < task.lease.ends and fence == task.attempt


def is_idle_owner(actor: Actor, task: ModelTask) -> bool:
    """True if it owns a task that nobody works on, and has not lost its lease."""
    is_owner = task.owner == actor.name and task.status != "in-progress"
    return is_owner and (actor.name not in task.agents or task.ended_by == actor.name)


def end_attempt(actor: Actor, task: ModelTask) -> None:
    """End an attempt other than by its report, which is dropped; the holder may end its own."""
    if task.status == "in-progress":
        is_own = task.lease is not None and task.lease.holder == actor.name
        task.ended_by, task.report = actor.name if is_own else "", ""


def check_holds(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse an actor that does not hold the task under this fence."""
    is_current = fence is None or is_current_fence(task, fence, now)
    if is_current and holds(actor, task, now):
        return
    if not is_current or actor.name in task.agents:
        raise ModelRefusal("lease_lost")
    raise ModelRefusal("unauthorized_agent" if task.lease or task.owner else "unassigned_task")


def check_fence(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse a fence other than that of the current attempt; an agent must hold it itself."""
    if fence is not None and actor.role == "observer":
        raise ModelRefusal("not_authorized")
    if fence is not None and actor.role == "agent":
        check_holds(actor, task, fence, now)
    if fence is not None and not is_current_fence(task, fence, now):
        raise ModelRefusal("lease_lost")


def check_owns(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse an agent that neither holds the task nor owns it while it is not held."""
    is_owner = is_idle_owner(actor, task)
    check = check_fence if actor.role != "agent" or is_owner else check_holds
    check(actor, task, fence, now)


def check_may_repeat(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse a read-only role, and an old fence."""
    if actor.role == "observer":
        raise ModelRefusal("not_authorized")
    old_token = fence not in (None, task.attempt) or task.status == "in-progress"
    if old_token:
        check_fence(actor, task, fence, now)


def check_may_move(actor: Actor, task: ModelTask, to: str, fence: int | None, now: int) -> None:
    """Refuse a change that is not in the table, or not for this actor."""
    must_be_held = actor.role == "agent" and not is_idle_owner(actor, task)
    (check_holds if must_be_held else check_fence)(actor, task, fence, now)
    if to not in TRANSITIONS[task.status]:
        raise ModelRefusal("invalid_transition")
    if to == "in-progress":
        raise ModelRefusal("claim_required")
    letter = LETTERS.get(actor.role) or (
        "H" if task.status == "in-progress" else "a" if task.reviewed else "n"
    )
    if letter not in TRANSITIONS[task.status][to]:
        raise ModelRefusal("not_authorized")


def check_may_write(actor: Actor) -> None:
    """Refuse a read-only role."""
    if actor.role in ("observer", "file"):
        raise ModelRefusal("not_authorized")


def check_may_comment(actor: Actor, task: ModelTask, now: int) -> None:
    """Refuse a read-only role, and a former holder whose lease is lost."""
    check_may_write(actor)
    if actor.role != "agent" or actor.name not in task.agents or holds(actor, task, now):
        return
    if not is_idle_owner(actor, task):
        raise ModelRefusal("lease_lost")
