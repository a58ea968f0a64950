"""Attention list: what needs a person, each with the command that deals with it.

It reads the lists and indexes of the store, never all tasks: a hub with many tasks answers at once.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Final, get_args

from msgspec import Struct

from dragoman.core.agent import AgentRecord, describe_pause
from dragoman.core.attempt import explain_wait
from dragoman.core.attempt_state import ESCALATED_QUIET, Lease
from dragoman.core.base import ATTENTION_LIST, CHECKS_LIST, AttentionKind, Status
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import task_stream
from dragoman.core.mail import HELP_REQUEST_KIND, HELP_RESPONSE_KIND, Mail
from dragoman.core.question_state import Question
from dragoman.core.task_state import BEAD_KIND, LAST_FAILURE, Delegation, Task, TaskTransitioned
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.event_sentences import describe_reason
from dragoman.engine.ports import ListQuery, Store, TaskQuery
from dragoman.engine.queries.agents import acts_as_agent, all_agents, list_actors
from dragoman.engine.queries.entries import LIST_PAGE, decode_event, stream_state, walk_list
from dragoman.engine.queries.tasks import find_task, list_tasks
from dragoman.engine.queries.visibility import OWNER, Reader, visible_to
from dragoman.ledger.stream_state import State

_ORDER: Final = {kind: at for at, kind in enumerate(get_args(AttentionKind))}

_MAX_LISTED: Final = 1_000
"""Items of the list that are looked at."""

_MAX_TEXT: Final = 160

_LAST_ENTRIES: Final = 10
"""Entries of a task in which the reason of its last status change is looked for, the last ones."""

_QUESTION_HEADING: Final = re.compile(r"^#{1,6}[ \t]*question[ \t]*$", re.IGNORECASE | re.MULTILINE)
"""Heading of the question in a letter that asks for help."""


class AttentionItem(Struct, frozen=True):
    """Something that needs a person."""

    kind: AttentionKind
    since: int
    text: str
    """One line for a person."""
    command: str
    """The command line that deals with it."""
    task: str = ""
    agent: str = ""
    """The agent that it is about; of a question, who asks."""
    question: str = ""
    mail: str = ""
    handoff: str = ""


class Attention(Struct, frozen=True):
    """Needs of a person: the most urgent first, and of a kind the oldest first."""

    items: tuple[AttentionItem, ...]
    counts: Mapping[AttentionKind, int]
    """Number of each kind, which may be more than are listed."""

    @property
    def total(self) -> int:
        """Number of all kinds."""
        return sum(self.counts.values())


def find_attention(
    store: Store,
    now: int,
    *,
    served: Collection[str] = (),
    reader: Reader = OWNER,
    limit: int = 20,
) -> Attention:
    """Find what needs a person; of each kind at most so many items.

    `served`: names that the settings start agents for. `reader`: sees no handoffs, and no letters
    about them, in teamspaces that are hidden from it.
    """
    queues, agents = store.queue_counts(), all_agents(store)
    known = {*agents, *list_actors(store), *served, ""}
    unknown = [name for name in queues if name not in known]
    is_visible = visible_to(reader, store)
    listed = islice(walk_list(store, ListQuery(ATTENTION_LIST, limit=LIST_PAGE)), _MAX_LISTED)
    states = ((stream_state(store, place.row), place.row.lease) for place in listed)
    items = [
        item
        for state, lease in states
        if is_visible(state)
        for item in _items_of(state, lease, store, now)
    ]
    items += filter(None, (_paused_item(record, queues, now) for record in agents.values()))
    items += (item for record in agents.values() for item in _waiting_items(record, now))
    counts = Counter[AttentionKind](item.kind for item in items)
    items += _unknown_assignees(store, unknown, now, limit)
    counts["unknown_assignee"] = sum(queues[name] for name in unknown)
    statuses = store.status_counts()
    # Work whose checks run needs nobody yet.
    checked = islice(walk_list(store, ListQuery(CHECKS_LIST, limit=LIST_PAGE)), _MAX_LISTED)
    hidden: dict[Status, int] = {"review": sum(1 for _ in checked)}
    for status, (kind, make_item) in _STATUSES.items():
        left_out = hidden.get(status, 0)
        counts[kind] += max(0, statuses.get(status, 0) - left_out)
        tasks = (one.task for one in list_tasks(store, TaskQuery(status, limit=limit + left_out)))
        items += (make_item(store, task) for task in tasks if not task.awaits_checks)
    ordered = sorted(items, key=lambda item: (_ORDER[item.kind], item.since))
    by_kind = (list(islice(same, limit)) for _, same in groupby(ordered, attrgetter("kind")))
    return Attention(
        tuple(chain.from_iterable(by_kind)), {kind: counts[kind] for kind in _ORDER if counts[kind]}
    )


def one_line(*parts: str) -> str:
    """Join the parts of a text that are not empty, on one line of limited length."""
    text = " ".join(": ".join(part for part in parts if part).split())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


# --- tasks by status --------------------------------------------------------------------------


def question_item(task: Task) -> AttentionItem:
    """Item of a task that is blocked."""
    waits = f"waits for {', '.join(task.open_blockers)}" if task.open_blockers else ""
    blocking = next((one.id for one in task.questions if one.kind == "blocked"), "")
    named = f" --question {blocking}" if blocking and len(task.questions) > 1 else ""
    return AttentionItem(
        "question",
        task.moved_at,
        one_line("blocked", task.obstacle or waits),
        f'dragoman task answer {task.id} "…"{named}',
        task.id,
        task.assignee,
        question=blocking,
    )


def _review_item(task: Task) -> AttentionItem:
    report = task.reported
    text = one_line(f"{report.agent} reports {report.outcome}", report.notes) if report else ""
    if task.is_proven:
        text = one_line("proven by its checks", text)
    return AttentionItem(
        "review",
        task.moved_at,
        text or "waits for a review",
        f"dragoman task approve {task.id}",
        task.id,
        task.assignee,
    )


def _given_up_item(store: Store, task: Task) -> AttentionItem:
    row = store.stream(task_stream(task.id))
    assert row is not None, "a task has its stream"
    entries = store.history(row.name, max(0, row.version - _LAST_ENTRIES), _LAST_ENTRIES)
    events = map(decode_event, reversed(entries))
    reasons = (event.reason for event in events if isinstance(event, TaskTransitioned))
    return deadletter_item(task, next(reasons, ""))


def deadletter_item(task: Task, reason: str) -> AttentionItem:
    """Item of a task that was given up, with the reason of that status change."""
    report = task.reported.notes if task.reported else ""
    worker = task.reported.agent if task.reported else ""
    last_failure = describe_reason(reason.rpartition(LAST_FAILURE)[2])
    why = task.start_failure_after(0) or report or last_failure
    return AttentionItem(
        "deadletter",
        task.moved_at,
        one_line(f"given up after attempt {task.attempts}", why),
        f"dragoman task retry {task.id}",
        task.id,
        task.assignee or worker,
    )


_STATUSES: Final[dict[Status, tuple[AttentionKind, Callable[[Store, Task], AttentionItem]]]] = {
    "blocked": ("question", lambda _, task: question_item(task)),
    "review": ("review", lambda _, task: _review_item(task)),
    "deadletter": ("deadletter", _given_up_item),
}


# --- what is on the list ----------------------------------------------------------------------


def _items_of(
    state: State | None, lease: Lease | None, store: Store, now: int
) -> Iterator[AttentionItem]:
    if isinstance(state, Mail):
        yield from _mail_items(state, store, now)
    elif isinstance(state, Handoff):
        yield _gate_item(state) if state.awaits_approval else late_handoff_item(state)
    else:
        yield from _task_items(state, lease) if isinstance(state, Task) else ()


def _task_items(task: Task, lease: Lease | None) -> Iterator[AttentionItem]:
    # The question that a blocked task waits for is listed by its status.
    blocking = task.obstacle if task.status == "blocked" else ""
    asked = (one for one in task.questions if one.kind == "ask" and one.text != blocking)
    yield from (asked_item(task, one) for one in asked)
    if lease is not None and lease.is_quiet and not waits_for_answer(task):
        is_escalated = lease.quiet_level == ESCALATED_QUIET
        yield no_progress_item(task, lease.holder, lease.progress_at, is_escalated=is_escalated)
    elif task.delegation is not None and task.is_delegation_late:
        yield late_delegation_item(task, task.delegation)


def waits_for_answer(task: Task) -> bool:
    """True if its worker has an open question of this attempt: no progress is expected of it."""
    asked = (one for one in task.questions if one.asked_by == task.assignee)
    return any(one.attempt == task.attempts for one in asked)


def asked_item(task: Task, question: Question) -> AttentionItem:
    """Item of an open question of a task."""
    return AttentionItem(
        "question",
        question.asked_at,
        one_line(f"{question.asked_by} asks", question.text),
        _answer_command(task, question),
        task.id,
        question.asked_by,
        question=question.id,
    )


def _answer_command(task: Task, question: Question) -> str:
    named = f" --question {question.id}" if len(task.questions) > 1 else ""
    return f'dragoman task answer {task.id} "…"{named}'


def _mail_items(mail: Mail, store: Store, now: int) -> Iterator[AttentionItem]:
    """Item of a letter; none while an agent that it is addressed to can answer it in time."""
    if not mail.awaits_answer:
        yield late_ack_item(mail)
    elif mail.is_late(now) or not is_answerable(mail, store):
        yield help_item(mail, store)


def is_answerable(mail: Mail, store: Store) -> bool:
    """True if an agent that a letter is addressed to can answer it."""
    return any(acts_as_agent(store, name) for name in mail.recipients)


def late_ack_item(mail: Mail) -> AttentionItem:
    """Item of a letter that was not acknowledged in time."""
    waiting = ", ".join(mail.awaited_acks)
    return AttentionItem(
        "escalation",
        mail.due_by or mail.posted_at,
        one_line(f"{waiting} did not acknowledge the letter of {mail.sender}", mail.subject),
        f"dragoman mail show {mail.id}",
        mail.bead,
        mail.sender,
        mail=mail.id,
    )


def help_item(mail: Mail, store: Store) -> AttentionItem:
    """Item of a letter that waits for an answer.

    The question that it asks about a task is answered there. Without one, because its sender did
    not hold the task or names none, the answer is a letter.
    """
    asked = _question_of(mail, store)
    text, id = mail.subject, ""
    command = f"dragoman mail show {mail.id}"
    if asked is not None:
        task, question = asked
        text, id, command = question.text, question.id, _answer_command(task, question)
    elif mail.kind == HELP_REQUEST_KIND:
        text = _QUESTION_HEADING.split(mail.body)[-1].strip() or mail.subject
        command = (
            f"dragoman mail send --type {HELP_RESPONSE_KIND} --reply-to {mail.id} "
            f'--to {mail.sender} --body "…"'
        )
    return AttentionItem(
        "help",
        mail.posted_at,
        one_line(f"{mail.sender} asks {', '.join(mail.to)}", text),
        command,
        mail.bead,
        mail.sender,
        question=id,
        mail=mail.id,
    )


def _question_of(mail: Mail, store: Store) -> tuple[Task, Question] | None:
    """The open question of a task that a letter asks, and that task."""
    names = (f"{BEAD_KIND}:{mail.bead}", mail.bead) if mail.bead else ()
    found = (find_task(store, name) for name in names)
    tasks = [one.task for one in found if not isinstance(one, Refusal)]
    asked = ((task, one) for task in tasks for one in task.questions if one.mail == mail.id)
    return next(asked, None)


def _gate_item(handoff: Handoff) -> AttentionItem:
    return AttentionItem(
        "gate",
        handoff.created_at,
        one_line(f"handoff from {handoff.sender} to {handoff.recipient}", handoff.title),
        f"dragoman handoff approve {handoff.id}",
        handoff.task,
        handoff.sender,
        handoff=handoff.id,
    )


def late_handoff_item(handoff: Handoff) -> AttentionItem:
    """Item of a handoff that is late."""
    since = to_rfc3339(handoff.entered_at)
    return AttentionItem(
        "escalation",
        handoff.entered_at,
        one_line(f"handoff to {handoff.recipient} is {handoff.status} since {since}: too long"),
        f"dragoman handoff diagnose {handoff.id}",
        handoff.task,
        handoff.recipient,
        handoff=handoff.id,
    )


def late_delegation_item(task: Task, delegation: Delegation) -> AttentionItem:
    """Item of a delegation that is late."""
    asked, due_by = delegation.to_agent, delegation.due_by
    return AttentionItem(
        "escalation",
        due_by,
        one_line(f"the delegation to {asked} was due by {to_rfc3339(due_by)}", task.title),
        f"dragoman task assign {task.id} NAME",
        task.id,
        asked,
    )


def no_progress_item(task: Task, holder: str, since: int, *, is_escalated: bool) -> AttentionItem:
    """Item of an agent that is alive and shows no progress, flagged or escalated."""
    said = "escalated: {} still shows" if is_escalated else "{} is alive and shows"
    text = f"{said.format(holder)} no progress since {to_rfc3339(since)}"
    return AttentionItem(
        "no_progress",
        since,
        one_line(text, task.title),
        f"dragoman task move {task.id} ready",
        task.id,
        holder,
    )


# --- agents -----------------------------------------------------------------------------------


def _paused_item(record: AgentRecord, queues: Mapping[str, int], now: int) -> AttentionItem | None:
    pause = record.active_pause(now)
    waiting = queues.get(record.name, 0) + queues.get("", 0)
    if pause is None or not waiting:
        return None
    tasks = "1 ready task waits" if waiting == 1 else f"{waiting} ready tasks wait"
    return AttentionItem(
        "paused",
        pause.since,
        one_line(f"{record.name} is {describe_pause(pause.until)} while {tasks}", pause.reason),
        f"dragoman agent resume {record.name}",
        agent=record.name,
    )


def _waiting_items(record: AgentRecord, now: int) -> Iterator[AttentionItem]:
    """Sessions of an agent that wait for the permission or the input of a person."""
    for one in record.current_sessions(now):
        if one.state == "waiting":
            yield AttentionItem(
                "waits_for_input",
                one.since,
                one_line(f"{record.name} waits for input in session {one.session}", one.text),
                f"dragoman agent show {record.name}",
                agent=record.name,
            )


def _unknown_assignees(
    store: Store, names: Iterable[str], now: int, limit: int
) -> Iterator[AttentionItem]:
    """Ready tasks that wait for an agent that does not exist."""
    for name in names:
        for view in list_tasks(store, TaskQuery("ready", name, limit=limit)):
            wait = explain_wait(view.task, now)
            if wait is not None and wait.kind == "reserved":
                yield AttentionItem(
                    "unknown_assignee",
                    view.task.moved_at,
                    one_line(f"nobody called {name} is known", view.task.title),
                    f"dragoman task assign {view.task.id} NAME",
                    view.task.id,
                    name,
                )
