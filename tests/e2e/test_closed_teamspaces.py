"""Handoffs in a teamspace with members: every door of a running hub withholds what they say."""

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import msgspec
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from dragoman.client import connect
from dragoman.engine.operation import QueryOperation
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from tests.e2e.hub_process import HubProcess, run_hub
from tests.e2e.program import Program
from tests.requirements import proves

pytestmark = proves("ACP-CLOSED-ENTRIES")

SETTINGS = """
[http]
rate_per_second = 0

[teamspaces.red]
members = ["alice", "bob"]
coordinators = ["cora"]
"""

ROLES = {
    "alice": "agent",
    "bob": "agent",
    "cora": "coordinator",
    "orla": "orchestrator",
    "hera": "human",
    "carol": "agent",
    "otis": "coordinator",
    "olga": "observer",
}
INSIDERS = ("alice", "cora", "orla", "hera")
OUTSIDERS = ("carol", "otis", "olga")

TASKS = ("t-done", "t-back", "t-open")
WORD = "quokka"
"""Every text of a handoff has it, with a number of its own."""


class Marks:
    """Texts for handoffs, each of which can be told from the others."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"{WORD}{self.count:03d}"


class Visitor:
    """Somebody with a token, who reads whatever can be read."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Send a request; return the status and the text of the answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def get(self, path: str) -> Any:
        """Get a resource that there is."""
        status, text = self.ask("GET", path)
        assert status == 200, text
        return json.loads(text)

    def act(self, action: str, id: str, **fields: Any) -> Any:
        """Take a step of a handoff."""
        body = {"action": action, "handoff_id": id, **fields}
        status, text = self.ask("POST", "/v1/acp/acp_handoff", body)
        assert status == 200, text
        return json.loads(text)

    def stream(self, query: str, until: int) -> str:
        """Read a stream until it has come to a position."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.url}/v1/stream?after=0&{query}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310
        read = ""
        with urllib.request.urlopen(request, timeout=60) as lines:  # noqa: S310
            for line in lines:
                read += line.decode()
                if line == b"\n" and f"\nid: {until}\n" in read:
                    break
        return read


@pytest.fixture
def hub(program: Program) -> Iterator[HubProcess]:
    """Give a running hub with a teamspace of its own for Alice and Bob."""
    program.data.mkdir(mode=0o700)
    (program.data / "dragoman.toml").write_text(SETTINGS)
    for name, role in ROLES.items():
        program.prepare("agent", "add", name, "--role", role, "--no-token")
    with run_hub(program) as running:
        yield running
        running.stop()


def _visitors(hub: HubProcess, program: Program) -> dict[str, Visitor]:
    tokens = {name: program.ask_here("agent", "token", name)["token"] for name in ROLES}
    return {name: Visitor(hub.url, token) for name, token in tokens.items()}


def _tell(by: dict[str, Visitor], mark: Marks) -> None:
    """Say something in every text that a handoff can have: one ends well, one badly, one not."""
    for number, task in enumerate(TASKS):
        alice, bob, id = by["alice"], by["bob"], f"h-{number}"
        status, text = alice.ask("POST", "/v1/tasks", {"id": task, "title": task, "ready": True})
        assert status in (200, 201), text
        alice.act(
            "initiate",
            id,
            to_agent="bob",
            teamspace_id="red",
            reason=mark(),
            task={
                "task_id": task,
                "title": mark(),
                "objective": mark(),
                "success_criteria": [mark()],
            },
            context={"summary": mark(), "known_risks": [mark()]},
            work_state={"status": "in_progress", "next_step": mark(), "branch": mark()},
        )
        shared = {"handoff_id": id, "text": mark()}
        letter = {"to": ["bob"], "type": "knowledge.push", "payload": shared, "task_id": task}
        assert alice.ask("POST", "/v1/acp/acp_send", letter)[0] == 200
        if number == 2:
            _be_refused(alice, task, mark)
            continue
        bob.act("accept", id, notes=mark())
        bob.act("activate", id, work_state_update={"next_step": mark()})
        if number == 0:
            artifacts = [{"artifact_id": "a", "ref": {"type": "url", "path": mark()}}]
            bob.act("complete", id, completion_notes=mark(), final_artifacts=artifacts)
            alice.act("close", id, closure_notes=mark())
        else:
            bob.act("reject", id, reason="other", detail=mark(), suggested_fix=mark())


def _be_refused(alice: Visitor, task: str, mark: Marks) -> None:
    """Offer what is on its way already, and send an offer with a field that there is not."""
    for more in ({}, {"colour": "red"}):
        body = {
            "action": "initiate",
            "to_agent": "bob",
            "teamspace_id": "red",
            "task": {"task_id": task, "title": "x", "success_criteria": [mark()]},
            "context": {"summary": mark()},
            "work_state": {"status": "in_progress", "next_step": mark()},
            **more,
        }
        status, text = alice.ask("POST", "/v1/acp/acp_handoff", body)
        assert status in (409, 422), text
        status, text = alice.ask("POST", "/v1/messages?dialect=acp", body)
        assert status in (409, 422), text


# --- every door -------------------------------------------------------------------------------

_DIALECTS = (aof.dialect(), agentmail.dialect(), acp.dialect(), ccos.dialect(), saop.dialect())

_ASKED: Mapping[str, tuple[str, ...]] = {
    "task_id": TASKS,
    "thread_id": TASKS,
    "query": (WORD, "handoff"),
    "from": ("alice", "bob", "hub"),
    "to": ("alice", "bob"),
    "agent": ("alice", "bob"),
    "box": ("inbox", "sent", "all"),
}
"""Field of an operation that only reads -> what is asked for."""


def _reads(visitor: Visitor, head: int) -> Iterator[tuple[str, str]]:
    """Read at every door: what was asked, and the answer."""
    entries = visitor.get("/v1/events?limit=1000")["events"]
    streams = [entry["stream"].partition(":") for entry in entries]
    letters = tuple({id for kind, _, id in streams if kind == "mail"})
    yield from _resources(visitor)
    for query in ("type=handoff", "type=mail", "agent=bob", "agent=alice", "dialect=acp", "wait=1"):
        yield query, visitor.ask("GET", f"/v1/events?limit=1000&{query}")[1]
    yield "stream", visitor.stream("form=ledger", head)
    last = visitor.get("/v1/tasks/t-done/trace")["next"]
    yield "stream of traces", visitor.stream("form=trace&type=TASK_TRANSITION", last)
    yield from _operations(visitor, letters)
    yield from _commands(visitor, letters)
    yield from asyncio.run(_mcp_answers(visitor))
    yield "events of the SDK", asyncio.run(_sdk_events(visitor, head))


def _resources(visitor: Visitor) -> Iterator[tuple[str, str]]:
    """Get all that the description of the hub names, but the stream, which has no end."""
    names = {"name": (*TASKS, *ROLES), "id": ("h-0", "h-1", "h-2")}
    for path, methods in visitor.get("/openapi.json")["paths"].items():
        if "get" not in methods or path == "/v1/stream":
            continue
        given = {one["name"] for one in methods["get"].get("parameters", ())}
        query = "?limit=1000" if "limit" in given else "?position=1" if "position" in given else ""
        (parameter,) = given & names.keys() or ("",)
        for name in names.get(parameter, ("",)):
            asked = path.replace(f"{{{parameter}}}", name) + query
            status, text = visitor.ask("GET", asked)
            assert status in (200, 204, 403, 404, 422), (asked, text)
            yield f"GET {asked}", text


def _operations(visitor: Visitor, letters: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Ask every operation that only reads for everything."""
    asked = {**_ASKED, "id": letters}
    for dialect in _DIALECTS:
        for operation in dialect.operations:
            if isinstance(operation, QueryOperation):
                fields = [one.encode_name for one in msgspec.structs.fields(operation.input)]
                bodies = [{name: value} for name in fields for value in asked.get(name, ())]
                for body in ({}, *bodies):
                    path = f"/v1/{dialect.name}/{operation.name}"
                    yield f"{path} {body}", visitor.ask("POST", path, body)[1]
    filters = (("handoff_id", "h-0"), ("task_id", "t-back"), ("teamspace_id", "red"))
    for query in ({}, *({name: value} for name, value in filters)):
        body = {"action": "query", **query}
        yield f"{body}", visitor.ask("POST", "/v1/acp/acp_handoff", body)[1]


def _commands(visitor: Visitor, letters: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Have the hub run commands of the command line, as from elsewhere."""
    calls = [["events"], ["events", "--type", "handoff"], ["events", "--type", "mail"], ["status"]]
    calls += [["task", verb, task] for verb in ("show", "log") for task in TASKS]
    calls += [["story", task] for task in TASKS]
    calls += [["handoff", verb, "h-1"] for verb in ("show", "diagnose")]
    calls += [["handoff", "list"], ["mail", "inbox"], ["mail", "search", WORD]]
    calls += [["mail", "thread", task] for task in TASKS]
    calls += [["mail", "show", letter] for letter in letters]
    for args in calls:
        body: dict[str, Any] = {
            "args": [*args, "--json"],
            "terminals": [False, False],
            "encoding": "utf-8",
            "environ": {},
            "inputs": {},
        }
        status, text = visitor.ask("POST", "/v1/internal/cli", body)
        assert status == 200, (args, text)
        assert "Traceback" not in text, (args, text)
        assert "runs_here" not in text, (args, text)
        yield " ".join(args), text


async def _mcp_answers(visitor: Visitor) -> list[tuple[str, str]]:
    """Read every resource, and call the tools that show tasks and letters."""
    uris = [f"dragoman://tasks/{task}{part}" for task in TASKS for part in ("", "/history")]
    uris += [f"dragoman://threads/{task}" for task in TASKS]
    uris += [f"dragoman://handoffs/h-{number}" for number in range(3)]
    found = list[tuple[str, str]]()
    headers = {"Authorization": f"Bearer {visitor.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{visitor.url}/mcp", http_client=http)) as client,
    ):
        templates = (await client.list_resource_templates()).resource_templates
        assert {one.name for one in templates} == {"task", "history", "thread", "handoff"}
        for uri in uris:
            try:
                found.append((uri, f"{await client.read_resource(uri)}"))
            except MCPError as error:
                found.append((uri, f"{error}"))
        calls: list[tuple[str, dict[str, Any]]] = [("inbox", {}), ("status", {}), ("read", {})]
        calls += [("read", {"task": task, "history": 200}) for task in TASKS]
        calls += [("acp_query", {"task_id": task}) for task in TASKS]
        listed = {one.name for one in (await client.list_tools()).tools} | {"acp_query"}
        for name, arguments in (one for one in calls if one[0] in listed):
            found.append((f"{name} {arguments}", f"{await client.call_tool(name, arguments)}"))
    return found


async def _sdk_events(visitor: Visitor, head: int) -> str:
    """Follow the events of the hub as an agent's program does."""
    read = ""
    async with connect(visitor.url, visitor.token) as hub:
        async for event in hub.events(0):
            read += f"{event}"
            if event.position == head:
                break
    return read


# --- tests ------------------------------------------------------------------------------------


def test_what_handoffs_say_in_a_closed_teamspace_is_read_by_nobody_outside(
    hub: HubProcess, program: Program
) -> None:
    by, mark = _visitors(hub, program), Marks()
    _tell(by, mark)
    (head,) = {visitor.get("/v1/status")["position"] for visitor in by.values()}
    assert mark.count > 30
    for outsider in OUTSIDERS:
        leaks = {
            asked: sorted(set(re.findall(rf"{WORD}\d+", answer)))
            for asked, answer in _reads(by[outsider], head)
            if re.search(rf"{WORD}\d", answer)
        }
        assert not leaks, f"{outsider} reads {leaks}"
    for insider in INSIDERS:
        text = by[insider].ask("GET", "/v1/events?limit=1000")[1]
        assert len(set(re.findall(rf"{WORD}\d+", text))) == mark.count, insider
        text = dict(_commands(by[insider], ()))["events"]
        assert len(set(re.findall(rf"{WORD}\d+", text))) == mark.count, insider
        text = by[insider].stream("form=ledger", head)
        assert len(set(re.findall(rf"{WORD}\d+", text))) == mark.count, insider


def test_outsiders_get_the_place_and_hash_of_every_entry(hub: HubProcess, program: Program) -> None:
    by, mark = _visitors(hub, program), Marks()
    _tell(by, mark)
    whole = by["hera"].get("/v1/events?limit=1000")["events"]
    shown = by["carol"].get("/v1/events?limit=1000")["events"]
    chain = [[one[name] for name in ("position", "stream", "version", "hash")] for one in whole]
    assert [[one[name] for name in ("position", "stream", "version", "hash")] for one in shown] == (
        chain
    )
    assert not any("withheld" in one for one in whole)
    for one, of_hera in zip(shown, whole, strict=True):
        match one["stream"].partition(":")[0]:
            case "handoff" | "mail":
                said = (one["type"], one["actor"], one["via"], one["cause"], one["body"])
                assert (said, one["withheld"]) == (("withheld", "", None, "", {}), True)
            case "actor":
                without = {**of_hera, "withheld": True}
                assert without.pop("originalText")
                assert one == without
            case _:
                assert one == of_hera
    assert {one["type"] for one in shown} >= {"withheld", "command.refused", "task.reported"}


def test_what_is_withheld_matches_no_filter(hub: HubProcess, program: Program) -> None:
    by, mark = _visitors(hub, program), Marks()
    _tell(by, mark)
    for query in ("type=handoff", "type=mail", "dialect=acp&agent=alice", "type=handoff.rejected"):
        shown = by["carol"].get(f"/v1/events?limit=1000&{query}")["events"]
        assert {one["stream"].partition(":")[0] for one in shown} <= {"task", "actor"}, query
        assert by["alice"].get(f"/v1/events?limit=1000&{query}")["events"], query
