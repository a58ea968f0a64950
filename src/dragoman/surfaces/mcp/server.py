"""MCP server: serves the tools and resources with the SDK, for either transport."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from dragoman.core.errors import DragomanError
from dragoman.engine.auth import Principal
from dragoman.engine.queries.agents import find_agent
from dragoman.surfaces.mcp import resources
from dragoman.surfaces.mcp.context import ContextProvider, HubContext
from dragoman.surfaces.mcp.tool import Tool, ToolCall, ToolError, ToolResult
from dragoman.surfaces.mcp.tools import ToolsByName, visible_tools

NAME = "dragoman"
INSTRUCTIONS = (
    "A hub where agents share work. Loop: `claim` a task, do what its body says, `update` as you "
    "go (or `heartbeat` before `expiresAt`), then `complete`. If you need a person, `ask`. After "
    "`lease_lost` stop at once. After a restart, look into `inbox` before you claim."
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
    return Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


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

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool and tool.schema

    async def list_tools(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools that the caller sees."""
        del params
        visible = await self._visible_tools(context)
        return types.ListToolsResult(tools=[_describe_tool(tool) for tool in visible.values()])

    async def call_tool(
        self, context: McpContext, params: types.CallToolRequestParams
    ) -> SdkResult:
        """Run a tool that the caller sees."""
        visible = await self._visible_tools(context)
        tool = visible.get(params.name)
        if tool is None:
            known = ", ".join(visible)
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:64]!a} here; known: {known}"
            )
        run_in_context = partial(self._provider.run, self._find_principal(context))
        return _to_call_result(
            await tool.run(ToolCall(params.arguments or {}, run_in_context, context))
        )

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

    async def _visible_tools(self, context: McpContext) -> ToolsByName:
        def find_visible(context: HubContext) -> ToolsByName:
            known = find_agent(context.hub.store, context.actor.name)
            return visible_tools(self._tools, context.actor.role, known)

        return await self._read_in_context(context, find_visible)

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
