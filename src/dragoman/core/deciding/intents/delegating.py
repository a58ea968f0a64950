"""Decider of delegation: who is given a goal."""

from typing import Final

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DELEGATE, check_write
from dragoman.core.commands import CreateTask, DelegateIntent
from dragoman.core.deciding.course import SHOWN_VETOES, Course, Terms, task_after
from dragoman.core.deciding.intents.wishes import faults
from dragoman.core.deciding.tasks.lifecycle import born
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    IntentCreated,
    IntentFollowed,
    IntentRejected,
    TaskAliased,
    TaskCreated,
    TaskTransitioned,
)
from dragoman.core.ids import (
    intent_stream,
    task_stream,
)
from dragoman.core.limits import (
    FOLLOWERS,
    REASON,
    TITLE,
    WAIT_MS,
    check_duration,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Decision, Read, Receipt, StreamEvents
from dragoman.core.rules.governance import NOBODY, check_goal, told_beside
from dragoman.core.rules.handoff_chain import on_its_way
from dragoman.core.states.intent import (
    EVOLVE_INTENT,
    KIND,
    RENEWABLE,
    Closed,
    Intent,
    OpenRequest,
    intent_of,
)
from dragoman.core.states.task import Task
from dragoman.core.states.task_fold import EVOLVE_TASK

ORIGIN: Final = "ccos"
_NAMED: Final = 5
"""At most this many agents are named for one reason."""
_OPEN: Final = ("backlog", "ready")
"""Statuses in which an existing task can be delegated."""


def delegate(command: DelegateIntent, read: Read, now: int) -> Decision | Refusal:
    """Delegate a new intent to the first eligible candidate, or reject it."""
    refusal = check_write(read.actor) or next(filter(None, faults(command)), None)
    if refusal:
        return refusal
    command = _with_exact_numbers(command)
    id = command.id or read.cause
    refusal = _check_request(command.request_id, id, read)
    if refusal:
        return refusal
    known = read.intent(id)
    if known is not None:
        return _again(command, known, read, now)
    followed = read.intent(command.follows) if command.follows else None
    if command.follows and followed is None:
        return missing.intent(command.follows, "follows")
    refusal = None if followed is None else _check_follower(followed, read.actor)
    if refusal:
        return refusal
    begun = _check_time(command, now) or _begun(command, id, read, now)
    if isinstance(begun, Refusal):
        return begun
    task = _task_of(begun, read, now)
    created = IntentCreated(
        id,
        task.id,
        command.goal,
        read.actor.name,
        command.params,
        command.constraints,
        command.skills,
        command.patience_ms,
        command.plan,
        command.follows,
        command.tries,
        command.policy,
        command.kept_bytes,
        command.passed_on,
    )
    events: StreamEvents = (*begun.events, (intent_stream(id), created))
    if followed is not None:
        events += ((intent_stream(followed.id), IntentFollowed(followed.id, id)),)
    course = Course(EVOLVE_INTENT[IntentCreated](None, created, now), task, read, now)
    _give(course, command)
    return Decision(receipt_of(course), (*events, *course.events), number=begun.number)


def _check_request(request_id: str, intent: str, read: Read) -> Refusal | None:
    """Check that no other intent uses this request id: an agent that gets an id twice works on it
    once.
    """
    other = read.requested(request_id) if request_id else ""
    if other in ("", intent):
        return None
    return Refusal(
        "already_exists",
        f"the request id {request_id} is that of a request of intent {other}: use another one",
    )


def _check_follower(followed: Intent, actor: Actor) -> Refusal | None:
    """Check that the caller may follow up this intent, and how many do: each is recorded in its
    chain.
    """
    if actor.role not in MAY_DELEGATE and actor.name not in (followed.by, *followed.agents):
        return Refusal(
            "not_authorized",
            f"{actor.label} may not follow up {followed.id}: that is up to {followed.by}, its "
            "agents, a person, an orchestrator or a coordinator",
        )
    if len(followed.followed_by) >= FOLLOWERS:
        return Refusal(
            "invalid_field",
            f"{followed.id} is followed up by {FOLLOWERS} intents already; follow up one of these",
        )
    return None


def receipt_of(course: Course) -> Receipt:
    """Receipt with the state of the task, about the intent."""
    task = course.task
    return Receipt(
        task.id, task.status, task.attempts, task.fence, stream=intent_stream(course.intent.id)
    )


def _with_exact_numbers(command: DelegateIntent) -> DelegateIntent:
    """The command with numbers that are read back as they were stored."""
    policy = command.policy
    if policy.cost_ceiling is None:
        return command
    exact = replace(policy, cost_ceiling=float(policy.cost_ceiling))
    return replace(command, policy=exact)


def _again(command: DelegateIntent, known: Intent, read: Read, now: int) -> Decision | Refusal:
    """Decide a repeated delegation: a no-op, or a new start of an intent that was rejected or needs
    follow-up.
    """
    task = read.task(known.task)
    if isinstance(task, Refusal):
        return task
    course = Course(known, task, read, now)
    refusal = _check_the_same(command, known)
    if refusal:
        return refusal
    if command.request_id and read.requested(command.request_id):
        return _check_whose(command, known) or _repeated(command, course, before=True)
    # Nothing can start with a deadline that has passed: stating it again is a repeat.
    is_late = 0 < command.due_by == known.due_by <= now
    is_to_begin = known.state in RENEWABLE and not task.is_final and not is_late
    if not is_to_begin or task.status == "in-progress":
        return _check_whose(command, known) or _repeated(command, course)
    refusal = _check_renewer(known, read.actor) or _check_time(command, now)
    if refusal:
        return refusal
    if task.open_blockers:
        return _waits(task)
    if task.handoff is not None:
        return on_its_way(task, task.handoff)
    _give(course, command)
    return Decision(receipt_of(course), course.events)


def _repeated(command: DelegateIntent, course: Course, *, before: bool = False) -> Decision:
    """Accept a repeat, with a remark on what differs this time."""
    remark = _remark(command, course, "" if before else command.request_id)
    return Decision(replace(receipt_of(course), before=before, remark=remark))


def _remark(command: DelegateIntent, course: Course, request_id: str) -> str:
    """Remark on fields of a repeat that are ignored; `request_id`: another name for the request."""
    known = course.intent
    if course.task.status == "cancelled":
        return f"{known.id} stays cancelled: delegate another intent, to follow it up"
    last = _last_request(known)
    instead = f" (its request is {last.id})" if last else ""
    said = (
        (f"request_id{instead}", request_id, ""),
        ("meta and other fields", command.passed_on, known.passed_on),
        ("deadline", command.due_by, known.due_by),
    )
    other = ", ".join(what for what, now, then in said if now and now != then)
    if not other:
        return ""
    return f"{known.id} was delegated before and is unchanged; ignored: {other}"


def _check_renewer(known: Intent, actor: Actor) -> Refusal | None:
    if actor.role in MAY_DELEGATE or actor.name == known.by:
        return None
    return Refusal(
        "not_authorized",
        f"{actor.label} may not delegate {known.id} anew: that is up to {known.by}, a person, an "
        "orchestrator or a coordinator",
    )


def _check_time(command: DelegateIntent, now: int) -> Refusal | None:
    """Check the deadline of an intent that is to start; a repeat is not checked."""
    if 0 < command.due_by <= now:
        why = f"the deadline {to_rfc3339(command.due_by)} has passed"
        return Refusal("invalid_field", why, path="due_by")
    patience = command.patience_ms
    if not patience:
        return None
    return check_duration("the time until the deadline", patience, *WAIT_MS, path="due_by")


def _check_the_same(command: DelegateIntent, known: Intent) -> Refusal | None:
    """Check that the repeat is about the same goal, plan and followed intent."""
    for field in ("goal", "params", "constraints", "skills"):
        if getattr(command, field) != getattr(known, field):
            what = "another" if field == "goal" else "other"
            return Refusal(
                "already_exists",
                f"there is an intent {known.id} with {what} {field}; say the same, or use another "
                "id",
            )
    for what, said, has in (
        ("plan", command.plan, known.plan),
        ("intent that it follows", command.follows, known.follows),
    ):
        if said not in ("", has):
            return Refusal(
                "already_exists",
                f"there is an intent {known.id}, and the {what} is {has or 'none'}, not "
                f"{said}; use another id",
            )
    return None


def _check_whose(command: DelegateIntent, known: Intent) -> Refusal | None:
    """Check that a named agent is the one that has, or last had, the request."""
    last = _last_request(known)
    if not command.agent or last is None or last.agent == command.agent:
        return None
    return Refusal(
        "already_exists",
        f"{known.id} is {known.state}, and {last.id} went to {last.agent}, not to {command.agent}; "
        "use another id, or give its task another owner",
    )


def _last_request(known: Intent) -> OpenRequest | Closed | None:
    return known.request or next(reversed(known.closed), None)


def _give(course: Course, command: DelegateIntent) -> None:
    """Offer the intent to its candidates; if none is eligible, reject it and block its task."""
    beside = told_beside(course.intent, course.task, command.passed_on)
    forbidden = check_goal(command.goal, command.policy, beside)
    if forbidden is None and command.candidates and _offered(course, command):
        return
    reasons = (forbidden,) if forbidden else _why_not_them(course) or (NOBODY,)
    unsaid = 0 if command.due_by == course.intent.due_by else command.due_by
    course.say(IntentRejected(course.intent.id, reasons, due_by=unsaid))
    status = course.task.status
    if status in _OPEN:
        course.move(TaskTransitioned(status, "blocked", "; ".join(reasons)[:REASON]))


def _why_not_them(course: Course) -> tuple[str, ...]:
    """Reasons of the vetoes, each once, with the agents that it concerns."""
    told: list[str] = []
    for reason, agents in list(course.vetoed.items())[:SHOWN_VETOES]:
        others = len(agents) - _NAMED
        more = f" and {others} more" if others > 0 else ""
        told.append(f"{', '.join(agents[:_NAMED])}{more}: {reason}")
    return tuple(told)


def _offered(course: Course, command: DelegateIntent) -> bool:
    terms = Terms(
        command.policy,
        command.patience_ms,
        command.tries,
        command.kept_bytes,
        command.passed_on,
        command.due_by,
    )
    # A new start: agents that failed may try again, after those that have not.
    failed = course.intent.failed
    candidates = tuple(sorted(command.candidates, key=lambda one: one.agent in failed))
    return course.offer(candidates, terms, command.request_id)


def _begun(command: DelegateIntent, id: str, read: Read, now: int) -> Decision | Refusal:
    """Find the task with the intent's name, or create one that is in no queue yet."""
    alias = f"{KIND}:{id}"
    known = read.task(alias)
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(id)
    if isinstance(known, Task):
        return _taken(known, alias, read)
    if known.code != "task_not_found":
        return known
    first_line = command.goal.strip().partition("\n")[0]
    return born(
        CreateTask(
            first_line[:TITLE],
            id,
            body=command.goal if command.goal != first_line[:TITLE] else "",
            review_required=command.review_required,
            aliases=(alias,),
            origin=ORIGIN,
        ),
        read,
        now,
    )


def _taken(task: Task, alias: str, read: Read) -> Decision | Refusal:
    if task.status not in _OPEN or read.lease(task) is not None:
        return Refusal(
            "not_ready", f"{task.id} is {task.status}: only a task that is not held is delegated"
        )
    if read.actor.role not in MAY_DELEGATE:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not delegate {task.id}, which exists already: that is for a "
            "person, an orchestrator or a coordinator",
        )
    other = intent_of(task, read.intent)
    if other is not None:
        return Refusal(
            "already_exists",
            f"{task.id} is the task of intent {other.id} already: delegate that one anew",
        )
    if task.open_blockers:
        return _waits(task)
    if task.handoff is not None:
        return on_its_way(task, task.handoff)
    bound: StreamEvents = ()
    if alias not in task.aliases:
        bound = ((task_stream(task.id), TaskAliased(alias)),)
    return Decision(Receipt(task.id, task.status), bound)


def _task_of(begun: Decision, read: Read, now: int) -> Task:
    """The task of the intent, after the events of this decision."""
    for _, event in begun.events:
        if isinstance(event, TaskCreated):
            return EVOLVE_TASK[TaskCreated](None, event, now)
    task = read.task(begun.receipt.task)
    assert isinstance(task, Task)
    return task_after(task, begun.events, now)


def _waits(task: Task) -> Refusal:
    return Refusal("waits_for", f"{task.id} waits for {', '.join(task.open_blockers)}")
