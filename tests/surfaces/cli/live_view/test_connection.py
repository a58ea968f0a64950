"""Connection of the live view: lost and found again, refused, and streams that skip."""

import asyncio
from contextlib import ExitStack

import pytest

from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.live_view.fleet_app import FleetApp
from dragoman.surfaces.cli.live_view.hub_api import HubApi, HubLocation
from tests.requirements import proves
from tests.surfaces.cli.live_view.viewer import in_thread, location_of, run, viewing
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("TOP-CONNECTION")


def test_restart_of_the_hub_at_another_port_is_recovered_from(server: HubServer) -> None:
    async def scene() -> None:
        with ExitStack() as first, ExitStack() as second:
            hub = first.enter_context(serving(HubServer()))
            for number in range(3):
                hub.post("/v1/tasks", {"title": f"Before {number}", "ready": True})
            found = [location_of(hub)]
            async with viewing(hub, locate=lambda: found[0]) as view:
                await view.see("○ 3 ready")
                await in_thread(first.close)
                await view.see("● lost, as of")
                again = second.enter_context(serving(HubServer()))
                found[0] = location_of(again)
                await view.see("● live", "no tasks yet")
                again.post("/v1/tasks", {"id": "two", "title": "After", "ready": True})
                await view.see("○ 1 ready")
                # The ledger there ends before the position up to which this one was read.
                await view.press("3")
                await view.see("are not shown here", "two created")
                await in_thread(second.close)

    run(scene)


def fault_at_start(location: HubLocation) -> DragomanError | None:
    """Start the live view at a hub; the error that it ends with."""

    async def start() -> DragomanError | None:
        app = FleetApp(HubApi(lambda: location))
        async with app.run_test() as pilot:
            async with asyncio.timeout(60):
                while app.return_value is None:
                    await pilot.pause()
        return app.return_value

    return asyncio.run(start())


def test_unknown_token_is_refused_in_words(server: HubServer) -> None:
    fault = fault_at_start(HubLocation(f"http://127.0.0.1:{server.port}", "drgo_unknown"))
    assert fault is not None
    assert fault.code == "unauthenticated"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://no hub", "gopher://127.0.0.1"])
def test_hub_that_does_not_answer_is_named(url: str) -> None:
    fault = fault_at_start(HubLocation(url, "drgo_x"))
    assert fault is not None
    assert fault.code == "store_unavailable"
    assert f"the hub at {url} does not answer" in fault.detail
