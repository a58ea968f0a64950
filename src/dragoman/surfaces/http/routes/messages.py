"""`POST /v1/signed`: a message signed by its sender; it needs no token."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from dragoman.core.base import Status
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.engine.auth import Principal
from dragoman.engine.lint import explain_unrecognized
from dragoman.engine.operation import Dialect, LongPoll, Operation, QueryOperation
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.router import RoutedMessage, needs_io
from dragoman.engine.schemas.accepted_message import AcceptedMessage, TaskStatusAfter
from dragoman.engine.signed_requests import Signature
from dragoman.surfaces.http.context import MAX_WAIT_MS, AppContext, Call, open_waiter
from dragoman.surfaces.http.endpoint import (
    CBOR,
    JSON,
    Endpoint,
    Query,
    check_cbor,
    check_content_type,
    parse_idempotency_key,
    parse_query,
)
from dragoman.surfaces.http.errors import (
    HttpProblem,
    Problem,
    encode,
    problem,
    problem_from_error,
    problem_from_refusal,
)
from dragoman.surfaces.http.fanout import WRITER, RawWriter
from dragoman.surfaces.http.limits import VIA, read_body
from dragoman.text.error_messages import join_path
from dragoman.text.strict_json import MAX_BYTES

JSON_LINES = ("application/x-ndjson", "application/jsonl")
MAX_IN_FLIGHT = 512
"""Lines of a batch that are in flight at once."""
_YIELD_EVERY = 64
"""Lines after which other requests get a turn."""
_STOPPING_DETAIL = (
    "the hub is about to stop: this line and all after it were not taken; send them again when it "
    "runs"
)

_JSON_TYPE = (b"content-type", JSON.encode())
_JSON_LINES_HEADERS = [(b"content-type", JSON_LINES[0].encode())]
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
        Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait while the reply is empty, in ms."),
    ] = 0


class RejectedMessage(Struct, frozen=True):
    """A line of a batch that was refused."""

    line: int
    ok: bool
    problem: Problem


class MessagesApp:
    """The ASGI application of the path for messages."""

    def __init__(self, context: AppContext, endpoint: Endpoint) -> None:
        self._context = context
        self._endpoint = endpoint
        self._router = context.deps.router
        self._max_batch_bytes = context.deps.settings.http.max_body
        sizes = {one.name: max(MAX_BYTES, one.limits.max_bytes) for one in self._router.dialects}
        sizes[""] = max(sizes.values(), default=MAX_BYTES)
        self._max_message_bytes = {
            name: min(size, self._max_batch_bytes) for name, size in sizes.items()
        }
        """Dialect (empty: any) -> the size of its largest message."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept one message, or many, and answer."""
        scope["progress"].route = self._endpoint.path
        headers, deps = scope["by_name"], self._context.deps
        dialect = self._parse_dialect(scope["query_string"])
        content_type = check_content_type(headers, self._endpoint.accepts)
        is_batch = content_type in JSON_LINES
        max_bytes = self._max_batch_bytes if is_batch else self._max_message_bytes[dialect]
        body = await read_body(receive, scope, max_bytes, deps.timeouts)
        if content_type == CBOR:
            check_cbor(body)
        key = parse_idempotency_key(headers)
        if is_batch:
            principal: Principal = scope["principal"]
            if not principal.is_owner:
                self._context.charge_lines(principal.actor.label, body.strip().count(b"\n"))
            await send(
                {"type": "http.response.start", "status": 200, "headers": _JSON_LINES_HEADERS}
            )
            await _MessageBatch(self._context, dialect, key, scope, send).process(body)
            return
        routed = await self._router.parse_async(body, dialect=dialect)
        if routed is None:
            raise HttpProblem(unrecognized_problem(self._context, dialect, body))
        actor = scope["principal"].actor
        answer = await self._router.route_async(routed, actor, key=key)
        count_message(self._context, answer)
        if isinstance(answer, Rejected):
            raise HttpProblem(problem_from_refusal(answer))
        encoded = encode(accepted_response(answer))
        length = (b"content-length", b"%d" % len(encoded))
        await send({"type": "http.response.start", "status": 200, "headers": [_JSON_TYPE, length]})
        await send({"type": "http.response.body", "body": encoded})

    def _parse_dialect(self, query_string: bytes) -> str:
        if not query_string:
            return ""
        query: MessagesQuery = parse_query(query_string, MessagesQuery)
        return self._context.find_dialect(query.dialect, "dialect").name if query.dialect else ""


class _MessageBatch:
    """Many messages of one caller: submitted in order, answered in order, committed together.

    A line waits for those before it only if it is about the same task or thread (or names none), so
    that a lookup for it sees what they have written. Where neither it nor they need a lookup, it
    does not wait for those, either: the engine decides them in the order of their submission.
    """

    def __init__(
        self, context: AppContext, dialect: str, key: str, scope: Scope, send: Send
    ) -> None:
        self._context = context
        self._router = context.deps.router
        self._principal: Principal = scope["principal"]
        self._writer: RawWriter | None = scope.get(WRITER)
        self._dialect = dialect
        self._key = key
        self._send = send
        self._in_flight: deque[tuple[str, asyncio.Task[bytes]]] = deque()
        self._last_by_target: dict[str, tuple[asyncio.Task[bytes], bool]] = {}
        """Task or thread -> the last line about it, and whether that needs a lookup."""

    async def process(self, body: bytes) -> None:
        """Answer all lines that are not blank, until the client disconnects or the hub is to stop.

        Lines are read one by one: as a list, a body of short lines would take many times its size.
        """
        last = b""
        for number, line in enumerate(BytesIO(body), start=1):
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if self._writer is not None and self._writer.is_disconnected:
                break
            if self._context.feed.is_closed:
                last = (
                    encode(RejectedMessage(number, False, problem("stopping", _STOPPING_DETAIL)))
                    + b"\n"
                )
                break
            if line.strip():
                await self._submit_line(number, line.removesuffix(b"\n"))
        while self._in_flight:
            await self._flush()
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _submit_line(self, number: int, line: bytes) -> None:
        async with self._context.decoding_turns:
            message = await self._router.parse_async(
                line, dialect=self._dialect
            ) or unrecognized_problem(self._context, self._dialect, line)
        is_problem = isinstance(message, Problem)
        target = "" if is_problem else message.ordering_key
        needs_lookup = is_problem or needs_io(message.parsed, self._principal.actor)
        earlier = [task for _, task in self._in_flight]
        if target:
            last, had_lookup = self._last_by_target.get(target, (None, False))
            earlier = [last] if last is not None and (needs_lookup or had_lookup) else []
        if earlier:
            await asyncio.wait(earlier)
        task = asyncio.create_task(self._answer_line(number, line, message))
        self._in_flight.append((target, task))
        self._last_by_target[target] = task, needs_lookup
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            await self._flush()

    async def _flush(self) -> None:
        """Send the oldest answer, and all others that are ready by then."""
        answers: list[bytes] = []
        while self._in_flight and (not answers or self._in_flight[0][1].done()):
            target, task = self._in_flight.popleft()
            answers.append(await task)
            if target in self._last_by_target and self._last_by_target[target][0] is task:
                del self._last_by_target[target]
        await self._send(
            {"type": "http.response.body", "body": b"".join(answers), "more_body": True}
        )

    async def _answer_line(
        self, number: int, line: bytes, message: RoutedMessage | Problem
    ) -> bytes:
        answer = (
            message
            if isinstance(message, Problem)
            else await self._process_line(number, line, message)
        )
        if isinstance(answer, Problem):
            return encode(RejectedMessage(number, False, answer)) + b"\n"
        return encode(accepted_response(answer, number)) + b"\n"

    async def _process_line(
        self, number: int, line: bytes, routed: RoutedMessage
    ) -> Accepted | Problem:
        key = _line_key(line, self._key) if self._key else ""
        try:
            answer = await self._router.route_async(routed, self._principal.actor, key=key)
        except DragomanError as error:
            _log.error("line %d of a batch: %s", number, error)
            return problem_from_error(error)
        except Exception:  # noqa: BLE001  one line must not take down others
            _log.exception("line %d of a batch failed", number)
            return problem("internal_error", "the hub has failed at this line; its log says how")
        count_message(self._context, answer)
        return problem_from_refusal(answer) if isinstance(answer, Rejected) else answer


def _line_key(line: bytes, key: str) -> str:
    """Derive the key of a line in a batch with a key: equal lines share it, so each is done once.

    It is a digest, because the key of the batch may have any length, and so that it cannot equal
    another's.
    """
    return sha256(key.encode() + b":" + sha256(line.strip()).digest()).hexdigest()


def accepted_response(answer: Accepted, line: int | UnsetType = UNSET) -> AcceptedMessage:
    """Build the response to an accepted message."""
    tasks: dict[str, Status | None] = {one.task: one.status for one in answer.receipts if one.task}
    return AcceptedMessage(
        line=line,
        dialect=answer.dialect,
        type=answer.kind,
        agent=answer.actor,
        reply=answer.reply,
        tasks=[TaskStatusAfter(task, status) for task, status in tasks.items()],
        warnings=answer.warnings,
        repeated=answer.repeated,
    )


def unrecognized_problem(context: AppContext, dialect: str, message: bytes = b"") -> Problem:
    """Build the problem of a message that no dialect recognises; `message` may be malformed."""
    candidates = [one for one in context.deps.router.dialects if dialect in ("", one.name)]
    fault = explain_unrecognized(message, candidates)
    context.metrics.record_message(dialect, fault.code)
    return problem(fault.code, fault.detail, fault.path)


def count_message(context: AppContext, answer: Reply) -> None:
    """Count a message in the metrics."""
    if isinstance(answer, Rejected):
        context.metrics.record_message(answer.dialect, answer.code)
    else:
        outcome = "repeated" if answer.repeated else "accepted"
        context.metrics.record_message(answer.dialect, outcome)


async def _call_operation(operation: Operation, call: Call) -> Any:
    """Call an operation by its name; the reply is in its dialect's own form."""
    answer = await _submit_operation(operation, call)
    count_message(call.context, answer)
    if isinstance(answer, Accepted):
        call.warnings.extend(answer.warnings)
    return _reply_or_raise(answer)


async def _submit_operation(operation: Operation, call: Call) -> Reply:
    return await call.context.deps.router.call_async(
        operation.name, call.raw, call.principal.actor, key=call.key
    )


def _reply_or_raise(answer: Reply) -> Any:
    if isinstance(answer, Rejected):
        raise HttpProblem(problem_from_refusal(answer), dialect_reply=answer.reply)
    return answer.reply


async def _call_and_wait(operation: Operation, long_poll: LongPoll, call: Call) -> Any:
    """Call an operation, and wait while its reply is empty."""
    query: WaitQuery = call.query
    reply = await _call_operation(operation, call)
    if not query.wait or not long_poll.is_empty(reply):
        return reply
    feed, monotonic = call.context.feed, call.context.deps.monotonic
    end = monotonic() + query.wait / 1_000
    async with open_waiter(call.context, call.request) as waiter:
        while True:
            # With an open waiter, every entry from here on notifies.
            seen_position = feed.last_position(long_poll.event_family)
            reply = _reply_or_raise(await _submit_operation(operation, call))
            if not long_poll.is_empty(reply):
                return reply
            while feed.last_position(long_poll.event_family) == seen_position:
                remaining = end - monotonic()
                if remaining <= 0 or waiter.is_closed:
                    return reply
                await waiter.wait(remaining)


ENDPOINT = Endpoint(
    "POST",
    "/v1/messages",
    None,
    AcceptedMessage,
    query=MessagesQuery,
    body=Any,
    max_bytes=None,
    accepts=(JSON, CBOR, *JSON_LINES),
    other_media={JSON_LINES[0]: (AcceptedMessage, RejectedMessage)},
    app_factory=MessagesApp,
    title="Send one message, or many, in any dialect",
)


def operation_endpoints(dialects: tuple[Dialect, ...]) -> Iterator[Endpoint]:
    """Yield an endpoint for each operation of each dialect."""
    for dialect in dialects:
        for operation in dialect.operations:
            yield _operation_endpoint(dialect, operation)


def _operation_endpoint(dialect: Dialect, operation: Operation) -> Endpoint:
    long_poll = operation.wait if isinstance(operation, QueryOperation) else None
    return Endpoint(
        "POST",
        f"/v1/{dialect.name}/{operation.name}",
        partial(_call_and_wait, operation, long_poll)
        if long_poll
        else partial(_call_operation, operation),
        Any,
        query=WaitQuery if long_poll else Query,
        body=operation.input,
        max_bytes=max(MAX_BYTES, operation.limits.max_bytes),
        accepts=(JSON, CBOR),
        supports_cbor=True,
        parses_body=False,
        has_dialect_errors=dialect.errors.format is not None,
        title=_summary(dialect, operation),
    )


def _summary(dialect: Dialect, operation: Operation) -> str:
    """Return the summary of an operation: its own, or else the first line of its shape."""
    shape = operation.input.__doc__.partition("\n")[0]
    return operation.summary or f"{dialect.name}: {shape}"


class SignedMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of any dialect that is an object, and the signature of its sender."""

    envelope: dict[str, Any]
    signature: Signature


async def send_signed(call: Call) -> AcceptedMessage:
    """Send a signed message as the agent whose registered key has signed it."""
    context = call.context
    opened = await context.envelopes.verify_async(call.raw, VIA)
    assert opened is not None, "its shape was checked"
    if isinstance(opened, Refusal):
        raise Refused(opened)
    actor = opened.principal.actor
    context.check_rate(actor.label)
    # A fixed order of keys, as it was signed: the same members in another order are the same
    # message.
    text = msgspec.json.encode(opened.envelope, order="deterministic")
    routed = context.deps.router.parse(text)
    if routed is None:
        raise HttpProblem(unrecognized_problem(context, ""))
    content = routed.parsed.dedup_content
    key = opened.idempotency_key(context.hub.content_key(content) if content else "")
    answer = await context.deps.router.route_async(routed, actor, key=key)
    count_message(context, answer)
    if isinstance(answer, Rejected):
        problem = problem_from_refusal(answer)
        raise HttpProblem(
            replace(problem, path=problem.path and join_path("envelope", problem.path))
        )
    return accepted_response(answer)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/signed",
        send_signed,
        AcceptedMessage,
        body=SignedMessage,
        max_bytes=MAX_BYTES,
        is_open=True,
    ),
)
