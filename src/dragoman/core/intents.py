"""Deciders of the registry and of delegation: who can do what, and who is given a goal."""

from collections.abc import Iterator
from math import isfinite
from typing import Final

import msgspec
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.agents import AgentRecord
from dragoman.core.authority import MAY_DELEGATE, MAY_REGISTER, check_write
from dragoman.core.commands import CreateTask, DelegateIntent, DescribeAgent
from dragoman.core.course import SHOWN_VETOES, Course, task_after
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    AgentDescribed,
    IntentCreated,
    IntentFollowed,
    IntentRejected,
    TaskAliased,
    TaskCreated,
    TaskTransitioned,
)
from dragoman.core.governance import check_goal
from dragoman.core.ids import (
    check_agent,
    check_mail_id,
    check_task_id,
    intent_stream,
    standing_stream,
    task_stream,
)
from dragoman.core.intent import EVOLVE_INTENT, KIND, RENEWABLE, Intent
from dragoman.core.lifecycle import StreamEvents, create
from dragoman.core.limits import (
    CANDIDATES,
    OPEN_REQUESTS,
    PRICE,
    REASON,
    SKILL,
    SKILLS,
    TEXT,
    TITLE,
    TRIES,
    WAIT_MS,
    check_count,
    check_duration,
    check_json,
    check_range,
    check_text,
)
from dragoman.core.offers import TIERS, Policy, Trust
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.scoring import telling
from dragoman.core.standing import Descriptor, Standing
from dragoman.core.task import EVOLVE_TASK, Task

ORIGIN: Final = "ccos"
_NOBODY: Final = "nobody in the registry comes into question"
_OPEN: Final = ("backlog", "ready")
"""A task that exists already is delegated from these."""


def describe(command: DescribeAgent, read: Read, now: int) -> Decision | Refusal:
    """What an agent can do becomes known, or changes. The same again is a no-op."""
    del now
    refusal = check_agent(command.name) or next(filter(None, _faults_of_offer(command)), None)
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_describer(command.name, known, read.actor)
    if refusal:
        return refusal
    standing = read.standing(command.name)
    descriptor = Descriptor(
        tuple(dict.fromkeys(command.skills)),
        tuple(dict.fromkeys(command.constraints)),
        tuple(dict.fromkeys(command.locality)),
        _trust(command.trust, standing, read.actor),
        float(command.cost),  # a whole number would be read back as another one than was stored
        command.latency_ms,
        command.capacity,
        command.reach,
    )
    told = Receipt("", None, stream=standing_stream(command.name))
    if standing is not None and standing.descriptor == descriptor:
        return Decision(told)
    event = AgentDescribed(command.name, *msgspec.structs.astuple(descriptor))
    return Decision(told, ((standing_stream(command.name), event),))


def delegate(command: DelegateIntent, read: Read, now: int) -> Decision | Refusal:
    """A new intent goes to the first of its candidates that may have it, or is rejected."""
    refusal = check_write(read.actor) or next(filter(None, _faults(command)), None)
    if refusal:
        return refusal
    command = _with_exact_numbers(command)
    id = command.id or read.cause
    known = read.intent(id)
    if known is not None:
        return _again(command, known, read, now)
    followed = read.intent(command.follows) if command.follows else None
    if command.follows and followed is None:
        return _not_found(command.follows)
    begun = _begun(command, id, read, now)
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
    )
    events: StreamEvents = (*begun.events, (intent_stream(id), created))
    if followed is not None:
        events += ((intent_stream(followed.id), IntentFollowed(followed.id, id)),)
    course = Course(EVOLVE_INTENT[IntentCreated](None, created, now), task, read, now)
    _give(course, command)
    return Decision(receipt_of(course), (*events, *course.events), number=begun.number)


def receipt_of(course: Course) -> Receipt:
    """What became of the task, and which intent it is about."""
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
    """The same goal once more: nothing, or a new beginning of what has come to nothing."""
    task = read.task(known.task)
    if isinstance(task, Refusal):
        return task
    course = Course(known, task, read, now)
    asked = command.goal, command.params, command.constraints, command.skills
    if asked != (known.goal, known.params, known.constraints, known.skills):
        return Refusal(
            "already_exists", f"there is an intent {known.id} with another goal; use another id"
        )
    is_to_begin = known.state in RENEWABLE and not task.is_final
    if not is_to_begin or task.status == "in-progress":
        return Decision(receipt_of(course))
    if read.actor.role not in MAY_DELEGATE and read.actor.name != known.by:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not delegate {known.id} anew: that is up to {known.by}, a "
            "person or an orchestrator",
        )
    _give(course, command)
    return Decision(receipt_of(course), course.events)


def _give(course: Course, command: DelegateIntent) -> None:
    """To the first that may have it; else the intent is rejected, and its task blocked."""
    forbidden = check_goal(command.goal, command.policy)
    if forbidden is None and command.candidates and _offered(course, command):
        return
    reasons = (forbidden,) if forbidden else course.vetoed[:SHOWN_VETOES] or (_NOBODY,)
    course.say(IntentRejected(course.intent.id, reasons))
    status = course.task.status
    if status in _OPEN:
        course.move(TaskTransitioned(status, "blocked", "; ".join(reasons)[:REASON]))


def _offered(course: Course, command: DelegateIntent) -> bool:
    return course.offer(command.candidates, command.policy)


def _begun(command: DelegateIntent, id: str, read: Read, now: int) -> Decision | Refusal:
    """The task of an intent: one that has this name, or a new one that is in no queue yet."""
    alias = f"{KIND}:{id}"
    known = read.task(alias)
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(id)
    if isinstance(known, Task):
        return _taken(known, alias, read)
    if known.code != "task_not_found":
        return known
    first_line = command.goal.strip().partition("\n")[0]
    return create(
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
            "not_ready", f"{task.id} is {task.status}: only what nobody works on is delegated"
        )
    if read.actor.role not in MAY_DELEGATE:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not delegate {task.id}, which exists already: that is for a "
            "person or an orchestrator",
        )
    bound: StreamEvents = ()
    if alias not in task.aliases:
        bound = ((task_stream(task.id), TaskAliased(alias)),)
    return Decision(Receipt(task.id, task.status), bound)


def _task_of(begun: Decision, read: Read, now: int) -> Task:
    """The task that an intent begins with, after what has happened to it."""
    for _, event in begun.events:
        if isinstance(event, TaskCreated):
            return EVOLVE_TASK[TaskCreated](None, event, now)
    task = read.task(begun.receipt.task)
    assert isinstance(task, Task)
    return task_after(task, begun.events, now)


def _not_found(id: str) -> Refusal:
    return Refusal("intent_not_found", f"there is no intent {id[:140]!a}")


def _trust(asked: Trust | None, standing: Standing | None, actor: Actor) -> Trust:
    """The tier that this one may give: an agent's own word never raises what it has."""
    has = standing.descriptor.trust if standing and standing.descriptor else None
    if actor.role != "agent":
        return asked or has or "T1"
    own: Trust = has or "T0"
    return own if asked is None else TIERS[min(TIERS.index(asked), TIERS.index(own))]


def _check_describer(name: str, known: AgentRecord | None, actor: Actor) -> Refusal | None:
    if known is None:
        return Refusal("agent_not_found", f"nobody is known as {name}: register it first")
    if actor.role == "agent" and actor.name != name:
        return Refusal("not_authorized", f"{actor.label} may describe itself only, not {name}")
    if known.role not in MAY_REGISTER[actor.role]:
        return Refusal(
            "not_authorized", f"{actor.label} may not say what {name} can do, which is {known.role}"
        )
    return None


def _faults_of_offer(command: DescribeAgent) -> Iterator[Refusal | None]:
    if not command.skills:
        yield Refusal("invalid_field", "skills is empty; name at least one")
    for field in ("skills", "constraints", "locality"):
        yield from _faults_of_words(field, getattr(command, field))
    for skill in command.skills:
        if not telling(skill):
            yield Refusal("invalid_field", f"the skill {skill[:40]!a} says nothing: name a subject")
    if not (isfinite(command.cost) and 0 <= command.cost <= PRICE):
        yield Refusal("invalid_field", f"cost is {command.cost}; it must be from 0 to {PRICE:g}")
    yield check_range("latency_ms", command.latency_ms, 0, WAIT_MS[1])
    yield check_range("capacity", command.capacity, 0, OPEN_REQUESTS)
    yield check_text("reach", command.reach, REASON)


def _faults(command: DelegateIntent) -> Iterator[Refusal | None]:
    yield check_task_id(command.id) if command.id else None
    yield check_text("goal", command.goal, REASON, least=1)
    yield check_json("params", command.params) or _check_size(command.params)
    yield from _faults_of_words("constraints", command.constraints)
    yield from _faults_of_words("skills", command.skills)
    if command.patience_ms:
        yield check_duration("the time until the deadline", command.patience_ms, *WAIT_MS)
    yield check_mail_id(command.plan, "plan") if command.plan else None
    yield check_mail_id(command.follows, "intent id") if command.follows else None
    yield check_range("tries", command.tries, 1, TRIES)
    yield check_count("candidates", command.candidates, CANDIDATES)
    yield from _faults_of_policy(command.policy)


def _faults_of_policy(policy: Policy) -> Iterator[Refusal | None]:
    for field in ("data_locality", "required_skills", "forbidden_goals"):
        yield check_count(f"policy.{field}", getattr(policy, field), OPEN_REQUESTS)


def _faults_of_words(field: str, words: tuple[str, ...]) -> Iterator[Refusal | None]:
    yield check_count(field, words, SKILLS)
    for index, word in enumerate(words):
        yield check_text(f"{field}[{index}]", word, SKILL, least=1)


def _check_size(params: dict[str, object]) -> Refusal | None:
    size = len(msgspec.json.encode(params))
    if size <= TEXT:
        return None
    return Refusal("invalid_field", f"params has {size} bytes; at most {TEXT} are allowed")
