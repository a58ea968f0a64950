"""Sizes of the tool lists of MCP servers: `uv run python -m bench.tool_lists`, a line for each.

uv fetches the others, which are not ours to depend on, into environments of their own.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

_VERSION: Final = "2025-11-25"

_MODEL_READS: Final = ("name", "description", "inputSchema")
"""Parts of a tool that a client gives to its model."""


class ToolList(Struct, frozen=True):
    """The tools that a server lists."""

    tools: int
    answer_bytes: int
    """The answer to `tools/list`, as it was sent."""
    model_bytes: int
    """Names, descriptions and arguments, without blanks: what a model reads."""


def measure_tool_list(command: Sequence[str], folder: Path) -> ToolList:
    """Start a server in a folder, on standard input and output, and ask for its tools."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    ) as server:
        assert server.stdin is not None, "it is a pipe"
        assert server.stdout is not None, "it is a pipe"

        def send(method: str, **more: Any) -> None:
            assert server.stdin is not None, "it is a pipe"
            message = {"jsonrpc": "2.0", "method": method, **more}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()

        client = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}
        send("initialize", id=1, params=hello)
        send("notifications/initialized")
        send("tools/list", id=2)
        answers = ((line, json.loads(line)) for line in server.stdout)
        line, answer = next(one for one in answers if one[1].get("id") == 2)
        server.stdin.close()
    tools = answer["result"]["tools"]
    read = [{key: tool[key] for key in _MODEL_READS if key in tool} for tool in tools]
    compact = json.dumps(read, separators=(",", ":"), ensure_ascii=False)
    return ToolList(len(tools), len(line), len(compact.encode()))


def own_command(data: str) -> Sequence[str]:
    """Start our server on a data directory."""
    return (sys.executable, "-m", "dragoman", "--data", data, "mcp", "--as", "ada")


_AGENT_MAIL: Final = "from mcp_agent_mail.app import build_mcp_server as b; b().run()"

_PEERS: Final = {
    "beads-mcp": ("uvx", "--quiet", "beads-mcp"),
    "mcp-agent-mail": (
        *("uv", "run", "--quiet", "--isolated", "--no-project", "--with", "mcp-agent-mail"),
        *("python", "-c", _AGENT_MAIL),
    ),
}


def main() -> None:
    """Print a line for each server."""
    with tempfile.TemporaryDirectory() as data:
        subprocess.run((*own_command(data)[:-3], "init"), check=True, stdout=subprocess.DEVNULL)
        for name, command in {"dragoman": own_command(data), **_PEERS}.items():
            found = measure_tool_list(command, Path(data))
            sizes = f"{found.answer_bytes:,} bytes, {found.model_bytes:,} for a model"
            print(f"{name}: {found.tools} tools, {sizes}")


if __name__ == "__main__":
    main()
