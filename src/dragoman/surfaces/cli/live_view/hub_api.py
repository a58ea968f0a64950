"""HTTP API of a hub as the live view needs it: what is shown, the stream, and actions."""

from collections.abc import AsyncGenerator, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from msgspec import Struct

from dragoman.core.base import Role, Status
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.engine.ports import Gap
from dragoman.engine.schemas.handoffs import HandoffDetail
from dragoman.engine.schemas.status import StatusResource
from dragoman.engine.schemas.story import StoryItemResource, StoryPage
from dragoman.engine.schemas.tasks import EntryResource, TaskDetail, TaskSummary
from dragoman.system.hub_client import parse_problem
from dragoman.system.tls import TlsVerification
from dragoman.text.error_messages import describe_exception

# --- shapes -----------------------------------------------------------------------------------


class HubLocation(Struct, frozen=True):
    """URL of a hub, the token to show there, and how its certificate is verified."""

    url: str
    token: str
    tls: TlsVerification = True

    def __repr__(self) -> str:
        return f"HubLocation({self.url})"


class Viewer(Struct, frozen=True):
    """Bearer of the token."""

    name: str
    role: Role
    may: Mapping[str, bool]


class _TaskPage(Struct, frozen=True):
    tasks: tuple[TaskSummary, ...]


class _EventPage(Struct, frozen=True):
    events: tuple[EntryResource, ...]


# --- requests ---------------------------------------------------------------------------------

T = TypeVar("T")

_TIMEOUT: Final = httpx2.Timeout(10.0)

_STREAM_TIMEOUT: Final = httpx2.Timeout(10.0, read=40.0)
"""The hub sends a comment every 15 seconds: after a longer silence the connection is dead."""

_STORY_PAGE: Final = 500


class HubApi:
    """A hub elsewhere or on this machine; StoreUnavailable while it cannot be reached."""

    def __init__(self, locate: Callable[[], HubLocation]) -> None:
        """`locate` finds the hub, and again after it was lost: it may have another port."""
        self._locate = locate
        self.location = locate()
        self._http = self._connect()

    def _connect(self) -> httpx2.AsyncClient:
        at = self.location
        return httpx2.AsyncClient(
            base_url=at.url,
            headers={"Authorization": f"Bearer {at.token}"},
            verify=at.tls,
            timeout=_TIMEOUT,
            # The environment may name a proxy, which must not see the token.
            trust_env=False,
        )

    async def relocate(self) -> None:
        """Find the hub again."""
        found = self._locate()
        if found != self.location:
            await self.close()
            self.location = found
            self._http = self._connect()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def viewer(self) -> Viewer:
        """Get the bearer of the token, and what its role may do."""
        return await self._get("/v1/session", Viewer)

    async def status(self) -> StatusResource:
        """Get the status of the whole hub."""
        return await self._get("/v1/status", StatusResource)

    async def tasks(self, status: Status, limit: int) -> tuple[TaskSummary, ...]:
        """Get the newest tasks in a status."""
        return (await self._get(f"/v1/tasks?status={status}&limit={limit}", _TaskPage)).tasks

    async def task(self, name: str) -> TaskDetail:
        """Get a task by any of its names."""
        return await self._get(task_path(name), TaskDetail)

    async def story(
        self, name: str, after: int
    ) -> AsyncGenerator[tuple[StoryItemResource, ...], None]:
        """Get the story of a task after a position, page by page."""
        start: int | None = after
        while start is not None:
            path = f"{task_path(name)}/story?after={start}&limit={_STORY_PAGE}"
            page = await self._get(path, StoryPage)
            yield page.items
            start = page.next

    async def handoff(self, id: str) -> HandoffDetail:
        """Get a handoff."""
        return await self._get(f"/v1/handoffs/{quote(id, safe='')}", HandoffDetail)

    async def latest_entries(self, head: int, count: int) -> tuple[EntryResource, ...]:
        """Get the last entries up to a position."""
        path = f"/v1/events?after={max(0, head - count)}&limit={count}"
        return (await self._get(path, _EventPage)).events

    async def act(self, path: str, body: Mapping[str, Any]) -> None:
        """Do something; Refused with the words of the hub if it refuses."""
        await self._request("POST", path, msgspec.json.encode(body))

    async def _get(self, path: str, shape: type[T]) -> T:
        content = await self._request("GET", path)
        try:
            return msgspec.json.decode(content, type=shape)
        except msgspec.MsgspecError as error:
            raise StoreUnavailable(
                f"what answers at {self.location.url} is no hub of this version ({error})"
            ) from error

    async def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = await self._http.request(method, path, content=body, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from error
        self._check(response.status_code, response.content)
        return response.content

    def _check(self, status: int, content: bytes) -> None:
        """Raise what the hub has answered instead of what was requested."""
        if status < HTTPStatus.BAD_REQUEST:
            return
        problem = parse_problem(content)
        if problem.code and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Refused(Refusal(problem.code, problem.detail))
        raise StoreUnavailable(
            f"the hub at {self.location.url} answered {status}"
            + (f" ({problem.code}: {problem.detail})" if problem.code else "")
        )

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        reason = describe_exception(error) or type(error).__name__
        return StoreUnavailable(f"the hub at {self.location.url} does not answer ({reason})")

    async def follow(self, after: int) -> AsyncGenerator[EntryResource | Gap | None, None]:
        """Follow the ledger: None once the stream is open, then entries and gaps as they come."""
        try:
            path = f"/v1/stream?after={after}"
            async with self._http.stream("GET", path, timeout=_STREAM_TIMEOUT) as response:
                if response.status_code != HTTPStatus.OK:
                    self._check(response.status_code, await response.aread())
                yield None
                async for event, data in _server_sent_events(response):
                    shape = Gap if event == "gap" else EntryResource
                    yield msgspec.json.decode(data, type=shape)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error


async def _server_sent_events(
    response: httpx2.Response,
) -> AsyncGenerator[tuple[str, str], None]:
    """Name and data of each event of a stream."""
    event = data = ""
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if not line and data:
            yield event, data
        if not line:
            event = data = ""
        elif name == "event":
            event = value
        elif name == "data":
            data = value


def task_path(name: str, action: str = "") -> str:
    """Path of a task by any of its names, or of an action on it."""
    return f"/v1/tasks/{quote(name, safe='')}" + (f"/{action}" if action else "")
