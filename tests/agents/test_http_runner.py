"""Agents behind a URL: work is posted to them, and only their messages show their progress."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ReportOutcome
from dragoman.engine.auth import Principal
from tests.agents.running_hub import FAST, RunningHub, run, running_hub
from tests.notify.receiver import Receiver, receiving, status
from tests.requirements import proves


@pytest.fixture
def agent() -> Generator[Receiver]:
    """Give an agent that accepts everything that is posted to it."""
    with receiving() as receiver:
        yield receiver


def remote_section(agent: Receiver, **settings: object) -> str:
    """Settings of an agent behind a URL."""
    lines = [f'[agents.ada]\nurl = "{agent.url()}"\nallow_hosts = ["127.0.0.1"]']
    return FAST + "\n".join([*lines, *(f"{k} = {json.dumps(v)}" for k, v in settings.items())])


def token_holder(hub: RunningHub, agent: Receiver) -> Actor:
    """The principal of the token that was posted last."""
    principal = hub.identity.authenticate(json.loads(agent.requests[-1].body)["token"], "http")
    assert isinstance(principal, Principal)
    return principal.actor


@proves("RUN-REMOTE")
def test_remote_agent_is_posted_its_work_and_its_report_ends_the_attempt(
    tmp_path: Path, agent: Receiver
) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", remote_section(agent)) as hub:
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
            hub.do(ReportOutcome(task, "done"), actor=token_holder(hub, agent))
            await hub.until_status(task, "review")
            await hub.until_idle()
            assert len(agent.requests) == 1

    run(scenario())


@proves("RUN-REMOTE", "RUN-NOT-STARTED")
def test_agent_that_refuses_work_is_paused_without_failing_the_task(
    tmp_path: Path, agent: Receiver
) -> None:
    agent.answers = [status(503)]

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", remote_section(agent)) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            await hub.until_idle()
            assert "answered 503" in hub.state("ada").idle_reason
            assert hub.task(task).failures == 0

    run(scenario())


@proves("RUN-REMOTE")
def test_disallowed_address_is_not_called(tmp_path: Path, agent: Receiver) -> None:
    settings = remote_section(agent).replace('allow_hosts = ["127.0.0.1"]', "")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1 and hub.view(task).lease is None)
            await hub.until_idle()
            assert "127.0.0.1, an address that is not public" in hub.state("ada").idle_reason
            assert agent.connections == 0

    run(scenario())


@proves("RUN-REMOTE")
def test_remote_agent_that_stays_silent_fails_the_attempt(tmp_path: Path, agent: Receiver) -> None:
    settings = "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n" + remote_section(
        agent, attempt_ms=300
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).failures == 1)
            assert hub.task(task).status == "ready"

    run(scenario())
