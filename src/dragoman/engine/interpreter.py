"""The interpreter between doors and hub: what anyone says in any dialect becomes a request.

`send` takes a message and finds out whose it is; `call` takes the name of an operation and its
arguments. Each has a twin that shares a commit with other callers: both make a plan and ask for it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import HUB_ACTOR, UNKNOWN_SENDER, Actor
from dragoman.core.errors import Refusal, StoreError
from dragoman.core.events import Role
from dragoman.core.states.handoff import Handoff
from dragoman.engine.aside import ThreadBatcher
from dragoman.engine.errand import ForwardedOperation
from dragoman.engine.faults import Fault, fault_from_json_error
from dragoman.engine.hub import Hub
from dragoman.engine.incoming import RawMessage, stored_text
from dragoman.engine.operation import (
    Dialect,
    Facts,
    HandoffFindings,
    Operation,
    ParsedMessage,
    find_operation,
)
from dragoman.engine.plan import (
    MAX_KIND_SHOWN,
    Accepted,
    Plan,
    Rejected,
    Reply,
    check_authorized,
    make_plan,
    needs_lookup,
)
from dragoman.engine.request import Committed, Outcome, Request
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError

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
        self._lookups = ThreadBatcher()

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
            {item: is_there for seen in findings for item, is_there in seen.items_in_place.items()},
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


_NO_COMMANDS = Committed(())
_NO_SENDER: Final = Fault(
    "unauthenticated",
    "the message names no valid sender: name the agent in the message, or put it into the folder "
    "of that agent, inbox/NAME/",
)


def _is_long(message: MessageInput) -> bool:
    """True for a message that would block the event loop while it is parsed."""
    return isinstance(message, bytes | str) and len(message) > MAX_BYTES


def _redaction_warnings(request: Request | None) -> tuple[str, ...]:
    """The redaction warnings of a request."""
    return () if request is None else request.redaction_warnings


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
