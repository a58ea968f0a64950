"""SLA enforcement: escalates work, mail and handoffs past their deadline, once each.

Requests for a result whose time is over expire.
"""

from collections.abc import Callable, Container, Mapping
from functools import partial

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.command_table import AnyCommand
from dragoman.core.delegation import EscalateDelegation
from dragoman.core.errors import LedgerError
from dragoman.core.handoff.common import COORDINATOR
from dragoman.core.handoff.state import EscalateHandoff
from dragoman.core.intent.state import ExpireRequest
from dragoman.core.mail import EscalateMail
from dragoman.core.task_state import INTENT_ALIAS_KIND as INTENT
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import names_in_role
from dragoman.engine.queries.handoffs import NO_TEAMS, Team, escalation_recipients
from dragoman.engine.queries.intents import awaited_agent

_PAGE = 100

FindRecipients = Callable[[Store, str], tuple[str, ...]]
"""Finds the recipients of an escalation: store, handoff -> names."""

ESCALATION_COMMANDS: dict[str, Callable[[str, Store, FindRecipients], AnyCommand]] = {
    "task": lambda name, _, __: EscalateDelegation(name),
    "mail": lambda name, store, _: EscalateMail(name, names_in_role(store, "orchestrator")),
    "handoff": lambda name, store, told: EscalateHandoff(name, told(store, name)),
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

    def _command(self, kind: str, name: str) -> AnyCommand | None:
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
