"""`dragoman connect`: write the configuration of a coding agent, so that it finds the hub."""

import difflib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from shlex import join as shlex_join
from shlex import quote
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.agent import parse_token
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.files.errors import BadFile
from dragoman.surfaces.cli.agent_clients import (
    CLIENTS,
    INSTRUCTIONS,
    INSTRUCTIONS_BLOCK,
    AgentClient,
    Server,
    add_hooks,
    add_server,
    find_server,
    remove_hooks,
    remove_server,
)
from dragoman.surfaces.cli.caller import absolute_path
from dragoman.surfaces.cli.command import AgentOption, CliCommand, argument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.render import Screen
from dragoman.system.git import would_commit
from dragoman.system.own_command import run_own_command
from dragoman.system.safe_fs import read_regular, write_atomically

ClientChoice = Literal["claude-code", "codex", "gemini-cli", "cursor", "vscode"]

_MAX_BYTES: Final = 4 * 1024 * 1024
_TOKEN_FILE: Final = "dragoman.token"  # noqa: S105  its name
_ENDED_TOKEN_CODES: Final = ("token_revoked", "token_expired", "unauthenticated")
_NEW_TOKEN: Final = "(a new token)"  # noqa: S105  it stands for one


def connect(
    context: CommandContext,
    client: Annotated[ClientChoice, argument("CLIENT", "The coding agent.")],
    *,
    agent: AgentOption = "",
    write: Annotated[bool, option("--write", "", "Write it; else it is only shown.")] = False,
    undo: Annotated[bool, option("--undo", "", "Take back what `connect` has written.")] = False,
    hooks: Annotated[
        bool,
        option("--hooks", "", "Hooks, too: its sessions and questions in `status`, its letters."),
    ] = False,
    user: Annotated[
        bool, option("--user", "", "For all projects of this user, without instructions.")
    ] = False,
) -> CommandResult:
    """Connect a coding agent, such as Claude Code, to this hub.

    Shows what it would write: its MCP configuration, and ten lines of instructions; --write writes
    it, --undo takes exactly that back. It is for the project that you stand in. The agent works
    under its own name, or that of --agent. Where DRAGOMAN_URL or --url names a hub, the agent gets
    a token of its own for it, which --undo revokes.

    \b
    Examples:
      dragoman connect claude-code
      dragoman connect codex --agent ada --hooks --write
      dragoman connect codex --undo --write
    """
    known = CLIENTS[client]
    if user and not known.user_config:
        raise_usage_error(f"{known.title} has no configuration of a user that is a file")
    if hooks and not known.hooks:
        raise_usage_error(f"{known.title} has no hooks that are known here")
    files = _ClientFiles(known, _project_folder(), for_user=user)
    hooks = hooks or _has_hooks(files)
    name = context.acting_agent(agent) or client
    if undo:
        edits = _undo_edits(files)
    else:
        edits = _edits(files, name, _server(context, files, name, []), with_hooks=hooks)
        if write:  # all files can be edited: now a token can be made
            private = [files.config, *([files.token] if hooks else [])]
            server = _server(context, files, name, private)
            edits = _edits(files, name, server, with_hooks=hooks)
    changed = [edit for edit in edits if (edit.before or "") != edit.after]
    if write:
        for edit in changed:
            edit.write()
    lines = [*files.remarks, *_revoke_ended_token(known, edits[0], revoke=write)]
    if write and not undo:
        lines.append(f"next: {known.next_step}")
    return _result(known, name, changed, lines, is_written=write)


class _ClientFiles:
    """Paths of a client's files, for a project or for a user."""

    def __init__(self, client: AgentClient, project: Path, *, for_user: bool) -> None:
        root = Path.home() if for_user else project
        self.client = client
        self.project = project
        self.config = root / (client.user_config if for_user else client.config)
        self.hooks = root / client.hooks
        self.token = self.hooks.with_name(_TOKEN_FILE)
        self.instructions = None if for_user else _instructions_file(client, project)
        self.remarks: list[str] = []
        if self.instructions and self.instructions.is_symlink():
            self.remarks.append(
                f"{self.instructions} stays as it is: it is a link, and leads to no file beside "
                "it; edit that one yourself"
            )
            self.instructions = None


def _instructions_file(client: AgentClient, project: Path) -> Path:
    """File with the instructions of a project, or the one beside it that it is a link to."""
    path = project / client.instructions
    target = path.parent / path.readlink() if path.is_symlink() else path
    return target if target.parent == path.parent else path


def _edits(files: _ClientFiles, name: str, server: Server, *, with_hooks: bool) -> list["_File"]:
    """Edits that connect a client."""
    client = files.client
    edits = [_File.edit(files.config, lambda text: add_server(client, text, server))]
    if files.instructions:
        edits.append(
            _File.edit(files.instructions, lambda text: INSTRUCTIONS_BLOCK.put(text, INSTRUCTIONS))
        )
    if with_hooks:
        token = _token_of(server)
        if token:
            edits.append(_File.edit(files.token, lambda _: f"{token}\n", is_private=True))
        command = _hook_command(client, name, server, files.token)
        edits.append(_File.edit(files.hooks, lambda text: add_hooks(client, text, command)))
    return edits


def _result(
    client: AgentClient,
    name: str,
    changed: list["_File"],
    lines: list[str],
    *,
    is_written: bool,
) -> CommandResult:
    data = {
        "client": client.name,
        "agent": name,
        "written": is_written,
        "files": [str(edit.path) for edit in changed],
        "remarks": lines,
    }

    def show(screen: Screen) -> None:
        if not changed:
            screen.line("nothing to do: it is so already")
        for edit in changed:
            if is_written:
                done = "wrote" if edit.after else "removed"
                screen.line(f"{done} {edit.path}")
            else:
                screen.line((f"{edit.path}", "bold"))
                for line in edit.diff():
                    screen.line(f"  {line}")
        for line in lines:
            screen.line(line)
        if changed and not is_written:
            screen.line("nothing was written: add --write")

    return CommandResult(data, show)


def _project_folder() -> Path:
    """The nearest folder upwards with a git repository, else the working directory."""
    here = Path.cwd()
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), here)


def _has_hooks(files: _ClientFiles) -> bool:
    """Tell whether the client has our hooks, which follow its configuration."""
    if not files.client.hooks:
        return False
    edit = _File.edit(files.hooks, lambda text: remove_hooks(files.client, text))
    return (edit.before or "") != edit.after


def _undo_edits(files: _ClientFiles) -> list["_File"]:
    """Edits that take back what `connect` has written."""
    client = files.client
    edits = [_File.edit(files.config, lambda text: remove_server(client, text))]
    others = (
        other
        for other in CLIENTS.values()
        if other != client and _instructions_file(other, files.project) == files.instructions
    )
    if files.instructions and not any(_is_connected(other, files.project) for other in others):
        edits.append(_File.edit(files.instructions, INSTRUCTIONS_BLOCK.remove))
    if client.hooks:
        edits.append(_File.edit(files.hooks, lambda text: remove_hooks(client, text)))
        edits.append(_File.edit(files.token, lambda _: ""))
    return edits


def _is_connected(client: AgentClient, project: Path) -> bool:
    """Tell whether another client that reads the same instructions has our server."""
    with suppress(OSError, ValueError, DragomanError):
        file = _File.edit(project / client.config, lambda text: text)
        return find_server(client, file.after) is not None
    return False


# --- server -----------------------------------------------------------------------------------


def _server(
    context: CommandContext, files: _ClientFiles, name: str, private: Sequence[Path]
) -> Server:
    """The server to write: `dragoman mcp` for this data directory, or for the hub of a URL.

    `private`: files that will hold a token; none: nothing is written.
    """
    url = environment().get("DRAGOMAN_URL", "")
    program = "dragoman" if shutil.which("dragoman") else sys.executable
    command = [] if program == "dragoman" else ["-m", "dragoman"]
    if url and context.shared.data is None:
        token = _known_token(files, url, name) or _NEW_TOKEN
        for path in private:
            _check_not_committed(path)
        if private and token == _NEW_TOKEN:
            token = _issue_token(name)
        env = {"DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token}
        certificate = environment().get("DRAGOMAN_CERT", "")
        env |= {"DRAGOMAN_CERT": certificate} if certificate else {}
        return {"command": program, "args": [*command, "mcp"], "env": env}
    with context.open_readonly():
        pass  # a directory that is not there, or no one's, is told now
    data = str(absolute_path(context.data))
    if private:
        _run_here(context, "agent", "add", name, "--no-token")
    return {"command": program, "args": [*command, "--data", data, "mcp", "--as", name]}


def _token_of(server: Server) -> str:
    return server.get("env", {}).get("DRAGOMAN_TOKEN", "")


def _hook_command(client: AgentClient, name: str, server: Server, token_file: Path) -> str:
    """Command line of the hooks; a client takes a failed one for a refusal, so it never fails.

    The list of processes shows it, so that a token stands in a file.
    """
    words = [server["command"], *takewhile(lambda word: word != "mcp", server["args"])]
    if _token_of(server):
        words += ["--url", server["env"]["DRAGOMAN_URL"], "--token-file", str(token_file)]
    command = shlex_join([*words, "hook", client.name, "--as", name])
    certificate = server.get("env", {}).get("DRAGOMAN_CERT", "")
    variable = f"DRAGOMAN_CERT={quote(certificate)} " if certificate else ""
    return f"{variable}{command} 2>/dev/null || true"


def _known_token(files: _ClientFiles, url: str, name: str) -> str:
    """Token of this agent for this hub that the configuration has already."""
    text = _File.edit(files.config, lambda text: text).after
    try:
        env = _variables(files.client, text)
    except ValueError as error:
        raise _refuse(files.config, f"{error}") from error
    claim = parse_token(env.get("DRAGOMAN_TOKEN", ""))
    is_known = claim is not None and (env.get("DRAGOMAN_URL"), claim.agent) == (url, name)
    return env["DRAGOMAN_TOKEN"] if is_known else ""


def _variables(client: AgentClient, text: str) -> Mapping[str, str]:
    """Variables of our server in a configuration: the hub, and the token for it."""
    return (find_server(client, text) or {}).get("env", {})


def _revoke_ended_token(client: AgentClient, config: "_File", *, revoke: bool) -> Iterator[str]:
    """Revoke the token that an edit takes out of a configuration, as its bearer; yield what became
    of it, if there is one."""
    before, after = _variables(client, config.before or ""), _variables(client, config.after)
    claim = parse_token(before.get("DRAGOMAN_TOKEN", ""))
    if claim is None or before["DRAGOMAN_TOKEN"] == after.get("DRAGOMAN_TOKEN"):
        return
    its_token = f"its token for {before.get('DRAGOMAN_URL', 'the hub')}"
    if not revoke:
        yield f"{its_token} is revoked then"
        return
    words = ("agent", "revoke", claim.agent, "--token", claim.id)
    others = {name: value for name, value in environment().items() if name != "DRAGOMAN_DATA"}
    try:
        _run(*words, variables={**others, **before})
    except Refused as refused:
        if refused.code in _ENDED_TOKEN_CODES:
            yield f"{its_token} was not good any more"
        else:
            advice = shlex_join(("dragoman", *words))
            yield f"{its_token} stays good until `{advice}`: {refused.detail}"
    else:
        yield f"revoked {its_token}"


def _issue_token(name: str) -> str:
    added = _run("agent", "add", name)
    return str(added.get("token") or _run("agent", "token", name)["token"])


def _run_here(context: CommandContext, *words: str) -> None:
    options = ["--data", str(absolute_path(context.data))]
    if context.shared.store:
        options += ["--store", context.shared.store]
    _run(*options, *words)


def _run(*words: str, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run another command, which goes to the hub that is meant, however it is reached."""
    done = run_own_command((*words, "--json"), variables or environment())
    try:
        answer = json.loads(done.out)
    except ValueError:
        answer = {"ok": False, "code": "failed", "detail": done.err.decode(errors="replace")}
    if not answer["ok"]:
        raise Refused(Refusal(str(answer["code"]), str(answer["detail"])))
    return answer


def _check_not_committed(config: Path) -> None:
    """Refuse to write a token where git would commit it."""
    if would_commit(config, environment()):
        raise Refused(
            Refusal(
                "policy_violation",
                f"{config} would hold a token, and git would commit it: add it to .gitignore, or "
                "connect for yourself alone with --user",
            )
        )


# --- files ------------------------------------------------------------------------------------


class _File(Struct, frozen=True):
    """A file of the client's, before and after; no text: no file."""

    path: Path
    before: str | None
    after: str
    mode: int

    @classmethod
    def edit(cls, path: Path, edit: Callable[[str], str], *, is_private: bool = False) -> "_File":
        """Read a file and edit its text; what is not ours to change is refused. One that is private
        or holds a token is for its owner alone."""
        before, mode = _read(path)
        try:
            after = edit(before or "")
        except ValueError as error:
            raise _refuse(path, f"{error}") from error
        holds_token = is_private or "DRAGOMAN_TOKEN" in after
        is_emptied = after != before and _is_empty(after)
        return cls(
            path,
            before,
            "" if is_emptied else after,
            mode & 0o700 if holds_token else mode,
        )

    def write(self) -> None:
        """Write it, with the mode that it had; remove one that holds nothing any more."""
        if not self.after:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds other files
                if _is_of_client(self.path.parent):
                    self.path.parent.rmdir()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, self.after.encode(), mode=self.mode)
        self.path.chmod(self.mode)

    def diff(self) -> Iterator[str]:
        """Lines that are added and removed, with those around them."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(), self.after.splitlines(), lineterm="", n=2
        )
        for line in lines:
            if not line.startswith(("---", "+++", "@@")):
                yield line


def _is_empty(text: str) -> bool:
    return text.strip() in ("", "{}")


def _is_of_client(folder: Path) -> bool:
    """Tell whether a folder is one of a client's own, such as `.codex`."""
    return folder.name.startswith(".")


def _read(path: Path) -> tuple[str | None, int]:
    """Text and mode of a file; none if it is not there."""
    if _is_of_client(path.parent) and path.parent.is_symlink():
        raise _refuse(path, f"{path.parent} is a link")
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None, 0o644
    if stat.S_ISLNK(found.st_mode):
        raise _refuse(path, "it is a link: edit the file that it leads to yourself")
    if not stat.S_ISREG(found.st_mode):
        raise _refuse(path, "it is no file")
    if found.st_uid != os.geteuid():
        raise _refuse(path, "it belongs to another user")
    if found.st_size > _MAX_BYTES:
        raise _refuse(path, "it is too large for a configuration")
    try:
        return read_regular(path, follow_links=False).decode(), stat.S_IMODE(found.st_mode)
    except UnicodeDecodeError:
        raise _refuse(path, "it is not UTF-8") from None


def _refuse(path: Path, reason: str) -> BadFile:
    return BadFile(f"{path} stays as it is: {reason}")


COMMANDS = (CliCommand("connect", connect),)
