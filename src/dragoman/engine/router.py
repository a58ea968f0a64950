"""The router: a message of any dialect is parsed, planned, submitted, and answered in its dialect.

`send` recognises the dialect of a message; `call` takes the name of an operation and its arguments.
Each has an async twin, whose commands share a commit with those of other callers.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, get_args

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.actor import HUB_ACTOR, UNKNOWN_SENDER, Actor, MessageReceived, RejectMessage
from dragoman.core.base import Role
from dragoman.core.errors import Refusal, StoreError
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import safe_name
from dragoman.engine.blocking_lookups import BlockingLookups
from dragoman.engine.forwarding import ForwardedOperation
from dragoman.engine.hub import Hub
from dragoman.engine.operation import (
    Dialect,
    Facts,
    Fault,
    HandoffFindings,
    Operation,
    ParsedMessage,
    fault_from_json_error,
    fault_from_refusal,
    find_operation,
)
from dragoman.engine.raw_message import RawMessage, stored_text
from dragoman.engine.redaction_carry_over import CarryOver
from dragoman.engine.request import (
    MAX_KIND_SHOWN,
    Accepted,
    Commands,
    Committed,
    Outcome,
    Rejected,
    Reply,
    Request,
)
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError

# --- parse ------------------------------------------------------------------------------------

MessageInput = bytes | str | Mapping[str, Any]
"""Bytes, text, or an object that was parsed elsewhere."""

ForwardToHub = Callable[[ForwardedOperation], Reply | None]
"""Has the hub that runs in another process reply; None: it runs no longer."""


class RoutedMessage(Struct, frozen=True):
    """A message that a dialect has recognised; nothing was looked up for it yet."""

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
    value, original_text = raw.value, (operation.stored_text or stored_text)(raw)
    if isinstance(value, StrictJsonError):
        return ParsedMessage(operation.name, original_text, fault=fault_from_json_error(value))
    read = operation.validate(value)
    if isinstance(read, Fault):
        return ParsedMessage(operation.name, original_text, fault=read)
    task = operation.task_of(read)
    return ParsedMessage(
        operation.name, original_text, target=task, operation=operation, message=read
    )


# --- plan -------------------------------------------------------------------------------------


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


def needs_lookup(parsed: ParsedMessage, actor: Actor) -> bool:
    """True if this message needs a lookup before it is submitted."""
    operation = parsed.operation
    if parsed.fault is not None or operation is None:
        return False
    if operation.gather or operation.effect or operation.maybe_query:
        return operation.needs_lookup(parsed.message)
    return check_authorized(operation, parsed.message, actor) is not None


def check_authorized(operation: Operation, message: Any, actor: Actor) -> Fault | None:
    """Check the sender's identity and role for an operation."""
    fault = operation.check_identity(message, actor.name)
    if fault is None and actor.role not in operation.roles:
        return Fault("not_authorized", f"{actor.label} may not send {operation.name}")
    return fault


def _stores_text(parsed: ParsedMessage) -> bool:
    return parsed.operation is None or parsed.operation.stores_text


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
            return fault_from_refusal(not_found.task(parsed.target))
        return fault
    commands = operation.commands(message)
    if operation.gather is None:
        return commands
    gathered = operation.gather(message, actor, facts)
    return gathered if isinstance(gathered, Fault) else commands + gathered


# --- submit and reply -------------------------------------------------------------------------

_NO_COMMANDS = Committed(())

_NO_SENDER: Final = Fault(
    "unauthenticated",
    "the message names no valid sender: name the agent in the message, or put it into the folder "
    "of that agent, inbox/NAME/",
)


def _redaction_warnings(request: Request | None) -> tuple[str, ...]:
    """The redaction warnings of a request."""
    return () if request is None else request.redaction_warnings


class Router:
    """Takes messages and calls, with their sender, and replies in the sender's dialect."""

    def __init__(
        self,
        hub: Hub,
        dialects: Sequence[Dialect],
        facts: Facts,
        *,
        max_bytes: int = MAX_BYTES,
        admitted_roles: frozenset[Role] = frozenset(get_args(Role)),
        forward: ForwardToHub | None = None,
    ) -> None:
        """`admitted_roles`: the roles that may use this surface.

        `forward`: takes operations that only the hub may run, if it runs elsewhere.
        """
        self.dialects = dialects
        self._hub = hub
        self._facts = facts
        self._max_bytes = max_bytes
        self._admitted_roles = admitted_roles
        self._forward = forward
        self._lookups = BlockingLookups()

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
        parsed = self._parse_with_sender(message, speaker, via, default_actor)
        return None if parsed is None else self._answer(*parsed, message)

    async def send_async(
        self, message: MessageInput, *, speaker: Actor | None = None, via: str = ""
    ) -> Reply | None:
        """Like `send`, committed together with requests of other callers."""
        if speaker is None:
            # The sender is looked up, too.
            sent = await asyncio.to_thread(self._parse_with_sender, message, speaker, via)
            return None if sent is None else await self._answer_async(*sent, message)
        routed = await self.parse_async(message)
        if routed is None:
            return None
        parsed = self._check_role_admitted(routed.parsed, speaker)
        return await self._answer_async(routed.dialect, parsed, speaker, message)

    async def parse_async(
        self, message: MessageInput, *, dialect: str = ""
    ) -> RoutedMessage | None:
        """Like `parse`; the event loop is not blocked while a long message is parsed."""
        if _is_long(message):
            return await asyncio.to_thread(self.parse, message, dialect=dialect)
        return self.parse(message, dialect=dialect)

    def parse(self, message: MessageInput, *, dialect: str = "") -> RoutedMessage | None:
        """Find the dialect of a message, among all or by name; None: no dialect recognises it."""
        raw = RawMessage(message, self._max_bytes)
        for one in self.dialects:
            if dialect not in ("", one.name):
                continue
            max_bytes = one.limits.max_bytes
            # Only a dialect of unusually long messages takes more than the surface does.
            is_long = raw.is_too_large and max_bytes > max(self._max_bytes, MAX_BYTES)
            parsed = one.parse(RawMessage(message, max_bytes) if is_long else raw)
            if parsed is not None:
                return RoutedMessage(one, parsed)
        return None

    def needs_lookup(self, routed: RoutedMessage, speaker: Actor) -> bool:
        """True if planning this message needs a lookup."""
        return needs_lookup(routed.parsed, speaker)

    async def answer_async(self, routed: RoutedMessage, speaker: Actor, *, key: str = "") -> Reply:
        """Submit a parsed message; a given key takes precedence over one made of its content."""
        return await self._submit_async(
            await self._plan_async(routed.dialect, routed.parsed, speaker, key)
        )

    def diagnose_handoff(self, handoff: Handoff) -> HandoffFindings:
        """The findings of all dialects about a handoff, from outside of the ledger."""
        findings = [dialect.diagnose(handoff, self._facts) for dialect in self.dialects]
        return HandoffFindings(
            tuple(one for finding in findings for one in finding.obstacles),
            tuple(one for seen in findings for one in seen.risks),
        )

    def call(self, name: str, arguments: MessageInput, actor: Actor, *, key: str = "") -> Reply:
        """Call an operation of any dialect by its name."""
        found = find_operation(self.dialects, name)
        if found is None:
            return self._unknown_operation(name)
        if found[1].query is not None:
            return self._run_query(*found, arguments, actor)
        dialect, operation = found
        parsed = self._parse_call(dialect, operation, arguments)
        return self._answer(dialect, parsed, actor, arguments, key)

    async def call_async(
        self, name: str, arguments: MessageInput, actor: Actor, *, key: str = ""
    ) -> Reply:
        """Like `call`, committed together with requests of other callers."""
        found = find_operation(self.dialects, name)
        if found is None:
            return self._unknown_operation(name)
        if found[1].query is not None:
            # It may read a lot, and a store may be far away.
            return await asyncio.to_thread(self._run_query, *found, arguments, actor)
        dialect, operation = found
        if _is_long(arguments):
            parsed = await asyncio.to_thread(self._parse_call, dialect, operation, arguments)
        else:
            parsed = self._parse_call(dialect, operation, arguments)
        return await self._answer_async(dialect, parsed, actor, arguments, key)

    def _answer(
        self,
        dialect: Dialect,
        parsed: ParsedMessage,
        actor: Actor,
        message: MessageInput,
        key: str = "",
    ) -> Reply:
        forwarded = self._forward_to_hub(parsed, actor, message, key)
        return forwarded or self._submit(make_plan(dialect, parsed, actor, self._facts, key))

    async def _answer_async(
        self,
        dialect: Dialect,
        parsed: ParsedMessage,
        actor: Actor,
        message: MessageInput,
        key: str = "",
    ) -> Reply:
        if self._forward is not None:
            forwarded = await asyncio.to_thread(self._forward_to_hub, parsed, actor, message, key)
            if forwarded is not None:
                return forwarded
        return await self._submit_async(await self._plan_async(dialect, parsed, actor, key))

    def _forward_to_hub(
        self, parsed: ParsedMessage, actor: Actor, message: MessageInput, key: str
    ) -> Reply | None:
        """The reply of the hub that runs elsewhere; None: this process has to handle it."""
        operation = parsed.operation
        if self._forward is None or parsed.fault is not None or operation is None:
            return None
        if not operation.hub_only:
            return None
        return self._forward(
            ForwardedOperation(actor, operation.name, RawMessage(message).text, key)
        )

    def _submit(self, plan: Plan) -> Reply:
        request = plan.make_request(self._hub)
        outcome = self._hub.engine.handle_now(request) if request else _NO_COMMANDS
        return self._finish_reply(
            plan, outcome, plan.make_reply(outcome, _redaction_warnings(request))
        )

    async def _submit_async(self, plan: Plan) -> Reply:
        request = plan.make_request(self._hub)
        outcome = await self._hub.engine.handle(request) if request else _NO_COMMANDS
        answer = plan.make_reply(outcome, _redaction_warnings(request))
        if plan.blocks_after(answer):
            return await asyncio.to_thread(self._finish_reply, plan, outcome, answer)
        return self._finish_reply(plan, outcome, answer)

    def _finish_reply(self, plan: Plan, outcome: Outcome, answer: Reply) -> Reply:
        """The reply after its follow-up; a rejection in the dialect's own form."""
        if isinstance(answer, Rejected):
            assert isinstance(outcome, Refusal), "only a refusal is rejected"
            return self._format_in_dialect(plan.dialect, plan.message, plan.actor, outcome, answer)
        operation = plan.operation
        assert operation is not None, "a message without an operation was refused"
        if operation.follow_up is not None and plan.query_result is None:
            commands, reply = operation.follow_up(
                plan.message, plan.actor, self._facts, answer.reply
            )
            if commands:
                # The request is done, whatever becomes of this; a service looks after it.
                with suppress(StoreError):
                    self._hub.engine.handle_now(self._hub.make_request(HUB_ACTOR, *commands))
            answer = replace(answer, reply=reply)
        refusal = operation.refusal_in_reply(answer.reply)
        if refusal is None:
            return answer
        rejected = Rejected(
            answer.dialect, answer.kind, refusal.code, refusal.detail, actor=answer.actor
        )
        return replace(rejected, reply=answer.reply)

    def format_error(self, dialect: Dialect, refusal: Refusal) -> Any:
        """A refusal in the dialect's own error form, for a message that was not parsed."""
        assert dialect.format_error is not None, "this dialect has no error form"
        return dialect.format_error(None, refusal, Actor("agent", UNKNOWN_SENDER), self._facts)

    def _format_in_dialect(
        self, dialect: Dialect, message: Any, actor: Actor, refusal: Refusal, rejected: Rejected
    ) -> Rejected:
        if dialect.format_error is None:
            return rejected
        return replace(rejected, reply=dialect.format_error(message, refusal, actor, self._facts))

    def _parse_with_sender(
        self,
        message: MessageInput,
        speaker: Actor | None,
        via: str,
        default_actor: Actor | None = None,
    ) -> tuple[Dialect, ParsedMessage, Actor] | None:
        """Parse a message and find its sender; None: no dialect recognises it."""
        routed = self.parse(message)
        if routed is None:
            return None
        parsed, actor = routed.parsed, speaker
        if actor is None:
            parsed, actor = self._identify_sender(parsed, via, default_actor)
        return routed.dialect, self._check_role_admitted(parsed, actor), actor

    def _identify_sender(
        self, parsed: ParsedMessage, via: str, default_actor: Actor | None
    ) -> tuple[ParsedMessage, Actor]:
        """The message and its sender; a message without a known sender gets a fault."""
        if parsed.sender:
            return parsed, self._facts.resolve_actor(parsed.sender, via)
        if default_actor is not None:
            return parsed, default_actor
        return replace(parsed, fault=parsed.fault or _NO_SENDER), Actor(
            "agent", UNKNOWN_SENDER, via
        )

    def _check_role_admitted(self, parsed: ParsedMessage, actor: Actor) -> ParsedMessage:
        """The message, with a fault if its sender's role is not admitted at this surface."""
        if parsed.fault is not None or actor.role in self._admitted_roles:
            return parsed
        detail = (
            f"{actor.label} cannot send through the {actor.via}, where a name proves nothing: "
            "send it another way, with a credential"
        )
        return replace(parsed, fault=Fault("not_authorized", detail))

    def _unknown_operation(self, name: str) -> Rejected:
        known = ", ".join(op.name for dialect in self.dialects for op in dialect.operations)
        detail = f"there is no operation {name[:MAX_KIND_SHOWN]!a}; known: {known}"
        return Rejected("", name[:MAX_KIND_SHOWN], "unknown_type", detail)

    def _run_query(
        self, dialect: Dialect, operation: Operation, arguments: MessageInput, actor: Actor
    ) -> Reply:
        """Run an operation that only reads; nothing is recorded, not even a refusal."""
        parsed = _parse_arguments(operation, self._raw_message(operation, arguments))
        answer: Any = parsed.fault or check_authorized(operation, parsed.message, actor)
        if answer is None:
            assert operation.query is not None, "an operation without a query needs a plan"
            answer = operation.query(parsed.message, actor, self._facts)
        if isinstance(answer, Fault):
            code = dialect.refusal_codes[answer.code]
            rejected = Rejected(
                dialect=dialect.name,
                kind=operation.name,
                code=code,
                detail=answer.detail,
                path=answer.path,
                actor=actor.name,
                ours=answer.code,
            )
            refusal = Refusal(answer.code, answer.detail)
            return self._format_in_dialect(dialect, parsed.message, actor, refusal, rejected)
        return Accepted(dialect.name, operation.name, actor.name, (), answer)

    def _parse_call(
        self, dialect: Dialect, operation: Operation, arguments: MessageInput
    ) -> ParsedMessage:
        """Parse the arguments of a call, or a whole message of that operation."""
        raw = self._raw_message(operation, arguments)
        parsed = dialect.parse(raw)
        if parsed is None or parsed.operation is not operation:
            return _parse_arguments(operation, raw)
        return parsed

    def _raw_message(self, operation: Operation, arguments: MessageInput) -> RawMessage:
        limits = operation.limits
        max_bytes = max(self._max_bytes, limits.max_bytes)
        return RawMessage(arguments, max_bytes, allow_big_integers=limits.allow_big_integers)

    async def _plan_async(
        self, dialect: Dialect, parsed: ParsedMessage, actor: Actor, key: str = ""
    ) -> Plan:
        """Make the plan of a message; the event loop is not blocked by a store or a disk."""
        if not needs_lookup(parsed, actor):
            return make_plan(dialect, parsed, actor, self._facts, key)
        return await self._lookups.run(partial(make_plan, dialect, parsed, actor, self._facts, key))
