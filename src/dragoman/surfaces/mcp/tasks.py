"""Tasks extension of MCP: a call that waits is answered with a task, which its client polls.

Each poll looks once for the outcome and nothing runs in between, so a client that has gone claims
nothing. Tasks are in memory: after a restart of the hub they are unknown, and the call is repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from mcp import types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.auth import Principal
from dragoman.surfaces.mcp.tool import Pending, ToolCall
from dragoman.system.clock import new_id

EXTENSION: Final = "io.modelcontextprotocol/tasks"

MAX_TASKS_PER_CALLER: Final = 32
"""Tasks that are kept for one caller; a further call is answered at the end of its wait."""

KEPT_MS: Final = 300_000
"""Time for which a task is kept after the end of its wait."""

_POLL_INTERVAL_MS: Final = 1_000

_RETRY_S: Final = 0.5
"""Time between two looks of a call that is answered at the end of its wait."""

Look = Callable[[], Awaitable[types.CallToolResult | types.InputRequiredResult | Pending]]
"""Looks for the outcome of a call."""


class TaskParams(types.RequestParams):
    """Parameters of a request about a task."""

    task_id: str


def declares_tasks(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client has declared the extension with this request."""
    declared = context.session.client_capabilities
    return (
        context.protocol_version in MODERN_PROTOCOL_VERSIONS
        and declared is not None
        and EXTENSION in (declared.extensions or {})
    )


def check_task_request(context: ServerRequestContext[Any, Any], task_id: str) -> None:
    """Check that the client has declared the extension, and named the task in the header."""
    if not declares_tasks(context):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"{context.method} is for clients that declare the extension {EXTENSION}",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )
    if context.request is not None:
        named = context.request.headers.get(MCP_NAME_HEADER)
        if decode_header_value(named) != task_id:
            raise MCPError(
                types.HEADER_MISMATCH,
                f"the header {MCP_NAME_HEADER} has to name the task, as taskId does",
            )


async def wait_for_outcome(pending: Pending, call: ToolCall) -> Any:
    """Wait for the outcome of a call whose client takes no task."""
    loop = asyncio.get_running_loop()
    end = loop.time() + pending.seconds
    found: Any = pending
    while isinstance(found, Pending) and loop.time() < end:
        await asyncio.sleep(_RETRY_S)
        found = await pending.retry(call)
    return found.outcome if isinstance(found, Pending) else found


class CallTask:
    """A call that waits, as its client sees it."""

    def __init__(self, owner: Principal | None, call: ToolCall, pending: Pending, now: int) -> None:
        self.id = new_id()
        self.owner = owner
        self.arguments = call.arguments
        self.retry = pending.retry
        self._created_at = self._updated_at = now
        self._ends_at = now + int(pending.seconds * 1_000)
        self._status: Literal["working", "completed", "cancelled", "failed"] = "working"
        self._ending: dict[str, Any] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def expires_at(self) -> int:
        """The time after which it is unknown."""
        return self._ends_at + KEPT_MS

    def show(self) -> dict[str, Any]:
        """Show it with its outcome, if that is there."""
        return {
            "taskId": self.id,
            "status": self._status,
            "createdAt": to_rfc3339(self._created_at),
            "lastUpdatedAt": to_rfc3339(self._updated_at),
            "ttlMs": self.expires_at - self._created_at,
            "pollIntervalMs": _POLL_INTERVAL_MS,
            **self._ending,
        }

    def cancel(self, now: int) -> None:
        """End the wait; a look that is under way may still find the outcome, which counts then."""
        if self._status == "working":
            self._end(now, "cancelled")

    async def look(self, look: Look, now: int) -> None:
        """Look for the outcome if it waits.

        Polls at the same time share one look, so that they claim one task; and it goes on without
        a client that hangs up meanwhile, which gets the outcome with its next poll.
        """
        if self._status == "working" and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look_once(look, now))
        if self._looking is not None:
            await asyncio.shield(self._looking)

    async def _look_once(self, look: Look, now: int) -> None:
        try:
            found = await look()
        except MCPError as error:
            fault = error.error.model_dump(mode="json", exclude_none=True)
            self._end(now, "failed", statusMessage=error.error.message, error=fault)
            return
        if not isinstance(found, Pending):
            shown = found.model_dump(by_alias=True, mode="json", exclude_none=True)
            self._end(now, "completed", result=shown)

    def is_over(self, now: int) -> bool:
        """True if it is not waited for any longer."""
        return now >= self._ends_at

    def _end(
        self, now: int, status: Literal["completed", "cancelled", "failed"], **ending: Any
    ) -> None:
        self._status, self._updated_at, self._ending = status, now, ending


class CallTasks:
    """The tasks of every caller, until they expire."""

    def __init__(self) -> None:
        self._tasks: dict[str, CallTask] = {}

    def create(
        self, owner: Principal | None, call: ToolCall, pending: Pending, now: int
    ) -> CallTask | None:
        """Create a task for a call that waits; None: its caller has as many as it may have."""
        self._drop_expired(now)
        if sum(task.owner == owner for task in self._tasks.values()) >= MAX_TASKS_PER_CALLER:
            return None
        task = CallTask(owner, call, pending, now)
        self._tasks[task.id] = task
        return task

    def find(self, owner: Principal | None, task_id: str, now: int) -> CallTask:
        """Find a task of this caller; those of others are as unknown as one that has expired."""
        self._drop_expired(now)
        task = self._tasks.get(task_id)
        if task is None or task.owner != owner:
            raise MCPError(
                types.INVALID_PARAMS,
                f"there is no task {task_id[:64]!a} of yours: it has expired, or the hub was "
                "restarted; repeat the call",
            )
        return task

    def _drop_expired(self, now: int) -> None:
        self._tasks = {key: task for key, task in self._tasks.items() if now < task.expires_at}
