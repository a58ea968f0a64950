"""SLA: what has not come by its deadline is seen to, once: work, mail, handoffs, results."""

from collections.abc import Callable, Container, Mapping
from functools import partial

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import (
    AnyCommand,
    EscalateDelegation,
    EscalateHandoff,
    EscalateMail,
    ExpireRequest,
)
from dragoman.core.deciding.handoffs.common import COORDINATOR
from dragoman.core.errors import LedgerError
from dragoman.core.states.intent import KIND as INTENT
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import names_in_role
from dragoman.engine.reads.handoffs import told_of
from dragoman.engine.reads.intents import waited_for
from dragoman.engine.reads.teamspaces import NO_TEAMS, Team

_PAGE = 100

Told = Callable[[Store, str], tuple[str, ...]]
"""Finds the recipients of an escalation: store, handoff -> names."""

ESCALATE: dict[str, Callable[[str, Store, Told], AnyCommand]] = {
    "task": lambda name, _, __: EscalateDelegation(name),
    "mail": lambda name, store, _: EscalateMail(name, names_in_role(store, "orchestrator")),
    "handoff": lambda name, store, told: EscalateHandoff(name, told(store, name)),
}
"""Kind of stream -> command that escalates it."""


class Sla:
    """Escalates what is past its deadline, and expires requests."""

    name = "sla"

    def __init__(
        self,
        hub: Hub,
        coordinator: str = COORDINATOR,
        teams: Mapping[str, Team] = NO_TEAMS,
        called: Container[str] = (),
    ) -> None:
        """`coordinator` is notified where nobody else could be; `teams` have members of their own.

        `hub_started` are the agents that the hub starts or calls itself.
        """
        self._hub = hub
        self._called = called
        self._told = partial(told_of, teams, coordinator)

    def run_once(self, now: int) -> int:
        """Escalate everything past its deadline; the number."""
        escalated, stuck = 0, set[str]()
        while True:
            # Streams that cannot be escalated stay at the front; others come behind them.
            page = self._hub.store.overdue(now, _PAGE + len(stuck))
            late = [stream for stream in page if stream not in stuck]
            if not late:
                return escalated
            untold = {stream for stream in late if not self._escalate(stream, now)}
            escalated += len(late) - len(untold)
            stuck |= untold

    def _command(self, kind: str, name: str) -> AnyCommand | None:
        """Command for a late stream; None: none, so that a review costs no transaction in every
        round.
        """
        if kind != INTENT:
            return ESCALATE[kind](name, self._hub.store, self._told)
        agent = waited_for(self._hub.store, name)
        return ExpireRequest(name, agent in self._called) if agent else None

    def _escalate(self, stream: str, now: int) -> bool:
        """Escalate a stream; False if it cannot be read, or is not late yet by the hub's clock."""
        kind, _, name = stream.partition(":")
        try:
            command = self._command(kind, name)
            if command is None:
                return False
            self._hub.do(SYSTEM, command)
        except LedgerError:
            return False
        row = self._hub.store.stream(stream)
        # An expired request may have been followed by another one, with a deadline.
        deadline = None if row is None else row.shelf.deadline
        return row is not None and (deadline is None or deadline > now)
