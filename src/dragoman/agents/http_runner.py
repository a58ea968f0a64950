"""Runs an agent behind a URL: posts its assignment, or its request in a dialect.

The agent answers by messages of its own; what it says in the response counts where the dialect has
a result. A repeated post has the id of the first, and is to be dropped.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.engine.ports import Assignment, OnMessage, RunExit

_SUCCESS_STATUSES: Final = range(200, 300)

WriteRequest = Callable[[Assignment], bytes]
"""Writes the request of an assignment; it may read the store."""
Exchange = Callable[[Mapping[str, str], bytes], tuple[int, bytes]]
"""Posts headers and a body; the status and body of the response, or OSError."""


class PostedAssignment(Struct, frozen=True, rename="camel"):
    """Body of the posted assignment."""

    id: str
    """The session: the same in a repeated post, which is to be dropped."""
    agent: str
    task_id: str
    title: str
    attempt: int
    ttl_ms: int
    prompt: str
    url: str
    """URL of the hub."""
    token: str
    delivered: tuple[Any, ...]
    """Messages about the task that the agent got in its own dialect, oldest first."""


def write_assignment(
    assignment: Assignment,
    token: Callable[[Assignment], str],
    url: str,
    delivered: Callable[[Assignment], tuple[Any, ...]],
) -> bytes:
    """Write the assignment of an agent that speaks to the hub at this URL."""
    return msgspec.json.encode(
        PostedAssignment(
            id=assignment.session,
            agent=assignment.agent,
            task_id=assignment.aof_id,
            title=assignment.title,
            attempt=assignment.attempt,
            ttl_ms=assignment.ttl_ms,
            prompt=assignment.prompt,
            url=url,
            token=token(assignment),
            delivered=delivered(assignment),
        )
    )


class HttpRunner:
    """Posts requests to the URL of one agent."""

    def __init__(self, write: WriteRequest, exchange: Exchange, blocking_pool: Executor) -> None:
        """`blocking_pool` has threads for slow work."""
        self._write = write
        self._exchange = exchange
        self._blocking_pool = blocking_pool

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "RemoteRun":
        """Post the request; any 2xx means that the agent has it."""
        loop = asyncio.get_running_loop()
        status, answer = await loop.run_in_executor(self._blocking_pool, self._post, assignment)
        if status not in _SUCCESS_STATUSES:
            raise OSError(f"the agent's URL answered {status}")
        if answer.strip():
            await on_message(answer)
        return RemoteRun()

    def _post(self, assignment: Assignment) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        return self._exchange(headers, self._write(assignment))


class RemoteRun:
    """A run that nobody here sees: its lease shows whether it lives."""

    renews_lease = False
    output_bytes = 0

    def __init__(self) -> None:
        self._stopped = asyncio.Event()

    async def wait(self) -> RunExit:
        """Wait until it was stopped: it does not end by itself."""
        await self._stopped.wait()
        return RunExit()

    async def stop(self, grace: float, reason: str = "") -> None:
        """Stop waiting: the agent learns from the hub that its lease is lost."""
        del grace, reason
        self._stopped.set()

    def forget(self) -> None:
        """Do nothing: there is no record of it."""
