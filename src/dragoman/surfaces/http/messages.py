"""`POST /v1/messages`: what agents say in any dialect, one message or many; and by operation.

The way of a single message is as short as it can be: it is what an office full of agents does all
day long.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.types import Receive, Scope, Send

from dragoman.core.errors import DragomanError
from dragoman.core.events import Status
from dragoman.engine.identity import Principal
from dragoman.engine.interpreter import Interpreter, Spoken
from dragoman.engine.nobodys import why_nobodys
from dragoman.engine.operation import Dialect, Operation
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.surfaces.http.endpoint import (
    CBOR,
    JSON,
    Endpoint,
    Query,
    check_cbor,
    check_type,
    read_key,
    read_query,
)
from dragoman.surfaces.http.hearing import has_left
from dragoman.surfaces.http.limits import read_body
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import (
    Form,
    HttpProblem,
    Problem,
    encode,
    of_error,
    of_refusal,
    problem,
)
from dragoman.surfaces.http.waiting import MOST_WAIT_MS, waiting

LINES = ("application/x-ndjson", "application/jsonl")
WINDOW = 512
"""Lines of a batch that are in flight at once."""
_TURN = 64
"""Lines after which other requests get a turn."""
_NOT_TAKEN = (
    "the hub is about to stop: this line and all after it were not taken; send them again when it "
    "runs"
)

_JSON_TYPE = (b"content-type", JSON.encode())
_LINES_HEADERS = [(b"content-type", LINES[0].encode())]
_log = logging.getLogger("dragoman.http")


class MessagesQuery(Query, frozen=True):
    """The dialect, if the caller names it."""

    dialect: Annotated[
        str, Meta(max_length=100, description="The dialect; else the hub detects it.")
    ] = ""


class WaitQuery(Query, frozen=True):
    """Time to wait while there is nothing."""

    wait: Annotated[
        int,
        Meta(
            ge=0, le=MOST_WAIT_MS, description="How long to wait while the reply is empty, in ms."
        ),
    ] = 0


class TaskNow(Struct, frozen=True):
    """A task that a message was about, and its status after the message; of a repeat, after the
    first one."""

    id: str
    status: Status | None


class Sent(Struct, frozen=True, kw_only=True):
    """The outcome of an accepted message."""

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
    """Sent before: nothing was added."""


class NotSent(Struct, frozen=True):
    """A line of a batch that was refused."""

    line: int
    ok: bool
    problem: Problem


class Messages:
    """The ASGI application of the path for messages."""

    def __init__(self, office: Office, endpoint: Endpoint) -> None:
        self._office = office
        self._endpoint = endpoint
        self._interpreter = office.door.interpreter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept one message, or many, and answer."""
        scope["progress"].route = self._endpoint.path
        headers, door = scope["by_name"], self._office.door
        dialect = self._dialect(scope["query_string"])
        given = check_type(headers, self._endpoint.takes)
        body = await read_body(receive, headers, door.settings.http.max_body, door.patience)
        if given == CBOR:
            check_cbor(body)
        key = read_key(headers)
        if given in LINES:
            await send({"type": "http.response.start", "status": 200, "headers": _LINES_HEADERS})
            await _Batch(self._office, dialect, key, scope, send).take(body)
            return
        spoken = await self._interpreter.hear_soon(body, dialect=dialect)
        if spoken is None:
            raise HttpProblem(nobodys(self._office, dialect, body))
        actor = scope["principal"].actor
        with self._office.writing():
            answer = await self._interpreter.answer_soon(spoken, actor, key=key)
        count(self._office, answer)
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
        return self._office.dialect(query.dialect, "dialect").name if query.dialect else ""


class _Batch:
    """Many messages of one caller: submitted in order, answered in order, committed together.

    A line waits for those before it only if it is about the same task or thread (or names none), so
    that a lookup for it sees what they have written. Where neither it nor they need a lookup, it
    does not wait for those, either: the engine decides them in the order of their submission.
    """

    def __init__(self, office: Office, dialect: str, key: str, scope: Scope, send: Send) -> None:
        self._office = office
        self._interpreter = office.door.interpreter
        self._principal: Principal = scope["principal"]
        self._dialect = dialect
        self._key = key
        self._scope = scope
        self._send = send
        self._under_way: deque[tuple[str, asyncio.Task[bytes]]] = deque()
        self._about: dict[str, tuple[asyncio.Task[bytes], bool]] = {}
        """Task or thread -> the last line about it, and whether that needs a lookup."""

    async def take(self, body: bytes) -> None:
        """Answer all lines that are not blank, until the client disconnects or the hub is to stop.

        Lines are read one by one: as a list, a body of short lines would take many times its size.
        """
        last = b""
        if not self._principal.is_owner:
            self._office.rates.charge(self._principal.actor.label, body.strip().count(b"\n"))
        for number, line in enumerate(BytesIO(body), start=1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            if has_left(self._scope):
                break
            if self._office.feed.is_closed:
                last = encode(NotSent(number, False, problem("stopping", _NOT_TAKEN))) + b"\n"
                break
            if line.strip():
                await self._begin(number, line.removesuffix(b"\n"))
        while self._under_way:
            await self._tell()
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _begin(self, number: int, line: bytes) -> None:
        spoken = await self._interpreter.hear_soon(line, dialect=self._dialect)
        target = spoken.line_up if spoken is not None else ""
        looks = spoken is None or self._interpreter.looks(spoken, self._principal.actor)
        await self._wait_for(target, looks=looks)
        task = asyncio.create_task(self._answer(number, line, spoken))
        self._under_way.append((target, task))
        self._about[target] = task, looks
        if len(self._under_way) >= WINDOW:
            await self._tell()

    async def _wait_for(self, target: str, *, looks: bool) -> None:
        if not target:
            if self._under_way:
                await asyncio.wait([task for _, task in self._under_way])
        elif target in self._about:
            last, has_looked = self._about[target]
            if looks or has_looked:
                await asyncio.wait([last])

    async def _tell(self) -> None:
        """Send the oldest answer, and all others that are ready by then."""
        told: list[bytes] = []
        while self._under_way and (not told or self._under_way[0][1].done()):
            target, task = self._under_way.popleft()
            told.append(await task)
            if target in self._about and self._about[target][0] is task:
                del self._about[target]
        await self._send({"type": "http.response.body", "body": b"".join(told), "more_body": True})

    async def _answer(self, number: int, line: bytes, spoken: Spoken | None) -> bytes:
        answer = await self._outcome(number, line, spoken)
        if isinstance(answer, Problem):
            return encode(NotSent(number, False, answer)) + b"\n"
        return encode(sent(answer, number)) + b"\n"

    async def _outcome(self, number: int, line: bytes, spoken: Spoken | None) -> Taken | Problem:
        if spoken is None:
            return nobodys(self._office, self._dialect, line)
        key = _key_of(line, self._key) if self._key else ""
        try:
            with self._office.writing():
                answer = await self._interpreter.answer_soon(spoken, self._principal.actor, key=key)
        except DragomanError as error:
            _log.error("line %d of a batch: %s", number, error)
            return of_error(error)
        except Exception:  # noqa: BLE001  one line must not take down others
            _log.exception("line %d of a batch failed", number)
            return problem("internal_error", "the hub has failed at this line; its log says how")
        count(self._office, answer)
        return of_refusal(answer) if isinstance(answer, Turned) else answer


def _key_of(line: bytes, key: str) -> str:
    """Derive the key of a line in a batch with a key: equal lines share it, so each is done once.

    It is a digest, because the key of the batch may have any length, and so that it cannot equal
    another's.
    """
    return sha256(key.encode() + b":" + sha256(line.strip()).digest()).hexdigest()


def sent(answer: Taken, line: int | UnsetType = UNSET) -> Sent:
    """Build the response to an accepted message."""
    tasks: dict[str, Status | None] = {one.task: one.status for one in answer.receipts if one.task}
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


def nobodys(office: Office, dialect: str, text: bytes = b"") -> Problem:
    """Build the problem of a message that no dialect recognises; `message` may be malformed."""
    meant = [one for one in office.door.interpreter.dialects if dialect in ("", one.name)]
    fault = why_nobodys(text, meant)
    office.metrics.message(dialect, fault.code)
    return problem(fault.code, fault.detail, fault.path)


def count(office: Office, answer: Answer) -> None:
    """Count a message in the metrics."""
    if isinstance(answer, Turned):
        office.metrics.message(answer.dialect, answer.code)
    else:
        office.metrics.message(answer.dialect, "repeated" if answer.repeated else "taken")


async def _call(operation: Operation, call: Call) -> Any:
    """Call an operation by its name; the reply is in its dialect's own form."""
    answer = await _answer(operation, call)
    count(call.office, answer)
    if isinstance(answer, Taken):
        call.remarks.extend(answer.warnings)
    return _reply(answer)


async def _answer(operation: Operation, call: Call) -> Answer:
    with call.office.writing():
        return await call.office.door.interpreter.call_soon(
            operation.name, call.raw, call.principal.actor, key=call.key
        )


def _reply(answer: Answer) -> Any:
    if isinstance(answer, Turned):
        raise HttpProblem(of_refusal(answer), own=answer.reply)
    return answer.reply


async def _call_and_wait(operation: Operation, call: Call) -> Any:
    """Call an operation, and wait while its reply is empty."""
    assert operation.is_empty is not None, "the operation has no empty reply to wait on"
    query: WaitQuery = call.query
    reply = await _call(operation, call)
    if not query.wait or not operation.is_empty(reply):
        return reply
    feed, monotonic = call.office.feed, call.office.door.monotonic
    end = monotonic() + query.wait / 1_000
    async with waiting(call.office, call.request) as seat:
        while True:
            # With an open waiter, every entry from here on notifies.
            seen = feed.last(operation.wakes)
            reply = _reply(await _answer(operation, call))
            if not operation.is_empty(reply):
                return reply
            while feed.last(operation.wakes) == seen:
                left = end - monotonic()
                if left <= 0 or seat.gone:
                    return reply
                await seat.wait(left)


ENDPOINT = Endpoint(
    "POST",
    "/v1/messages",
    "Send one message, or many, in any dialect",
    None,
    Sent,
    query=MessagesQuery,
    body=Any,
    takes=(JSON, CBOR, *LINES),
    also={LINES[0]: (Sent, NotSent)},
    serve=Messages,
)


def operations(dialects: tuple[Dialect, ...]) -> Iterator[Endpoint]:
    """Yield an endpoint for each operation of each dialect."""
    for dialect in dialects:
        for operation in dialect.operations:
            yield _endpoint(dialect, operation)


def forms(interpreter: Interpreter) -> dict[str, Form]:
    """Return the error formats of dialects that have one, by the beginning of their paths."""
    return {
        _address(dialect): partial(interpreter.no_of, dialect)
        for dialect in interpreter.dialects
        if dialect.says_no is not None
    }


def _address(dialect: Dialect) -> str:
    return f"/v1/{dialect.name}/"


def _endpoint(dialect: Dialect, operation: Operation) -> Endpoint:
    can_wait = operation.is_empty is not None
    return Endpoint(
        "POST",
        _address(dialect) + operation.name,
        _summary(dialect, operation),
        partial(_call_and_wait if can_wait else _call, operation),
        Any,
        query=WaitQuery if can_wait else Query,
        body=operation.shape,
        takes=(JSON, CBOR),
        in_cbor=True,
        reads=False,
        own_no=dialect.says_no is not None,
    )


def _summary(dialect: Dialect, operation: Operation) -> str:
    """Return the summary of an operation: its own, or else the first line of its shape."""
    shape = operation.shape.__doc__.partition("\n")[0]
    return operation.summary or f"{dialect.name}: {shape}"
