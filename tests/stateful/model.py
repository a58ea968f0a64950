"""A small model of tasks, written from the semantics and not from the code: dictionaries and rules.

It knows status, owner, attempt, token, failures, blockers, names, leases and delegations, and says
for every command whether it is accepted, and if not, with which code.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptDelegation,
    AdoptTask,
    AliasTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    EditTask,
    EndAttempt,
    EscalateDelegation,
    ExpireLease,
    LinkTask,
    MoveTask,
    NoteTask,
    PostMail,
    RejectDelegation,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
    RequestDelegation,
    UpdateTask,
)
from tests.core.by_hand import BY_HAND

RANKS = {"critical": 0, "high": 1, "normal": 2, "low": 3}
WAYS = {str(a): {str(b): who for b, who in targets.items()} for a, targets in BY_HAND.items()}
RUNNERS = ("human", "orchestrator", "system")
LETTERS = {"human": "h", "orchestrator": "o", "system": "s", "coordinator": "c", "observer": "x"}


class No(Exception):
    """The model refuses."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class ModelLease:
    """Who holds a task until when."""

    holder: str
    fence: int
    ttl: int
    ends: int


@dataclass
class ModelTask:
    """What is true of one task."""

    id: str
    order: int
    born: int
    status: str = "backlog"
    owner: str = ""
    reserved: str = ""
    priority: str = "normal"
    reviewed: bool = True
    limit: int = 5
    attempt: int = 0
    failures: int = 0
    rests_until: int = 0
    report: str = ""
    notes: int = 0
    names: list[str] = field(default_factory=list[str])
    waits: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    held_by: list[str] = field(default_factory=list[str])
    lease: ModelLease | None = None
    parent: str = ""
    parts: list[str] = field(default_factory=list[str])
    depth: int = 0
    offer: tuple[str, str, str, int] | None = None
    """Part of what, by whom, to whom, until when."""
    answer: str = ""
    told: bool = False

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody has handed it on and it is still to come."""
        has_ended = self.status in ("done", "cancelled")
        return self.offer is not None and self.answer != "rejected" and not has_ended


Applied = tuple[ModelTask | None, bool]
"""The task that a command was about, and whether its lease may be renewed after it."""
Rules = dict[type[AnyCommand], Callable[[Actor, Any, int], Applied]]

Asked = tuple[str, tuple[AnyCommand, ...]]
"""Who asked, and for what."""


class Model:
    """All tasks, and what commands make of them."""

    def __init__(self) -> None:
        self.tasks: dict[str, ModelTask] = {}
        self.answers: dict[tuple[str, str], tuple[Asked, list[object]]] = {}
        self._order = 0
        self.cause = ""
        """The id of the request that is asked for."""

    def ask(
        self, actor: Actor, commands: tuple[AnyCommand, ...], key: str, now: int, cause: str = ""
    ) -> tuple[str, list[object]]:
        """The code of the refusal ("" for a yes) and a receipt for each command."""
        self.cause = cause
        scope = self._scope(actor, commands[0])
        if key and (scope, key) in self.answers:
            asked, receipts = self.answers[scope, key]
            if asked != (actor.label, commands):
                return "key_reused", []
            for command in commands:
                self._renew(actor, command, now)
            return "", receipts
        before = deepcopy(self.kept())
        try:
            receipts = [self._do(actor, command, now) for command in commands]
        except No as no:
            self.put_back(before)
            return no.code, []
        if key:
            self.answers[scope, key] = (actor.label, commands), receipts
        return "", receipts

    def kept(self) -> tuple[Any, ...]:
        """Everything that a refusal leaves as it was."""
        return (self.tasks,)

    def put_back(self, kept: tuple[Any, ...]) -> None:
        """Make it so again."""
        (self.tasks,) = kept

    def silent(self, now: int) -> list[str]:
        """The tasks whose lease has run out."""
        return [t.id for t in self.tasks.values() if t.lease and t.lease.ends <= now]

    def late(self, now: int) -> list[str]:
        """The tasks whose delegation is late without anybody having been told."""
        return [
            t.id
            for t in self.tasks.values()
            if t.offer and t.is_waited_for and not t.told and t.offer[3] <= now
        ]

    def find(self, name: str) -> ModelTask:
        """By id, by KIND:NAME or by bare name."""
        if name in self.tasks:
            return self.tasks[name]
        found = [
            t for t in self.tasks.values() if any(name in (n, n.split(":")[1]) for n in t.names)
        ]
        if not found:
            raise No("task_not_found")
        if len(found) > 1:
            raise No("ambiguous_name")
        return found[0]

    def _scope(self, actor: Actor, first: AnyCommand) -> str:
        try:
            return self.find(first.about).id if first.about else f"{actor.role}:{actor.name}"
        except No:
            return f"{actor.role}:{actor.name}"

    def _do(self, actor: Actor, command: AnyCommand, now: int) -> object:
        task, keeps_lease = self._apply(actor, command, now)
        if keeps_lease:
            self._renew(actor, command, now)
        return (task.id, task.status, task.attempt) if task else ("", None, 0)

    def _renew(self, actor: Actor, command: AnyCommand, now: int) -> None:
        try:
            task = self.find(_shows_life_on(command))
        except No:
            return
        if task.lease and holds(actor, task, now):
            task.lease.ends = max(task.lease.ends, now + task.lease.ttl)

    def _apply(self, actor: Actor, command: AnyCommand, now: int) -> Applied:
        return self.rules()[type(command)](actor, command, now)

    def rules(self) -> Rules:
        """Command -> what it does."""
        return {
            CreateTask: self._create,
            AdoptTask: self._adopt,
            MoveTask: self._move,
            ClaimTask: self._claim,
            RenewLease: self._beat,
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

    def _beat(self, actor: Actor, command: RenewLease, now: int) -> Applied:
        task = self.find(command.task)
        must_hold(actor, task, command.fence, now)
        return task, True

    def _release(self, actor: Actor, command: ReleaseTask, now: int) -> Applied:
        task = self.find(command.task)
        must_hold(actor, task, command.fence, now)
        self._enter(task, "ready")
        return task, False

    def _note(self, actor: Actor, command: NoteTask, now: int) -> Applied:
        task = self.find(command.task)
        may_speak(actor, task, now)
        task.notes += 1
        return task, True

    def _create(self, actor: Actor, command: CreateTask, now: int) -> Applied:
        may_write(actor)
        blockers = [self.find(name) for name in command.blocked_by]
        for name in (command.id, *command.aliases):
            self._must_be_free(name)
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
            waits=[blocker.id for blocker in blockers],
            open=[b.id for b in blockers if b.status not in ("done", "cancelled")],
        )
        self.tasks[task.id] = task
        return task, False

    def _adopt(self, actor: Actor, command: AdoptTask, now: int) -> Applied:
        may_write(actor)
        name, alias = command.name, f"{command.kind}:{command.name}"
        for known in (alias, name):
            try:
                found = self.find(known)
                if alias not in found.names:
                    found.names.append(alias)
                return found, False
            except No as no:
                if no.code != "task_not_found":
                    raise
        return self._create(actor, CreateTask(name, name, ready=True, aliases=(alias,)), now)

    def _claim(self, actor: Actor, command: ClaimTask, now: int) -> Applied:
        if actor.role == "agent" and command.agent != actor.name:
            raise No("identity_mismatch")
        if actor.role not in ("agent", "human", "orchestrator", "system"):
            raise No("not_authorized")
        task = self.find(command.task) if command.task else self._next(command.agent, now)
        if task.lease:
            raise No("already_claimed")
        if task.status not in ("ready", "review"):
            raise No("not_ready")
        if task.status == "review" and task.owner != command.agent:
            raise No("unauthorized_agent")
        if task.reserved not in ("", command.agent):
            raise No("reserved")
        if task.open:
            raise No("waits_for")
        task.attempt += 1
        task.status, task.owner, task.report, task.rests_until = "in-progress", command.agent, "", 0
        task.lease = ModelLease(command.agent, task.attempt, command.ttl_ms, now + command.ttl_ms)
        if command.agent not in task.held_by:
            task.held_by.append(command.agent)
        return task, False

    def _next(self, agent: str, now: int) -> ModelTask:
        ready = [
            task
            for task in self.tasks.values()
            if task.status == "ready"
            and not task.open
            and task.rests_until <= now
            and task.reserved in ("", agent)
        ]
        if not ready:
            raise No("nothing_ready")
        return min(ready, key=lambda task: (RANKS[task.priority], task.born, task.order))

    def _report(self, actor: Actor, command: ReportOutcome, now: int) -> Applied:
        task = self.find(command.task)
        if command.outcome == "blocked" and not command.blockers:
            raise No("invalid_field")
        leads = {
            "done": "review" if task.reviewed else "done",
            "blocked": "blocked",
            "needs_review": "review",
            "partial": "review",
        }
        if task.status in ("done", leads.get(command.outcome)):
            may_repeat(actor, task, command.fence, now)
            return task, True
        must_hold(actor, task, command.fence, now)
        task.report = command.outcome
        if command.apply:
            self._conclude(task, now)
        return task, not command.apply

    def _end(self, actor: Actor, command: EndAttempt, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in RUNNERS:
            must_hold(actor, task, None, now)
        if not task.lease or not task.report:
            return task, True
        self._conclude(task, now)
        return task, False

    def _expire(self, actor: Actor, command: ExpireLease, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in RUNNERS:
            raise No("not_authorized")
        if task.lease and task.lease.ends <= now:
            self._conclude(task, now)
        return task, False

    def _conclude(self, task: ModelTask, now: int) -> None:
        """The attempt is over: by its report, or else as a failure."""
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
            task.rests_until = now + min(1_000 * 2 ** (failures - 1), 300_000)
            if failures >= task.limit:
                self._enter(task, "deadletter")

    def _move(self, actor: Actor, command: MoveTask, now: int) -> Applied:
        task = self.find(command.task)
        if task.status == command.to:
            may_repeat(actor, task, command.fence, now)
            return task, True
        may_move(actor, task, command.to, command.fence, now)
        self._enter(task, command.to)
        return task, False

    def _update(self, actor: Actor, command: UpdateTask, now: int) -> Applied:
        task, to, has_words = self.find(command.task), command.to, bool(command.notes)
        may_write(actor)
        if to and to != "in-progress" and to in WAYS[task.status]:
            may_move(actor, task, to, command.fence, now)
            self._enter(task, to)
            return task, False
        if not has_words and to in (None, task.status):
            may_repeat(actor, task, command.fence, now)
            return task, True
        must_own(actor, task, command.fence, now)
        task.notes += has_words
        return task, True

    def _edit(self, actor: Actor, command: EditTask, now: int) -> Applied:
        task, assignee = self.find(command.task), command.assignee
        gives = (command.priority is not None, assignee is not None)
        if (actor.role == "observer" and any(gives)) or (actor.role == "agent" and gives[1]):
            raise No("not_authorized")
        must_own(actor, task, command.fence, now)
        if task.lease and assignee not in (None, task.owner):
            raise No("already_claimed")
        task.priority = command.priority or task.priority
        if assignee is not None and not task.lease:
            task.reserved = task.owner = assignee
        return task, True

    def _offer(self, actor: Actor, command: RequestDelegation, now: int) -> Applied:
        may_write(actor)
        child, parent = self.find(command.task), self._parent(command.parent)
        offer = (parent.id, actor.name, command.to_agent, command.due_by)
        if child.offer == offer:
            return child, True
        if actor.role == "agent":
            try:
                must_hold(actor, parent, None, now)
            except No as no:
                raise No("lease_lost" if no.code == "lease_lost" else "unauthorized_agent") from no
            if is_anothers(child, parent, (actor.name, command.to_agent)):
                raise No("unauthorized_agent")
        if child.status in ("done", "cancelled"):
            raise No("invalid_transition")
        if parent.depth or any(self.tasks[part].is_waited_for for part in child.parts):
            raise No("nested_delegation")
        above = parent
        while above.id != child.id and above.parent:
            above = self.tasks[above.parent]
        if above.id == child.id:
            raise No("link_cycle")
        child.offer, child.answer, child.told, child.depth = offer, "requested", False, 1
        if not child.parent:
            child.parent = parent.id
            parent.parts.append(child.id)
        return child, True

    def _parent(self, name: str) -> ModelTask:
        try:
            return self.find(name)
        except No as no:
            raise No(no.code.replace("task_not_found", "parent_not_found")) from no

    def _accept(self, actor: Actor, command: AcceptDelegation, now: int) -> Applied:
        del now
        task = self.find(command.task)
        if self._may_answer(actor, task, "accepted"):
            if task.answer == "rejected":
                raise No("invalid_transition")
            task.answer = "accepted"
        return task, True

    def _reject(self, actor: Actor, command: RejectDelegation, now: int) -> Applied:
        del now
        task = self.find(command.task)
        if not self._may_answer(actor, task, "rejected"):
            return task, True
        task.answer = "rejected"
        is_anothers = task.lease is not None and task.lease.holder != actor.name
        if task.status in ("backlog", "ready", "in-progress") and not is_anothers:
            self._enter(task, "blocked")
        return task, True

    def _may_answer(self, actor: Actor, task: ModelTask, answer: str) -> bool:
        """Whether there is anything new to say."""
        if task.offer is None:
            raise No("invalid_transition")
        may_write(actor)
        if task.answer != answer and task.offer[2] != actor.name:
            raise No("unauthorized_agent")
        return task.answer != answer

    def _escalate(self, actor: Actor, command: EscalateDelegation, now: int) -> Applied:
        task = self.find(command.task)
        if actor.role not in RUNNERS:
            raise No("not_authorized")
        task.told = task.told or task.id in self.late(now)
        return task, False

    def _enter(self, task: ModelTask, to: str) -> None:
        if task.status == "deadletter" or to in ("review", "done"):
            task.failures = 0
        task.status, task.rests_until, task.lease = to, 0, None
        if to == "ready":
            task.owner = task.reserved
        if to in ("done", "cancelled"):
            for other in self.tasks.values():
                if task.id in other.open:
                    other.open.remove(task.id)

    def _alias(self, actor: Actor, command: AliasTask, now: int) -> Applied:
        task = self.find(command.task)
        may_speak(actor, task, now)
        if command.alias not in task.names:
            self._must_be_free(command.alias)
            task.names.append(command.alias)
        return task, True

    def _must_be_free(self, name: str) -> None:
        try:
            self.find(name)
        except No as no:
            if no.code == "task_not_found":
                return
        raise No("already_exists")

    def _link(self, actor: Actor, command: LinkTask, now: int) -> Applied:
        task, target = self.find(command.task), self.find(command.target)
        may_speak(actor, task, now)
        if target.id in task.waits:
            return task, True
        if self._waits_for(target, task.id):
            raise No("link_cycle")
        task.waits.append(target.id)
        if target.status not in ("done", "cancelled"):
            task.open.append(target.id)
        return task, True

    def _waits_for(self, task: ModelTask, goal: str) -> bool:
        return task.id == goal or any(self._waits_for(self.tasks[n], goal) for n in task.waits)


def _shows_life_on(command: AnyCommand) -> str:
    """The task whose holder shows by a command that it is alive."""
    if isinstance(command, RequestDelegation):
        return command.parent
    return command.bead if isinstance(command, PostMail) else command.about


def holds(actor: Actor, task: ModelTask, now: int) -> bool:
    """Whether the actor is the living holder."""
    lease = task.lease
    return bool(lease and actor.role == "agent" and lease.holder == actor.name and now < lease.ends)


def is_anothers(child: ModelTask, parent: ModelTask, sides: tuple[str, str]) -> bool:
    """Whether an arrangement of others stands in the way of an agent that hands it on."""
    if child.parent not in ("", parent.id) or child.owner not in ("", *sides):
        return True
    if child.offer is None or not child.is_waited_for or child.offer[1] == sides[0]:
        return False
    return child.offer[0] != parent.id or child.offer[1] not in parent.held_by


def is_living(task: ModelTask, fence: int, now: int) -> bool:
    """Whether a token is that of the attempt that lives."""
    return task.lease is not None and now < task.lease.ends and fence == task.attempt


def must_hold(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse whoever does not hold the task under this token."""
    is_of_now = fence is None or is_living(task, fence, now)
    if is_of_now and holds(actor, task, now):
        return
    if not is_of_now or actor.name in task.held_by:
        raise No("lease_lost")
    raise No("unauthorized_agent" if task.lease or task.owner else "unassigned_task")


def must_fit(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse a token that is not of the living attempt, which has to be an agent's own."""
    if fence is not None and actor.role == "observer":
        raise No("not_authorized")
    if fence is not None and actor.role == "agent":
        must_hold(actor, task, fence, now)
    if fence is not None and not is_living(task, fence, now):
        raise No("lease_lost")


def must_own(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse an agent that neither holds the task nor owns it while nobody works on it."""
    is_owner = task.owner == actor.name and task.status != "in-progress"
    must = must_fit if actor.role != "agent" or is_owner else must_hold
    must(actor, task, fence, now)


def may_repeat(actor: Actor, task: ModelTask, fence: int | None, now: int) -> None:
    """Refuse who may only read, and an old token."""
    if actor.role == "observer":
        raise No("not_authorized")
    old_token = fence not in (None, task.attempt) or task.status == "in-progress"
    if old_token:
        must_fit(actor, task, fence, now)


def may_move(actor: Actor, task: ModelTask, to: str, fence: int | None, now: int) -> None:
    """Refuse what the table does not have, and whoever may not ask for it."""
    is_owner = task.owner == actor.name
    must_be_held = actor.role == "agent" and (not is_owner or task.status == "in-progress")
    (must_hold if must_be_held else must_fit)(actor, task, fence, now)
    if to not in WAYS[task.status]:
        raise No("invalid_transition")
    if to == "in-progress":
        raise No("claim_required")
    letter = LETTERS.get(actor.role) or (
        "H" if task.status == "in-progress" else "a" if task.reviewed else "n"
    )
    if letter not in WAYS[task.status][to]:
        raise No("not_authorized")


def may_write(actor: Actor) -> None:
    """Refuse who may only read."""
    if actor.role in ("observer", "file"):
        raise No("not_authorized")


def may_speak(actor: Actor, task: ModelTask, now: int) -> None:
    """Refuse who may only read, and a former holder whose lease is lost."""
    may_write(actor)
    if actor.role != "agent" or actor.name not in task.held_by or holds(actor, task, now):
        return
    if task.owner != actor.name or task.status == "in-progress":
        raise No("lease_lost")
