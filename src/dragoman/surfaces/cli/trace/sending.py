"""Sending what was captured: turns one by one, events of a task many at a time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from dragoman.core.commands import RecordTrace
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.facts import StoreFacts
from dragoman.engine.request import Accepted

if TYPE_CHECKING:
    from dragoman.core.actors import Actor
    from dragoman.core.commands import AnyCommand
    from dragoman.engine.reads.turns import ShownTurn
    from dragoman.engine.rests import Batch
    from dragoman.protocols.saop.capture.scribe import Captured
    from dragoman.surfaces.cli.place import Place

_MOST_REFUSED: Final = 3
"""After this many refusals in a row, the rest would be refused as well."""
_IN_VAIN: Final = frozenset(
    {"identity_mismatch", "not_authorized", "unauthorized_agent", "lease_lost", "task_not_found"}
)
"""Refusals of the sender, not of the message: the rest would be refused as well."""


class Sent(Struct, frozen=True):
    """A recorded message, or its refusal."""

    what: str
    position: int = 0
    masked: bool = False
    refusal: Refusal | None = None


class Tally(Struct):
    """Counts of what was sent, recorded and refused."""

    head: int
    """Ledger position before the import."""
    taken: Counter[str] = field(default_factory=Counter[str])
    fresh: int = 0
    masked: int = 0
    refused: list[Sent] = []
    in_a_row: int = 0

    def add(self, kind: str, sent: Sent) -> None:
        """Count a result."""
        if sent.refusal is not None:
            self.refused.append(sent)
            self.in_a_row += _MOST_REFUSED if sent.refusal.code in _IN_VAIN else 1
            return
        self.in_a_row = 0
        self.taken[kind] += 1
        self.fresh += self.is_fresh(sent)
        self.masked += sent.masked

    def is_fresh(self, sent: Sent) -> bool:
        """Tell whether the message was not recorded before."""
        return sent.position > self.head

    @property
    def is_hopeless(self) -> bool:
        """Tell whether sending more is pointless."""
        return self.in_a_row >= _MOST_REFUSED


class Sender:
    """Records captured turns and events of one task, on behalf of an actor."""

    def __init__(
        self, place: "Place", actor: "Actor", task: str, before: Mapping[int, "ShownTurn"]
    ) -> None:
        """`earlier_turns`: turns recorded in earlier attempts, by their number."""
        from dragoman.engine.operation import find_operation

        found = find_operation(place.interpreter.dialects, "saop.event")
        assert found is not None, "SAOP is spoken everywhere"
        self._place = place
        self._actor = actor
        self._task = task
        self._before = before
        self._event = found[1]
        self.tally = Tally(place.hub.store.head())

    def send(self, captured: Sequence["Captured"]) -> Iterator[Sent]:
        """Send messages in order and count them; stops early when everything is refused."""
        for kind, run in groupby(captured, key=lambda one: one.kind):
            some = list(run)
            for one in self._events(some) if kind == "event" else map(self._turn, some):
                self.tally.add(kind, one)
                yield one
                if self.tally.is_hopeless:
                    return

    def _turn(self, one: "Captured") -> Sent:
        from dragoman.engine.plan import Turned

        index: int = one.message["turn_index"]
        what = f"turn {index}"
        if index in self._before:
            return Sent(what, self._before[index].position, self._before[index].masked)
        answer = self._place.interpreter.call("saop.turn", one.message, self._actor)
        if isinstance(answer, Turned):
            return Sent(what, refusal=Refusal(answer.code, answer.detail))
        reply: Any = answer.reply
        return Sent(what, reply["position"], reply["masked"])

    def _events(self, run: Sequence["Captured"]) -> Iterator[Sent]:
        """Record events in one transaction; if one is refused, each in its own."""
        asked = [self._asked(one) for one in run]
        try:
            done = self._do(asked)
        except Refused:
            yield from map(self._alone, asked)
            return
        for one, receipt in zip(asked, done.receipts, strict=True):
            yield Sent(one.name, receipt.position, receipt.masked)

    def _alone(self, asked: "_Asked") -> Sent:
        try:
            (receipt,) = self._do([asked]).receipts
        except Refused as refused:
            return Sent(asked.name, refusal=refused.refusal)
        return Sent(asked.name, receipt.position, receipt.masked)

    def _do(self, asked: Sequence["_Asked"]) -> Accepted:
        """Submit to the hub, wherever it runs; carry-over of thoughts is stored here, first."""
        from dragoman.engine.rests import Batch

        rests = Batch(self._is_recorded)
        commands = [self._command(one, rests) for one in asked]
        rests.keep()
        done = self._place.hub.do(self._actor, *commands)
        rests.settle()
        return done

    def _command(self, asked: "_Asked", rests: "Batch") -> RecordTrace:
        """Command that records the event under this task, which its session need not hold."""
        command, rest = asked.command, self._event.rest(asked.message)
        if rest is not None:
            rest = rests.level(rest)
            (command,) = rest.commands
            if not self._is_recorded(rest.event):
                rests.leave(rest)
        assert isinstance(command, RecordTrace), "nothing else keeps an event"
        return replace(command, task=self._task)

    def _is_recorded(self, event: str) -> bool:
        return self._place.hub.store.trace(event) is not None

    def _asked(self, one: "Captured") -> "_Asked":
        sent, gather = self._event.read(one.message), self._event.gather
        assert gather is not None, "an event is looked through for its sender"
        facts = StoreFacts(self._place.hub.store, lambda _task, _ref: False)
        found = gather(sent, self._actor, facts)
        assert isinstance(found, tuple), "an event that was captured has its shape"
        (command,) = found
        return _Asked(_name(one), sent, command)


class _Asked(Struct, frozen=True):
    """A parsed event with its command."""

    name: str
    message: Any
    command: "AnyCommand"


def _name(one: "Captured") -> str:
    """Short description of an event."""
    payload: dict[str, Any] = one.message["payload"]
    return " ".join(filter(None, (payload["type"], payload.get("tool", ""))))
