"""The server: the tables of tools and resources as the SDK serves them, for either transport."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.engine.identity import Principal
from dragoman.engine.reads.ask import find_agent
from dragoman.surfaces.mcp import resources
from dragoman.surfaces.mcp.desk import Desk, Room
from dragoman.surfaces.mcp.profiles import Profiles, Tools
from dragoman.surfaces.mcp.resources import Shelf
from dragoman.surfaces.mcp.tool import Denied, Told, Tool, Visit

NAME = "dragoman"
INSTRUCTIONS = (
    "A hub where agents share work. Loop: `claim` a task, do what its body says, `update` as you "
    "go (or `heartbeat` before `expiresAt`), then `complete`. If you need a person, `ask`. After "
    "`lease_lost` stop at once. After a restart, look into `inbox` before you claim."
)

Context = ServerRequestContext[Any, Any]
Reply = types.CallToolResult | types.InputRequiredResult
T = TypeVar("T")


class Caller(Struct, frozen=True):
    """The caller of a request."""

    principal: Principal | None = None
    """None: the provider knows."""
    profile: str = ""
    """The profile that was asked for."""


class Tables(Struct, frozen=True):
    """The tools, resources and profiles that a server offers."""

    tools: Tools
    shelves: Sequence[Shelf]
    profiles: Profiles


def build_server(
    room: Room, tables: Tables, caller: Callable[[Context], Caller], version: str
) -> Server[Any]:
    """Build a server; `find_caller` returns the caller of a request."""
    desks = _Desks(room, tables, caller)
    return Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=desks.schema,
        on_list_tools=desks.list_tools,
        on_call_tool=desks.call_tool,
        on_list_resources=desks.list_resources,
        on_list_resource_templates=desks.list_templates,
        on_read_resource=desks.read_resource,
    )


class _Desks:
    """Handlers of the requests to a server."""

    def __init__(self, room: Room, tables: Tables, caller: Callable[[Context], Caller]) -> None:
        self._room = room
        self._tools = tables.tools
        self._shelves = tables.shelves
        self._profiles = tables.profiles
        self._caller = caller

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool and tool.schema

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools that the caller sees."""
        del params
        seen = await self._seen(context)
        return types.ListToolsResult(tools=[_listed(tool) for tool in seen.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Run a tool that the caller sees."""
        seen = await self._seen(context)
        tool = seen.get(params.name)
        if tool is None:
            known = ", ".join(seen)
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:64]!a} here; known: {known}"
            )
        principal = self._caller(context).principal
        at_desk = partial(self._room.at_desk, principal)
        return _result(await tool.run(Visit(params.arguments or {}, at_desk, context)))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List a page of resources."""
        cursor = params.cursor if params else None
        return await self._look(
            context, lambda desk: resources.list_page(self._shelves, desk, cursor)
        )

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the templates of resources."""
        del context, params
        return resources.templates(self._shelves)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read the resource at a URI."""
        uri = str(params.uri)
        return await self._look(context, lambda desk: resources.read(self._shelves, desk, uri))

    async def _seen(self, context: Context) -> Tools:
        caller = self._caller(context)

        def seen(desk: Desk) -> Tools:
            actor = desk.actor
            known = find_agent(desk.hub.store, actor.name)
            return self._profiles.seen_by(actor.name, actor.role, known, caller.profile)

        return await self._look(context, seen)

    async def _look(self, context: Context, work: Callable[[Desk], T]) -> T:
        """Run a function that is not a tool: its errors are errors of the protocol."""
        try:
            return await self._room.at_desk(self._caller(context).principal, work, reads=True)
        except DragomanError as error:
            raise MCPError(types.INTERNAL_ERROR, f"{error.code}: {error.detail}") from error


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(read_only_hint=True) if tool.reads else None,
    )


def _result(reply: Told | Denied | Reply) -> Reply:
    """Build the result of a tool: structured, and the same as text for clients that need that."""
    if isinstance(reply, Told):
        text = msgspec.json.encode(reply.data).decode()
        return _content(text, dict(reply.data), is_error=False)
    if isinstance(reply, Denied):
        where = {"path": reply.path} if reply.path else {}
        said = dict(reply.reply or {"code": reply.code, "detail": reply.detail, **where})
        return _content(f"{reply.code}: {reply.detail}", said, is_error=True)
    return reply


def _content(text: str, data: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data, is_error=is_error
    )
