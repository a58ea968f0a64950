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
from dragoman.engine.request import Committed

if TYPE_CHECKING:
    from dragoman.core.actors import Actor
    from dragoman.core.commands import AnyCommand
    from dragoman.engine.reads.turns import TurnView
    from dragoman.engine.rests import BatchCarryOvers
    from dragoman.protocols.saop.capture.scribe import CapturedMessage
    from dragoman.surfaces.cli.place import DataDirectory

_MAX_CONSECUTIVE_REFUSALS: Final = 3
"""After this many refusals in a row, the rest would be refused as well."""
_SENDER_REFUSALS: Final = frozenset(
    {"identity_mismatch", "not_authorized", "unauthorized_agent", "lease_lost", "task_not_found"}
)
"""Refusals of the sender, not of the message: the rest would be refused as well."""


class SendResult(Struct, frozen=True):
    """A recorded message, or its refusal."""

    label: str
    position: int = 0
    masked: bool = False
    refusal: Refusal | None = None


class Tally(Struct):
    """Counts of what was sent, recorded and refused."""

    start_position: int
    """Ledger position before the import."""
    recorded: Counter[str] = field(default_factory=Counter[str])
    new: int = 0
    masked: int = 0
    refused: list[SendResult] = []
    consecutive_refusals: int = 0

    def add(self, kind: str, sent: SendResult) -> None:
        """Count a result."""
        if sent.refusal is not None:
            self.refused.append(sent)
            self.consecutive_refusals += (
                _MAX_CONSECUTIVE_REFUSALS if sent.refusal.code in _SENDER_REFUSALS else 1
            )
            return
        self.consecutive_refusals = 0
        self.recorded[kind] += 1
        self.new += self.is_new(sent)
        self.masked += sent.masked

    def is_new(self, sent: SendResult) -> bool:
        """Tell whether the message was not recorded before."""
        return sent.position > self.start_position

    @property
    def should_stop(self) -> bool:
        """Tell whether sending more is pointless."""
        return self.consecutive_refusals >= _MAX_CONSECUTIVE_REFUSALS


class TraceSender:
    """Records captured turns and events of one task, on behalf of an actor."""

    def __init__(
        self,
        directory: "DataDirectory",
        actor: "Actor",
        task: str,
        earlier_turns: Mapping[int, "TurnView"],
    ) -> None:
        """`earlier_turns`: turns recorded in earlier attempts, by their number."""
        from dragoman.engine.operation import find_operation

        operation = find_operation(directory.router.dialects, "saop.event")
        assert operation is not None, "SAOP is spoken everywhere"
        self._directory = directory
        self._actor = actor
        self._task = task
        self._earlier_turns = earlier_turns
        self._event_operation = operation[1]
        self.tally = Tally(directory.hub.store.head())

    def send(self, captured: Sequence["CapturedMessage"]) -> Iterator[SendResult]:
        """Send messages in order and count them; stops early when everything is refused."""
        for kind, run in groupby(captured, key=lambda result: result.kind):
            batch = list(run)
            for one in self._send_events(batch) if kind == "event" else map(self._send_turn, batch):
                self.tally.add(kind, one)
                yield one
                if self.tally.should_stop:
                    return

    def _send_turn(self, captured: "CapturedMessage") -> SendResult:
        from dragoman.engine.plan import Rejected

        index: int = captured.message["turn_index"]
        label = f"turn {index}"
        if index in self._earlier_turns:
            return SendResult(
                label, self._earlier_turns[index].position, self._earlier_turns[index].masked
            )
        answer = self._directory.router.call("saop.turn", captured.message, self._actor)
        if isinstance(answer, Rejected):
            return SendResult(label, refusal=Refusal(answer.code, answer.detail))
        reply: Any = answer.reply
        return SendResult(label, reply["position"], reply["masked"])

    def _send_events(self, run: Sequence["CapturedMessage"]) -> Iterator[SendResult]:
        """Record events in one transaction; if one is refused, each in its own."""
        prepared = [self._prepare_event(one) for one in run]
        try:
            done = self._submit(prepared)
        except Refused:
            yield from map(self._send_single, prepared)
            return
        for one, receipt in zip(prepared, done.receipts, strict=True):
            yield SendResult(one.name, receipt.position, receipt.masked)

    def _send_single(self, prepared: "_PreparedEvent") -> SendResult:
        try:
            (receipt,) = self._submit([prepared]).receipts
        except Refused as refused:
            return SendResult(prepared.name, refusal=refused.refusal)
        return SendResult(prepared.name, receipt.position, receipt.masked)

    def _submit(self, prepared: Sequence["_PreparedEvent"]) -> Committed:
        """Submit to the hub, wherever it runs; carry-over of thoughts is stored here, first."""
        from dragoman.engine.rests import BatchCarryOvers

        carry_overs = BatchCarryOvers(self._is_recorded)
        commands = [self._build_command(one, carry_overs) for one in prepared]
        carry_overs.save()
        done = self._directory.hub.submit(self._actor, *commands)
        carry_overs.settle()
        return done

    def _build_command(
        self, prepared: "_PreparedEvent", carry_overs: "BatchCarryOvers"
    ) -> RecordTrace:
        """Command that records the event under this task, which its session need not hold."""
        command, carry_over = prepared.command, self._event_operation.carry_over(prepared.message)
        if carry_over is not None:
            carry_over = carry_overs.reconcile(carry_over)
            (command,) = carry_over.commands
            if not self._is_recorded(carry_over.event):
                carry_overs.add(carry_over)
        assert isinstance(command, RecordTrace), "nothing else keeps an event"
        return replace(command, task=self._task)

    def _is_recorded(self, event: str) -> bool:
        return self._directory.hub.store.trace_event(event) is not None

    def _prepare_event(self, captured: "CapturedMessage") -> "_PreparedEvent":
        sent, gather = (
            self._event_operation.validate(captured.message),
            self._event_operation.gather,
        )
        assert gather is not None, "an event is looked through for its sender"
        facts = StoreFacts(self._directory.hub.store, lambda _task, _ref: False)
        commands = gather(sent, self._actor, facts)
        assert isinstance(commands, tuple), "an event that was captured has its shape"
        (command,) = commands
        return _PreparedEvent(_describe_event(captured), sent, command)


class _PreparedEvent(Struct, frozen=True):
    """A parsed event with its command."""

    name: str
    message: Any
    command: "AnyCommand"


def _describe_event(captured: "CapturedMessage") -> str:
    """Short description of an event."""
    payload: dict[str, Any] = captured.message["payload"]
    return " ".join(filter(None, (payload["type"], payload.get("tool", ""))))
