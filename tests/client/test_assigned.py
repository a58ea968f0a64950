"""Program that a hub has started: its task, from its environment variables."""

from pathlib import Path

import pytest

from dragoman.client import HubUnreachable, LeaseLost, connect, connect_sync
from dragoman.config import HttpSettings
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import SettingsError
from dragoman.core.task_state import MoveTask
from tests.certificate import make_certificate
from tests.client.backend import HEARTBEAT_MS, Backend, run
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("SDK-ASSIGNED")


@pytest.fixture
def task(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a task for which ada was started, with the environment of its program."""
    task = backend.create_task("Mine", review_required=False)
    receipt = backend.server.hub.submit(backend.owner, ClaimTask(task, "ada", "s-1")).receipts[0]
    token = backend.server.identity.issue_attempt_token("ada", receipt.task, receipt.fence, 60_000)
    monkeypatch.setenv("DRAGOMAN_URL", backend.url)
    monkeypatch.setenv("DRAGOMAN_TOKEN", token)
    monkeypatch.setenv("DRAGOMAN_TASK", task)
    monkeypatch.setenv("DRAGOMAN_AGENT", "ada")
    return task


def test_assigned_task_is_worked_on_and_completed(backend: Backend, task: str) -> None:
    async def agent() -> None:
        async with connect() as hub, await hub.assigned() as work:
            assert (work.task.id, work.agent, work.attempt, work.fence) == (task, "ada", 1, 1)
            assert work.briefing is None
            await work.progress("half way")
            await work.complete()

    run(agent())
    assert backend.status(task) == "done"


def test_assigned_task_is_completed_by_sync_client(backend: Backend, task: str) -> None:
    with connect_sync() as hub, hub.assigned() as work:
        work.complete()
    assert backend.status(task) == "done"


def test_pinned_certificate_is_trusted_under_any_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(make_certificate(tmp_path))  # its host name is not 127.0.0.1
    http = HttpSettings(port=0, rate_per_second=0, tls_cert=path, tls_key=path)
    with serving(HubServer(http=http)) as server:
        monkeypatch.setenv("DRAGOMAN_URL", f"https://127.0.0.1:{server.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", server.tokens["owner"])

        async def create_task() -> str:
            async with connect(patience=0) as hub:
                return (await hub.create("One")).title

        with pytest.raises(HubUnreachable, match=r"certificate .*not trusted here.*DRAGOMAN_CERT"):
            run(create_task())
        monkeypatch.setenv("DRAGOMAN_CERT", path)
        assert run(create_task()) == "One"
        other_folder = tmp_path / "other"
        other_folder.mkdir()
        monkeypatch.setenv("DRAGOMAN_CERT", str(make_certificate(other_folder)))
        with pytest.raises(HubUnreachable, match=r"certificate .*not trusted here.*DRAGOMAN_CERT"):
            run(create_task())


def test_lost_lease_of_assigned_task_is_noticed(backend: Backend, task: str) -> None:
    async def agent() -> None:
        async with connect() as hub, await hub.assigned(beat_ms=HEARTBEAT_MS) as work:
            backend.server.submit(MoveTask(task, "cancelled"))
            while True:
                await work.progress("on and on")

    with pytest.raises(LeaseLost):
        run(agent())


def test_program_without_assigned_task_is_refused(
    backend: Backend, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backend.status(task) == "in-progress"
    monkeypatch.delenv("DRAGOMAN_TASK")

    async def agent() -> None:
        async with connect() as hub:
            await hub.assigned()

    with pytest.raises(SettingsError, match="no hub has started this program"):
        run(agent())
