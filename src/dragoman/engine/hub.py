"""The hub: an engine with its clock, ids and redaction. Surfaces and services are given one."""

from collections.abc import Callable
from typing import TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from dragoman.core.actor import Actor, MessageReceived
from dragoman.core.attempt import returns_attempt
from dragoman.core.base import Command
from dragoman.engine.group_commit import Engine
from dragoman.engine.ports import Clock, Store
from dragoman.engine.redaction import RequestRedactor
from dragoman.engine.redaction_carry_over import CarryOver
from dragoman.engine.request import Committed, Outcome, Request, committed_or_raise
from dragoman.text.redact import Redactor


class RequestOptions(TypedDict, total=False):
    """Optional fields of a request."""

    key: str
    original_text: msgspec.Raw | msgspec.UnsetType
    per_attempt: bool
    sent_at: int | None
    receipt_event: MessageReceived | None
    effect: tuple[Command, ...]
    carry_over: CarryOver | None


class Hub:
    """Submits commands on behalf of an actor; reads go to `store` through `engine.queries`."""

    def __init__(
        self,
        engine: Engine,
        new_id: Callable[[], str],
        redaction: RequestRedactor | None = None,
        via_suffix: str = "",
    ) -> None:
        """`redaction`: by default one that knows no values.

        `via_suffix`: added to the surface that every entry names, whoever its actor is.
        """
        self.engine = engine
        self.redaction = redaction or RequestRedactor(Redactor())
        self._new_id = new_id
        self._via_suffix = via_suffix

    @property
    def store(self) -> Store:
        """The store of the engine."""
        return self.engine.store

    @property
    def clock(self) -> Clock:
        """The only clock that decides."""
        return self.engine.clock

    def submit(
        self, actor: Actor, *commands: Command, **options: Unpack[RequestOptions]
    ) -> Committed:
        """Run commands, all or none; a refusal is raised as Refused."""
        request = self.make_request(actor, *commands, **options)
        return self._with_redaction_warnings(self.engine.handle_now(request), request)

    async def submit_async(
        self, actor: Actor, *commands: Command, **options: Unpack[RequestOptions]
    ) -> Committed:
        """Like `submit`, committed together with requests of other callers."""
        request = self.make_request(actor, *commands, **options)
        return self._with_redaction_warnings(await self.engine.handle(request), request)

    def make_request(
        self, actor: Actor, *commands: Command, **options: Unpack[RequestOptions]
    ) -> Request:
        """Make a redacted request for these commands, with an id of its own."""
        if self._via_suffix and not actor.via.endswith(self._via_suffix):
            actor = replace(actor, via=f"{actor.via} {self._via_suffix}".lstrip())
        if not options.get("key") and len(commands) == 1 and returns_attempt(commands[0]):
            # Neither message nor key tells its repeat, so its content does, within the attempt.
            content = msgspec.json.encode((actor.label, commands[0]))
            options |= {"key": self.content_key(content), "per_attempt": True}
        return self.redaction.redact(Request(actor, commands, self._new_id(), **options))

    def _with_redaction_warnings(self, outcome: Outcome, request: Request) -> Committed:
        """The outcome with the redaction warnings of the request; its own go to `on_masked` too."""
        committed = committed_or_raise(outcome)
        for warning in committed.redaction_warnings:
            self.redaction.on_masked(warning)
        return (
            replace(
                committed,
                redaction_warnings=(*request.redaction_warnings, *committed.redaction_warnings),
            )
            if request.redaction_warnings
            else committed
        )

    def content_key(self, content: bytes) -> str:
        """A key made of the content, for messages without an id of their own; it leaks nothing."""
        return self.engine.digest(content).hex()

    def close(self) -> None:
        """Finish all queued requests and close the store."""
        self.engine.close()
        self.store.close()
