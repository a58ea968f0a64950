"""Notices: entries of the ledger after which a person is needed, each as an item of the attention
list.

A notice is made from an entry and what was known then. What a person has done is none: whoever did
it knows.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoman.core.agent import AgentPaused, describe_pause
from dragoman.core.attempt_state import AttemptEscalated, AttemptQuiet
from dragoman.core.base import Event
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import Handoff, HandoffEscalated
from dragoman.core.mail import Mail, MailEscalated, MailPosted
from dragoman.core.question_state import QuestionAsked
from dragoman.core.task_state import DelegationEscalated, Task, TaskTransitioned
from dragoman.core.trace import EntropyEscalated
from dragoman.engine.ports import Store
from dragoman.engine.queries import attention
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.stream_state import State, replay

_HUMAN: Final = "human:"


def find_notice(store: Store, entry: Entry) -> attention.AttentionItem | None:
    """The notice of an entry; None: nobody is needed."""
    make_notice = _NOTICES.get(entry.event)
    if make_notice is None or read_line(entry.line).actor.startswith(_HUMAN):
        return None
    return make_notice(store, entry, decode_event(entry))


def _state_then(store: Store, entry: Entry) -> State | None:
    """State of the stream of an entry, as it was after it."""
    entries = stream_entries(store, entry.stream, until=entry.position)
    return replay(one.line for one in entries)


def _task_then(store: Store, entry: Entry) -> Task:
    task = _state_then(store, entry)
    assert isinstance(task, Task), "an event of a task is in the stream of a task"
    return task


def _of_move(store: Store, entry: Entry, event: TaskTransitioned) -> attention.AttentionItem | None:
    if event.to == "blocked":
        return attention.question_item(_task_then(store, entry))
    if event.to == "deadletter":
        return attention.deadletter_item(_task_then(store, entry), event.reason)
    return None


def _of_quiet_attempt(
    store: Store, entry: Entry, event: AttemptQuiet | AttemptEscalated
) -> attention.AttentionItem | None:
    task = _task_then(store, entry)
    if attention.waits_for_answer(task):
        return None  # its question is told
    is_escalated = isinstance(event, AttemptEscalated)
    return attention.no_progress_item(task, event.agent, event.since, is_escalated=is_escalated)


def _of_question(
    store: Store, entry: Entry, event: QuestionAsked
) -> attention.AttentionItem | None:
    if event.mail:
        return None  # its letter is told
    task = _task_then(store, entry)
    (question,) = (one for one in task.questions if one.id == event.id)
    return attention.asked_item(task, question)


def _of_letter(store: Store, entry: Entry, event: MailPosted) -> attention.AttentionItem | None:
    if not event.answer_wanted:
        return None
    mail = _state_then(store, entry)
    assert isinstance(mail, Mail), "a letter is in a stream of its own"
    return None if attention.is_answerable(mail, store) else attention.help_item(mail, store)


def _of_late_letter(store: Store, entry: Entry, _: MailEscalated) -> attention.AttentionItem:
    mail = _state_then(store, entry)
    assert isinstance(mail, Mail), "a letter is in a stream of its own"
    return attention.help_item(mail, store) if mail.awaits_answer else attention.late_ack_item(mail)


def _of_late_delegation(
    store: Store, entry: Entry, _: DelegationEscalated
) -> attention.AttentionItem:
    task = _task_then(store, entry)
    assert task.delegation is not None, "a delegation is late"
    return attention.late_delegation_item(task, task.delegation)


def _of_late_handoff(store: Store, entry: Entry, _: HandoffEscalated) -> attention.AttentionItem:
    handoff = _state_then(store, entry)
    assert isinstance(handoff, Handoff), "a handoff is in a stream of its own"
    return attention.late_handoff_item(handoff)


def _of_pause(_: Store, entry: Entry, event: AgentPaused) -> attention.AttentionItem:
    name = entry.stream.partition(":")[2]
    return attention.AttentionItem(
        "paused",
        read_line(entry.line).at,
        attention.one_line(f"{name} is {describe_pause(event.until)}", event.reason),
        f"dragoman agent resume {name}",
        agent=name,
    )


def _of_lost_agent(_: Store, entry: Entry, event: EntropyEscalated) -> attention.AttentionItem:
    return attention.AttentionItem(
        "escalation",
        read_line(entry.line).at,
        attention.one_line(f"the agent seems to be getting lost ({event.kind})", event.detail),
        f"dragoman task show {event.task}",
        event.task,
    )


_MAKERS: Final[dict[type[Event], Callable[[Store, Entry, Any], attention.AttentionItem | None]]] = {
    TaskTransitioned: _of_move,
    AttemptQuiet: _of_quiet_attempt,
    AttemptEscalated: _of_quiet_attempt,
    QuestionAsked: _of_question,
    MailPosted: _of_letter,
    MailEscalated: _of_late_letter,
    DelegationEscalated: _of_late_delegation,
    HandoffEscalated: _of_late_handoff,
    AgentPaused: _of_pause,
    EntropyEscalated: _of_lost_agent,
}

_NOTICES: Final = {EVENT_NAMES[event]: make for event, make in _MAKERS.items()}
"""Name of an event -> the notice of its entries."""
