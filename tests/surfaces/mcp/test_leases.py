"""Leases of a client that is connected: kept while it is silent, told when they are lost."""

import asyncio
import json
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ExpireLease, FlagAttempt
from dragoman.core.errors import Refused
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.auth import Principal
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.mcp.context import HubContext, HubContextProvider
from dragoman.surfaces.mcp.leases import HeldLeases
from dragoman.surfaces.mcp.remote import RelayedLeases, RemoteHub, connect_remote
from dragoman.surfaces.mcp.tool import ToolCall, ToolResult
from dragoman.surfaces.mcp.tools import ClaimArguments, build_tools, claim_task
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves
from tests.surfaces.http.hub_server import HERA, HubServer
from tests.surfaces.mcp.clients import call_tool

pytestmark = proves("MCP-LEASES")

ADA = Principal(Actor("agent", "ada", "http"))
HUB = Actor("system", "hub")
MINUTE_MS = 60_000
TOOLS = build_tools(())
TASKS = ("t-1", "t-2")


class Connection:
    """A client of a hub with a manual clock, by calls of tools."""

    def __init__(self, server: HubServer, principal: Principal = ADA) -> None:
        self.server = server
        self.principal = principal
        self.provider = HubContextProvider(
            server.hub,
            server.deps.router,
            server.deps.settings,
            TaskBranches(Path(), server.deps.settings, server.deps.hub),
        )

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return its data, or its error. Renewals that it began have ended."""

        async def run(work: Any, *, reads: bool) -> Any:
            return await self.provider.run(self.principal, work, reads=reads)

        result = await TOOLS[tool].run(ToolCall(arguments, run, None))
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)
        return result.data if isinstance(result, ToolResult) else result

    async def stay_silent(self, minutes: int) -> None:
        """Have a stream open for so long, and call nothing; the hub recovers what is lost."""
        end = self.server.clock.now() + minutes * MINUTE_MS

        async def sleep(seconds: float) -> None:
            if self.server.clock.now() >= end:
                raise asyncio.CancelledError
            self.server.clock.advance(int(seconds * 1_000))
            self.recover()

        with suppress(asyncio.CancelledError):
            await self.provider.keep_leases(self.principal, sleep)

    def recover(self) -> None:
        """Recover every task whose lease has ended."""
        for task in TASKS:
            self.server.submit(ExpireLease(task), actor=HUB)

    def view(self, task: str) -> Any:
        """Find a task."""
        return find_task(self.server.store, task)


@pytest.fixture
def connection() -> Connection:
    """Give a client of a hub with two tasks."""
    server = HubServer()
    for task in TASKS:
        server.submit(CreateTask("Mend it", task, ready=True))
    return Connection(server)


def test_silent_client_with_a_stream_keeps_its_leases(connection: Connection) -> None:
    async def scenario() -> Any:
        claimed = await connection.call("claim", task="t-1")
        await connection.call("claim", task="t-2", minutes=1)
        await connection.stay_silent(10)
        for task in ("t-1", "t-2"):
            assert connection.view(task).lease.is_valid(connection.server.clock.now())
        return await connection.call("complete", task="t-1", fence=claimed["fence"])

    assert asyncio.run(scenario()) == {"task": "t-1", "status": "review"}
    lease = connection.view("t-2").lease
    assert lease.progress_at == lease.started_at


def test_silent_client_is_flagged_and_escalated_though_it_keeps_its_lease(
    connection: Connection,
) -> None:
    """Life is no progress: a client that hangs does not keep its task unnoticed."""
    quiet, escalated = 20 * MINUTE_MS, 10 * MINUTE_MS

    async def scenario() -> None:
        await connection.call("claim", task="t-1")
        for minutes, levels in ((19, 0), (2, 1), (10, 2)):
            await connection.stay_silent(minutes)
            connection.server.submit(FlagAttempt("t-1", quiet, escalated), actor=HUB)
            lease = connection.view("t-1").lease
            assert lease.is_valid(connection.server.clock.now())
            assert lease.quiet_level == levels

    asyncio.run(scenario())


def test_lease_of_a_client_that_has_gone_ends(connection: Connection) -> None:
    async def scenario() -> Any:
        await connection.call("claim", task="t-1")
        connection.server.clock.advance(10 * MINUTE_MS)
        connection.recover()
        assert connection.view("t-1").task.status == "ready"
        return await connection.call("inbox"), await connection.call("inbox")

    told, later = asyncio.run(scenario())
    (warning,) = told["warnings"]
    assert warning == "lease_lost: nobody holds t-1 now, it is ready: stop working on it"
    assert "warnings" not in later


def test_client_without_a_stream_is_alive_while_it_calls(connection: Connection) -> None:
    async def scenario() -> None:
        await connection.call("claim", task="t-1")
        for _ in range(5):
            connection.server.clock.advance(2 * MINUTE_MS)
            assert "warnings" not in await connection.call("status")
            connection.recover()

    asyncio.run(scenario())
    assert connection.view("t-1").lease.is_valid(connection.server.clock.now())


def test_lease_that_was_taken_away_is_told_with_the_next_answer_once(
    connection: Connection,
) -> None:
    async def scenario() -> Any:
        await connection.call("claim", task="t-1")
        connection.server.submit(MoveTask("t-1", "ready"))
        other = Connection(connection.server, Principal(Actor("agent", "bob", "http")))
        await other.call("claim", task="t-1", minutes=20)
        await connection.stay_silent(10)
        refused = await connection.call("complete", task="t-1")
        return refused, await connection.call("status"), await connection.call("status")

    refused, told, later = asyncio.run(scenario())
    assert refused.code == "lease_lost"
    (warning,) = told["warnings"]
    assert warning.startswith("lease_lost: ")
    assert "bob" in warning
    assert "warnings" not in later
    assert connection.view("t-1").lease.heartbeats == 1


@pytest.mark.parametrize("end", ["complete", "release", "ask"])
def test_lease_that_the_client_ended_is_not_told(connection: Connection, end: str) -> None:
    more = {"question": "Red or blue?"} if end == "ask" else {}

    async def scenario() -> Any:
        await connection.call("claim", task="t-1")
        await connection.call(end, task="t-1", **more)
        await connection.stay_silent(10)
        return await connection.call("status")

    assert "warnings" not in asyncio.run(scenario())


def test_end_that_was_not_seen_is_not_told_either(connection: Connection) -> None:
    async def scenario() -> Any:
        await connection.call("claim", task="t-1")
        connection.server.submit(MoveTask("t-1", "review"), actor=ADA.actor)
        return await connection.call("status")

    assert "warnings" not in asyncio.run(scenario())


def test_two_clients_of_one_name_keep_their_own(connection: Connection) -> None:
    """Each has its connection to the same hub by a process of its own (stdio)."""
    server = connection.server
    alive, gone = HeldLeases(server.clock), HeldLeases(server.clock)

    def claim(leases: HeldLeases, task: str) -> None:
        context = HubContext(
            server.hub,
            server.deps.router,
            server.deps.settings,
            ADA.actor,
            leases,
            TaskBranches(Path(), server.deps.settings, server.deps.hub),
        )
        context.submit(ClaimTask(task, "ada"))

    claim(alive, "t-1")
    claim(gone, "t-2")
    for _ in range(5):
        server.clock.advance(2 * MINUTE_MS)
        alive.renew(server.hub, ADA.actor)
        connection.recover()
    assert connection.view("t-1").task.status == "in-progress"
    assert connection.view("t-2").task.status == "ready"
    assert alive.take_lost(server.store, ADA.actor) == []
    assert len(gone.take_lost(server.store, ADA.actor)) == 1


def test_client_is_answered_its_own_claim_again_and_another_under_its_name_is_refused(
    connection: Connection,
) -> None:
    server = connection.server
    own, other = HeldLeases(server.clock), HeldLeases(server.clock)

    def claim(leases: HeldLeases) -> Any:
        context = HubContext(
            server.hub,
            server.deps.router,
            server.deps.settings,
            ADA.actor,
            leases,
            TaskBranches(Path(), server.deps.settings, server.deps.hub),
        )
        return claim_task(context, ClaimArguments("t-1"))

    async def claim_over_http() -> Any:
        return await connection.call("claim", task="t-1")

    told = ("task", "attempt", "fence", "expiresAt", "agent")
    first, entries = claim(own), server.store.head()
    again = claim(own)
    assert [again[key] for key in told] == [first[key] for key in told]
    assert server.store.head() == entries
    with pytest.raises(Refused, match="already_claimed"):
        claim(other)
    assert asyncio.run(claim_over_http()).code == "already_claimed"
    server.submit(MoveTask("t-1", "ready"), actor=HERA)
    assert claim(own)["attempt"] == 2


def test_clients_that_have_gone_are_forgotten(connection: Connection) -> None:
    async def scenario() -> Any:
        await connection.call("claim", task="t-1")
        connection.server.clock.advance(25 * 60 * MINUTE_MS)
        other = Connection(connection.server, Principal(Actor("agent", "bob", "http")))
        other.provider = connection.provider
        await other.call("status")
        return await connection.call("status")

    assert "warnings" not in asyncio.run(scenario())


def test_relay_sends_heartbeats_and_tells_what_is_lost(server: HubServer) -> None:
    kept, lost = (server.submit(CreateTask("Far away", ready=True)) for _ in range(2))

    async def scenario() -> Any:
        url = f"http://127.0.0.1:{server.port}"
        async with connect_remote(url, server.tokens["ada"]) as (client, address):
            hub = RemoteHub(client, address)
            rounds = iter(range(3))

            async def sleep(_: float) -> None:
                if next(rounds, None) is None:
                    raise asyncio.CancelledError

            leases = RelayedLeases(hub, sleep)

            async def call(tool: str, **arguments: Any) -> types.CallToolResult:
                return leases.note(await hub.call(lambda to: to.call_tool(tool, arguments)))

            for task in (kept, lost):
                await call("claim", task=task)
            server.submit(MoveTask(lost, "blocked"), actor=HERA)
            with suppress(asyncio.CancelledError):
                await leases.keep()
            told, later = await call("inbox"), await call("complete", task=kept)
            return told.content, later.content

    told, later = asyncio.run(scenario())
    assert [len(told), len(later)] == [2, 1]
    assert told[1].text.startswith(f"warning: lease_lost: nobody holds {lost} now")
    view = find_task(server.store, kept)
    assert isinstance(view, TaskView)
    assert view.task.status == "review"


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory whose leases are short."""
    with closing(Program(tmp_path / "hub", bytecode)) as created:
        created.prepare("init")
        (created.data / "dragoman.toml").write_text("[leases]\nttl_ms = 6000\n")
        yield created


def test_process_keeps_leases_until_it_is_killed(program: Program) -> None:
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--as", "ada"], env=program.environment()
    )

    def lease() -> Any:
        return json.loads(program.run("task", "show", task, "--json").out)["lease"]

    async def scenario() -> None:
        async with Client(parameters) as client:
            await call_tool(client, "claim", task=task)
            while (await asyncio.to_thread(lease))["heartbeats"] < 3:
                pass

    asyncio.run(scenario())
    program.run("tick", "--now", "2090-01-01T00:00:00Z")
    assert program.ask_here("task", "show", task)["status"] == "ready"
