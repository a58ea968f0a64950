"""MCP context: waiting writes do not block reads."""

import asyncio
import threading
from pathlib import Path

from dragoman.core.actor import Actor
from dragoman.engine.auth import Principal
from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.mcp.context import HubContext, HubContextProvider
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

ADA = Principal(Actor("agent", "ada", "http"))


@proves("MCP-TOOLS")
def test_waiting_writes_do_not_block_reads() -> None:
    server, may_go_on = HubServer(), threading.Event()
    provider = HubContextProvider(
        server.hub,
        server.deps.router,
        server.deps.settings,
        TaskBranches(Path(), server.deps.settings, server.deps.hub),
    )

    def write(context: HubContext) -> str:
        assert may_go_on.wait(30)
        return context.actor.via

    async def write_and_read() -> tuple[set[str], str]:
        writes = [asyncio.create_task(provider.run(ADA, write, reads=False)) for _ in range(200)]
        await asyncio.sleep(0)
        name = await provider.run(ADA, lambda context: context.actor.name, reads=True)
        assert await asyncio.to_thread(lambda: "others") == "others"
        assert not any(one.done() for one in writes)
        may_go_on.set()
        return set(await asyncio.gather(*writes)), name

    assert asyncio.run(write_and_read()) == ({"mcp"}, "ada")
