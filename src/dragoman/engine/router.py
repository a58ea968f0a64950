"""The router: a message of any dialect is parsed, planned, submitted, and answered in its dialect.

`send` recognises the dialect of a message; `call` takes the name of an operation and its arguments.
Each has an async twin, whose commands share a commit with those of other callers; both pass the
same stages, each once.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.actor import HUB_ACTOR, UNKNOWN_SENDER, Actor, MessageReceived, RejectMessage
from dragoman.core.base import Role
from dragoman.core.errors import Refusal, StoreError
from dragoman.core.ids import safe_name
from dragoman.engine.forwarding import ForwardedOperation
from dragoman.engine.hub import Hub
from dragoman.engine.operation import (
    ALL_ROLES,
    Answer,
    Dialect,
    Facts,
    Fault,
    Operation,
    ParsedMessage,
    Plan,
    QueryOperation,
    RawMessage,
    fault_from_json_error,
    fault_from_refusal,
    find_operation,
    stored_text,
)
from dragoman.engine.request import (
    MAX_KIND_SHOWN,
    Accepted,
    Committed,
    Outcome,
    Rejected,
    Reply,
    Request,
)
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError

if TYPE_CHECKING:
    from dragoman.engine.blocking_lookups import BlockingLookups

MessageInput = bytes | str | Mapping[str, Any]
"""Bytes, text, or an object that was parsed elsewhere."""

ForwardToHub = Callable[[ForwardedOperation], Reply | None]
"""Has the hub that runs in another process reply; None: it runs no longer."""

T = TypeVar("T")

# --- parse: which dialect, which operation, which shape ---------------------------------------


class RoutedMessage(Struct, frozen=True):
    """A message whose dialect is known; nothing was looked up for it yet."""

    dialect: Dialect
    parsed: ParsedMessage

    @property
    def ordering_key(self) -> str:
        """Shared by messages that have to keep their order; empty: in order with all others."""
        return self.parsed.ordering_key or self.parsed.target


def _is_long(message: MessageInput) -> bool:
    """True for a message that would block the event loop while it is parsed."""
    return isinstance(message, bytes | str) and len(message) > MAX_BYTES


def _parse_arguments(operation: Operation, raw: RawMessage) -> ParsedMessage:
    """Parse the arguments of a call as a message of that operation."""
    value = raw.value
    original_text = stored_text(raw) if operation.limits.stores_arguments else UNSET
    if isinstance(value, StrictJsonError):
        return ParsedMessage(operation.name, original_text, fault=fault_from_json_error(value))
    read = operation.read(value)
    if isinstance(read, Fault):
        return ParsedMessage(operation.name, original_text, fault=read)
    return ParsedMessage(
        operation.name,
        original_text,
        target=operation.target(read),
        operation=operation,
        message=read,
    )


# --- plan: authorize, translate, collect facts ------------------------------------------------


class PlannedMessage(Struct, frozen=True):
    """A message, its sender, and what is planned for it."""

    routed: RoutedMessage
    actor: Actor
    planned: Any
    """A Plan, a Fault, or the result of a query."""
    key: str = ""

    @property
    def kind(self) -> str:
        """The type of the message, as far as it is shown."""
        return self.routed.parsed.kind[:MAX_KIND_SHOWN]

    def without_answer(self, outcome: Outcome) -> "PlannedMessage | None":
        """The message without its answer to an offer, which was refused."""
        plan = self.planned
        if not isinstance(outcome, Refusal) or not isinstance(plan, Plan) or plan.fallback is None:
            return None
        return replace(self, planned=plan.fallback)

    def make_request(self, hub: Hub) -> Request | None:
        """Make the request; None: nothing is submitted. A fault is refused by the hub, on record.

        The caller's own key takes precedence over one made of the content.
        """
        parsed, planned = self.routed.parsed, self.planned
        if isinstance(planned, Fault):
            target = safe_name(parsed.target)
            rejection = RejectMessage(planned.code, planned.detail, target, self.kind)
            return hub.make_request(self.actor, rejection, original_text=parsed.original_text)
        if not isinstance(planned, Plan) or not planned.commands:
            return None
        content = parsed.dedup_content
        by_content = bool(content) and not self.key
        receipt_event = (
            MessageReceived(self.routed.dialect.name, self.kind, safe_name(parsed.target))
            if content
            else None
        )
        text = planned.stored_text
        return hub.make_request(
            self.actor,
            *planned.commands,
            key=hub.content_key(content) if by_content else self.key,
            per_attempt=by_content,
            sent_at=parsed.sent_at if by_content else None,
            original_text=parsed.original_text if text is None else text,
            receipt_event=receipt_event,
            effect=planned.effect,
            carry_over=planned.carry_over,
        )


def _decline_answer(outcome: Outcome, answer: Outcome) -> Outcome:
    """The outcome of a message whose answer to an offer was refused."""
    if isinstance(outcome, Refusal) or not isinstance(answer, Refusal):
        return outcome
    return replace(outcome, declined=answer)


def needs_io(parsed: ParsedMessage, actor: Actor) -> bool:
    """True if planning this message reads the store or files."""
    operation = parsed.operation
    if parsed.fault is not None or operation is None:
        return False
    if actor.role not in operation.roles:
        return bool(parsed.target)
    return operation.needs_io(parsed.message, actor)


def make_plan(parsed: ParsedMessage, actor: Actor, facts: Facts) -> Any:
    """The Plan of a message, the Fault of one that is refused, or the result of a query."""
    operation = parsed.operation
    if parsed.fault is not None:
        return parsed.fault
    assert operation is not None, "a message without a fault has an operation"
    if actor.role in operation.roles:
        return operation.plan(parsed.message, actor, facts)
    # Existence of the task comes first (S-AOF-2): an unauthorized sender learns no more than that.
    if parsed.target and not facts.task_exists(parsed.target):
        return fault_from_refusal(not_found.task(parsed.target))
    return Fault("not_authorized", f"{actor.label} may not send {operation.name}")


# --- reply: the outcome in the dialect of the message -----------------------------------------


def _accepted(message: PlannedMessage, plan: Plan, done: Committed, masked: Sequence[str]) -> Any:
    """The answer of a dialect to a committed plan, with all its warnings; no follow-up yet."""
    operation, dialect = message.routed.parsed.operation, message.routed.dialect
    assert operation is not None, "a message without an operation was refused"
    warnings, redaction_warnings = (
        done.warnings,
        (*masked, *plan.warnings, *done.redaction_warnings),
    )
    if redaction_warnings:
        warnings += redaction_warnings
        done = replace(done, redaction_warnings=redaction_warnings)
    declined = done.declined
    if declined is not None and declined.code not in plan.effect_satisfied_by:
        code = dialect.errors.code(declined.code)
        warnings = (*warnings, f"it changed no task: {declined.detail} ({code})")
    answer = operation.reply(message.routed.parsed.message, plan.commands, done)
    body, own = (answer.body, answer.warnings) if isinstance(answer, Answer) else (answer, ())
    return Accepted(
        dialect=dialect.name,
        kind=message.kind,
        actor=message.actor.name,
        receipts=done.receipts,
        reply=body,
        warnings=(*own, *warnings),
        repeated=done.repeated,
        commands=plan.commands if declined else plan.commands + plan.effect,
    )


def _finished(accepted: Accepted, answer: Any) -> Reply:
    """The reply with the last word of the dialect, which may be a refusal."""
    if not isinstance(answer, Answer):
        return replace(accepted, reply=answer)
    if answer.refusal is None:
        return replace(accepted, reply=answer.body)
    code, detail = answer.refusal.code, answer.refusal.detail
    return Rejected(
        accepted.dialect, accepted.kind, code, detail, actor=accepted.actor, reply=answer.body
    )


# --- the router -------------------------------------------------------------------------------


async def _to_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Run a blocking call in a thread."""
    import asyncio  # noqa: PLC0415  a process that runs one command has no event loop

    return await asyncio.to_thread(call, *arguments)


async def _parse_aside(call: Callable[..., T], *arguments: Any) -> T:
    """Parse a long message outside of the event loop."""
    from dragoman.engine.blocking_lookups import parse_aside  # noqa: PLC0415  as above

    return await parse_aside(call, *arguments)


_NO_COMMANDS = Committed(())

_NO_DIALECT: Final = Dialect("", (), lambda _: None)

_NO_SENDER: Final = Fault(
    "unauthenticated",
    "the message names no valid sender: name the agent in the message, or put it into the folder "
    "of that agent, inbox/NAME/",
)


class Router:
    """Takes messages and calls, with their sender, and replies in the sender's dialect."""

    def __init__(
        self,
        hub: Hub,
        dialects: Sequence[Dialect],
        facts: Facts,
        *,
        admitted_roles: frozenset[Role] = ALL_ROLES,
        forward: ForwardToHub | None = None,
        own: Dialect = _NO_DIALECT,
    ) -> None:
        """`admitted_roles`: the roles that may use this surface.

        `forward`: takes valid operations to the hub, if it runs elsewhere. `own`: operations of the
        hub itself, which are called by their names and are no messages.
        """
        self.dialects = dialects
        self._hub = hub
        self._facts = facts
        self._admitted_roles = admitted_roles
        self._forward = forward
        self._own = own

    @cached_property
    def _lookups(self) -> "BlockingLookups":
        from dragoman.engine.blocking_lookups import BlockingLookups  # noqa: PLC0415  as above

        return BlockingLookups()

    # Messages and calls

    def send(
        self,
        message: MessageInput,
        *,
        speaker: Actor | None = None,
        via: str = "",
        default_actor: Actor | None = None,
    ) -> Reply | None:
        """Submit a message of any dialect; None if no dialect recognises it.

        Without a speaker the sender is the one that the message names, through the surface `via`; a
        message that names nobody is from `default_actor`, whom the surface knows, or else is
        refused.
        """
        routed = self.parse(message)
        if routed is None:
            return None
        sent, actor = self._identify_sender(routed, speaker, via, default_actor)
        return self._forward_to_hub(sent, actor, message) or self._route(sent, actor)

    async def send_async(
        self, message: MessageInput, *, speaker: Actor | None = None, via: str = ""
    ) -> Reply | None:
        """Like `send`, committed together with requests of other callers."""
        routed = await self.parse_async(message)
        if routed is None:
            return None
        if speaker is None:
            identify = partial(self._identify_sender, routed, speaker, via, None)
            sent, actor = await _to_thread(identify)
        else:
            sent, actor = self._identify_sender(routed, speaker, via, None)
        return await self._forward_or_route_async(sent, actor, message)

    def call(self, name: str, arguments: MessageInput, actor: Actor, *, key: str = "") -> Reply:
        """Call an operation of any dialect by its name."""
        found = self._find_operation(name)
        if found is None:
            return self._unknown_operation(name)
        if isinstance(found[1], QueryOperation):
            return self._run_query(*found, arguments, actor)
        routed = self._parse_call(*found, arguments)
        return self._forward_to_hub(routed, actor, arguments, key) or self._route(
            routed, actor, key
        )

    async def call_async(
        self, name: str, arguments: MessageInput, actor: Actor, *, key: str = ""
    ) -> Reply:
        """Like `call`, committed together with requests of other callers."""
        found = self._find_operation(name)
        if found is None:
            return self._unknown_operation(name)
        if isinstance(found[1], QueryOperation):
            # It may read a lot, and a store may be far away.
            return await _to_thread(self._run_query, *found, arguments, actor)
        if _is_long(arguments):
            routed = await _parse_aside(self._parse_call, *found, arguments)
        else:
            routed = self._parse_call(*found, arguments)
        return await self._forward_or_route_async(routed, actor, arguments, key)

    def _route(self, routed: RoutedMessage, actor: Actor, key: str = "") -> Reply:
        """Plan, submit, and reply."""
        message = PlannedMessage(routed, actor, self._plan(routed, actor), key)
        request = message.make_request(self._hub)
        outcome = self._hub.engine.handle_now(request) if request else _NO_COMMANDS
        if (alone := message.without_answer(outcome)) is not None:
            message, request = alone, alone.make_request(self._hub)
            assert request is not None, "a plan falls back on its own commands"
            outcome = _decline_answer(self._hub.engine.handle_now(request), outcome)
        return self._follow_up(message, outcome, self._reply(message, outcome, request))

    async def route_async(self, routed: RoutedMessage, actor: Actor, *, key: str = "") -> Reply:
        """Plan, submit, and reply, without blocking the event loop for a store or a disk.

        A given key takes precedence over one made of the content.
        """
        plan = partial(self._plan, routed, actor)
        planned = await self._lookups.run(plan) if needs_io(routed.parsed, actor) else plan()
        message = PlannedMessage(routed, actor, planned, key)
        request = message.make_request(self._hub)
        outcome = await self._hub.engine.handle(request) if request else _NO_COMMANDS
        if (alone := message.without_answer(outcome)) is not None:
            message, request = alone, alone.make_request(self._hub)
            assert request is not None, "a plan falls back on its own commands"
            outcome = _decline_answer(await self._hub.engine.handle(request), outcome)
        answer = self._reply(message, outcome, request)
        if self._blocks_after(message, answer):
            return await _to_thread(self._follow_up, message, outcome, answer)
        return self._follow_up(message, outcome, answer)

    def _plan(self, routed: RoutedMessage, actor: Actor) -> Any:
        """Plan a message, with the answer that it gives to an offer of another dialect."""
        planned = make_plan(routed.parsed, actor, self._facts)
        place = routed.parsed.operation.answer_place if routed.parsed.operation else "none"
        if not isinstance(planned, Plan) or not planned.has_room_for_answer(place):
            return planned
        notice = routed.dialect.to_notice(routed.parsed.message)
        found = (
            one.answer_offer(notice, actor, self._facts)
            for one in self.dialects
            if notice is not None and one.answer_offer is not None and one is not routed.dialect
        )
        answer = next(filter(None, found), None)
        return planned if answer is None else planned.with_answer(answer, place)

    # Parse

    def parse(self, message: MessageInput, *, dialect: str = "") -> RoutedMessage | None:
        """Find the dialect of a message, among all or by name; None: no dialect recognises it."""
        raw = RawMessage(message)
        for one in self.dialects:
            if dialect not in ("", one.name):
                continue
            max_bytes = one.limits.max_bytes if raw.is_too_large else 0
            # Only a dialect of unusually long messages takes more than the surface does.
            is_long = max_bytes > MAX_BYTES
            parsed = one.parse(RawMessage(message, max_bytes) if is_long else raw)
            if parsed is not None:
                return RoutedMessage(one, parsed)
        return None

    async def parse_async(
        self, message: MessageInput, *, dialect: str = ""
    ) -> RoutedMessage | None:
        """Like `parse`; the event loop is not blocked while a long message is parsed."""
        if _is_long(message):
            return await _parse_aside(partial(self.parse, message, dialect=dialect))
        return self.parse(message, dialect=dialect)

    def _parse_call(
        self, dialect: Dialect, operation: Operation, arguments: MessageInput
    ) -> RoutedMessage:
        """Parse the arguments of a call, or a whole message of that operation."""
        raw = self._raw_message(operation, arguments)
        parsed = dialect.parse(raw)
        if parsed is None or parsed.operation is not operation:
            parsed = _parse_arguments(operation, raw)
        return RoutedMessage(dialect, parsed)

    def _raw_message(self, operation: Operation, arguments: MessageInput) -> RawMessage:
        limits = operation.limits
        max_bytes = max(MAX_BYTES, limits.max_bytes)
        return RawMessage(arguments, max_bytes, allow_big_integers=limits.allow_big_integers)

    def _find_operation(self, name: str) -> tuple[Dialect, Operation] | None:
        return find_operation((self._own,), name) or find_operation(self.dialects, name)

    def _unknown_operation(self, name: str) -> Rejected:
        dialects = (*self.dialects, self._own)
        known = ", ".join(op.name for dialect in dialects for op in dialect.operations)
        detail = f"there is no operation {name[:MAX_KIND_SHOWN]!a}; known: {known}"
        return Rejected("", name[:MAX_KIND_SHOWN], "unknown_type", detail)

    # Sender

    def _identify_sender(
        self, routed: RoutedMessage, speaker: Actor | None, via: str, default_actor: Actor | None
    ) -> tuple[RoutedMessage, Actor]:
        """The message and its sender; a fault if this surface does not admit it."""
        parsed, actor = routed.parsed, speaker or default_actor
        fault = parsed.fault
        if speaker is None and parsed.sender:
            actor = self._facts.resolve_actor(parsed.sender, via)
        if actor is None:
            actor, fault = Actor("agent", UNKNOWN_SENDER, via), fault or _NO_SENDER
        if fault is None and actor.role not in self._admitted_roles:
            fault = Fault(
                "not_authorized",
                f"{actor.label} cannot send through the {actor.via}, where a name proves nothing: "
                "send it another way, with a credential",
            )
        if fault is parsed.fault:
            return routed, actor
        return RoutedMessage(routed.dialect, replace(parsed, fault=fault)), actor

    # Forward

    def _forward_to_hub(
        self, routed: RoutedMessage, actor: Actor, message: MessageInput, key: str = ""
    ) -> Reply | None:
        """The reply of the hub that runs elsewhere; None: this process has to handle it."""
        operation = routed.parsed.operation
        if self._forward is None or routed.parsed.fault is not None or operation is None:
            return None
        text = RawMessage(message).text
        return self._forward(ForwardedOperation(actor, operation.name, text, key))

    async def _forward_or_route_async(
        self, routed: RoutedMessage, actor: Actor, message: MessageInput, key: str = ""
    ) -> Reply:
        if self._forward is not None:
            forward = partial(self._forward_to_hub, routed, actor, message, key)
            forwarded = await _to_thread(forward)
            if forwarded is not None:
                return forwarded
        return await self.route_async(routed, actor, key=key)

    # Queries

    def _run_query(
        self, dialect: Dialect, operation: Operation, arguments: MessageInput, actor: Actor
    ) -> Reply:
        """Run an operation that only reads; nothing is recorded, not even a refusal."""
        parsed = _parse_arguments(operation, self._raw_message(operation, arguments))
        message = PlannedMessage(
            RoutedMessage(dialect, parsed), actor, make_plan(parsed, actor, self._facts)
        )
        fault = message.planned
        outcome = Refusal(fault.code, fault.detail) if isinstance(fault, Fault) else _NO_COMMANDS
        return self._follow_up(message, outcome, self._reply(message, outcome, None))

    # Reply

    def _reply(self, message: PlannedMessage, outcome: Outcome, request: Request | None) -> Reply:
        """The reply that an outcome stands for, before its follow-up."""
        dialect, planned = message.routed.dialect, message.planned
        if isinstance(outcome, Refusal):
            path = planned.path if isinstance(planned, Fault) else ""
            if isinstance(planned, Plan):
                path = planned.field_in_message(outcome.path)
            return Rejected(
                dialect=dialect.name,
                kind=message.kind,
                code=dialect.errors.code(outcome.code),
                detail=outcome.detail,
                path=path,
                actor=message.actor.name,
                ours=outcome.code,
            )
        if isinstance(planned, Plan):
            masked = () if request is None else request.redaction_warnings
            return _accepted(message, planned, outcome, masked)
        return Accepted(dialect.name, message.kind, message.actor.name, (), planned)

    def _blocks_after(self, message: PlannedMessage, reply: Reply) -> bool:
        """True if finishing the reply blocks: a lookup, or a call to somebody."""
        if isinstance(reply, Rejected):
            return message.routed.dialect.errors.format is not None
        plan = message.planned
        return (
            isinstance(plan, Plan) and bool(plan.follow_up) and plan.follow_up_blocks(reply.reply)
        )

    def _follow_up(self, message: PlannedMessage, outcome: Outcome, reply: Reply) -> Reply:
        """The reply after its follow-up; a rejection in the dialect's own form."""
        plan, dialect = message.planned, message.routed.dialect
        if isinstance(reply, Rejected):
            if dialect.errors.format is None:
                return reply
            assert isinstance(outcome, Refusal), "only a refusal is rejected"
            body = dialect.errors.format(
                message.routed.parsed.message, outcome, message.actor, self._facts
            )
            return replace(reply, reply=body)
        if not isinstance(plan, Plan):
            return _finished(reply, plan)
        if plan.follow_up is None:
            return reply
        answer = plan.follow_up(reply.reply)
        if isinstance(answer, Answer) and answer.commands:
            # The request is done, whatever becomes of this; a service looks after it.
            with suppress(StoreError):
                self._hub.engine.handle_now(self._hub.make_request(HUB_ACTOR, *answer.commands))
        return _finished(reply, answer)
