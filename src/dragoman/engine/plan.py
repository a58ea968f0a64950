"""From a message to a request: what its dialect asks for, and how the answer of the hub is told."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.commands import RejectMessage
from dragoman.core.errors import Refusal
from dragoman.core.events import MessageReceived
from dragoman.core.ids import safe_name
from dragoman.core.reading import Receipt
from dragoman.engine.faults import Fault, fault_from_refusal
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Commands, Dialect, Facts, Operation, ParsedMessage
from dragoman.engine.request import Committed, Outcome, Request
from dragoman.engine.rests import CarryOver

MAX_KIND_SHOWN = 64
"""A message type is shown up to this length."""


class Accepted(Struct, frozen=True):
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


class Rejected(Struct, frozen=True):
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


Reply = Accepted | Rejected


class Plan(Struct, frozen=True):
    """The request that a message leads to, and how its outcome becomes a reply."""

    dialect: Dialect
    kind: str
    actor: Actor
    commands: Commands
    original_text: Raw | UnsetType = UNSET
    content: bytes = b""
    sent_at: int | None = None
    target: str = ""
    key: str = ""
    operation: Operation | None = None
    message: Any = None
    path: str = ""
    effect: Commands = ()
    carry_over: CarryOver | None = None
    query_result: Any = None
    """The result of a query, which submits nothing."""

    def make_request(self, hub: Hub) -> Request | None:
        """Make the request; None: there are no commands.

        The caller's own key takes precedence over one made of the content.
        """
        if not self.commands:
            return None
        receipt_event = MessageReceived(self.dialect.name, self.kind, self.target)
        by_content = bool(self.content) and not self.key
        return hub.make_request(
            self.actor,
            *self.commands,
            key=hub.content_key(self.content) if by_content else self.key,
            per_attempt=by_content,
            sent_at=self.sent_at if by_content else None,
            original_text=self.original_text,
            receipt_event=receipt_event if self.content else None,
            effect=self.effect,
            carry_over=self.carry_over,
        )

    def blocks_after(self, reply: Reply) -> bool:
        """True if finishing the reply blocks: a lookup, or a call to somebody."""
        if isinstance(reply, Rejected):
            return self.dialect.format_error is not None
        operation = self.operation
        assert operation is not None, "a message without an operation was refused"
        has_after = operation.follow_up is not None and self.query_result is None
        return has_after and operation.blocking_after(self.message, reply.reply)

    def make_reply(self, outcome: Outcome, redaction_warnings: tuple[str, ...] = ()) -> Reply:
        """The reply that an outcome stands for."""
        if isinstance(outcome, Refusal):
            return self.rejected(outcome)
        return self._accepted(outcome, redaction_warnings)

    def _accepted(self, accepted: Committed, redaction_warnings: tuple[str, ...]) -> Accepted:
        assert self.operation is not None, "a message without an operation was refused"
        if self.query_result is not None:
            return Accepted(self.dialect.name, self.kind, self.actor.name, (), self.query_result)
        own = self.operation.redaction_warnings(self.message)
        warnings, redaction_warnings = (
            [*accepted.warnings],
            (*redaction_warnings, *own, *accepted.redaction_warnings),
        )
        if redaction_warnings:
            warnings += redaction_warnings
            accepted = replace(accepted, redaction_warnings=redaction_warnings)
        declined = accepted.declined
        if declined is not None and not self.operation.effect_satisfied(
            self.message, declined.code
        ):
            code = self.dialect.refusal_codes[declined.code]
            warnings.append(f"it changed no task: {declined.detail} ({code})")
        reply = self.operation.reply(self.message, self.commands, accepted)
        return Accepted(
            dialect=self.dialect.name,
            kind=self.kind,
            actor=self.actor.name,
            receipts=accepted.receipts,
            reply=reply,
            warnings=(*self.operation.warnings(reply), *warnings),
            repeated=accepted.repeated,
            commands=self.commands if declined else self.commands + self.effect,
        )

    def rejected(self, refusal: Refusal) -> Rejected:
        """The rejection that a refusal stands for, with the dialect's code."""
        code = self.dialect.refusal_codes[refusal.code]
        field = "" if self.operation is None else self.operation.field_in_message(refusal.path)
        return Rejected(
            dialect=self.dialect.name,
            kind=self.kind,
            code=code,
            detail=refusal.detail,
            path=self.path or field,
            actor=self.actor.name,
            ours=refusal.code,
        )


def make_plan(
    dialect: Dialect, parsed: ParsedMessage, actor: Actor, facts: Facts, key: str = ""
) -> Plan:
    """Make the plan of a message; a faulty message is refused by the hub, on record."""
    query_result = _maybe_query(parsed, actor, facts)
    commands = (
        query_result
        if isinstance(query_result, Fault)
        else ()
        if query_result
        else _plan_commands(parsed, actor, facts)
    )
    fault = commands if isinstance(commands, Fault) else None
    kind, target = parsed.kind[:MAX_KIND_SHOWN], safe_name(parsed.target)
    if isinstance(commands, Fault):
        commands = (RejectMessage(commands.code, commands.detail, target, kind),)
    return Plan(
        dialect=dialect,
        kind=kind,
        actor=actor,
        commands=commands,
        original_text=parsed.original_text if fault or _stores_text(parsed) else UNSET,
        content=b"" if fault else parsed.dedup_content,
        sent_at=parsed.sent_at,
        target=target,
        key="" if fault else key,
        operation=parsed.operation,
        message=parsed.message,
        path=fault.path if fault else "",
        effect=() if fault or query_result else _effect_commands(parsed, actor, facts),
        carry_over=None if fault or query_result else _carry_over(parsed),
        query_result=None if fault else query_result,
    )


def _stores_text(parsed: ParsedMessage) -> bool:
    return parsed.operation is None or parsed.operation.stores_text


def needs_lookup(parsed: ParsedMessage, actor: Actor) -> bool:
    """True if this message needs a lookup before it is submitted."""
    operation = parsed.operation
    if parsed.fault is not None or operation is None:
        return False
    if operation.gather or operation.effect or operation.maybe_query:
        return operation.needs_lookup(parsed.message)
    return check_authorized(operation, parsed.message, actor) is not None


def _maybe_query(parsed: ParsedMessage, actor: Actor, facts: Facts) -> Any:
    """The result of a query, or its Fault; None: the message writes."""
    operation = parsed.operation
    if parsed.fault is not None or operation is None or operation.maybe_query is None:
        return None
    if check_authorized(operation, parsed.message, actor) is not None:
        return None
    return operation.maybe_query(parsed.message, actor, facts)


def _effect_commands(parsed: ParsedMessage, actor: Actor, facts: Facts) -> Commands:
    operation = parsed.operation
    if operation is None or operation.effect is None:
        return ()
    return operation.effect(parsed.message, actor, facts)


def _carry_over(parsed: ParsedMessage) -> CarryOver | None:
    operation = parsed.operation
    return None if operation is None else operation.carry_over(parsed.message)


def check_authorized(operation: Operation, message: Any, actor: Actor) -> Fault | None:
    """Check the sender's identity and role for an operation."""
    fault = operation.check_identity(message, actor.name)
    if fault is None and actor.role not in operation.roles:
        return Fault("not_authorized", f"{actor.label} may not send {operation.name}")
    return fault


def _plan_commands(parsed: ParsedMessage, actor: Actor, facts: Facts) -> Commands | Fault:
    operation, message = parsed.operation, parsed.message
    if parsed.fault is not None:
        return parsed.fault
    assert operation is not None, "a message without a fault has an operation"
    fault = check_authorized(operation, message, actor)
    if fault is not None:
        # Existence of the task comes first (S-AOF-2): an unauthorized sender learns no more than
        # that.
        if parsed.target and not facts.task_exists(parsed.target):
            return fault_from_refusal(missing.task(parsed.target))
        return fault
    commands = operation.commands(message)
    if operation.gather is None:
        return commands
    gathered = operation.gather(message, actor, facts)
    return gathered if isinstance(gathered, Fault) else commands + gathered
