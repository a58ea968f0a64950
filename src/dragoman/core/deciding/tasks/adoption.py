"""Decider of adoption: work that was born elsewhere becomes a task at its first word (S-ADOPT)."""

from msgspec.structs import replace

from dragoman.core.authority import check_write
from dragoman.core.commands import AdoptTask, ClaimTask, CreateTask
from dragoman.core.deciding.tasks.claims import check_claimant
from dragoman.core.deciding.tasks.lifecycle import create
from dragoman.core.errors import Refusal
from dragoman.core.events import TaskAliased, TaskClaimed
from dragoman.core.ids import check_alias, task_stream
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt, StreamEvents, receipt
from dragoman.core.states.lease import granted
from dragoman.core.states.task import Task


def adopt(command: AdoptTask, read: Read, now: int) -> Decision | Refusal:
    """Find the task of this name, or create it."""
    alias = f"{command.kind}:{command.name}"
    refusal = check_write(read.actor) or check_alias(alias)
    if refusal:
        return refusal
    known = read.task(alias)
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(command.name)
    if isinstance(known, Task):
        bound: StreamEvents = ()
        if alias not in known.aliases:
            bound = ((task_stream(known.id), TaskAliased(alias)),)
        return Decision(receipt(known, known.status), bound)
    if known.code != "task_not_found":
        return known
    born = create(_birth(command, alias), read, now)
    if isinstance(born, Refusal) or not command.claim_for:
        return born
    return _in_hand(command, born, read, now)


def _birth(command: AdoptTask, alias: str) -> CreateTask:
    return CreateTask(
        title=command.title or command.name,
        id=command.name,
        ready=command.ready or bool(command.claim_for),
        review_required=command.review_required,
        aliases=(alias,),
        origin=command.origin or command.kind,
        max_attempts=command.max_attempts,
        assignee=command.owner,
    )


def _in_hand(command: AdoptTask, born: Decision, read: Read, now: int) -> Decision | Refusal:
    """Claim the created task for the agent that works on it already, each step on record."""
    task, agent = born.receipt.task, command.claim_for
    claim = ClaimTask(task, agent, command.session, command.ttl_ms)
    refusal = check_claimant(claim, read)
    if refusal:
        return refusal
    lease = granted(agent, 1, command.session, command.ttl_ms, now)
    claimed = TaskClaimed("ready", 1, 1, agent, command.ttl_ms, command.session)
    return replace(
        born,
        receipt=Receipt(task, "in-progress", 1, 1, lease.expires_at),
        events=(*born.events, (task_stream(task), claimed)),
        lease=LeaseChange(task, lease),
    )
