"""One conversation on standard input and output, in which nothing that was said goes unanswered.

The SDK says nothing to a line that it cannot read, and leaves with the end of its input whatever
it is still at. Here such a line is answered, and the end comes after the last answer.
"""

import asyncio
from types import TracebackType
from typing import Protocol, Self, cast

from mcp import types
from mcp.shared.message import SessionMessage

from dragoman.surfaces.mcp.malformed import Unreadable, answer_to

_CANCELLED = "notifications/cancelled"


class Reading(Protocol):
    """Where messages come from, line by line."""

    async def __anext__(self) -> SessionMessage | Exception:
        """The next one, or why it could not be read."""
        ...

    async def aclose(self) -> None:
        """Read no more."""
        ...


class Writing(Protocol):
    """Where messages go."""

    async def send(self, item: SessionMessage, /) -> None:
        """Write one."""
        ...

    async def aclose(self) -> None:
        """Write no more."""
        ...


class Unanswered:
    """The requests that wait for their answers; two may bear the same id."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._none = asyncio.Event()
        self._none.set()

    def hear(self, message: types.JSONRPCMessage) -> None:
        """A message was read: a request, or one that wants no answer to a request any more."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.append(str(message.id))
            self._none.clear()
        elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCELLED:
            self._settle((message.params or {}).get("requestId"))

    def say(self, message: types.JSONRPCMessage) -> None:
        """A message was written: an answer, or something else."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._settle(message.id)

    async def wait(self) -> None:
        """Until there are none."""
        await self._none.wait()

    def _settle(self, request: object) -> None:
        if str(request) in self._ids:
            self._ids.remove(str(request))
        if not self._ids:
            self._none.set()


class _Closing:
    """A stream that is closed at the end of a block."""

    def __init__(self, stream: Reading | Writing) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        del exc_type, exc_val, exc_tb  # it is closed whatever has happened
        await self.aclose()


class Mouth(_Closing):
    """What the server says."""

    def __init__(self, writing: Writing, unanswered: Unanswered) -> None:
        super().__init__(writing)
        self._writing = writing
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        """Say it."""
        await self._writing.send(item)
        self._unanswered.say(item.message)


class Ears(_Closing):
    """What the server hears: messages, and the end once all of them are answered."""

    def __init__(self, reading: Reading, mouth: Mouth, unanswered: Unanswered) -> None:
        super().__init__(reading)
        self._reading = reading
        self._mouth = mouth
        self._unanswered = unanswered

    def __aiter__(self) -> "Ears":
        return self

    async def __anext__(self) -> SessionMessage:
        while isinstance(item := await self.receive(), Exception):
            await self._mouth.send(SessionMessage(answer_to(cast(Unreadable, item))))
        self._unanswered.hear(item.message)
        return item

    async def receive(self) -> SessionMessage | Exception:
        """The next line."""
        try:
            return await self._reading.__anext__()
        except StopAsyncIteration:
            await self._unanswered.wait()
            raise
