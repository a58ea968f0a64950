"""Decisions that begin an attempt: claim a task, adopt one from elsewhere (S-RUN, S-ADOPT)."""

from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask, check_claimable, check_lease_end, check_may_claim
from dragoman.core.attempt_state import TaskClaimed, grant_lease, renew_lease
from dragoman.core.authority import check_write, recorded_dispatcher
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_alias, task_stream
from dragoman.core.intent.workflow import may_claim
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, StreamEvents, task_receipt
from dragoman.core.task import decide_create_task
from dragoman.core.task_state import AdoptTask, CreateTask, Task, TaskAliased


def decide_claim_task(command: ClaimTask, read: Read, now: int) -> Decision | Refusal:
    """Start an attempt under a higher fencing token."""
    refusal = check_may_claim(command, read)
    if refusal:
        return refusal
    queues = command.queues or ("", command.agent)
    task = (
        read.task(command.task)
        if command.task
        else _next_eligible(queues, command.agent, read, now)
    )
    if task is None:
        return Refusal("nothing_ready", f"no task is ready for {command.agent}")
    if isinstance(task, Refusal):
        return task
    lease_now = read.lease(task)
    if (
        command.renew_if_held
        and lease_now
        and lease_now.holder == command.agent
        and lease_now.is_valid(now)
    ):
        lease_now = renew_lease(lease_now, now)
        return Decision(
            task_receipt(task, task.status, lease_now), (), LeaseChange(task.id, lease_now)
        )
    refusal = check_claimable(task, command, lease_now, now)
    if refusal:
        return refusal
    attempt, fence = task.attempts + 1, task.fence + 1
    lease = grant_lease(command.agent, fence, command.session, command.ttl_ms, now)
    refusal = check_lease_end(task, lease, now)
    if refusal:
        return refusal
    event = TaskClaimed(
        task.status,
        attempt,
        fence,
        command.agent,
        command.ttl_ms,
        command.session,
        recorded_dispatcher(read.actor, command.agent),
    )
    return Decision(
        Receipt(task.id, "in-progress", attempt, fence, lease.expires_at),
        ((task_stream(task.id), event),),
        LeaseChange(task.id, lease),
    )


def _next_eligible(queues: tuple[str, ...], agent: str, read: Read, now: int) -> Task | None:
    return read.next_ready(queues, now, lambda task: may_claim(task, agent, read, now))


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
        aliases=(alias,),
        origin=command.origin or command.kind,
        max_attempts=command.max_attempts,
        assignee=command.owner,
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
