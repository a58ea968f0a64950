"""Agents behind a URL: work is posted to them, and only their messages show their progress."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ReportOutcome
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.auth import Principal
from tests.agents.running_hub import FAST, RunningHub, agent_section, run, running_hub
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
            assert "loopback" in hub.state("ada").idle_reason
            assert agent.connections == 0

    run(scenario())


@proves("RUN-REMOTE", "DISPATCH-STOP", "DISPATCH-RESTART")
def test_attempt_continues_across_a_hub_restart_and_is_posted_again(
    tmp_path: Path, agent: Receiver
) -> None:
    settings = remote_section(agent).replace("drain_ms = 0", 'drain_ms = 0\non_stop = "keep"')

    async def scenario() -> None:
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
            hub.do(ReportOutcome(task, "done"), actor=token_holder(hub, agent))
            done = await hub.until_status(task, "review")
            assert done.attempts == 1

    run(scenario())


@proves("RUN-REMOTE", "DISPATCH-RESTART")
@pytest.mark.parametrize("successor", ["program", "other-url"])
def test_agent_moved_between_starts_gets_a_new_attempt(
    tmp_path: Path, agent: Receiver, successor: str
) -> None:
    keep = 'drain_ms = 0\non_stop = "keep"'
    before = remote_section(agent).replace("drain_ms = 0", keep)
    after = before.replace(agent.url(), agent.url(path="/moved"))
    if successor == "program":
        after = FAST.replace("drain_ms = 0", keep) + agent_section("ada", "report()")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", before) as hub:
            task = hub.make()
            await asyncio.to_thread(agent.is_done.wait, 30)
            hub.dispatcher.stop()
            await hub.until_idle()
            first = token_holder(hub, agent)
            token = json.loads(agent.requests[-1].body)["token"]
        async with running_hub(tmp_path / "data", after) as hub:
            await hub.until(lambda: hub.task(task).attempts == 2)
            assert hub.task(task).failures == 0
            assert isinstance(hub.identity.authenticate(token, "http"), Refusal)
            with pytest.raises(Refused, match="lease_lost"):
                hub.do(ReportOutcome(task, "done"), actor=first)

    run(scenario())


@proves("DISPATCH-STOP")
def test_stop_does_not_wait_for_a_remote_agent_that_keeps_its_lease(
    tmp_path: Path, agent: Receiver
) -> None:
    long_grace = 'drain_ms = 3600000\non_stop = "keep"'

    async def scenario() -> None:
        async with running_hub(
            tmp_path / "data", remote_section(agent).replace("drain_ms = 0", long_grace)
        ) as hub:
            hub.make()
            await asyncio.to_thread(agent.is_done.wait, 30)
            await hub.until(lambda: len(hub.state("ada").running_tasks) == 1)
            hub.dispatcher.stop()
            await hub.until_idle()

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
