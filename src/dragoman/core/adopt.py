"""Adopt a task from elsewhere: create it under its alias and begin its attempt (S-ADOPT)."""

from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask, check_may_claim
from dragoman.core.attempt_state import TaskClaimed, grant_lease
from dragoman.core.authority import check_write
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_alias, task_stream
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, StreamEvents, task_receipt
from dragoman.core.task import decide_create_task
from dragoman.core.task_state import AdoptTask, CreateTask, Task, TaskAliased


def decide_adopt_task(command: AdoptTask, read: Read, now: int) -> Decision | Refusal:
    """Find the task of this name, or create it."""
    alias = f"{command.kind}:{command.name}"
    refusal = check_write(read.actor) or check_alias(alias)
    if refusal:
        return refusal
    known = read.task(alias)
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(command.name)
    if isinstance(known, Task):
        alias_events: StreamEvents = ()
        if alias not in known.aliases:
            alias_events = ((task_stream(known.id), TaskAliased(alias)),)
        return Decision(task_receipt(known, known.status), alias_events)
    if known.code != "task_not_found":
        return known
    created = decide_create_task(_creation_command(command, alias), read, now)
    if isinstance(created, Refusal) or not command.claim_for:
        return created
    return _claim_for_worker(command, created, read, now)


def _creation_command(command: AdoptTask, alias: str) -> CreateTask:
    return CreateTask(
        title=command.title or command.name,
        id=command.name,
        ready=command.ready or bool(command.claim_for),
        review_required=command.review_required,
        may_skip_review=True,  # whether adopted work is reviewed is a setting, of no message
        aliases=(alias,),
        origin=command.origin or command.kind,
        max_attempts=command.max_attempts,
        assignee=command.owner,
        priority=command.priority,
    )


def _claim_for_worker(
    command: AdoptTask, created: Decision, read: Read, now: int
) -> Decision | Refusal:
    """Claim the created task for the agent that works on it already, each step on record."""
    task, agent = created.receipt.task, command.claim_for
    claim = ClaimTask(task, agent, command.session, command.ttl_ms)
    refusal = check_may_claim(claim, read)
    if refusal:
        return refusal
    lease = grant_lease(agent, 1, command.session, command.ttl_ms, now)
    claimed = TaskClaimed("ready", 1, 1, agent, command.ttl_ms, command.session)
    return replace(
        created,
        receipt=Receipt(task, "in-progress", 1, 1, lease.expires_at),
        events=(*created.events, (task_stream(task), claimed)),
        lease=LeaseChange(task, lease),
    )
