"""Whoever waits for the writer through MCP keeps nobody from reading."""

import asyncio
import threading

from dragoman.core.actors import Actor
from dragoman.engine.identity import Principal
from dragoman.surfaces.mcp.desk import Desk, HubRoom
from tests.requirements import proves
from tests.surfaces.http.house import House

ADA = Principal(Actor("agent", "ada", "http"))


@proves("MCP-TOOLS")
def test_waiting_writes_block_no_read() -> None:
    house, may_go_on = House(), threading.Event()
    room = HubRoom(house.hub, house.door.interpreter, house.door.settings)

    def write(desk: Desk) -> str:
        assert may_go_on.wait(30)
        return desk.actor.via

    async def talk() -> tuple[set[str], str]:
        waiting = [asyncio.create_task(room.at_desk(ADA, write, reads=False)) for _ in range(200)]
        await asyncio.sleep(0)
        seen = await room.at_desk(ADA, lambda desk: desk.actor.name, reads=True)
        assert await asyncio.to_thread(lambda: "others") == "others"
        assert not any(one.done() for one in waiting)
        may_go_on.set()
        return set(await asyncio.gather(*waiting)), seen

    assert asyncio.run(talk()) == ({"mcp"}, "ada")
