"""Agents behind a URL: they are posted their work, and their messages are all that is known."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ReportOutcome
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.identity import Principal
from tests.agents.running_hub import FAST, RunningHub, agent_section, run, running_hub
from tests.notify.receiver import Receiver, receiving, status
from tests.requirements import proves


@pytest.fixture
def agent() -> Generator[Receiver]:
    """Give an agent that takes whatever it is posted."""
    with receiving() as receiver:
        yield receiver


def section(agent: Receiver, **settings: object) -> str:
    """The settings of an agent behind a URL."""
    lines = [f'[agents.ada]\nurl = "{agent.url()}"\nallow_hosts = ["127.0.0.1"]']
    return FAST + "\n".join([*lines, *(f"{k} = {json.dumps(v)}" for k, v in settings.items())])


def speaker(hub: RunningHub, agent: Receiver) -> Actor:
    """Whoever shows the token that was posted last."""
    who = hub.identity.who(json.loads(agent.requests[-1].body)["token"], "http")
    assert isinstance(who, Principal)
    return who.actor


@proves("RUN-REMOTE")
def test_it_is_posted_its_work_and_its_report_ends_the_attempt(
    tmp_path: Path, agent: Receiver
) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "data", section(agent)) as hub:
            task = hub.make("Look at the moon", body="Tonight.")
            await asyncio.to_thread(agent.is_done.wait, 30)
            posted = json.loads(agent.requests[0].body)
            assert agent.requests[0].headers["content-type"] == "application/json"
            assert posted["taskId"] == hub.task(task).aof_id
            assert (posted["agent"], posted["attempt"]) == ("ada", 1)
            assert posted["url"] == "http://hub"
            assert "Tonight." in posted["prompt"]
            assert f"/v1/tasks/{posted['taskId']}/report" in posted["prompt"]
            assert "standard output" not in posted["prompt"]
            lease = hub.view(task).lease
            assert lease is not None
            assert posted["id"] == lease.session
            hub.do(ReportOutcome(task, "done"), actor=speaker(hub, agent))
            await hub.until_status(task, "review")
            await hub.until_idle()
            assert len(agent.requests) == 1

    run(story())


@proves("RUN-REMOTE", "RUN-NOT-STARTED")
def test_one_that_does_not_take_it_rests_and_the_task_has_not_failed(
    tmp_path: Path, agent: Receiver
) -> None:
    agent.answers = [status(503)]

    async def story() -> None:
        async with running_hub(tmp_path / "data", section(agent)) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            await hub.until_idle()
            assert "answered 503" in hub.state("ada").paused
            assert hub.task(task).failures == 0

    run(story())


@proves("RUN-REMOTE")
def test_an_address_that_is_not_allowed_is_not_called(tmp_path: Path, agent: Receiver) -> None:
    settings = section(agent).replace('allow_hosts = ["127.0.0.1"]', "")

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            await hub.until_idle()
            assert "loopback" in hub.state("ada").paused
            assert agent.connections == 0

    run(story())


@proves("RUN-REMOTE", "DISPATCH-STOP", "DISPATCH-RESTART")
def test_it_goes_on_while_the_hub_is_away_and_is_posted_the_same_again(
    tmp_path: Path, agent: Receiver
) -> None:
    settings = section(agent).replace("grace_ms = 0", 'grace_ms = 0\non_stop = "keep"')

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await asyncio.to_thread(agent.is_done.wait, 30)
            hub.dispatcher.stop()
            await hub.until_idle()
            assert hub.task(task).status == "in-progress"
        agent.is_done.clear()
        async with running_hub(tmp_path / "data", settings) as hub:
            await asyncio.to_thread(agent.is_done.wait, 30)
            first, second = (json.loads(request.body) for request in agent.requests)
            assert first["id"] == second["id"]
            hub.do(ReportOutcome(task, "done"), actor=speaker(hub, agent))
            done = await hub.until_status(task, "review")
            assert done.attempts == 1

    run(story())


@proves("RUN-REMOTE", "DISPATCH-RESTART")
@pytest.mark.parametrize("successor", ["a program", "another URL"])
def test_one_that_is_elsewhere_by_the_next_start_shares_no_attempt_with_who_began_it(
    tmp_path: Path, agent: Receiver, successor: str
) -> None:
    keep = 'grace_ms = 0\non_stop = "keep"'
    before = section(agent).replace("grace_ms = 0", keep)
    after = before.replace(agent.url(), agent.url(path="/moved"))
    if successor == "a program":
        after = FAST.replace("grace_ms = 0", keep) + agent_section("ada", "report()")

    async def story() -> None:
        async with running_hub(tmp_path / "data", before) as hub:
            task = hub.make()
            await asyncio.to_thread(agent.is_done.wait, 30)
            hub.dispatcher.stop()
            await hub.until_idle()
            first = speaker(hub, agent)
            token = json.loads(agent.requests[-1].body)["token"]
        async with running_hub(tmp_path / "data", after) as hub:
            await hub.until(lambda: hub.task(task).attempts == 2)
            assert hub.task(task).failures == 0
            assert isinstance(hub.identity.who(token, "http"), Refusal)
            with pytest.raises(Refused, match="lease_lost"):
                hub.do(ReportOutcome(task, "done"), actor=first)

    run(story())


@proves("DISPATCH-STOP")
def test_who_goes_on_anyway_is_not_waited_for(tmp_path: Path, agent: Receiver) -> None:
    patient = 'grace_ms = 3600000\non_stop = "keep"'

    async def story() -> None:
        async with running_hub(
            tmp_path / "data", section(agent).replace("grace_ms = 0", patient)
        ) as hub:
            hub.make()
            await asyncio.to_thread(agent.is_done.wait, 30)
            await hub.until(lambda: len(hub.state("ada").running) == 1)
            hub.dispatcher.stop()
            await hub.until_idle()

    run(story())


@proves("RUN-REMOTE")
def test_one_that_is_silent_too_long_has_failed(tmp_path: Path, agent: Receiver) -> None:
    settings = "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n" + section(agent, attempt_ms=300)

    async def story() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).failures == 1)
            assert hub.task(task).status == "ready"

    run(story())
