"""Coding agents of npm, connected as a person does it, with a script in place of their model.

`.ci/coding-agents` fetches them and runs this: each claims a task, reports progress, asks, gets the
answer and completes, and a line says so. The script is served as the API of the agent's vendor. The
TypeScript SDK of MCP does the same by itself.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from msgspec import Struct

_ANSWER: Final = "the red one"
_SECONDS: Final = 180

# --- script -----------------------------------------------------------------------------------

Call = tuple[str, Mapping[str, Any]]


def next_call(results: Sequence[str]) -> Call | None:
    """Name the next tool and its arguments, after these results of ours; None: all is done."""
    if not results:
        return "claim", {}
    found = [_read_object(one) for one in results]
    own = {"task": found[0]["task"], "fence": found[0]["fence"]}
    following: Sequence[Call] = (
        ("update", own | {"progress": "half"}),
        ("ask", own | {"question": "Which one?", "wait": 120}),
        ("complete", own | {"notes": f"took {found[-1].get('answer')}"}),
    )
    return following[len(results) - 1] if len(results) <= len(following) else None


def _read_object(text: str) -> dict[str, Any]:
    """The first JSON object in a result; a client may put words around it."""
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


def _ours(results: Sequence[str]) -> list[str]:
    return [one for one in results if '"task"' in one]


def _text(content: Any) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content
    return "".join(part.get("text", "") for part in parts)


# --- APIs of models ---------------------------------------------------------------------------

Events = Sequence[Mapping[str, Any]]


def answer_messages(body: Any) -> Events:
    """Answer as Anthropic's Messages API does."""
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    results = [_text(one["content"]) for one in blocks if one["type"] == "tool_result"]
    names = [tool["name"] for tool in body.get("tools", ())]
    call = next_call(_ours(results)) if names else None
    name = f"mcp__dragoman__{call[0]}" if call else ""
    arguments = json.dumps(call[1] if call else {})
    if name and name not in names:
        name, arguments = "WaitForMcpServers", "{}"
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    begun: dict[str, Any]
    if name:
        begun = {"type": "tool_use", "id": f"t{len(results)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
    else:
        begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    reason = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
    return (
        {"type": "message_start", "message": message | {"model": "script", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": usage},
        {"type": "message_stop"},
    )


def answer_responses(body: Any) -> Events:
    """Answer as OpenAI's Responses API does."""
    outputs = [one for one in body["input"] if one["type"] == "function_call_output"]
    call = next_call(_ours([_text(one["output"]) for one in outputs]))
    item: dict[str, Any] = {"type": "function_call", "call_id": f"c{len(outputs)}"}
    if call is None:
        content = [{"type": "output_text", "text": "Done."}]
        item = {"type": "message", "role": "assistant", "content": content}
    elif any(tool.get("name") == "mcp__dragoman" for tool in body["tools"]):
        arguments = json.dumps(call[1])
        item |= {"namespace": "mcp__dragoman", "name": call[0], "arguments": arguments}
    else:  # its servers are still starting
        item |= {"name": "exec_command", "arguments": json.dumps({"cmd": "sleep 1"})}
    usage = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 1)
    return (
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    )


def answer_gemini(body: Any) -> Events:
    """Answer as Google's Gemini API does."""
    parts = [part for content in body.get("contents", ()) for part in content.get("parts", ())]
    replies = [one["functionResponse"]["response"] for one in parts if "functionResponse" in one]
    results = _ours([reply.get("output", "") for reply in replies])
    call = next_call(results) if body.get("tools") else None
    name = f"mcp_dragoman_{call[0]}" if call else ""
    part = {"functionCall": {"name": name, "args": call[1]}} if call else {"text": "{}"}
    content = {"role": "model", "parts": [part]}
    return ({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]},)


_APIS: Final[Mapping[str, Callable[[Any], Events]]] = {
    "/v1/messages": answer_messages,
    "/v1/responses": answer_responses,
    "/v1beta/models": answer_gemini,
}


class ModelApi(BaseHTTPRequestHandler):
    """The script, as a model of each vendor."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name it has there
        """Log nothing."""

    def do_POST(self) -> None:
        """Answer a request for the next turn."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = next(api for path, api in _APIS.items() if self.path.startswith(path))
        events = answer(body)
        is_stream = body.get("stream") or ":stream" in self.path
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.end_headers()
        if not is_stream:
            self.wfile.write(json.dumps(events[0]).encode())
            return
        for event in events:
            named = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{named}data: {json.dumps(event)}\n\n".encode())


# --- agents -----------------------------------------------------------------------------------


class CodingAgent(Struct, frozen=True):
    """An agent of npm: how it is started, and what it trusts."""

    command: Sequence[str]
    variables: Callable[[str], Mapping[str, str]]
    """Variables, by the address of the model's API."""
    files: Callable[[str, Path], Mapping[str, str]]
    """Files of its home, by that address and the project."""
    client: str
    """The client as which it is connected."""
    has_trusted_hooks: bool = False
    """Its hooks run without a person who trusts them."""


def _claude_files(_: str, project: Path) -> Mapping[str, str]:
    trusted = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["dragoman"]}
    known = {"hasCompletedOnboarding": True, "projects": {str(project): trusted}}
    return {".claude.json": json.dumps(known)}


def _codex_files(url: str, project: Path) -> Mapping[str, str]:
    lines = (
        *('model = "script"', 'model_provider = "script"'),
        *("[model_providers.script]", 'name = "script"', f'base_url = "{url}/v1"'),
        *('wire_api = "responses"', f'[projects."{project}"]', 'trust_level = "trusted"'),
    )
    return {".codex/config.toml": "\n".join(lines)}


def _gemini_files(_: str, project: Path) -> Mapping[str, str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return {
        ".gemini/settings.json": json.dumps(settings),
        ".gemini/trustedFolders.json": json.dumps({str(project): "TRUST_FOLDER"}),
    }


AGENTS: Final[Mapping[str, CodingAgent]] = {
    "claude-code": CodingAgent(
        ("claude", "-p", "work", "--allowedTools", "mcp__dragoman"),
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        _claude_files,
        "claude-code",
        has_trusted_hooks=True,
    ),
    "codex": CodingAgent(
        ("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "work"),
        lambda _: {},
        _codex_files,
        "codex",
    ),
    "gemini-cli": CodingAgent(
        ("gemini", "-y", "-p", "work"),
        lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"},
        _gemini_files,
        "gemini-cli",
    ),
    "TypeScript SDK": CodingAgent(
        ("node", str(Path(__file__).with_name("typescript_sdk.mjs"))),
        lambda _: {},
        lambda _, __: {},
        "claude-code",
    ),
}


def run_agent(name: str, url: str, folder: Path) -> None:
    """Connect an agent to a new hub, let it work, and check what the hub has of it."""
    agent, home, project = AGENTS[name], folder / "home", folder / "project"
    project.mkdir(parents=True)
    home.mkdir()
    for path, text in agent.files(url, project).items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    own = str(Path(sys.executable).parent)
    variables = os.environ | agent.variables(url) | {"HOME": str(home)}
    variables["PATH"] = f"{own}:{variables['PATH']}"

    def read(*words: str, check: bool = True) -> list[Any]:
        done = subprocess.run(
            ("dragoman", *words, "--json"),
            cwd=project,
            env=variables,
            check=check,
            capture_output=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def call(*words: str, check: bool = True) -> Any:
        (answer,) = read(*words, check=check)
        return answer

    subprocess.run(("git", "init", "-q"), cwd=project, check=True)
    call("init")
    call("task", "create", "Choose one", "--id", "t", "--ready")
    hooks = ["--hooks"] if agent.has_trusted_hooks else []
    call("connect", agent.client, *hooks, "--write")
    with (
        (folder / "output").open("wb") as output,
        subprocess.Popen(
            agent.command,
            cwd=project,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        ) as program,
    ):
        while not call("task", "answer", "t", _ANSWER, check=False)["ok"]:
            with suppress(subprocess.TimeoutExpired):
                program.wait(0.5)
                break  # it has ended without a question
        program.wait(_SECONDS)
    task = call("task", "show", "t")
    notes = task["report"]["notes"] if task["report"] else ""
    if (task["status"], notes) != ("review", f"took {_ANSWER}"):
        raise SystemExit(f"FAIL  {name}: {task['status']}\n{(folder / 'output').read_text()}")
    states = {one["body"]["state"] for one in read("events") if one["type"] == "agent.presence"}
    if agent.has_trusted_hooks and not states >= {"idle", "working", "ended"}:
        raise SystemExit(f"FAIL  {name}: its hooks have reported {states}")
    sys.stdout.write(f"ok    {name}: claimed, asked, got the answer and completed\n")


def main() -> None:
    """Run the agents that are named, or all."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ModelApi)
    Thread(target=server.serve_forever, daemon=True).start()
    for name in sys.argv[1:] or AGENTS:
        with tempfile.TemporaryDirectory() as folder:
            run_agent(name, f"http://127.0.0.1:{server.server_port}", Path(folder))
    server.shutdown()


if __name__ == "__main__":
    main()
