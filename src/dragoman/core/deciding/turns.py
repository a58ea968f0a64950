"""The decider of turns: each is recorded once, in the count that it belongs to (S-SAOP-3)."""

from collections.abc import Iterable

from msgspec.structs import replace

from dragoman.core.authority import check_holds, check_may_comment, check_write
from dragoman.core.commands import RecordTurn
from dragoman.core.deciding.tracing import (
    check_saop_role,
    find_or_adopt_task,
    original_decision,
    repeat_decision,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import TurnRecorded
from dragoman.core.ids import turns_stream
from dragoman.core.limits import MAX_SAFE_INTEGER, check_range
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.task import Task
from dragoman.core.states.trace import outside_attempts, turn_attempt

_SHARED_ATTEMPT = 0
"""Attempt number under which all turns of non-holders once stood together."""


def decide_record_turn(command: RecordTurn, read: Read, now: int) -> Decision | Refusal:
    """Record a turn of the work on a task once; an unknown task is adopted (S-ADOPT)."""
    refusal = (
        check_write(read.actor)
        or check_saop_role(command.agent, read)
        or check_range("turn_index", command.turn_index, 0, MAX_SAFE_INTEGER)
    )
    if refusal:
        return refusal
    found = find_or_adopt_task(command, read, now)
    if isinstance(found, Refusal):
        return found
    known_task, task, adopted = found
    by, attempt_then = "", 0
    if known_task is not None:
        attempt = turn_attempt(known_task, read.actor, read.turns(known_task.id))
        task = replace(task, attempt=attempt)
        if attempt < 0:
            by, attempt_then = read.actor.name, known_task.attempts
    key = _turn_key(command, task)
    known = read.logged(key)
    if known is not None:
        where = "beside the attempts on" if by else f"of attempt {task.attempt} on"
        what = f"turn {command.turn_index} {where} {task.task}"
        return repeat_decision(replace(task, log=key), known, command.digest, what)
    earlier_answer = _recorded_answer(command, task, (_SHARED_ATTEMPT,), read) if by else None
    if earlier_answer is not None:
        return earlier_answer
    if known_task is not None:
        refusal = _check_may_record_turn(known_task, read, now)
        if refusal:
            return _recorded_answer(command, task, _earlier_attempts(task, read), read) or refusal
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
        beside=attempt_then,
    )
    recorded = ((turns_stream(task.task), event),)
    receipt = replace(task, log=key, masked=command.masked)
    if adopted is None:
        return Decision(receipt, recorded)
    return replace(adopted, receipt=receipt, events=(*adopted.events, *recorded))


def _turn_key(command: RecordTurn, task: Receipt) -> str:
    return f"turn:{task.task}/{task.attempt}/{command.turn_index}"


def _check_may_record_turn(task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse unless the caller may write about the task; during an attempt, only its holder."""
    lease = read.lease(task)
    if read.actor.role == "agent" and lease is not None and lease.is_valid(now):
        return check_holds(read.actor, task, lease, None, now)
    return check_may_comment(read.actor, task, lease, None, now)


def _earlier_attempts(task: Receipt, read: Read) -> Iterable[int]:
    """Attempts under which an earlier turn of the caller may stand, the last one first."""
    attempts = range(task.attempt - 1, _SHARED_ATTEMPT - 1, -1)
    return (*attempts, *outside_attempts(read.turns(task.task), read.actor))


def _recorded_answer(
    command: RecordTurn, task: Receipt, attempts: Iterable[int], read: Read
) -> Decision | None:
    """Answer that a turn had under one of these attempts, if it was the very same (S-IDEM)."""
    for attempt in attempts:
        receipt = replace(task, attempt=attempt)
        known = read.logged(_turn_key(command, receipt))
        if known is not None and known.digest == command.digest:
            return original_decision(replace(receipt, log=_turn_key(command, receipt)), known)
    return None
