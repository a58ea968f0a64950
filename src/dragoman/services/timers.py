"""Timers: services that act when something is due, for a hub, for `tick` and for a test hub.

Leases expire, tasks whose backoff is over enter the ready queue, deadlines of work, mail, handoffs
and requests are enforced once each, and waves start the beads whose slots and files became free.
All state is in the ledger and read anew in each run.
"""

from collections.abc import Callable, Container, Mapping
from functools import partial

from dragoman.config import AttemptSettings, Settings
from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ExpireLease, FlagAttempt
from dragoman.core.attempt_state import FLAGGED_QUIET, NOT_QUIET, Lease
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.delegation import EscalateDelegation
from dragoman.core.errors import LedgerError, Refusal, Refused
from dragoman.core.handoff.common import COORDINATOR
from dragoman.core.handoff.state import EscalateHandoff
from dragoman.core.intent.state import ExpireRequest
from dragoman.core.mail import EscalateMail
from dragoman.core.task_state import INTENT_ALIAS_KIND as INTENT
from dragoman.core.wave import AdvanceWave
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import names_in_role
from dragoman.engine.queries.handoffs import escalation_recipients
from dragoman.engine.queries.intents import awaited_agent
from dragoman.engine.queries.tasks import find_task, task_rows
from dragoman.engine.queries.visibility import NO_TEAMS, Team
from dragoman.engine.queries.waves import find_wave, open_wave_ids, wave_status
from dragoman.services.lost_agent_detector import EntropyService
from dragoman.services.scheduler import Service

_PAGE = 100
_DAY_MS = 86_400_000


class LeaseExpiry:
    """Ends every expired lease."""

    name = "lease-expiry"

    def __init__(
        self,
        hub: Hub,
        backoff: Backoff,
        coordinator: str = COORDINATOR,
        teams: Mapping[str, Team] = NO_TEAMS,
    ) -> None:
        """`coordinator` is notified where nobody else could be; `teams` have members of their
        own."""
        self._hub = hub
        self._backoff = backoff
        self._coordinator = coordinator
        self._teams = teams

    def run_once(self, now: int) -> int:
        """Expire leases; the number of recovered tasks."""
        expired, seen = 0, set[str]()
        # A stream that comes up again could not be expired: the hub's own clock is behind `now`, or
        # a store has kept a lease that it should have ended.
        while page := [
            one for one in self._hub.store.expired_leases(now, _PAGE) if one not in seen
        ]:
            seen.update(page)
            expired += sum(self.expire(stream.partition(":")[2]) for stream in page)
        return expired

    def expire(self, task: str, max_ms: int = 0) -> bool:
        """End the attempt on a task if its lease has expired, or if it takes longer than `max_ms`;
        True if it was ended. A task that cannot be read does not stop the others.
        """
        store = self._hub.store
        try:
            found = find_task(store, task)
            handoff = None if isinstance(found, Refusal) else found.task.handoff
            handoff_id = handoff.id if handoff is not None else ""
            recipients = escalation_recipients(self._teams, self._coordinator, store, handoff_id)
            command = ExpireLease(task, self._backoff, max_ms, recipients)
            outcome = self._hub.submit(HUB_ACTOR, command)
        except LedgerError:
            return False
        return outcome.receipts[0].status != "in-progress"


class AttemptLimiter:
    """Flags and escalates attempts without progress, and ends those that take too long."""

    name = "attempt-limits"

    def __init__(
        self,
        hub: Hub,
        settings: AttemptSettings,
        expiry: LeaseExpiry,
        hub_started: Container[str] = (),
    ) -> None:
        """`hub_started` are the agents whose runs the dispatcher ends itself when they take too
        long: it holds the task until nothing of the program is left."""
        self._hub = hub
        self._settings = settings
        self._expiry = expiry
        self._hub_started = hub_started
        self._looked_at = 0
        self._next_look_at = 0
        """Time before which no attempt can be due: later claims and progress only put it off."""

    def run_once(self, now: int) -> int:
        """Flag, escalate or end every attempt that is due; their number."""
        if self._looked_at <= now < self._next_look_at:
            return 0
        due_times, due = list[int](), list[tuple[str, Lease]]()
        for row in task_rows(self._hub.store, "in-progress"):
            lease = row.lease
            due_at = None if lease is None else self._due_at(lease)
            if lease is not None and due_at is not None:
                due_times.append(max(due_at, now + 1))
                due += [(row.name.partition(":")[2], lease)] * (due_at <= now)
        settings = self._settings
        limits = filter(None, (settings.max_ms, settings.quiet_ms, settings.escalate_ms))
        self._looked_at = now
        self._next_look_at = min(*due_times, now + min(limits, default=_DAY_MS), now + _DAY_MS)
        return sum(self._act(task, lease, now) for task, lease in due)

    def _due_at(self, lease: Lease) -> int | None:
        """Time at which something is to be done about an attempt; None: never."""
        settings = self._settings
        quiet_at = lease.progress_at + settings.quiet_ms
        times = list[int]()
        if settings.max_ms and lease.holder not in self._hub_started:
            times.append(lease.started_at + settings.max_ms)
        if settings.quiet_ms and lease.quiet_level == NOT_QUIET:
            times.append(quiet_at)
        if settings.quiet_ms and settings.escalate_ms and lease.quiet_level == FLAGGED_QUIET:
            times.append(quiet_at + settings.escalate_ms)
        return min(times, default=None)

    def _act(self, task: str, lease: Lease, now: int) -> bool:
        """Act on one attempt; True if it was ended, flagged or escalated. One that cannot be read
        does not stop the others.
        """
        settings = self._settings
        is_limited = settings.max_ms > 0 and lease.holder not in self._hub_started
        if is_limited and lease.started_at + settings.max_ms <= now:
            return self._expiry.expire(task, settings.max_ms)
        flag = FlagAttempt(task, settings.quiet_ms, settings.escalate_ms)
        try:
            self._hub.submit(HUB_ACTOR, flag)
            after = find_task(self._hub.store, task)
        except LedgerError:
            return False
        after_lease = None if isinstance(after, Refusal) else after.lease
        return after_lease is not None and after_lease.quiet_level > lease.quiet_level


_BATCH = 1_000


class RetryPromotion:
    """Moves due tasks into their queues, a bounded number in each transaction."""

    name = "retry-promotion"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Promote every due task; their number."""
        promoted = 0
        while True:
            count = self._hub.store.transact(lambda session: session.promote_due(now, _BATCH))
            promoted += count
            if count < _BATCH:
                return promoted


FindRecipients = Callable[[Store, str], tuple[str, ...]]
"""Finds the recipients of an escalation: store, handoff -> names."""

ESCALATION_COMMANDS: dict[str, Callable[[str, Store, FindRecipients], Command]] = {
    "task": lambda name, _, __: EscalateDelegation(name),
    "mail": lambda name, store, _: EscalateMail(
        name, names_in_role(store, "orchestrator") or names_in_role(store, "human")
    ),
    "handoff": lambda name, store, find_recipients: EscalateHandoff(
        name, find_recipients(store, name)
    ),
}
"""Kind of stream -> command that escalates it."""


class SlaService:
    """Escalates what is past its deadline, and expires requests."""

    name = "sla"

    def __init__(
        self,
        hub: Hub,
        coordinator: str = COORDINATOR,
        teams: Mapping[str, Team] = NO_TEAMS,
        hub_started: Container[str] = (),
    ) -> None:
        """`coordinator` is notified where nobody else could be; `teams` have members of their own.

        `hub_started` are the agents that the hub starts or calls itself.
        """
        self._hub = hub
        self._hub_started = hub_started
        self._find_recipients = partial(escalation_recipients, teams, coordinator)

    def run_once(self, now: int) -> int:
        """Escalate everything past its deadline; the number."""
        escalated, skipped = 0, set[str]()
        while True:
            # Streams that cannot be escalated stay at the front; others come behind them.
            page = self._hub.store.overdue_streams(now, _PAGE + len(skipped))
            late = [stream for stream in page if stream not in skipped]
            if not late:
                return escalated
            failed = {stream for stream in late if not self._escalate(stream, now)}
            escalated += len(late) - len(failed)
            skipped |= failed

    def _command(self, kind: str, name: str) -> Command | None:
        """Command for a late stream; None: none, so that a review costs no transaction in every
        round.
        """
        if kind != INTENT:
            return ESCALATION_COMMANDS[kind](name, self._hub.store, self._find_recipients)
        agent = awaited_agent(self._hub.store, name)
        return ExpireRequest(name, agent in self._hub_started) if agent else None

    def _escalate(self, stream: str, now: int) -> bool:
        """Escalate a stream; False if it cannot be read, or is not late yet by the hub's clock."""
        kind, _, name = stream.partition(":")
        try:
            command = self._command(kind, name)
            if command is None:
                return False
            self._hub.submit(HUB_ACTOR, command)
        except LedgerError:
            return False
        row = self._hub.store.stream(stream)
        # An expired request may have been followed by another one, with a deadline.
        deadline = None if row is None else row.index.deadline
        return row is not None and (deadline is None or deadline > now)


class WaveService:
    """Advances every open wave as far as possible."""

    name = "waves"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Advance each open wave by one step; the number that moved."""
        return sum(self._advance(id, now) for id in list(open_wave_ids(self._hub.store)))

    def _advance(self, id: str, now: int) -> bool:
        """Advance a wave; True if it moved. One that cannot be read does not stop the others."""
        try:
            wave = find_wave(self._hub.store, id)
            if isinstance(wave, Refusal):
                return False
            inspection = wave_status(self._hub.store, wave, now)
            if inspection.plan.is_idle:
                return False
            self._hub.submit(HUB_ACTOR, AdvanceWave(wave.id, dict(inspection.stuck_reasons)))
        except (LedgerError, Refused):
            return False
        return True


def time_driven_services(
    hub: Hub, settings: Settings, *dialect_services: Service
) -> tuple[Service, ...]:
    """Time-driven services in their order, including those of the dialects."""
    coordinator, teams = settings.handoffs.coordinator, settings.teamspaces
    expiry = LeaseExpiry(hub, settings.retry, coordinator, teams)
    return (
        expiry,
        AttemptLimiter(hub, settings.attempts, expiry, settings.agents),
        SlaService(hub, coordinator, teams, settings.agents),
        WaveService(hub),
        EntropyService(hub, settings.entropy),
        *dialect_services,
        RetryPromotion(hub),
    )
