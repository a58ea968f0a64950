"""A program that a hub has started: its task, by the variables that it was given."""

from pathlib import Path

import pytest

from dragoman.client import HubUnreachable, LeaseLost, connect, connect_sync
from dragoman.config import HttpSettings
from dragoman.core.commands import ClaimTask, MoveTask
from dragoman.core.errors import SettingsError
from tests.certificate import make_certificate
from tests.client.stage import BEAT_MS, Stage, run
from tests.requirements import proves
from tests.surfaces.http.house import House, serving

pytestmark = proves("SDK-ASSIGNED")


@pytest.fixture
def task(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a task for which ada was started, in surroundings as hers are."""
    task = stage.create("Mine", review_required=False)
    got = stage.house.hub.do(stage.owner, ClaimTask(task, "ada", "s-1")).receipts[0]
    token = stage.house.identity.attempt_token("ada", got.task, got.fence, 60_000)
    monkeypatch.setenv("DRAGOMAN_URL", stage.url)
    monkeypatch.setenv("DRAGOMAN_TOKEN", token)
    monkeypatch.setenv("DRAGOMAN_TASK", task)
    monkeypatch.setenv("DRAGOMAN_AGENT", "ada")
    return task


def test_it_is_worked_on_and_ended_as_any_other(stage: Stage, task: str) -> None:
    async def agent() -> None:
        async with connect() as hub, await hub.assigned() as work:
            assert (work.task.id, work.agent, work.attempt, work.fence) == (task, "ada", 1, 1)
            await work.progress("half way")
            await work.complete()

    run(agent())
    assert stage.status(task) == "done"


def test_without_a_loop_too(stage: Stage, task: str) -> None:
    with connect_sync() as hub, hub.assigned() as work:
        work.complete()
    assert stage.status(task) == "done"


def test_a_hub_is_known_by_its_certificate_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(make_certificate(tmp_path))  # made out to another name than 127.0.0.1
    http = HttpSettings(port=0, rate_per_second=0, tls_cert=path, tls_key=path)
    with serving(House(http=http)) as house:
        monkeypatch.setenv("DRAGOMAN_URL", f"https://127.0.0.1:{house.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", house.tokens["owner"])

        async def made() -> str:
            async with connect(patience=0) as hub:
                return (await hub.create("One")).title

        with pytest.raises(HubUnreachable, match=r"certificate .*not trusted here.*DRAGOMAN_CERT"):
            run(made())
        monkeypatch.setenv("DRAGOMAN_CERT", path)
        assert run(made()) == "One"
        other = tmp_path / "other"
        other.mkdir()
        monkeypatch.setenv("DRAGOMAN_CERT", str(make_certificate(other)))
        with pytest.raises(HubUnreachable, match=r"certificate .*not trusted here.*DRAGOMAN_CERT"):
            run(made())


def test_its_loss_is_noticed(stage: Stage, task: str) -> None:
    async def agent() -> None:
        async with connect() as hub, await hub.assigned(beat_ms=BEAT_MS) as work:
            stage.house.do(MoveTask(task, "cancelled"))
            while True:
                await work.progress("on and on")

    with pytest.raises(LeaseLost):
        run(agent())


def test_a_program_that_no_hub_has_started_is_told_so(
    stage: Stage, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stage.status(task) == "in-progress"
    monkeypatch.delenv("DRAGOMAN_TASK")

    async def agent() -> None:
        async with connect() as hub:
            await hub.assigned()

    with pytest.raises(SettingsError, match="no hub has started this program"):
        run(agent())
