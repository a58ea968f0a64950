"""`connect`: the files of each client, written and taken back, and those that are refused."""

import asyncio
import json
import os
import subprocess
import tomllib
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from dragoman.surfaces.cli.agent_clients import CLIENTS, INSTRUCTIONS
from tests.e2e.hub_process import run_hub
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CONNECT-CLIENTS")

NAMES = tuple(CLIENTS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dragoman: Console) -> Path:
    """Give a git repository as the working directory, a home, and a data directory elsewhere."""
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    dragoman.ask("init")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Content of every file of a project."""
    paths = (path for path in folder.rglob("*") if ".git" not in path.parts and path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def server_in(folder: Path, name: str) -> Any:
    """Our server in the configuration of a client."""
    client = CLIENTS[name]
    text = (folder / client.config).read_text()
    parsed = tomllib.loads(text) if client.format == "toml" else json.loads(text)
    return parsed[client.servers]["dragoman"]


@pytest.mark.parametrize("name", NAMES)
def test_client_is_connected_and_disconnected(dragoman: Console, project: Path, name: str) -> None:
    shown = dragoman("connect", name)
    assert contents(project) == {}
    assert "nothing was written: add --write" in shown.out

    written = dragoman.ask("connect", name, "--agent", "ada", "--write")
    again = dragoman("connect", name, "--agent", "ada", "--write")

    client = CLIENTS[name]
    assert written["files"] == [str(project / client.config), str(project / client.instructions)]
    assert again.out.startswith("nothing to do")
    server = server_in(project, name)
    assert server["args"][-5:] == ["--data", str(dragoman.data), "mcp", "--as", "ada"]
    assert server.get("type") == ("stdio" if client.has_type else None)
    assert INSTRUCTIONS in (project / client.instructions).read_text()
    assert "ada" in dragoman("agent", "list").out

    assert "next: " in dragoman("connect", name, "--agent", "bob", "--write").out
    assert server_in(project, name)["args"][-1] == "bob"

    removed = dragoman("connect", name, "--undo")
    assert "nothing was written" in removed.out
    assert "removed" in dragoman("connect", name, "--undo", "--write").out
    assert contents(project) == {}
    assert [*project.iterdir()] == [project / ".git"]


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("name", NAMES)
def test_undo_names_only_what_it_takes_back(dragoman: Console, project: Path, name: str) -> None:
    empty = "" if CLIENTS[name].format == "toml" else "{}\n"
    config = project / CLIENTS[name].config
    config.parent.mkdir(exist_ok=True)
    config.write_text(empty)
    for more in ((), ("--write",)):
        assert dragoman.ask("connect", name, "--undo", *more)["files"] == []
        assert dragoman("connect", name, "--undo", *more).out.startswith("nothing to do")
    assert config.read_text() == empty


def test_what_was_written_starts_a_server(dragoman: Console, project: Path) -> None:
    dragoman.ask("connect", "claude-code", "--write")
    server = server_in(project, "claude-code")
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env=dict(os.environ)
    )

    async def read_inbox() -> Any:
        async with Client(parameters) as client:
            return (await client.call_tool("inbox", {})).structured_content

    assert asyncio.run(read_inbox())["agent"] == "claude-code"


OTHERS = {
    ".mcp.json": '{\n    "mcpServers": {"other": {"command": "x", "n": 1.50}}\n}\n',
    ".codex/config.toml": '# mine\nmodel = "o9" # the best\n\n[mcp_servers.other]\ncommand = "x"\n',
    ".gemini/settings.json": '{"theme": "dark"}',
    ".cursor/mcp.json": '{\n\t"mcpServers": {}\n}\n',
    ".vscode/mcp.json": '// ours\n{\n  "inputs": [],\n  "servers": {\n    "a": {}, // b\n  },\n}\n',
    "CLAUDE.md": "# Rules\n\nBe kind.\n",
    "AGENTS.md": "# Rules\r\n",
    "GEMINI.md": "x",
}


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_ours_stays(dragoman: Console, project: Path, name: str) -> None:
    for path, text in OTHERS.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_bytes(text.encode())
        (project / path).chmod(0o604)
    before = contents(project)

    dragoman.ask("connect", name, "--write")
    client = CLIENTS[name]
    assert (project / client.config).stat().st_mode & 0o777 == 0o604
    assert server_in(project, name) if client.name != "vscode" else True
    changed = {path for path, text in contents(project).items() if before[path] != text}
    assert changed == {client.config, client.instructions}
    dragoman.ask("connect", name, "--undo", "--write")

    assert contents(project) == before


@proves("CONNECT-UNTOUCHED")
def test_instructions_stay_while_another_client_needs_them(
    dragoman: Console, project: Path
) -> None:
    dragoman.ask("connect", "codex", "--write")
    assert dragoman.ask("connect", "cursor", "--write")["files"] == [
        str(project / ".cursor/mcp.json")
    ]
    dragoman.ask("connect", "codex", "--undo", "--write")
    assert contents(project).keys() == {"AGENTS.md", ".cursor/mcp.json"}
    dragoman.ask("connect", "cursor", "--undo", "--write")
    assert contents(project) == {}


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        (".mcp.json", '{"mcpServers": {', "this is not JSON: line 1, column 17"),
        (".mcp.json", '{"mcpServers": []}', "mcpServers is no object"),
        (".mcp.json", '{"mcpServers": {"dragoman": {"command": "x"}}}', "does not run `dragoman"),
        (".mcp.json", "\udcff", "it is not UTF-8"),
        ("CLAUDE.md", "<!-- dragoman: begin -->\n", "have to stand once each"),
    ],
)
def test_file_that_cannot_be_edited_is_refused(
    dragoman: Console, project: Path, path: str, text: str, reason: str
) -> None:
    (project / path).write_bytes(text.encode(errors="surrogateescape"))
    before = contents(project)
    for more in ((), ("--write",)):
        refused = dragoman.ask("connect", "claude-code", *more, code=1)
        assert refused["code"] == "bad_file"
        assert str(project / path) in refused["detail"]
        assert reason in refused["detail"]
    assert contents(project) == before


@proves("CONNECT-UNTOUCHED")
def test_empty_list_of_servers_stays(dragoman: Console, project: Path) -> None:
    config = project / ".vscode/mcp.json"
    config.parent.mkdir()
    config.write_text('{"servers":{},"inputs":[]}')
    dragoman.ask("connect", "vscode", "--write")
    dragoman.ask("connect", "vscode", "--agent", "bob", "--write")
    dragoman.ask("connect", "vscode", "--undo", "--write")
    assert config.read_text() == '{"servers":{},"inputs":[]}'


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("name", ["claude-code", "gemini-cli", "cursor", "vscode"])
def test_server_of_our_name_that_was_made_by_hand_stays(
    dragoman: Console, project: Path, name: str
) -> None:
    """Only one that is as we would write it needs no change."""
    config = project / CLIENTS[name].config

    def write(arguments: list[str], **more: Any) -> None:
        one = {"command": server["command"], "args": arguments, **more}
        one = {"type": "stdio", **one} if "type" in server else one
        config.write_text(json.dumps({CLIENTS[name].servers: {"dragoman": one}}))

    dragoman.ask("connect", name, "--write")
    server = server_in(project, name)
    dragoman.ask("connect", name, "--undo", "--write")
    config.parent.mkdir(exist_ok=True)

    other = ["--data", "/srv/other", "mcp", "--as", "zed"]
    for arguments, more in ((other, {}), (server["args"], {"env": {"A": "b"}})):
        write(arguments, **more)
        before = contents(project)
        for words in (("--write",), ("--undo", "--write")):
            refused = dragoman.ask("connect", name, *words, code=1)["detail"]
            assert f"{config} stays as it is" in refused
            assert "not written by `dragoman connect`: rename or remove it" in refused
        assert contents(project) == before

    write(server["args"])
    before = config.read_bytes()
    written = dragoman.ask("connect", name, "--write")["files"]
    assert written == [str(project / CLIENTS[name].instructions)]
    assert config.read_bytes() == before


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("model = ", "this is not TOML"),
        ('mcp_servers = { other = { command = "x" } }', "no table that can be extended"),
        ('[mcp_servers.dragoman]\ncommand = "x"\n', "does not run `dragoman mcp`"),
        ('[mcp_servers.dragoman]\ncommand = "x"\nargs = ["mcp"]\n', "was not written by"),
    ],
)
def test_toml_that_cannot_be_edited_is_refused(
    dragoman: Console, project: Path, text: str, reason: str
) -> None:
    (project / ".codex").mkdir()
    (project / ".codex/config.toml").write_text(text)
    assert reason in dragoman.ask("connect", "codex", "--write", code=1)["detail"]
    assert (project / ".codex/config.toml").read_text() == text
    assert not (project / "AGENTS.md").exists()


@proves("CONNECT-UNTOUCHED")
def test_links_and_files_of_others_are_refused(
    dragoman: Console, project: Path, tmp_path: Path
) -> None:
    def refusal(client: str) -> str:
        return dragoman.ask("connect", client, "--write", code=1)["detail"]

    target = tmp_path / "target.json"
    target.write_text("{}")
    (project / ".mcp.json").symlink_to(target)
    assert "it is a link" in refusal("claude-code")
    (project / ".mcp.json").unlink()
    (project / ".mcp.json").mkdir()
    assert "it is no file" in refusal("claude-code")
    (tmp_path / "elsewhere").mkdir()
    (project / ".codex").symlink_to(tmp_path / "elsewhere")
    assert ".codex is a link" in refusal("codex")
    (project / "GEMINI.md").write_text("x" * 5_000_000)
    assert "it is too large" in refusal("gemini-cli")
    assert target.read_text() == "{}"
    assert [*(tmp_path / "elsewhere").iterdir()] == []


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("text", ["# Rules\n", None], ids=["file", "dangling"])
def test_instructions_that_are_a_link_beside_them_are_written_there(
    dragoman: Console, project: Path, text: str | None
) -> None:
    agents, link = project / "AGENTS.md", project / "CLAUDE.md"
    if text is not None:
        agents.write_text(text)
    link.symlink_to("AGENTS.md")
    before = contents(project)

    written = dragoman.ask("connect", "claude-code", "--write")["files"]
    assert written == [str(project / ".mcp.json"), str(agents)]
    assert agents.read_text().startswith(text or "<!-- dragoman: begin")
    assert dragoman.ask("connect", "codex", "--write")["files"] == [
        str(project / ".codex/config.toml")
    ]
    dragoman.ask("connect", "claude-code", "--undo", "--write")
    assert INSTRUCTIONS in agents.read_text(), "Codex needs them"
    dragoman.ask("connect", "codex", "--undo", "--write")
    assert contents(project) == before
    assert link.readlink() == Path("AGENTS.md")


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("target", ["../rules.md", "AGENTS.md"], ids=["outside", "a link too"])
def test_instructions_that_lead_elsewhere_stay_alone(
    dragoman: Console, project: Path, target: str
) -> None:
    (project.parent / "rules.md").write_text("x\n")
    (project / "AGENTS.md").symlink_to("../rules.md")
    (project / "CLAUDE.md").symlink_to(target)

    written = dragoman.ask("connect", "claude-code", "--write")
    assert written["files"] == [str(project / ".mcp.json")]
    assert "stays as it is: it is a link" in written["remarks"][0]
    assert (project.parent / "rules.md").read_text() == "x\n"


@proves("CONNECT-UNTOUCHED")
def test_file_of_another_user_is_refused(dragoman: Console, project: Path) -> None:
    (project / ".mcp.json").write_text("{}")
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            os.chown(project / ".mcp.json", 65534, -1)
        return
    os.chown(project / ".mcp.json", 65534, -1)
    refused = dragoman.ask("connect", "claude-code", "--write", code=1)
    assert "it belongs to another user" in refused["detail"]


def test_configuration_of_a_user(dragoman: Console, project: Path, tmp_path: Path) -> None:
    dragoman.ask("connect", "codex", "--user", "--write")
    assert server_in(tmp_path / "home", "codex")
    assert contents(project) == {}
    dragoman.ask("connect", "codex", "--user", "--undo", "--write")
    assert contents(tmp_path / "home") == {}
    assert "has no configuration of a user" in dragoman("connect", "vscode", "--user").err


class Elsewhere:
    """A hub that is reached by its address alone, and `dragoman connect` for it."""

    def __init__(self, program: Program, url: str, token: str) -> None:
        self.program = program
        self.url = url
        self._environment = program.environment({"DRAGOMAN_TOKEN": token})
        del self._environment["DRAGOMAN_DATA"]

    def connect(self, *words: str, code: int = 0) -> Any:
        """Connect Claude Code."""
        done = subprocess.run(
            (*COMMAND, "--url", self.url, "connect", "claude-code", *words, "--json"),
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )
        assert done.returncode == code, done
        return json.loads(done.stdout)

    def tokens(self, agent: str) -> list[str]:
        """States of the tokens of an agent."""
        return [one["state"] for one in self.program.ask("agent", "show", agent)["tokens"]]


@contextmanager
def hub_elsewhere(dragoman: Console, bytecode: Path) -> Generator[Elsewhere]:
    """Run a hub whose data directory the client does not know."""
    with closing(Program(dragoman.data, bytecode)) as program:
        token = program.ask_here("agent", "add", "pat", "--role", "human")["token"]
        with run_hub(program) as hub:
            yield Elsewhere(program, hub.url, token)


def test_hub_elsewhere_gets_a_token_that_git_does_not_commit(
    dragoman: Console, project: Path, bytecode: Path
) -> None:
    with hub_elsewhere(dragoman, bytecode) as hub:
        assert len(hub.connect("--hooks")["files"]) == 4
        assert contents(project) == {}
        for ignored in ("", ".mcp.json\n"):
            (project / ".gitignore").write_text(ignored)
            refused = hub.connect("--hooks", "--write", code=1)
            assert refused["code"] == "policy_violation"
        (project / ".gitignore").write_text(".mcp.json\n.claude/\n")
        hub.connect("--hooks", "--write")
        own = server_in(project, "claude-code")["env"]["DRAGOMAN_TOKEN"]
        assert own.startswith("drg_claude-code_")
        assert hub.connect("--hooks", "--write")["files"] == []
        for name in (".mcp.json", ".claude/dragoman.token"):
            assert (project / name).stat().st_mode & 0o777 == 0o600

        command = hook_command(project)
        assert own not in command
        event = {"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash"}
        subprocess.run(("sh", "-c", command), input=json.dumps(event), text=True, check=True)
        needs = hub.program.ask("status")["attention"]
        assert [item["kind"] for item in needs] == ["waits_for_input"]

        hub.connect("--undo", "--write")
        assert contents(project).keys() == {".gitignore"}


def hook_command(project: Path) -> str:
    """Command of a hook of Claude Code."""
    hooks = json.loads((project / ".claude/settings.json").read_text())["hooks"]
    return hooks["PermissionRequest"][0]["hooks"][0]["command"]


def test_token_that_no_configuration_has_any_more_is_revoked(
    dragoman: Console, project: Path, bytecode: Path
) -> None:
    (project / ".gitignore").write_text(".mcp.json\n.claude/\n")
    with hub_elsewhere(dragoman, bytecode) as hub:
        hub.connect("--hooks", "--write")
        assert hub.tokens("claude-code") == ["good"]

        hub.connect("--agent", "bob", "--write")
        token = server_in(project, "claude-code")["env"]["DRAGOMAN_TOKEN"]
        assert token.startswith("drg_bob_"), "a token speaks for its own agent"
        assert (project / ".claude/dragoman.token").read_text() == f"{token}\n"
        assert "--as bob" in hook_command(project), "hooks that are there follow"
        assert (hub.tokens("claude-code"), hub.tokens("bob")) == (["revoked"], ["good"])

        assert hub.connect("--undo")["remarks"] == [f"its token for {hub.url} is revoked then"]
        assert hub.tokens("bob") == ["good"]
        undone = hub.connect("--undo", "--write")
        assert undone["remarks"] == [f"revoked its token for {hub.url}"]
        assert contents(project).keys() == {".gitignore"}
        assert hub.tokens("bob") == ["revoked"]
        assert hub.connect("--undo", "--write")["files"] == []

        hub.connect("--write")
        hub.program.ask("agent", "revoke", "claude-code")
        (remark,) = hub.connect("--undo", "--write")["remarks"]
        assert remark == f"its token for {hub.url} was not good any more"
        hub.connect("--write")
    (remark,) = hub.connect("--undo", "--write")["remarks"]
    assert remark.startswith(f"its token for {hub.url} stays good until `dragoman agent revoke")
    assert contents(project).keys() == {".gitignore"}


def test_missing_data_directory_is_told(dragoman: Console, project: Path, tmp_path: Path) -> None:
    other = Console(tmp_path / "nowhere")
    refused = other.ask("connect", "claude-code", "--write", code=1)
    assert refused["code"] == "store_unavailable"
    assert contents(project) == {}
