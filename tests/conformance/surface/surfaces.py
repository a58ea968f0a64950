"""Surfaces of the hub that run one script: the hub itself, the command line, HTTP and MCP.

Each has its own hub, with the same agents registered at the same time.
"""

import asyncio
import json
import re
import shlex
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from mcp.client import Client
from msgspec import Struct, to_builtins

from dragoman.core.actor import Actor
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.operation import find_operation
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import TaskFilter, find_task, page_of_tasks
from dragoman.engine.request import Rejected
from dragoman.engine.schemas.tasks import encode, entry_resource, task_detail, task_summary
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import START, HubServer, serving
from tests.surfaces.mcp.clients import open_client
from tests.surfaces.mcp.mcp_hub import mount_mcp

AGENTS: Mapping[str, Role] = {"ada": "agent", "bob": "agent", "olga": "orchestrator"}
_NOW = "2026-02-09T20:55:00Z"
"""START as RFC 3339."""


class Action(Struct, frozen=True):
    """Action on a task, as a command and as each surface requests it."""

    by: str
    command: Command
    command_line: str
    http: tuple[str, Mapping[str, Any]]
    tool: tuple[str, Mapping[str, Any]] | None = None
    """None if agents have no such tool; the hub is called directly then."""


class Operation(Struct, frozen=True):
    """Operation of a dialect, called by its name on every surface."""

    by: str
    name: str
    arguments: Mapping[str, Any]
    is_tool: bool = True


class Query(Struct, frozen=True):
    """Query for a task, for its history, or for all tasks."""

    task: str = ""
    history: bool = False


Step = Action | Operation | Query


class StepResult(Struct, frozen=True):
    """Outcome of a step."""

    code: str
    """Refusal code; empty if accepted."""
    answer: Any = None
    """Reply to an operation or query; for a refusal only the fields that the dialect adds."""


class ScriptResult(Struct, frozen=True):
    """Outcomes of a script, and the ledger after it."""

    results: list[StepResult]
    ledger: list[Any]


class Surface(Protocol):
    """One way to reach the hub."""

    def play(self, script: Sequence[Step]) -> ScriptResult:
        """Run every step of a script."""
        ...


class HubDirect:
    """The hub itself, without a surface."""

    def __init__(self, server: HubServer) -> None:
        self._server = server

    def play(self, script: Sequence[Step]) -> ScriptResult:
        return ScriptResult([self.take(step) for step in script], _ledger(self._server.store))

    def take(self, step: Step) -> StepResult:
        """Run one step."""
        match step:
            case Action():
                return self._do(step)
            case Operation():
                return self._call(step)
            case Query():
                return self._query(step)

    def _do(self, action: Action) -> StepResult:
        try:
            self._server.hub.submit(_actor(action.by), action.command)
        except Refused as error:
            return StepResult(error.refusal.code)
        return StepResult("")

    def _call(self, operation: Operation) -> StepResult:
        router = self._server.deps.router
        answer = router.call(operation.name, dict(operation.arguments), _actor(operation.by))
        reply = to_builtins(answer.reply)
        if isinstance(answer, Rejected):
            return _refusal({**(reply or {}), "code": answer.code})
        return StepResult("", _without_generated_values(reply))

    def _query(self, query: Query) -> StepResult:
        store = self._server.store
        if not query.task:
            page = page_of_tasks(store, TaskFilter(), START)
            tasks = [task_summary(view.task, view.lease, START) for view in page.tasks]
            return StepResult(
                "", _without_generated_values({"tasks": to_builtins(tasks), "next": page.next})
            )
        view = find_task(store, query.task)
        if isinstance(view, Refusal):
            return StepResult(view.code)
        if query.history:
            found = store.history(f"task:{view.task.id}", 0, 100)
            return StepResult(
                "", _entries(json.loads(encode(entry_resource(entry))) for entry in found)
            )
        return StepResult(
            "", _without_generated_values(to_builtins(task_detail(view.task, view.lease, START)))
        )


class CommandLine:
    """Command line on a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._console = Console(folder)
        for name, role in AGENTS.items():
            self._type("agent", "add", name, "--role", role)

    def play(self, script: Sequence[Step]) -> ScriptResult:
        results = [self._take(step) for step in script]
        store = SqliteStore.open(self._folder / "dragoman.db", new_id)
        try:
            return ScriptResult(results, _ledger(store))
        finally:
            store.close()

    def _take(self, step: Step) -> StepResult:
        match step:
            case Action():
                return StepResult(self._type(*shlex.split(step.command_line), "--as", step.by).code)
            case Operation():
                self._write_summary(step.arguments)
                arguments = json.dumps(step.arguments)
                return self._type("call", step.name, arguments, "--as", step.by)
            case Query():
                return self._query(step)

    def _query(self, query: Query) -> StepResult:
        verb = "log" if query.history else "show" if query.task else "list"
        result = self._type("task", verb, *filter(None, [query.task]))
        if result.code:
            return result
        assert result.answer.pop("ok") is True
        for name in _SHOWN_BY_THE_COMMAND_LINE if verb == "show" else ():
            result.answer.pop(name)
        return StepResult("", _entries(result.answer["entries"])) if query.history else result

    def _write_summary(self, arguments: Mapping[str, Any]) -> None:
        """Create the summary file that a report names; only the command line looks for it."""
        if "summaryRef" in arguments:
            folder = self._folder / "tasks" / "in-progress" / arguments["taskId"]
            summary = folder / arguments["summaryRef"]
            summary.parent.mkdir(parents=True, exist_ok=True)
            summary.touch()

    def _type(self, *arguments: str) -> StepResult:
        result = self._console(*arguments, "--now", _NOW, "--json")
        return (
            _refusal(result.json)
            if result.code
            else StepResult("", _without_generated_values(result.json))
        )


class HttpServer:
    """Running HTTP server."""

    def __init__(self, server: HubServer) -> None:
        self._server = server

    def play(self, script: Sequence[Step]) -> ScriptResult:
        return ScriptResult([self._take(step) for step in script], _ledger(self._server.store))

    def _take(self, step: Step) -> StepResult:
        match step:
            case Action():
                path, body = step.http
                return StepResult(self._ask("POST", path, body, step.by).code)
            case Operation():
                found = find_operation(self._server.deps.router.dialects, step.name)
                assert found is not None, step
                path = f"/v1/{found[0].name}/{step.name}"
                return self._ask("POST", path, step.arguments, step.by)
            case Query(task, True):
                result = self._ask("GET", f"/v1/tasks/{task}/events")
                return StepResult("", _entries(result.answer["events"]))
            case Query(task):
                return self._ask("GET", f"/v1/tasks/{task}" if task else "/v1/tasks")

    def _ask(self, method: str, path: str, body: Any = None, by: str = "olga") -> StepResult:
        got = self._server.request(method, path, body, by=by)
        return (
            StepResult("", _without_generated_values(got.json))
            if got.status < 300
            else _refusal(got.json)
        )


class McpServer:
    """MCP server, called by the SDK's client; it omits empty fields."""

    def __init__(self, server: HubServer) -> None:
        self._server = server

    def play(self, script: Sequence[Step]) -> ScriptResult:
        return asyncio.run(self._play(script))

    async def _play(self, script: Sequence[Step]) -> ScriptResult:
        async with AsyncExitStack() as open_clients:
            clients = {
                name: await open_clients.enter_async_context(open_client(self._server, name))
                for name in AGENTS
            }
            results = [await self._take(step, clients) for step in script]
        return ScriptResult(results, _ledger(self._server.store))

    async def _take(self, step: Step, clients: Mapping[str, Client]) -> StepResult:
        match step:
            case Action():
                if step.tool is None:
                    return HubDirect(self._server).take(step)
                return StepResult((await _call_tool(clients[step.by], *step.tool)).code)
            case Operation():
                if not step.is_tool:
                    return HubDirect(self._server).take(step)
                tool = step.name.replace(".", "_")
                return await _call_tool(clients[step.by], tool, step.arguments)
            case Query(task, True):
                result = await _call_tool(clients["olga"], "read", {"task": task, "history": 100})
                return StepResult("", result.answer["history"])
            case Query(task):
                return await _call_tool(clients["olga"], "read", {"task": task})


async def _call_tool(client: Client, tool: str, arguments: Mapping[str, Any]) -> StepResult:
    got = await client.call_tool(tool, dict(arguments))
    answer = dict(got.structured_content or {})
    if got.is_error:
        return _refusal(answer)
    # Steps without a tool are taken beside the client, which is told of leases that ended there.
    told = [one for one in answer.pop("warnings", ()) if not one.startswith("lease_lost: ")]
    if told:
        answer["warnings"] = told
    return StepResult("", _without_generated_values(answer))


@contextmanager
def open_surfaces(folder: Path) -> Generator[dict[str, Surface]]:
    """Open every surface, by name."""
    with _server() as direct, _server() as posted, _server() as tooled:
        yield {
            "hub": HubDirect(direct),
            "cli": CommandLine(folder),
            "http": HttpServer(posted),
            "mcp": McpServer(tooled),
        }


@contextmanager
def _server() -> Generator[HubServer]:
    with serving(mount_mcp(HubServer())) as server:
        for name, role in AGENTS.items():
            server.add_agent(name, role)
        yield server


def _actor(name: str) -> Actor:
    return Actor(AGENTS[name], name)


# Differences that are allowed

_REGISTRATION_EVENTS = frozenset({"agent.registered", "token.issued"})
_SHOWN_BY_THE_COMMAND_LINE = frozenset({"intent", "intentState", "letters", "turns"})
"""Fields that `task show` adds of other resources."""
_PROBLEM_FIELDS = frozenset({"ok", "type", "title", "status", "code", "detail", "path"})
_SURFACE_FIELDS = frozenset({"position", "via", "cause", "hash"})
_COMPARED_FIELDS = ("stream", "version", "event", "v", "actor", "at", "body")
_SURFACE_DEPENDENT = frozenset({"words", "max_output_bytes", "sla_ms"})
"""Digest of the received bytes, and settings that a hub in memory does not have."""
_GENERATED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}")
"""Ids and hashes that the hub generates."""


def _ledger(store: Store) -> list[Any]:
    lines = [json.loads(entry.line) for entry in store.entries(0, 10_000)]
    since = [line for line in lines if line["event"] not in _REGISTRATION_EVENTS]
    return _without_generated_values(
        [{name: line[name] for name in _COMPARED_FIELDS} for line in since]
    )


def _refusal(answer: Any) -> StepResult:
    """Build the outcome of a refusal, whatever the form of the answer."""
    own = {name: part for name, part in answer.items() if name not in _PROBLEM_FIELDS}
    return StepResult(
        answer.get("code") or own["error"]["code"], _without_generated_values(own) or None
    )


def _entries(entries: Iterable[Any]) -> Any:
    return _without_generated_values(
        [
            {name: "" if name in _SURFACE_FIELDS else part for name, part in entry.items()}
            for entry in entries
        ]
    )


def _without_generated_values(value: Any) -> Any:
    def compared(parts: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: part for name, part in parts if name not in _SURFACE_DEPENDENT}

    return json.loads(_GENERATED.sub("…", json.dumps(value)), object_pairs_hook=compared)
