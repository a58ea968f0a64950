"""The doors of the hub, for one script through all of them: itself, command line, HTTP, MCP.

Each has a hub of its own behind it, to which the same agents have come at the same moment.
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

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import Role
from dragoman.engine.operation import find_operation
from dragoman.engine.plan import Turned
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.pages import Wanted, page_now
from dragoman.engine.shown.tasks import encode, shown_entry, task_summary, whole_task
from dragoman.store.sqlite import SqliteStore
from dragoman.system.ids import new_id
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import START, HubServer, serving
from tests.surfaces.mcp.clients import open_client
from tests.surfaces.mcp.mcp_hub import mount_mcp

EVERYONE: Mapping[str, Role] = {"ada": "agent", "bob": "agent", "olga": "orchestrator"}
_NOW = "2026-02-09T20:55:00Z"
"""START, in words."""


class Deed(Struct, frozen=True):
    """Something that is asked of the hub, as each door has it said."""

    by: str
    command: AnyCommand
    typed: str
    posted: tuple[str, Mapping[str, Any]]
    tool: tuple[str, Mapping[str, Any]] | None = None
    """None: agents have no tool for it, and it is done without one."""


class Operation(Struct, frozen=True):
    """An operation of a dialect, which every door calls by its name."""

    by: str
    name: str
    arguments: Mapping[str, Any]
    is_tool: bool = True


class Look(Struct, frozen=True):
    """At a task, at its history, or at all tasks."""

    task: str = ""
    history: bool = False


Step = Deed | Operation | Look


class Said(Struct, frozen=True):
    """What came of a step."""

    code: str
    """Of the refusal; empty: it was a yes."""
    answer: Any = None
    """To an operation or a look; to a refusal only what the dialect has to say besides."""


class Played(Struct, frozen=True):
    """What was said to a script, and what is on record after it."""

    said: list[Said]
    ledger: list[Any]


class Door(Protocol):
    """A way to the hub."""

    def play(self, script: Sequence[Step]) -> Played:
        """Take every step of a script."""
        ...


class Direct:
    """The hub itself, without a door."""

    def __init__(self, house: HubServer) -> None:
        self._house = house

    def play(self, script: Sequence[Step]) -> Played:
        return Played([self.take(step) for step in script], _ledger(self._house.store))

    def take(self, step: Step) -> Said:
        """One step."""
        match step:
            case Deed():
                return self._do(step)
            case Operation():
                return self._call(step)
            case Look():
                return self._look(step)

    def _do(self, deed: Deed) -> Said:
        try:
            self._house.hub.do(_actor(deed.by), deed.command)
        except Refused as no:
            return Said(no.refusal.code)
        return Said("")

    def _call(self, operation: Operation) -> Said:
        interpreter = self._house.deps.interpreter
        said = interpreter.call(operation.name, dict(operation.arguments), _actor(operation.by))
        reply = to_builtins(said.reply)
        if isinstance(said, Turned):
            return _no({**(reply or {}), "code": said.code})
        return Said("", _nameless(reply))

    def _look(self, look: Look) -> Said:
        store = self._house.store
        if not look.task:
            page = page_now(store, Wanted(), START)
            tasks = [task_summary(view.task, view.lease, START) for view in page.tasks]
            return Said("", _nameless({"tasks": to_builtins(tasks), "next": page.next}))
        view = find_task(store, look.task)
        if isinstance(view, Refusal):
            return Said(view.code)
        if look.history:
            found = store.history(f"task:{view.task.id}", 0, 100)
            return Said("", _entries(json.loads(encode(shown_entry(entry))) for entry in found))
        return Said("", _nameless(to_builtins(whole_task(view.task, view.lease, START))))


class Typed:
    """The command line, on a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._console = Console(folder)
        for name, role in EVERYONE.items():
            self._type("agent", "add", name, "--role", role)

    def play(self, script: Sequence[Step]) -> Played:
        said = [self._take(step) for step in script]
        store = SqliteStore.open(self._folder / "dragoman.db", new_id)
        try:
            return Played(said, _ledger(store))
        finally:
            store.close()

    def _take(self, step: Step) -> Said:
        match step:
            case Deed():
                return Said(self._type(*shlex.split(step.typed), "--as", step.by).code)
            case Operation():
                self._lay_summary(step.arguments)
                arguments = json.dumps(step.arguments)
                return self._type("call", step.name, arguments, "--as", step.by)
            case Look():
                return self._look(step)

    def _look(self, look: Look) -> Said:
        verb = "log" if look.history else "show" if look.task else "list"
        said = self._type("task", verb, *filter(None, [look.task]))
        if said.code:
            return said
        assert said.answer.pop("ok") is True
        return Said("", _entries(said.answer["entries"])) if look.history else said

    def _lay_summary(self, arguments: Mapping[str, Any]) -> None:
        """The file that a report names: who has only the hub is taken at their word."""
        if "summaryRef" in arguments:
            folder = self._folder / "tasks" / "in-progress" / arguments["taskId"]
            summary = folder / arguments["summaryRef"]
            summary.parent.mkdir(parents=True, exist_ok=True)
            summary.touch()

    def _type(self, *words: str) -> Said:
        said = self._console(*words, "--now", _NOW, "--json")
        return _no(said.json) if said.code else Said("", _nameless(said.json))


class Posted:
    """HTTP, from a server that runs."""

    def __init__(self, house: HubServer) -> None:
        self._house = house

    def play(self, script: Sequence[Step]) -> Played:
        return Played([self._take(step) for step in script], _ledger(self._house.store))

    def _take(self, step: Step) -> Said:
        match step:
            case Deed():
                path, body = step.posted
                return Said(self._ask("POST", path, body, step.by).code)
            case Operation():
                found = find_operation(self._house.deps.interpreter.dialects, step.name)
                assert found is not None, step
                path = f"/v1/{found[0].name}/{step.name}"
                return self._ask("POST", path, step.arguments, step.by)
            case Look(task, True):
                said = self._ask("GET", f"/v1/tasks/{task}/events")
                return Said("", _entries(said.answer["events"]))
            case Look(task):
                return self._ask("GET", f"/v1/tasks/{task}" if task else "/v1/tasks")

    def _ask(self, method: str, path: str, body: Any = None, by: str = "olga") -> Said:
        got = self._house.request(method, path, body, by=by)
        return Said("", _nameless(got.json)) if got.status < 300 else _no(got.json)


class Tooled:
    """MCP, with the SDK's client; it leaves out what there is none of."""

    def __init__(self, house: HubServer) -> None:
        self._house = house

    def play(self, script: Sequence[Step]) -> Played:
        return asyncio.run(self._play(script))

    async def _play(self, script: Sequence[Step]) -> Played:
        async with AsyncExitStack() as open_clients:
            clients = {
                name: await open_clients.enter_async_context(open_client(self._house, name))
                for name in EVERYONE
            }
            said = [await self._take(step, clients) for step in script]
        return Played(said, _ledger(self._house.store))

    async def _take(self, step: Step, clients: Mapping[str, Client]) -> Said:
        match step:
            case Deed():
                if step.tool is None:
                    return Direct(self._house).take(step)
                return Said((await _used(clients[step.by], *step.tool)).code)
            case Operation():
                if not step.is_tool:
                    return Direct(self._house).take(step)
                tool = step.name.replace(".", "_")
                return await _used(clients[step.by], tool, step.arguments)
            case Look(task, True):
                said = await _used(clients["olga"], "read", {"task": task, "history": 100})
                return Said("", said.answer["history"])
            case Look(task):
                return await _used(clients["olga"], "read", {"task": task})


async def _used(client: Client, tool: str, arguments: Mapping[str, Any]) -> Said:
    got = await client.call_tool(tool, dict(arguments))
    answer = got.structured_content
    return _no(answer) if got.is_error else Said("", _nameless(answer))


@contextmanager
def open_doors(folder: Path) -> Generator[dict[str, Door]]:
    """Every door by its name."""
    with _house() as direct, _house() as posted, _house() as tooled:
        yield {
            "hub": Direct(direct),
            "cli": Typed(folder),
            "http": Posted(posted),
            "mcp": Tooled(tooled),
        }


@contextmanager
def _house() -> Generator[HubServer]:
    with serving(mount_mcp(HubServer())) as house:
        for name, role in EVERYONE.items():
            house.add_agent(name, role)
        yield house


def _actor(name: str) -> Actor:
    return Actor(EVERYONE[name], name)


# What may differ

_ARRIVALS = frozenset({"agent.registered", "token.issued"})
_OF_A_PROBLEM = frozenset({"ok", "type", "title", "status", "code", "detail", "path"})
_OF_THE_PLACE = frozenset({"position", "via", "cause", "hash"})
_KEPT = ("stream", "version", "event", "v", "actor", "at", "body")
_AS_IT_CAME = frozenset({"words", "kept_bytes", "sla_ms"})
"""A digest of the bytes of a call, and settings that a hub in memory has not."""
_MADE_UP = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}")
"""Ids of the hub's making and hashes."""


def _ledger(store: Store) -> list[Any]:
    lines = [json.loads(entry.line) for entry in store.entries(0, 10_000)]
    since = [line for line in lines if line["event"] not in _ARRIVALS]
    return _nameless([{name: line[name] for name in _KEPT} for line in since])


def _no(answer: Any) -> Said:
    """A refusal, in any form."""
    own = {name: part for name, part in answer.items() if name not in _OF_A_PROBLEM}
    return Said(answer.get("code") or own["error"]["code"], _nameless(own) or None)


def _entries(entries: Iterable[Any]) -> Any:
    return _nameless(
        [
            {name: "" if name in _OF_THE_PLACE else part for name, part in entry.items()}
            for entry in entries
        ]
    )


def _nameless(value: Any) -> Any:
    def kept(parts: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: part for name, part in parts if name not in _AS_IT_CAME}

    return json.loads(_MADE_UP.sub("…", json.dumps(value)), object_pairs_hook=kept)
