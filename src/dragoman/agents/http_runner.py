"""Runs an agent behind a URL: posts the assignment; the agent answers by messages of its own."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.engine.ports import Assignment, OnMessage, RunExit

_SUCCESS_STATUSES: Final = range(200, 300)

Post = Callable[[Mapping[str, str], bytes], int]
"""Posts headers and a body; the status of the response, or OSError."""


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


class HttpRunner:
    """Posts assignments to the URL of one agent."""

    def __init__(
        self, post: Post, token: Callable[[Assignment], str], url: str, blocking_pool: Executor
    ) -> None:
        """`blocking_pool` has threads for slow work."""
        self._post = post
        self._token = token
        self._url = url
        self._blocking_pool = blocking_pool

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "RemoteRun":
        """Post the assignment; any 2xx means that the agent has it."""
        del on_message  # it uses the hub's own surfaces
        body = msgspec.json.encode(
            PostedAssignment(
                id=assignment.session,
                agent=assignment.agent,
                task_id=assignment.aof_id,
                title=assignment.title,
                attempt=assignment.attempt,
                ttl_ms=assignment.ttl_ms,
                prompt=assignment.prompt,
                url=self._url,
                token=self._token(assignment),
            )
        )
        headers: dict[str, Any] = {"Content-Type": "application/json"}
        loop = asyncio.get_running_loop()
        status = await loop.run_in_executor(self._blocking_pool, self._post, headers, body)
        if status not in _SUCCESS_STATUSES:
            raise OSError(f"the agent's URL answered {status}")
        return RemoteRun()


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
