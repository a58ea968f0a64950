"""A hub in one hand: its engine, its clock and its ids. What doors and duties are given."""

from collections.abc import Callable
from typing import TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.events import MessageReceived
from dragoman.engine.handle import Engine
from dragoman.engine.ports import Clock, Store
from dragoman.engine.redaction import Redaction
from dragoman.engine.request import Accepted, Outcome, Request, accepted
from dragoman.engine.rests import Rest
from dragoman.text.redact import Redactor


class How(TypedDict, total=False):
    """Optional fields of a request."""

    key: str
    said: msgspec.Raw | msgspec.UnsetType
    per_attempt: bool
    sent_at: int | None
    heard: MessageReceived | None
    effect: tuple[AnyCommand, ...]
    rest: Rest | None


class Hub:
    """Submits commands on behalf of an actor; reads go to `store` through `engine.queries`."""

    def __init__(
        self,
        engine: Engine,
        new_id: Callable[[], str],
        redaction: Redaction | None = None,
        mark: str = "",
    ) -> None:
        """`redaction`: by default one that knows no values.

        `via_suffix`: added to the surface that every entry names, whoever its actor is.
        """
        self.engine = engine
        self.redaction = redaction or Redaction(Redactor())
        self._new_id = new_id
        self._mark = mark

    @property
    def store(self) -> Store:
        """The store of the engine."""
        return self.engine.store

    @property
    def clock(self) -> Clock:
        """The only clock that decides."""
        return self.engine.clock

    def do(self, actor: Actor, *commands: AnyCommand, **how: Unpack[How]) -> Accepted:
        """Run commands, all or none; a refusal is raised as Refused."""
        request = self.request(actor, *commands, **how)
        return self._with_remarks(self.engine.handle_now(request), request)

    async def do_soon(self, actor: Actor, *commands: AnyCommand, **how: Unpack[How]) -> Accepted:
        """Like `submit`, committed together with requests of other callers."""
        request = self.request(actor, *commands, **how)
        return self._with_remarks(await self.engine.handle(request), request)

    def request(self, actor: Actor, *commands: AnyCommand, **how: Unpack[How]) -> Request:
        """Make a redacted request for these commands, with an id of its own."""
        if self._mark and not actor.via.endswith(self._mark):
            actor = replace(actor, via=f"{actor.via} {self._mark}".lstrip())
        return self.redaction.of(Request(actor, commands, self._new_id(), **how))

    def _with_remarks(self, outcome: Outcome, request: Request) -> Accepted:
        """The outcome with the redaction warnings of the request; its own go to `on_masked` too."""
        yes = accepted(outcome)
        for remark in yes.masked:
            self.redaction.tell(remark)
        return replace(yes, masked=(*request.masked, *yes.masked)) if request.masked else yes

    def content_key(self, content: bytes) -> str:
        """A key made of the content, for messages without an id of their own; it leaks nothing."""
        return self.engine.digest(content).hex()

    def close(self) -> None:
        """Finish all queued requests and close the store."""
        self.engine.close()
        self.store.close()
