"""From a message to a request: what its dialect asks for, and how the answer of the hub is told."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.commands import RejectMessage
from dragoman.core.errors import Refusal
from dragoman.core.events import MessageReceived
from dragoman.core.ids import shown_name
from dragoman.core.reading import Receipt
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Commands, Dialect, Facts, Heard, Operation
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.engine.rests import Rest

KIND_SHOWN = 64
"""A message type is shown up to this length."""


class Taken(Struct, frozen=True):
    """An accepted message or call: receipts, reply and warnings."""

    dialect: str
    kind: str
    """The type of the message, or the name of the operation."""
    actor: str
    receipts: tuple[Receipt, ...]
    reply: Any
    """In the dialect's own form."""
    warnings: tuple[str, ...] = ()
    repeated: bool = False
    """Answered before: nothing was recorded this time."""
    commands: Commands = ()
    """The submitted commands: a receipt for each."""


class Turned(Struct, frozen=True):
    """A rejected message or call, with the dialect's own error code."""

    dialect: str
    kind: str
    code: str
    detail: str
    path: str = ""
    """The field of the message that it is about, if any."""
    actor: str = ""
    reply: Any = None
    """The same in the dialect's own form, if it has one."""
    ours: str = ""
    """The hub's refusal code: a dialect may map several to one; empty: the same as `code`."""

    @property
    def refusal(self) -> Refusal:
        """The refusal under the hub's code, for a surface that knows no dialect."""
        return Refusal(self.ours or self.code, self.detail)


Answer = Taken | Turned


class Plan(Struct, frozen=True):
    """The request that a message leads to, and how its outcome becomes a reply."""

    dialect: Dialect
    kind: str
    actor: Actor
    commands: Commands
    said: Raw | UnsetType = UNSET
    content: bytes = b""
    sent_at: int | None = None
    target: str = ""
    key: str = ""
    operation: Operation | None = None
    message: Any = None
    path: str = ""
    effect: Commands = ()
    rest: Rest | None = None
    told: Any = None
    """The result of a query, which submits nothing."""

    def request(self, hub: Hub) -> Request | None:
        """Make the request; None: there are no commands.

        The caller's own key takes precedence over one made of the content.
        """
        if not self.commands:
            return None
        heard = MessageReceived(self.dialect.name, self.kind, self.target)
        by_content = bool(self.content) and not self.key
        return hub.request(
            self.actor,
            *self.commands,
            key=hub.content_key(self.content) if by_content else self.key,
            per_attempt=by_content,
            sent_at=self.sent_at if by_content else None,
            said=self.said,
            heard=heard if self.content else None,
            effect=self.effect,
            rest=self.rest,
        )

    def lingers(self, answer: Answer) -> bool:
        """True if finishing the reply blocks: a lookup, or a call to somebody."""
        if isinstance(answer, Turned):
            return self.dialect.says_no is not None
        operation = self.operation
        assert operation is not None, "a message without an operation was refused"
        has_after = operation.after is not None and self.told is None
        return has_after and operation.lingers(self.message, answer.reply)

    def answer(self, outcome: Outcome, remarks: tuple[str, ...] = ()) -> Answer:
        """The reply that an outcome stands for."""
        if isinstance(outcome, Refusal):
            return self.turned(outcome)
        return self._taken(outcome, remarks)

    def _taken(self, accepted: Accepted, remarks: tuple[str, ...]) -> Taken:
        assert self.operation is not None, "a message without an operation was refused"
        if self.told is not None:
            return Taken(self.dialect.name, self.kind, self.actor.name, (), self.told)
        own = self.operation.masked(self.message)
        warnings, remarks = [*accepted.warnings], (*remarks, *own, *accepted.masked)
        if remarks:
            warnings += remarks
            accepted = replace(accepted, masked=remarks)
        declined = accepted.declined
        if declined is not None and not self.operation.is_as_good(self.message, declined.code):
            code = self.dialect.refusals[declined.code]
            warnings.append(f"it changed no task: {declined.detail} ({code})")
        reply = self.operation.reply(self.message, self.commands, accepted)
        return Taken(
            dialect=self.dialect.name,
            kind=self.kind,
            actor=self.actor.name,
            receipts=accepted.receipts,
            reply=reply,
            warnings=(*self.operation.odd(reply), *warnings),
            repeated=accepted.repeated,
            commands=self.commands if declined else self.commands + self.effect,
        )

    def turned(self, refusal: Refusal) -> Turned:
        """The rejection that a refusal stands for, with the dialect's code."""
        code = self.dialect.refusals[refusal.code]
        field = "" if self.operation is None else self.operation.field(refusal.path)
        return Turned(
            dialect=self.dialect.name,
            kind=self.kind,
            code=code,
            detail=refusal.detail,
            path=self.path or field,
            actor=self.actor.name,
            ours=refusal.code,
        )


def plan_of(dialect: Dialect, heard: Heard, actor: Actor, facts: Facts, key: str = "") -> Plan:
    """Make the plan of a message; a faulty message is refused by the hub, on record."""
    told = _answered(heard, actor, facts)
    commands = told if isinstance(told, Fault) else () if told else _commands(heard, actor, facts)
    fault = commands if isinstance(commands, Fault) else None
    kind, target = heard.kind[:KIND_SHOWN], shown_name(heard.target)
    if isinstance(commands, Fault):
        commands = (RejectMessage(commands.code, commands.detail, target, kind),)
    return Plan(
        dialect=dialect,
        kind=kind,
        actor=actor,
        commands=commands,
        said=heard.said if fault or _keeps_words(heard) else UNSET,
        content=b"" if fault else heard.content,
        sent_at=heard.sent_at,
        target=target,
        key="" if fault else key,
        operation=heard.operation,
        message=heard.message,
        path=fault.path if fault else "",
        effect=() if fault or told else _effect(heard, actor, facts),
        rest=None if fault or told else _rest(heard),
        told=None if fault else told,
    )


def _keeps_words(heard: Heard) -> bool:
    return heard.operation is None or heard.operation.keeps_words


def looks(heard: Heard, actor: Actor) -> bool:
    """True if this message needs a lookup before it is submitted."""
    operation = heard.operation
    if heard.fault is not None or operation is None:
        return False
    if operation.gather or operation.effect or operation.asks:
        return operation.looks(heard.message)
    return unfit(operation, heard.message, actor) is not None


def _answered(heard: Heard, actor: Actor, facts: Facts) -> Any:
    """The result of a query, or its Fault; None: the message writes."""
    operation = heard.operation
    if heard.fault is not None or operation is None or operation.asks is None:
        return None
    if unfit(operation, heard.message, actor) is not None:
        return None
    return operation.asks(heard.message, actor, facts)


def _effect(heard: Heard, actor: Actor, facts: Facts) -> Commands:
    operation = heard.operation
    if operation is None or operation.effect is None:
        return ()
    return operation.effect(heard.message, actor, facts)


def _rest(heard: Heard) -> Rest | None:
    operation = heard.operation
    return None if operation is None else operation.rest(heard.message)


def unfit(operation: Operation, message: Any, actor: Actor) -> Fault | None:
    """Check the sender's identity and role for an operation."""
    fault = operation.identity(message, actor.name)
    if fault is None and actor.role not in operation.roles:
        return Fault("not_authorized", f"{actor.label} may not send {operation.name}")
    return fault


def _commands(heard: Heard, actor: Actor, facts: Facts) -> Commands | Fault:
    operation, message = heard.operation, heard.message
    if heard.fault is not None:
        return heard.fault
    assert operation is not None, "a message without a fault has an operation"
    fault = unfit(operation, message, actor)
    if fault is not None:
        # Existence of the task comes first (S-AOF-2): an unauthorized sender learns no more than
        # that.
        if heard.target and not facts.task_exists(heard.target):
            return fault_of(missing.task(heard.target))
        return fault
    commands = operation.commands(message)
    if operation.gather is None:
        return commands
    gathered = operation.gather(message, actor, facts)
    return gathered if isinstance(gathered, Fault) else commands + gathered
