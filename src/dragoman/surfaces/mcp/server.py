"""MCP server: serves the tools and resources with the SDK, for either transport."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from dragoman.core.agent import AgentRecord
from dragoman.core.base import Role
from dragoman.core.errors import DragomanError
from dragoman.engine.auth import Principal
from dragoman.engine.queries.agents import find_agent
from dragoman.surfaces.mcp import resources
from dragoman.surfaces.mcp.context import ContextProvider, HubContext
from dragoman.surfaces.mcp.tasks import (
    EXTENSION,
    CallTask,
    CallTasks,
    TaskParams,
    check_task_request,
    declares_tasks,
    wait_for_outcome,
)
from dragoman.surfaces.mcp.tool import Pending, Tool, ToolCall, ToolError, ToolResult
from dragoman.surfaces.mcp.tools import ToolsByName, callable_tools, listed_tools

NAME = "dragoman"
INSTRUCTIONS = (
    "A hub where agents share work. Loop: `claim` a task, do what its body says, `update` as you "
    "go, then `complete`. If you need a person, `ask`. Work that you find is a task to `create`. "
    "After `lease_lost` stop at once. After a restart, look into `inbox` before you claim."
)

McpContext = ServerRequestContext[Any, Any]
SdkResult = types.CallToolResult | types.InputRequiredResult
T = TypeVar("T")


FindPrincipal = Callable[[McpContext], Principal | None]
"""Returns the caller of a request; None: the provider knows."""


def build_server(
    provider: ContextProvider,
    tools: ToolsByName,
    find_principal: FindPrincipal,
    version: str,
) -> Server[Any]:
    """Build a server of these tools."""
    handlers = _Handlers(provider, tools, find_principal)
    server: Server[Any] = Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.schema,
        on_list_tools=handlers.list_tools,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    # The constructor's type knows no tasks as results.
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("tasks/get", TaskParams, handlers.get_task)
    server.add_request_handler("tasks/update", TaskParams, handlers.update_task)
    server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel_task)
    server.extensions[EXTENSION] = {}
    return server


class _Handlers:
    """Handlers of the requests to a server."""

    def __init__(
        self,
        provider: ContextProvider,
        tools: ToolsByName,
        find_principal: FindPrincipal,
    ) -> None:
        self._provider = provider
        self._tools = tools
        self._find_principal = find_principal
        self._tasks = CallTasks()

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool and tool.schema

    async def list_tools(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools that the caller is shown."""
        del params
        listed = await self._select_tools(context, listed_tools)
        return types.ListToolsResult(tools=[*map(_describe_tool, listed.values())])

    async def call_tool(
        self, context: McpContext, params: types.CallToolRequestParams
    ) -> SdkResult | dict[str, Any]:
        """Run a tool that the caller may call, listed or not; a call that waits may be a task."""
        tools = await self._select_tools(context, callable_tools)
        tool = tools.get(params.name)
        if tool is None:
            known = ", ".join(tools)
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:64]!a} here; known: {known}"
            )
        call = self._make_call(context, params.arguments or {})
        outcome = await tool.run(call)
        if isinstance(outcome, Pending):
            if declares_tasks(context):
                owner, now = self._find_principal(context), await self._read_time(context)
                task = self._tasks.create(owner, call, outcome, now)
                if task is not None:
                    return task.show() | {"resultType": "task"}
            outcome = await wait_for_outcome(outcome, call)
        return _to_call_result(outcome)

    async def get_task(self, context: McpContext, params: TaskParams) -> dict[str, Any]:
        """Look for the outcome of a call that waits; return its task."""
        task, now = await self._find_task(context, params)
        call = self._make_call(context, task.arguments)

        async def look() -> SdkResult | Pending:
            found = await task.retry(call)
            if isinstance(found, Pending):
                return _to_call_result(found.outcome) if task.is_over(now) else found
            return _to_call_result(found)

        await task.look(look, now)
        return task.show()

    async def update_task(self, context: McpContext, params: TaskParams) -> types.EmptyResult:
        """Acknowledge input for a task; it is ignored, because no task asks for any."""
        await self._find_task(context, params)
        return types.EmptyResult()

    async def cancel_task(self, context: McpContext, params: TaskParams) -> types.EmptyResult:
        """End the wait of a call."""
        task, now = await self._find_task(context, params)
        task.cancel(now)
        return types.EmptyResult()

    async def list_resources(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the newest resources; others are found by their templates."""
        del params
        return await self._read_in_context(context, resources.list_resources)

    async def list_templates(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the templates of resources."""
        del context, params
        return resources.list_templates()

    async def read_resource(
        self, context: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read the resource at a URI."""
        uri = str(params.uri)
        return await self._read_in_context(
            context, lambda hub_context: resources.read_resource(hub_context, uri)
        )

    def _make_call(self, context: McpContext, arguments: Mapping[str, Any]) -> ToolCall:
        return ToolCall(
            arguments, partial(self._provider.run, self._find_principal(context)), context
        )

    async def _find_task(self, context: McpContext, params: TaskParams) -> tuple[CallTask, int]:
        """Find the task that a request names; return it and the hub's time."""
        check_task_request(context, params.task_id)
        now = await self._read_time(context)
        return self._tasks.find(self._find_principal(context), params.task_id, now), now

    async def _read_time(self, context: McpContext) -> int:
        return await self._read_in_context(context, lambda hub_context: hub_context.now)

    async def _select_tools(
        self,
        context: McpContext,
        select: Callable[[ToolsByName, Role, AgentRecord | None], ToolsByName],
    ) -> ToolsByName:
        def select_for_caller(context: HubContext) -> ToolsByName:
            known = find_agent(context.hub.store, context.actor.name)
            return select(self._tools, context.actor.role, known)

        return await self._read_in_context(context, select_for_caller)

    async def _read_in_context(self, context: McpContext, work: Callable[[HubContext], T]) -> T:
        """Run a function that is not a tool: its errors are errors of the protocol."""
        try:
            return await self._provider.run(self._find_principal(context), work, reads=True)
        except DragomanError as error:
            raise MCPError(types.INTERNAL_ERROR, f"{error.code}: {error.detail}") from error


def _describe_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(read_only_hint=True) if tool.is_read_only else None,
    )


def _to_call_result(result: ToolResult | ToolError | SdkResult) -> SdkResult:
    """Build the result of a tool: structured, and the same as text for clients that need that."""
    if isinstance(result, ToolResult):
        text = msgspec.json.encode(result.data).decode()
        return _make_result(text, dict(result.data), is_error=False)
    if isinstance(result, ToolError):
        where = {"path": result.path} if result.path else {}
        data = dict(result.reply or {"code": result.code, "detail": result.detail, **where})
        return _make_result(f"{result.code}: {result.detail}", data, is_error=True)
    return result


def _make_result(text: str, data: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data, is_error=is_error
    )
