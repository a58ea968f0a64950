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

from dragoman.core.actors import NAMELESS, SYSTEM, Actor
from dragoman.core.errors import Refusal, StoreError
from dragoman.core.events import Role
from dragoman.core.states.handoff import Handoff
from dragoman.engine.aside import Aside
from dragoman.engine.errand import Say
from dragoman.engine.faults import Fault, json_fault
from dragoman.engine.hub import Hub
from dragoman.engine.incoming import Incoming, kept_words
from dragoman.engine.operation import Dialect, Facts, Heard, Operation, Outlook, find_operation
from dragoman.engine.plan import KIND_SHOWN, Answer, Plan, Taken, Turned, looks, plan_of, unfit
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError

Said = bytes | str | Mapping[str, Any]
"""Bytes, text, or an object that was parsed elsewhere."""
Carry = Callable[[Say], Answer | None]
"""Has the hub that runs in another process reply; None: it runs no longer."""


class Spoken(Struct, frozen=True):
    """A message that a dialect has recognised; nothing was looked up for it yet."""

    dialect: Dialect
    heard: Heard

    @property
    def line_up(self) -> str:
        """Shared by messages that have to keep their order; empty: in order with all others."""
        return self.heard.line_up or self.heard.target


class Interpreter:
    """Takes messages and calls, with their sender, and replies in the sender's dialect."""

    def __init__(
        self,
        hub: Hub,
        dialects: Sequence[Dialect],
        facts: Facts,
        *,
        most_bytes: int = MOST_BYTES,
        admits: frozenset[Role] = frozenset(get_args(Role)),
        carry: Carry | None = None,
    ) -> None:
        """`admitted_roles`: the roles that may use this surface.

        `forward`: takes operations that only the hub may run, if it runs elsewhere.
        """
        self.dialects = dialects
        self._hub = hub
        self._facts = facts
        self._most_bytes = most_bytes
        self._admits = admits
        self._carry = carry
        self._aside = Aside()

    def send(
        self,
        said: Said,
        *,
        speaker: Actor | None = None,
        via: str = "",
        unnamed: Actor | None = None,
    ) -> Answer | None:
        """Submit a message of any dialect; None if no dialect recognises it.

        Without a speaker the sender is the one that the message names, through the surface `via`; a
        message that names nobody is from `default_actor`, whom the surface knows, or else is
        refused.
        """
        from_ = self._from(said, speaker, via, unnamed)
        return None if from_ is None else self._answer(*from_, said)

    async def send_soon(
        self, said: Said, *, speaker: Actor | None = None, via: str = ""
    ) -> Answer | None:
        """Like `send`, committed together with requests of other callers."""
        if speaker is None:
            # The sender is looked up, too.
            from_ = await asyncio.to_thread(self._from, said, speaker, via)
            return None if from_ is None else await self._answer_soon(*from_, said)
        spoken = await self.hear_soon(said)
        if spoken is None:
            return None
        heard = self._admitted(spoken.heard, speaker)
        return await self._answer_soon(spoken.dialect, heard, speaker, said)

    async def hear_soon(self, said: Said, *, dialect: str = "") -> Spoken | None:
        """Like `parse`; the event loop is not blocked while a long message is parsed."""
        if _is_long(said):
            return await asyncio.to_thread(self.hear, said, dialect=dialect)
        return self.hear(said, dialect=dialect)

    def hear(self, said: Said, *, dialect: str = "") -> Spoken | None:
        """Find the dialect of a message, among all or by name; None: no dialect recognises it."""
        incoming = Incoming(said, self._most_bytes)
        for one in self.dialects:
            if dialect not in ("", one.name):
                continue
            most = one.bounds.most_bytes
            # Only a dialect of unusually long messages takes more than the surface does.
            is_long = incoming.is_too_large and most > max(self._most_bytes, MOST_BYTES)
            heard = one.hear(Incoming(said, most) if is_long else incoming)
            if heard is not None:
                return Spoken(one, heard)
        return None

    def looks(self, spoken: Spoken, speaker: Actor) -> bool:
        """True if planning this message needs a lookup."""
        return looks(spoken.heard, speaker)

    async def answer_soon(self, spoken: Spoken, speaker: Actor, *, key: str = "") -> Answer:
        """Submit a parsed message; a given key takes precedence over one made of its content."""
        return await self._ask_soon(
            await self._plan_soon(spoken.dialect, spoken.heard, speaker, key)
        )

    def outlook(self, handoff: Handoff) -> Outlook:
        """The findings of all dialects about a handoff, from outside of the ledger."""
        found = [dialect.outlook(handoff, self._facts) for dialect in self.dialects]
        return Outlook(
            tuple(one for seen in found for one in seen.obstacles),
            tuple(one for seen in found for one in seen.doubts),
            {item: is_there for seen in found for item, is_there in seen.items.items()},
        )

    def call(self, name: str, arguments: Said, actor: Actor, *, key: str = "") -> Answer:
        """Call an operation of any dialect by its name."""
        found = find_operation(self.dialects, name)
        if found is None:
            return self._no_operation(name)
        if found[1].ask is not None:
            return self._look_up(*found, arguments, actor)
        dialect, operation = found
        heard = self._heard_call(dialect, operation, arguments)
        return self._answer(dialect, heard, actor, arguments, key)

    async def call_soon(self, name: str, arguments: Said, actor: Actor, *, key: str = "") -> Answer:
        """Like `call`, committed together with requests of other callers."""
        found = find_operation(self.dialects, name)
        if found is None:
            return self._no_operation(name)
        if found[1].ask is not None:
            # It may read a lot, and a store may be far away.
            return await asyncio.to_thread(self._look_up, *found, arguments, actor)
        dialect, operation = found
        if _is_long(arguments):
            heard = await asyncio.to_thread(self._heard_call, dialect, operation, arguments)
        else:
            heard = self._heard_call(dialect, operation, arguments)
        return await self._answer_soon(dialect, heard, actor, arguments, key)

    def _answer(
        self, dialect: Dialect, heard: Heard, actor: Actor, said: Said, key: str = ""
    ) -> Answer:
        carried = self._carried(heard, actor, said, key)
        return carried or self._ask(plan_of(dialect, heard, actor, self._facts, key))

    async def _answer_soon(
        self, dialect: Dialect, heard: Heard, actor: Actor, said: Said, key: str = ""
    ) -> Answer:
        if self._carry is not None:
            carried = await asyncio.to_thread(self._carried, heard, actor, said, key)
            if carried is not None:
                return carried
        return await self._ask_soon(await self._plan_soon(dialect, heard, actor, key))

    def _carried(self, heard: Heard, actor: Actor, said: Said, key: str) -> Answer | None:
        """The reply of the hub that runs elsewhere; None: this process has to handle it."""
        operation = heard.operation
        if self._carry is None or heard.fault is not None or operation is None:
            return None
        if not operation.is_for_hub:
            return None
        return self._carry(Say(actor, operation.name, Incoming(said).text, key))

    def _ask(self, plan: Plan) -> Answer:
        request = plan.request(self._hub)
        outcome = self._hub.engine.handle_now(request) if request else _NOTHING_TO_DO
        return self._told(plan, outcome, plan.answer(outcome, _remarks(request)))

    async def _ask_soon(self, plan: Plan) -> Answer:
        request = plan.request(self._hub)
        outcome = await self._hub.engine.handle(request) if request else _NOTHING_TO_DO
        answer = plan.answer(outcome, _remarks(request))
        if plan.lingers(answer):
            return await asyncio.to_thread(self._told, plan, outcome, answer)
        return self._told(plan, outcome, answer)

    def _told(self, plan: Plan, outcome: Outcome, answer: Answer) -> Answer:
        """The reply after its follow-up; a rejection in the dialect's own form."""
        if isinstance(answer, Turned):
            assert isinstance(outcome, Refusal), "only a refusal is rejected"
            return self._in_its_form(plan.dialect, plan.message, plan.actor, outcome, answer)
        operation = plan.operation
        assert operation is not None, "a message without an operation was refused"
        if operation.after is not None and plan.told is None:
            commands, reply = operation.after(plan.message, plan.actor, self._facts, answer.reply)
            if commands:
                # The request is done, whatever becomes of this; a service looks after it.
                with suppress(StoreError):
                    self._hub.engine.handle_now(self._hub.request(SYSTEM, *commands))
            answer = replace(answer, reply=reply)
        denied = operation.no_in(answer.reply)
        if denied is None:
            return answer
        turned = Turned(answer.dialect, answer.kind, denied.code, denied.detail, actor=answer.actor)
        return replace(turned, reply=answer.reply)

    def no_of(self, dialect: Dialect, refusal: Refusal) -> Any:
        """A refusal in the dialect's own error form, for a message that was not parsed."""
        assert dialect.says_no is not None, "this dialect has no error form"
        return dialect.says_no(None, refusal, Actor("agent", NAMELESS), self._facts)

    def _in_its_form(
        self, dialect: Dialect, message: Any, actor: Actor, refusal: Refusal, turned: Turned
    ) -> Turned:
        if dialect.says_no is None:
            return turned
        return replace(turned, reply=dialect.says_no(message, refusal, actor, self._facts))

    def _from(
        self, said: Said, speaker: Actor | None, via: str, unnamed: Actor | None = None
    ) -> tuple[Dialect, Heard, Actor] | None:
        """Parse a message and find its sender; None: no dialect recognises it."""
        spoken = self.hear(said)
        if spoken is None:
            return None
        heard, actor = spoken.heard, speaker
        if actor is None:
            heard, actor = self._whose(heard, via, unnamed)
        return spoken.dialect, self._admitted(heard, actor), actor

    def _whose(self, heard: Heard, via: str, unnamed: Actor | None) -> tuple[Heard, Actor]:
        """The message and its sender; a message without a known sender gets a fault."""
        if heard.sender:
            return heard, self._facts.speaker(heard.sender, via)
        if unnamed is not None:
            return heard, unnamed
        return replace(heard, fault=heard.fault or _OF_NOBODY), Actor("agent", NAMELESS, via)

    def _admitted(self, heard: Heard, actor: Actor) -> Heard:
        """The message, with a fault if its sender's role is not admitted at this surface."""
        if heard.fault is not None or actor.role in self._admits:
            return heard
        detail = (
            f"{actor.label} cannot send through the {actor.via}, where a name proves nothing: "
            "send it another way, with a credential"
        )
        return replace(heard, fault=Fault("not_authorized", detail))

    def _no_operation(self, name: str) -> Turned:
        known = ", ".join(op.name for dialect in self.dialects for op in dialect.operations)
        detail = f"there is no operation {name[:KIND_SHOWN]!a}; known: {known}"
        return Turned("", name[:KIND_SHOWN], "unknown_type", detail)

    def _look_up(
        self, dialect: Dialect, operation: Operation, arguments: Said, actor: Actor
    ) -> Answer:
        """Run an operation that only reads; nothing is recorded, not even a refusal."""
        heard = _heard(operation, self._incoming(operation, arguments))
        answer: Any = heard.fault or unfit(operation, heard.message, actor)
        if answer is None:
            assert operation.ask is not None, "an operation without a query needs a plan"
            answer = operation.ask(heard.message, actor, self._facts)
        if isinstance(answer, Fault):
            code = dialect.refusals[answer.code]
            turned = Turned(
                dialect=dialect.name,
                kind=operation.name,
                code=code,
                detail=answer.detail,
                path=answer.path,
                actor=actor.name,
                ours=answer.code,
            )
            refusal = Refusal(answer.code, answer.detail)
            return self._in_its_form(dialect, heard.message, actor, refusal, turned)
        return Taken(dialect.name, operation.name, actor.name, (), answer)

    def _heard_call(self, dialect: Dialect, operation: Operation, arguments: Said) -> Heard:
        """Parse the arguments of a call, or a whole message of that operation."""
        incoming = self._incoming(operation, arguments)
        heard = dialect.hear(incoming)
        if heard is None or heard.operation is not operation:
            return _heard(operation, incoming)
        return heard

    def _incoming(self, operation: Operation, arguments: Said) -> Incoming:
        bounds = operation.bounds
        most_bytes = max(self._most_bytes, bounds.most_bytes)
        return Incoming(arguments, most_bytes, any_whole=bounds.any_whole)

    async def _plan_soon(self, dialect: Dialect, heard: Heard, actor: Actor, key: str = "") -> Plan:
        """Make the plan of a message; the event loop is not blocked by a store or a disk."""
        if not looks(heard, actor):
            return plan_of(dialect, heard, actor, self._facts, key)
        return await self._aside.look(partial(plan_of, dialect, heard, actor, self._facts, key))


_NOTHING_TO_DO = Accepted(())
_OF_NOBODY: Final = Fault(
    "unauthenticated",
    "the message names no valid sender: name the agent in the message, or put it into the folder "
    "of that agent, inbox/NAME/",
)


def _is_long(said: Said) -> bool:
    """True for a message that would block the event loop while it is parsed."""
    return isinstance(said, bytes | str) and len(said) > MOST_BYTES


def _remarks(request: Request | None) -> tuple[str, ...]:
    """The redaction warnings of a request."""
    return () if request is None else request.masked


def _heard(operation: Operation, incoming: Incoming) -> Heard:
    """Parse the arguments of a call as a message of that operation."""
    value, said = incoming.value, (operation.words or kept_words)(incoming)
    if isinstance(value, StrictJsonError):
        return Heard(operation.name, said, fault=json_fault(value))
    read = operation.read(value)
    if isinstance(read, Fault):
        return Heard(operation.name, said, fault=read)
    about = operation.about(read)
    return Heard(operation.name, said, target=about, operation=operation, message=read)
