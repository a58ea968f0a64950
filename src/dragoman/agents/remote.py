"""An agent behind a URL: it is posted its assignment, and answers by messages of its own."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.engine.runner import Assignment, Ended, Hear

_ACCEPTED: Final = range(200, 300)

Post = Callable[[Mapping[str, str], bytes], int]
"""Posts headers and a body; the status of the response, or OSError."""


class Posted(Struct, frozen=True, rename="camel"):
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


class RemoteRunner:
    """Posts assignments to the URL of one agent."""

    def __init__(
        self, post: Post, token: Callable[[Assignment], str], url: str, slow: Executor
    ) -> None:
        """`blocking_pool` has threads for slow work."""
        self._post = post
        self._token = token
        self._url = url
        self._slow = slow

    async def start(self, assignment: Assignment, hear: Hear) -> "RunningElsewhere":
        """Post the assignment; any 2xx means that the agent has it."""
        del hear  # it uses the hub's own surfaces
        body = msgspec.json.encode(
            Posted(
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
        status = await loop.run_in_executor(self._slow, self._post, headers, body)
        if status not in _ACCEPTED:
            raise OSError(f"the agent's URL answered {status}")
        return RunningElsewhere()


class RunningElsewhere:
    """A run that nobody here sees: its lease shows whether it lives."""

    is_beating = False
    said = 0

    def __init__(self) -> None:
        self._is_over = asyncio.Event()

    async def wait(self) -> Ended:
        """Wait until it was stopped: it does not end by itself."""
        await self._is_over.wait()
        return Ended()

    async def stop(self, grace: float, why: str = "") -> None:
        """Stop waiting: the agent learns from the hub that its lease is lost."""
        del grace, why
        self._is_over.set()

    def forget(self) -> None:
        """Do nothing: there is no record of it."""
