"""The decider of turns: each is recorded once, in the count that it belongs to (S-SAOP-3)."""

from collections.abc import Iterable

from msgspec.structs import replace

from dragoman.core.authority import check_hold, check_word, check_write
from dragoman.core.commands import RecordTurn
from dragoman.core.deciding.tracing import as_then, check_part, found_task, repeated
from dragoman.core.errors import Refusal
from dragoman.core.events import TurnRecorded
from dragoman.core.ids import turns_stream
from dragoman.core.limits import WHOLE, check_range
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.task import Task
from dragoman.core.states.trace import attempt_of, own_counts

_SHARED = 0
"""Attempt number under which all turns of non-holders once stood together."""


def record_turn(command: RecordTurn, read: Read, now: int) -> Decision | Refusal:
    """Record a turn of the work on a task once; an unknown task is adopted (S-ADOPT)."""
    refusal = (
        check_write(read.actor)
        or check_part(command.agent, read)
        or check_range("turn_index", command.turn_index, 0, WHOLE)
    )
    if refusal:
        return refusal
    found = found_task(command, read, now)
    if isinstance(found, Refusal):
        return found
    known_task, task, begun = found
    by, beside = "", 0
    if known_task is not None:
        attempt = attempt_of(known_task, read.actor, read.turns(known_task.id))
        task = replace(task, attempt=attempt)
        if attempt < 0:
            by, beside = read.actor.name, known_task.attempts
    key = _key(command, task)
    known = read.logged(key)
    if known is not None:
        where = "beside the attempts on" if by else f"of attempt {task.attempt} on"
        what = f"turn {command.turn_index} {where} {task.task}"
        return repeated(replace(task, log=key), known, command.digest, what)
    shared = _told_before(command, task, (_SHARED,), read) if by else None
    if shared is not None:
        return shared
    if known_task is not None:
        refusal = _check_turn(known_task, read, now)
        if refusal:
            return _told_before(command, task, _earlier(task, read), read) or refusal
    event = TurnRecorded(
        task=task.task,
        attempt=task.attempt,
        turn_index=command.turn_index,
        agent=command.agent,
        confidence=command.confidence,
        envelope=command.envelope,
        digest=command.digest,
        masked=command.masked,
        by=by,
        beside=beside,
    )
    recorded = ((turns_stream(task.task), event),)
    told = replace(task, log=key, masked=command.masked)
    if begun is None:
        return Decision(told, recorded)
    return replace(begun, receipt=told, events=(*begun.events, *recorded))


def _key(command: RecordTurn, task: Receipt) -> str:
    return f"turn:{task.task}/{task.attempt}/{command.turn_index}"


def _check_turn(task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse unless the caller may write about the task; during an attempt, only its holder."""
    lease = read.lease(task)
    if read.actor.role == "agent" and lease is not None and lease.is_live(now):
        return check_hold(read.actor, task, lease, None, now)
    return check_word(read.actor, task, lease, None, now)


def _earlier(task: Receipt, read: Read) -> Iterable[int]:
    """Attempts under which an earlier turn of the caller may stand, the last one first."""
    attempts = range(task.attempt - 1, _SHARED - 1, -1)
    return (*attempts, *own_counts(read.turns(task.task), read.actor))


def _told_before(
    command: RecordTurn, task: Receipt, attempts: Iterable[int], read: Read
) -> Decision | None:
    """Answer that a turn had under one of these attempts, if it was the very same (S-IDEM)."""
    for attempt in attempts:
        then = replace(task, attempt=attempt)
        known = read.logged(_key(command, then))
        if known is not None and known.digest == command.digest:
            return as_then(replace(then, log=_key(command, then)), known)
    return None
