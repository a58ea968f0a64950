"""The table of tools: our own, and those that dialects bring along."""

from collections.abc import Sequence

from dragoman.engine.operation import Dialect
from dragoman.surfaces.mcp import look, talk, work
from dragoman.surfaces.mcp.tool import Tool


def build_tools(dialects: Sequence[Dialect], extra: Sequence[Tool] = ()) -> dict[str, Tool]:
    """Return every tool by its name, in the order in which they are listed; names are unique."""
    tools = (*work.WORK_TOOLS, *look.READ_TOOLS, *talk.dialect_tools(dialects), *extra)
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools):
        raise ValueError(f"two tools have one name among {', '.join(tool.name for tool in tools)}")
    return by_name
