"""Coding agents that `dragoman connect` knows: where each keeps its MCP servers and instructions.

The forms of Claude Code 2.1, Codex CLI 0.169 and Gemini CLI 0.61 were tried, those of Cursor and
VS Code are from their documentation.
"""

import json
import tomllib
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct

from dragoman.text.json_edit import (
    add_item,
    find_value,
    remove_items,
    remove_member,
    set_member,
)
from dragoman.text.marked_block import MarkedBlock
from dragoman.text.strict_json import get_field

SERVER_NAME: Final = "dragoman"

Format = Literal["json", "toml"]

HookChoice = Literal["claude-code", "codex"]
"""Clients with hooks."""

_COMMON_EVENTS: Final = (
    *("SessionStart", "UserPromptSubmit", "PermissionRequest", "PostToolUse", "Stop", "SessionEnd"),
)


class AgentClient(Struct, frozen=True):
    """A coding agent and its files."""

    name: str
    title: str
    config: str
    """MCP configuration of a project, from its folder."""
    user_config: str
    """The same of a user, from the home directory; empty: there is none that we know."""
    servers: str
    """Key of the MCP servers in it."""
    instructions: str
    """File with the instructions of a project."""
    next_step: str
    """Next step of the person."""
    format: Format = "json"
    has_type: bool = False
    """A server says by which transport it is reached."""
    hooks: str = ""
    """File with the hooks of a project, and of a user from the home directory; empty: none."""
    hook_events: tuple[str, ...] = ()


CLIENTS: Final[Mapping[str, AgentClient]] = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code",
            "Claude Code",
            ".mcp.json",
            ".claude.json",
            "mcpServers",
            "CLAUDE.md",
            "start `claude` here and approve the server `dragoman`; `/mcp` shows it",
            has_type=True,
            hooks=".claude/settings.json",
            hook_events=(*_COMMON_EVENTS, "PostToolUseFailure", "Notification", "StopFailure"),
        ),
        AgentClient(
            "codex",
            "Codex CLI",
            ".codex/config.toml",
            ".codex/config.toml",
            "mcp_servers",
            "AGENTS.md",
            "start `codex` here and trust the folder, without which it reads no configuration of "
            "a project; `/mcp` shows the server",
            format="toml",
            hooks=".codex/hooks.json",
            hook_events=_COMMON_EVENTS,
        ),
        AgentClient(
            "gemini-cli",
            "Gemini CLI",
            ".gemini/settings.json",
            ".gemini/settings.json",
            "mcpServers",
            "GEMINI.md",
            "start `gemini` here and trust the folder; `/mcp` shows the server",
        ),
        AgentClient(
            "cursor",
            "Cursor",
            ".cursor/mcp.json",
            ".cursor/mcp.json",
            "mcpServers",
            "AGENTS.md",
            "open the folder in Cursor and switch the server on in its settings",
        ),
        AgentClient(
            "vscode",
            "VS Code",
            ".vscode/mcp.json",
            "",
            "servers",
            "AGENTS.md",
            "open the folder in VS Code and start the server: `MCP: List Servers`",
            has_type=True,
        ),
    )
}

Server = Mapping[str, Any]
"""A server of an MCP configuration: command, args, env."""


# --- configuration ----------------------------------------------------------------------------


class NotOurs(ValueError):
    """The configuration has a server of our name that is not ours, or cannot take one."""


_TOML_BLOCK: Final = MarkedBlock("# dragoman: begin", "# dragoman: end")

_MARK: Final = "CONNECTED_BY"
"""Variable of a server that we have written into JSON, which need not take comments."""
_WITH_LIST: Final = "dragoman connect, with the list of servers"
_INTO_LIST: Final = "dragoman connect"
"""Values of the mark: undo takes the list of servers back, too, or leaves it, maybe empty."""


def find_server(client: AgentClient, text: str) -> Server | None:
    """Our server in a configuration; NotOurs if another one has its name."""
    if client.format == "json":
        found = find_value(text, (client.servers, SERVER_NAME)) if text.strip() else None
    else:
        found = _toml_servers(client, text).get(SERVER_NAME)
    if found is not None and not _is_ours(found):
        raise NotOurs(
            f"it has a server `{SERVER_NAME}` that does not run `dragoman mcp`: rename or remove it"
        )
    return found


def add_server(client: AgentClient, text: str, server: Server) -> str:
    """Add our server to a configuration, or change it there."""
    known = find_server(client, text)
    if client.format == "json":
        if client.has_type:
            server = {"type": "stdio", **server}
        text = text if text.strip() else "{}\n"
        if known is not None and known == server:
            return text
        if known is not None:
            mark = _read_mark(client, known)
        else:
            mark = _WITH_LIST if find_value(text, (client.servers,)) is None else _INTO_LIST
        marked = {**server, "env": {**server.get("env", {}), _MARK: mark}}
        return text if known == marked else set_member(text, _path(client), marked)
    if known is not None and _TOML_BLOCK.find(text) is None:
        raise _not_written(client)
    edited = _TOML_BLOCK.put(text, _toml_table(client, server))
    try:
        tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        raise NotOurs(f"its `{client.servers}` are no table that can be extended") from None
    return edited


def remove_server(client: AgentClient, text: str) -> str:
    """Remove our server from a configuration."""
    known = find_server(client, text)
    if known is None:
        return text
    if client.format == "json":
        is_list_ours = _read_mark(client, known) == _WITH_LIST
        return remove_member(text, _path(client), empties=is_list_ours)
    return _TOML_BLOCK.remove(text)


def _read_mark(client: AgentClient, server: Server) -> str:
    """Read the mark of a server; NotOurs for one that was written by hand."""
    mark = get_field(get_field(server, "env"), _MARK)
    if mark not in (_WITH_LIST, _INTO_LIST):
        raise _not_written(client)
    return mark


def _not_written(client: AgentClient) -> NotOurs:
    return NotOurs(
        f"{client.servers}.{SERVER_NAME} was not written by `dragoman connect`: rename or remove it"
    )


def _path(client: AgentClient) -> tuple[str, ...]:
    return client.servers, SERVER_NAME


def _is_ours(server: Any) -> bool:
    arguments = get_field(server, "args")
    return isinstance(arguments, list) and "mcp" in arguments


def _toml_servers(client: AgentClient, text: str) -> Mapping[str, Any]:
    try:
        servers = tomllib.loads(text).get(client.servers, {})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"this is not TOML: {error}") from None
    return cast(Mapping[str, Any], servers) if isinstance(servers, dict) else {}


def _toml_table(client: AgentClient, server: Server) -> str:
    """A table of TOML; its strings and arrays of strings are written as in JSON."""
    lines = [f"[{client.servers}.{SERVER_NAME}]"]
    for key, value in server.items():
        if isinstance(value, dict):
            parts = cast(Mapping[str, str], value)
            members = ", ".join(f"{name} = {json.dumps(part)}" for name, part in parts.items())
            lines.append(f"{key} = {{ {members} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines)


# --- hooks ------------------------------------------------------------------------------------

_HOOK_SECONDS: Final = 10
_LAST_HOOK_SECONDS: Final = 3
"""Codex waits no longer at the end of a session."""


def add_hooks(client: AgentClient, text: str, command: str) -> str:
    """Add our hooks to a file of hooks, or change them there."""
    text = text if text.strip() else "{}\n"
    edited = remove_hooks(client, text)
    for event in client.hook_events:
        seconds = _LAST_HOOK_SECONDS if event == "SessionEnd" else _HOOK_SECONDS
        handler = {"type": "command", "command": command, "timeout": seconds}
        edited = add_item(edited or "{}\n", ("hooks", event), {"hooks": [handler]})
    return text if find_value(edited, ()) == find_value(text, ()) else edited


def remove_hooks(client: AgentClient, text: str) -> str:
    """Remove our hooks from a file of hooks."""
    if not text.strip():
        return text
    for event in find_value(text, ("hooks",)) or ():
        text = remove_items(text, ("hooks", event), lambda group: _runs_hook(client, group))
    return text


def _runs_hook(client: AgentClient, group: Any) -> bool:
    handlers = get_field(group, "hooks")
    commands = [get_field(handler, "command") for handler in handlers or ()]
    return any(f" hook {client.name} " in f"{command} " for command in commands)


# --- instructions -----------------------------------------------------------------------------

INSTRUCTIONS: Final = """\
## Tasks

The work of this project is shared through the hub `dragoman`, whose tools you have.

1. Begin with `inbox`: what you hold, what is ready for you, letters to you.
2. `claim` takes the next task, and its text says what to do. `nothing_ready`: there is no work.
3. Work on that task only. `update` logs what others should know.
4. You found other work? `create` a task for it, and go on with yours.
5. You cannot decide? `ask`, with the choices that you see, and stop working on the task.
6. Done? `complete`, with what you did and how you checked it; it has outcomes for less than done.
7. You cannot go on? `release`, with the reason.
8. `lease_lost` means that the task is somebody else's by now: stop at once."""

INSTRUCTIONS_BLOCK: Final = MarkedBlock("<!-- dragoman: begin -->", "<!-- dragoman: end -->")
