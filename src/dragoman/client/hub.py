"""Hub: the connection as an agent's program sees it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, Unpack

from dragoman.client.address import find_address
from dragoman.client.models import (
    Briefing,
    Claim,
    Event,
    EventPage,
    HubStatus,
    Problem,
    RejectedMessage,
    Task,
)
from dragoman.client.requests import Message, Request, TaskFields, post, send_batches, task_path
from dragoman.client.signing import Signer, find_signer
from dragoman.client.transport import ApiClient, Transport, parse_batch
from dragoman.client.work import DEFAULT_HEARTBEAT_MS, WAIT_MS, HeldClaim, LeaseTiming, Work
from dragoman.config import environment
from dragoman.core.base import DEFAULT_LEASE_MS, Status
from dragoman.core.errors import Refused, SettingsError
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.engine.ports import Gap
from dragoman.engine.schemas.accepted_message import AcceptedMessage
from dragoman.engine.schemas.tasks import TaskPage, TaskSummary
from dragoman.system.clock import new_id

DEFAULT_PATIENCE_S: Final = 60.0
"""Seconds for which a request is retried while the hub does not answer."""
_PAGE_SIZE: Final = 100
_EVENT_PAGE: Final = 500
_log = logging.getLogger("dragoman.client")

OnGap = Callable[[Gap], None]
"""Called if the ledger ends before what was seen of it: what follows is not what followed then."""


def log_gap(gap: Gap) -> None:
    """Log a gap, where no callback is given."""
    _log.warning(
        "the ledger ends at %d, before %d: following it from its end", gap.until, gap.after
    )


def connect(
    url: str = "",
    token: str = "",
    *,
    data: Path | str | None = None,
    patience: float = DEFAULT_PATIENCE_S,
    signer: Signer | None = None,
) -> "Hub":
    """Connect to the hub at this url; else of DRAGOMAN_URL; else of the data directory.

    `patience`: seconds for which a hub that is busy or has gone away is waited for. One that is not
    there from the start is an error at once. `signer`: signs every message that is sent; else the
    key of DRAGOMAN_KEY does, if there is one.
    """
    return Hub(url, token, data, patience, signer)


class Hub:
    """A connection to a hub; `async with` opens it. Many tasks may use it at once."""

    def __init__(
        self,
        url: str,
        token: str,
        data: Path | str | None,
        patience: float,
        signer: Signer | None = None,
    ) -> None:
        address = find_address(url, token, data, environment())
        self._transport = Transport(address, patience, new_id)
        self._api = ApiClient(self._transport, signer=signer or find_signer(environment()))
        self._open_work: set[Work] = set()

    @property
    def url(self) -> str:
        """The current URL of the hub."""
        return self._transport.address.url

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        try:
            await self._api.request(
                Request("GET", "/v1/tasks", TaskPage, {"limit": 1}), is_first=True
            )
        except BaseException:
            await self._transport.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        async with AsyncExitStack() as leaving:
            leaving.push_async_callback(self._transport.__aexit__, kind, error, trace)
            for work in tuple(self._open_work):
                leaving.push_async_callback(work.leave, error)

    def work(
        self,
        agent: str,
        *,
        session: str = "",
        ttl_ms: int | None = None,
        beat_ms: int = DEFAULT_HEARTBEAT_MS,
        stop_when_idle: bool = False,
    ) -> "Works":
        """Claim tasks for an agent, one after the other, each kept alive by heartbeats.

        A task that is not ended when the next one is asked for has failed. `ttl_ms`: after so long
        without a heartbeat, another agent may claim it; else as `[leases] ttl_ms` of the hub's
        settings says. `beat_ms`: how soon a lost lease is noticed.
        """
        wait_ms = 0 if stop_when_idle else WAIT_MS
        claim: dict[str, str | int] = {"agent": agent, "session": session, "wait_ms": wait_ms}
        if ttl_ms is not None:
            claim["ttl_ms"] = ttl_ms
        return Works(self._api, claim, LeaseTiming(DEFAULT_LEASE_MS, beat_ms), self._open_work)

    async def assigned(self, *, beat_ms: int = DEFAULT_HEARTBEAT_MS) -> Work:
        """Return the task that a hub started this program for, by DRAGOMAN_TASK and its token.

        It is claimed already, and alive while the program runs; the heartbeat notices its loss.
        """
        variables = environment()
        name, agent = variables.get("DRAGOMAN_TASK", ""), variables.get("DRAGOMAN_AGENT", "")
        if not name or not agent:
            raise SettingsError(
                "DRAGOMAN_TASK or DRAGOMAN_AGENT is not set: no hub has started this program; "
                "use hub.work(agent=…)"
            )
        earliest_start = asyncio.get_running_loop().time()  # until then the hub renews the lease
        task = await self.task(name)
        briefing = await self._api.get(task_path(name, "briefing"), Briefing | None)
        claim = Claim(agent, None, task.attempt, task.fence, None, task, briefing)
        timing = LeaseTiming(DEFAULT_LEASE_MS, beat_ms).as_granted(task)
        held = HeldClaim(claim, timing, earliest_start)
        work = Work(self._api, held, asyncio.current_task(), self._open_work.discard)
        self._open_work.add(work)
        return work

    async def create(self, title: str, *, key: str = "", **fields: Unpack[TaskFields]) -> Task:
        """Create a task, ready to be claimed; without an id the hub assigns one."""
        return await self._api.post(
            "/v1/tasks", Task, {"title": title, "ready": True, **fields}, key
        )

    async def status(self) -> HubStatus:
        """Return who works on what, what waits and for whom, and what needs a person."""
        return await self._api.get("/v1/status", HubStatus)

    async def task(self, name: str) -> Task:
        """Return a task by any of its names."""
        return await self._api.get(task_path(name), Task)

    async def tasks(
        self, *, status: Status | None = None, assignee: str = "", ready: bool = False
    ) -> AsyncGenerator[TaskSummary]:
        """Yield all matching tasks, newest first; `ready`: only those that can be claimed now."""
        query = _drop_empty(limit=_PAGE_SIZE, status=status, assignee=assignee, ready=ready)
        while True:
            page: TaskPage = await self._api.get("/v1/tasks", TaskPage, query)
            for one in page.tasks:
                yield one
            if page.next is None:
                return
            query["cursor"] = page.next

    async def move(self, name: str, to: Status, reason: str = "", *, key: str = "") -> Task:
        """Move a task to another status, with the right to do so: approve, cancel, ready again."""
        return await self._api.post(
            task_path(name, "move"), Task, {"to": to, "reason": reason}, key
        )

    async def send(self, message: Message, *, dialect: str = "", key: str = "") -> AcceptedMessage:
        """Send a message of any dialect; without its name the hub recognises the dialect."""
        return await self._api.send(message, dialect=dialect, key=key)

    async def send_all(
        self, messages: Iterable[Message], *, dialect: str = "", key: str = ""
    ) -> list[AcceptedMessage | RejectedMessage]:
        """Send many messages; return the outcome of each, in order. Signed ones go one by one."""
        answers: list[AcceptedMessage | RejectedMessage] = []
        if self._api.signer is not None:
            first = self._api.ensure_key(key)
            for number, message in enumerate(messages):
                answers.append(await self._send_one(message, dialect, f"{first}:{number}"))
            return answers
        for batch in send_batches(messages, dialect, self._api.ensure_key(key)):
            answers += parse_batch(await self._api.request(batch))
        return answers

    async def _send_one(
        self, message: Message, dialect: str, key: str
    ) -> AcceptedMessage | RejectedMessage:
        try:
            return await self._api.send(message, dialect=dialect, key=key)
        except Refused as refused:
            return RejectedMessage(Problem(refused.code, refused.detail))

    async def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call any operation of any dialect by its name; the reply is in the dialect's own form."""
        return await self._api.call(operation, arguments, key=key)

    async def events(
        self,
        after: int | None = None,
        *,
        task: str = "",
        type: str = "",
        agent: str = "",
        dialect: str = "",
        on_gap: OnGap = log_gap,
    ) -> AsyncGenerator[Event]:
        """Yield events from a position of the ledger on (0: everything; None: from now on).

        It goes on for ever and outlives restarts of the hub. `type` is an event's name, or the
        family before its dot. `on_gap` is called if the ledger ends before what was seen of it, as
        a restored one does; it is followed from its end then. Without `on_gap` that is logged.
        """
        query = _drop_empty(task=task, type=type, agent=agent, dialect=dialect)
        position = after
        if position is None:
            # A page beyond the end has the last position as its `next`.
            beyond = {"after": MAX_SAFE_INTEGER, "limit": 1}
            newest: EventPage = await self._api.get("/v1/events", EventPage, beyond)
            position = newest.next
        while True:
            more = {**query, "after": position, "limit": _EVENT_PAGE, "wait": WAIT_MS}
            page: EventPage = await self._api.request(
                Request("GET", "/v1/events", EventPage, more, wait_ms=WAIT_MS)
            )
            for event in page.events:
                yield event
            if page.next < position:
                on_gap(Gap(position, page.next))
            position = page.next


def _drop_empty(**query: str | int | None) -> dict[str, str | int]:
    """Return the parameters of a query that are given."""
    return {name: "true" if value is True else value for name, value in query.items() if value}


class Works(AsyncIterator[Work]):
    """The tasks that an agent gets, one at a time."""

    def __init__(
        self,
        api: ApiClient,
        claim: Mapping[str, str | int],
        timing: LeaseTiming,
        open_work: set[Work],
    ) -> None:
        """`claim`: the agent, its session, the duration of the lease if one is wanted, and the time
        to wait for a task; 0: do not wait, and end without one."""
        self._api = api
        self._claim = claim
        self._timing = timing
        self._open_work = open_work
        self._last: Work | None = None
        self._cancels_on_loss = True

    def without_cancellation(self) -> Self:
        """Do not cancel the caller when a lease is lost, because it cannot be cancelled."""
        self._cancels_on_loss = False
        return self

    async def __anext__(self) -> Work:
        if self._last is not None:
            await self._last.leave(None)
        held = await self._claim_next()
        handler = asyncio.current_task() if self._cancels_on_loss else None
        work = Work(self._api, held, handler, self._open_work.discard)
        self._open_work.add(work)
        self._last = work
        return work

    async def _claim_next(self) -> HeldClaim:
        loop, wait_ms = asyncio.get_running_loop(), int(self._claim["wait_ms"])
        # One key until there is a task: a response that was lost is repeated.
        request = post("/v1/work", Claim | None, self._claim, self._api.ensure_key(""), wait_ms)
        while True:
            earliest_start = loop.time()
            claim: Claim | None = await self._api.request(request)
            if claim is not None:
                return HeldClaim(claim, self._timing.as_granted(claim.task), earliest_start)
            if not wait_ms:
                raise StopAsyncIteration
