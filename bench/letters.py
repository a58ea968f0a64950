"""Letters of 600 bytes, handed in durably and read from a box, beside the append of their bytes."""

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop

from bench.callers import Call, drive, open_hub
from bench.raw import RawFront, RawLog
from dragoman.core.actor import Actor
from dragoman.core.mail import PostMail
from dragoman.engine.hub import Hub
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import agentmail
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id

SENDER = Actor("agent", "demigod")
READER = Actor("agent", "crank")

_BYTES = 600
_AT_ONCE = 500
_BOXES = 100
"""Letters go to so many agents in turn."""


def raw_append(folder: Path, callers: int, seconds: float) -> float:
    """Letters per second of the hand-written loop, which does not look at them."""

    @asynccontextmanager
    async def appends() -> AsyncGenerator[Call]:
        log = RawLog(folder / "raw.db")
        front = RawFront(log.write)
        letters = rows(count())
        yield lambda: front.write(next(letters))
        front.close()
        log.close()

    return uvloop.run(drive(appends(), callers, seconds))


def sent(folder: Path, callers: int, seconds: float) -> float:
    """Letters per second that were read, addressed, committed and answered."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        router, letters = _router(hub), rows(count())

        async def send() -> None:
            answer = await router.send_async(next(letters), speaker=SENDER)
            assert isinstance(answer, Accepted), answer
            assert not answer.repeated, answer

        @asynccontextmanager
        async def sends() -> AsyncGenerator[Call]:
            yield send

        return uvloop.run(drive(sends(), callers, seconds))


class Box:
    """A hub whose reader has letters, and the interpreter in front of it."""

    def __init__(self, hub: Hub) -> None:
        self._router = _router(hub)

    def pages_per_second(self, seconds: float) -> float:
        """Reads a second of the newest page of the box."""
        start, done = perf_counter(), 0
        while (passed := perf_counter() - start) < seconds:
            answer = self._router.call("mail.inbox", {"before": 0, "limit": 20}, READER)
            assert isinstance(answer, Accepted), answer
            assert len(answer.reply["messages"]) == 20, answer
            done += 1
        return done / passed


@contextmanager
def open_box(folder: Path, letters: int) -> Generator[Box]:
    """A data directory whose reader has got so many letters."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        for start in range(0, letters, _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, letters))
            hub.submit(
                SENDER,
                *(PostMail((READER.name,), "note", f"Letter {n}.", id=f"m-{n}") for n in some),
            )
        yield Box(hub)


def rows(numbers: Iterator[int]) -> Iterator[bytes]:
    """Letters of 600 bytes, as different as their numbers, to one agent after another."""
    for number in numbers:
        yield _row(number, _MORE)


def _row(number: int, more: str) -> bytes:
    return msgspec.json.encode(
        {
            "to": [f"crank-{number % _BOXES:02d}"],
            "subject": "what I found out",
            "body_md": f"Letter {number:012d}: the token is read before it is refreshed. {more}",
            "thread_id": f"ol-{number % 1_000:03d}",
        }
    )


_MORE = "." * (_BYTES - len(_row(0, "")))


def _router(hub: Hub) -> Router:
    facts = StoreFacts(hub.store, lambda _task, _ref: False)
    return Router(hub, (agentmail.dialect(),), facts)
