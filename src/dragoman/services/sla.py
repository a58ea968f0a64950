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
"""Store, handoff -> who is told that it does not go on."""

ESCALATE: dict[str, Callable[[str, Store, Told], AnyCommand]] = {
    "task": lambda name, _, __: EscalateDelegation(name),
    "mail": lambda name, store, _: EscalateMail(name, names_in_role(store, "orchestrator")),
    "handoff": lambda name, store, told: EscalateHandoff(name, told(store, name)),
}
"""Kind of stream -> what is asked for when it is late."""


class Sla:
    """Escalates whatever is late, and ends requests whose time is over."""

    name = "sla"

    def __init__(
        self,
        hub: Hub,
        coordinator: str = COORDINATOR,
        teams: Mapping[str, Team] = NO_TEAMS,
        called: Container[str] = (),
    ) -> None:
        """`coordinator` is told where nobody else could be; `teams` have members of their own.

        `called` are those whom the hub starts or calls itself.
        """
        self._hub = hub
        self._called = called
        self._told = partial(told_of, teams, coordinator)

    def run_once(self, now: int) -> int:
        """Escalate everything that is late; how many there were."""
        escalated, stuck = 0, set[str]()
        while True:
            # What cannot be told stays at the front; behind it there are others.
            page = self._hub.store.overdue(now, _PAGE + len(stuck))
            late = [stream for stream in page if stream not in stuck]
            if not late:
                return escalated
            untold = {stream for stream in late if not self._escalate(stream, now)}
            escalated += len(late) - len(untold)
            stuck |= untold

    def _command(self, kind: str, name: str) -> AnyCommand | None:
        """What is asked for; None: nothing, so that a review costs no transaction at every turn."""
        if kind != INTENT:
            return ESCALATE[kind](name, self._hub.store, self._told)
        agent = waited_for(self._hub.store, name)
        return ExpireRequest(name, agent in self._called) if agent else None

    def _escalate(self, stream: str, now: int) -> bool:
        """Whether it was told: not what cannot be read, or is not late yet by the hub's clock."""
        kind, _, name = stream.partition(":")
        try:
            command = self._command(kind, name)
            if command is None:
                return False
            self._hub.do(SYSTEM, command)
        except LedgerError:
            return False
        row = self._hub.store.stream(stream)
        # A request that has timed out may have been followed by another one, with a deadline.
        deadline = None if row is None else row.shelf.deadline
        return row is not None and (deadline is None or deadline > now)
