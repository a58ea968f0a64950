"""`POST /v1/messages`: what agents say in any dialect, one message or many; and by operation.

The way of a single message is as short as it can be: it is what an office full of agents does all
day long.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.types import Receive, Scope, Send

from dragoman.core.errors import DragomanError
from dragoman.core.events import Status
from dragoman.engine.identity import Principal
from dragoman.engine.interpreter import Answer, Spoken, Taken, Turned
from dragoman.engine.operation import Dialect, Operation
from dragoman.surfaces.http.endpoint import (
    JSON,
    Endpoint,
    Query,
    check_type,
    encode,
    read_key,
    read_query,
)
from dragoman.surfaces.http.limits import read_body
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import (
    HttpProblem,
    Problem,
    of_error,
    of_refusal,
    problem,
    stop,
)

LINES = ("application/x-ndjson", "application/jsonl")
WINDOW = 512
"""So many lines of a batch are under way at once."""
_TURN = 64
"""After so many lines others get their turn."""

_JSON_TYPE = (b"content-type", JSON.encode())
_LINES_HEADERS = [(b"content-type", LINES[0].encode())]
_log = logging.getLogger("dragoman.http")


class MessagesQuery(Query, frozen=True):
    """Which dialect it is, if the caller knows."""

    dialect: Annotated[
        str, Meta(max_length=100, description="The dialect; else the hub finds out.")
    ] = ""


class TaskNow(Struct, frozen=True):
    """A task that a message was about, and where it stands now."""

    id: str
    status: Status | None


class Sent(Struct, frozen=True, kw_only=True):
    """What came of a message."""

    line: int | UnsetType = UNSET
    """The number of its line in a batch, from 1."""
    ok: bool = True
    dialect: str
    type: str
    agent: str
    reply: Any
    """In the dialect's own form."""
    tasks: list[TaskNow]
    warnings: tuple[str, ...]
    repeated: bool
    """Said before: nothing was added."""


class NotSent(Struct, frozen=True):
    """A line of a batch that was refused."""

    line: int
    ok: bool
    problem: Problem


class Messages:
    """Serves the address for messages."""

    def __init__(self, office: Office, endpoint: Endpoint) -> None:
        self._office = office
        self._endpoint = endpoint
        self._interpreter = office.door.interpreter
        self._names = frozenset(dialect.name for dialect in self._interpreter.dialects)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one message, or many, and answer."""
        scope["progress"].route = self._endpoint.path
        headers, door = scope["by_name"], self._office.door
        dialect = self._dialect(scope["query_string"])
        is_batch = check_type(headers, self._endpoint.takes) in LINES
        body = await read_body(receive, headers, door.settings.http.max_body, door.patience)
        principal: Principal = scope["principal"]
        key = read_key(headers)
        if is_batch:
            await send({"type": "http.response.start", "status": 200, "headers": _LINES_HEADERS})
            batch = _Batch(self._office, principal, dialect, key, send)
            await batch.take([line for line in body.split(b"\n") if line.strip()])
            return
        spoken = self._interpreter.hear(body, dialect=dialect)
        if spoken is None:
            raise HttpProblem(nobodys(self._office, dialect))
        with self._office.writing():
            answer = await self._interpreter.answer_soon(spoken, principal.actor, key=key)
        _count(self._office, answer)
        if isinstance(answer, Turned):
            raise HttpProblem(of_refusal(answer))
        told = encode(sent(answer))
        length = (b"content-length", b"%d" % len(told))
        await send({"type": "http.response.start", "status": 200, "headers": [_JSON_TYPE, length]})
        await send({"type": "http.response.body", "body": told})

    def _dialect(self, query_string: bytes) -> str:
        if not query_string:
            return ""
        query: MessagesQuery = read_query(query_string, MessagesQuery)
        if query.dialect and query.dialect not in self._names:
            known = ", ".join(sorted(self._names))
            raise stop(
                "invalid_request",
                f"{query.dialect!a} is not spoken here; known: {known}",
                "dialect",
            )
        return query.dialect


class _Batch:
    """Many messages of one caller: taken in order, answered in order, committed together.

    A line does not wait for those before it unless it is about the same task (or names none), so
    that what is looked up for it is what they have left behind.
    """

    def __init__(
        self, office: Office, principal: Principal, dialect: str, key: str, send: Send
    ) -> None:
        self._office = office
        self._interpreter = office.door.interpreter
        self._principal = principal
        self._dialect = dialect
        self._key = key
        self._send = send
        self._under_way: deque[tuple[str, asyncio.Task[bytes]]] = deque()
        self._about: dict[str, asyncio.Task[bytes]] = {}
        """Task -> the last line about it."""

    async def take(self, lines: list[bytes]) -> None:
        """Answer all of them."""
        if not self._principal.is_owner:
            self._office.rates.charge(self._principal.actor.label, len(lines) - 1)
        for number, line in enumerate(lines, start=1):
            spoken = self._interpreter.hear(line, dialect=self._dialect)
            target = spoken.target if spoken is not None else ""
            await self._wait_for(target)
            task = asyncio.create_task(self._answer(number, spoken))
            self._under_way.append((target, task))
            self._about[target] = task
            if len(self._under_way) >= WINDOW:
                await self._tell()
            elif number % _TURN == 0:
                await asyncio.sleep(0)
        while self._under_way:
            await self._tell()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait_for(self, target: str) -> None:
        if not target:
            if self._under_way:
                await asyncio.wait([task for _, task in self._under_way])
        elif target in self._about:
            await asyncio.wait([self._about[target]])

    async def _tell(self) -> None:
        """The oldest answer, and all that are there by then."""
        told: list[bytes] = []
        while self._under_way and (not told or self._under_way[0][1].done()):
            target, task = self._under_way.popleft()
            told.append(await task)
            if self._about.get(target) is task:
                del self._about[target]
        await self._send({"type": "http.response.body", "body": b"".join(told), "more_body": True})

    async def _answer(self, number: int, spoken: Spoken | None) -> bytes:
        answer = await self._outcome(number, spoken)
        if isinstance(answer, Problem):
            return encode(NotSent(number, False, answer)) + b"\n"
        return encode(sent(answer, number)) + b"\n"

    async def _outcome(self, number: int, spoken: Spoken | None) -> Taken | Problem:
        if spoken is None:
            return nobodys(self._office, self._dialect)
        key = f"{self._key}:{number}" if self._key else ""
        try:
            with self._office.writing():
                answer = await self._interpreter.answer_soon(spoken, self._principal.actor, key=key)
        except DragomanError as error:
            _log.error("line %d of a batch: %s", number, error)
            return of_error(error)
        except Exception:  # noqa: BLE001  one line must not take others along
            _log.exception("line %d of a batch failed", number)
            return problem("internal_error", "the hub has failed at this line; its log says how")
        _count(self._office, answer)
        return of_refusal(answer) if isinstance(answer, Turned) else answer


def sent(answer: Taken, line: int | UnsetType = UNSET) -> Sent:
    """What the caller is told of a message that was taken."""
    tasks: dict[str, Status | None] = {one.task: one.status for one in answer.receipts}
    return Sent(
        line=line,
        dialect=answer.dialect,
        type=answer.kind,
        agent=answer.actor,
        reply=answer.reply,
        tasks=[TaskNow(task, status) for task, status in tasks.items()],
        warnings=answer.warnings,
        repeated=answer.repeated,
    )


def nobodys(office: Office, dialect: str) -> Problem:
    """The problem of a message that no dialect takes for its own."""
    spoken = dialect or ", ".join(one.name for one in office.door.interpreter.dialects)
    office.metrics.message(dialect, "not_recognized")
    return problem("not_recognized", f"this is no message of a dialect that is meant ({spoken})")


def _count(office: Office, answer: Answer) -> None:
    if isinstance(answer, Turned):
        office.metrics.message(answer.dialect, answer.code)
    else:
        office.metrics.message(answer.dialect, "repeated" if answer.repeated else "taken")


async def _call(operation: str, call: Call) -> Any:
    """An operation by its name; the reply in its dialect's own form."""
    office = call.office
    with office.writing():
        answer = await office.door.interpreter.call_soon(
            operation, call.raw, call.principal.actor, key=call.key
        )
    _count(office, answer)
    if isinstance(answer, Turned):
        raise HttpProblem(of_refusal(answer))
    return answer.reply


ENDPOINT = Endpoint(
    "POST",
    "/v1/messages",
    "Send one message, or many, in any dialect",
    None,
    Sent,
    query=MessagesQuery,
    body=Any,
    takes=(JSON, *LINES),
    also={LINES[0]: (Sent, NotSent)},
    serve=Messages,
)


def operations(dialects: tuple[Dialect, ...]) -> Iterator[Endpoint]:
    """An endpoint for each operation of each dialect."""
    for dialect in dialects:
        for operation in dialect.operations:
            yield _endpoint(dialect, operation)


def _endpoint(dialect: Dialect, operation: Operation) -> Endpoint:
    return Endpoint(
        "POST",
        f"/v1/{dialect.name}/{operation.name}",
        f"{operation.name}, in {dialect.name}",
        partial(_call, operation.name),
        Any,
        body=operation.shape,
        reads=False,
    )
