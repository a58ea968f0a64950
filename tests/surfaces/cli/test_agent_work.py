"""`agent list` and `show`: work of agents that a hub starts, with and without a running hub."""

import msgspec
import pytest

from dragoman.engine.schemas.agents import AgentActivity
from dragoman.engine.sentences import fill
from dragoman.surfaces.cli.commands.agent import WORK
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.hub_lock import HubLock
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-FLEET")

SETTINGS = '[agents.ada]\ncommand = ["true"]\n'
UNREACHABLE_URL = "http://127.0.0.1:1"


@pytest.fixture
def console(dragoman: Console) -> Console:
    """Give a data directory with ada in its settings, and ben registered only."""
    dragoman("init")
    for name in ("ada", "ben"):
        dragoman("agent", "add", name, "--no-token")
    with (dragoman.data / "dragoman.toml").open("a") as settings:
        settings.write(SETTINGS)
    return dragoman


def make_activity(*running: str, idle: str | None = None) -> AgentActivity:
    return AgentActivity(running=running, attempts=0, minutes=0, output=0, cost=0, idle=idle)


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        (make_activity(), "works on nothing"),
        (make_activity("t-1", "t-2"), "works on t-1, t-2"),
        (make_activity(idle="it is broken"), "takes no work: it is broken"),
        (
            make_activity("t-1", idle="it is paused"),
            "works on t-1; takes no more work: it is paused",
        ),
        (None, ""),
    ],
)
def test_agent_activity_is_described_in_one_line(
    activity: AgentActivity | None, expected: str
) -> None:
    assert fill(WORK, {"activity": msgspec.to_builtins(activity)}) == expected


def test_missing_hub_is_reported_with_the_command_that_starts_one(
    console: Console,
) -> None:
    start = f"`dragoman up --data {console.data}` does"
    listed = console("agent", "list")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[0].split()[-1] == "PAUSED"
    assert listed.out.splitlines()[-1] == f"no hub runs here that starts agents: {start}"
    shown = console("agent", "show", "ada").out.splitlines()
    assert shown[-1] == f"no hub runs here that starts agents: {start}"
    assert [one["activity"] for one in console.ask("agent", "list")["agents"]] == [None] * 3
    assert console.ask("agent", "show", "ada")["activity"] is None


def test_agent_without_runner_shows_no_hub_hint(console: Console) -> None:
    assert "hub" not in console("agent", "show", "ben").out
    (console.data / "dragoman.toml").unlink()
    assert "hub" not in console("agent", "list").out


def test_unreachable_hub_is_a_warning_and_agents_are_still_shown(console: Console) -> None:
    load_or_create_token(console.data)
    with HubLock.acquire(console.data, "dragoman up") as lock:
        lock.announce_url(UNREACHABLE_URL)
        listed, shown = console("agent", "list"), console("agent", "show", "ada")
        program = console("agent", "show", "ada", "--json")
    for result in (listed, shown, program):
        assert result.code == 0
        assert result.err == (
            f"warning: the hub at {UNREACHABLE_URL} cannot be asked (Connection refused): what "
            "agents work on, and why one takes no work, is not shown\n"
        )
    assert [line.split()[0] for line in listed.out.splitlines()] == ["NAME", "ada", "ben", "owner"]
    assert shown.out.startswith("ada is agent, known since ")
    assert program.json["activity"] is None


def test_address_left_by_a_dead_hub_is_not_called(console: Console) -> None:
    load_or_create_token(console.data)
    with HubLock.acquire(console.data, "dragoman up") as lock:
        lock.announce_url(UNREACHABLE_URL)
        content = (console.data / "hub.lock").read_bytes()
    (console.data / "hub.lock").write_bytes(content)
    result = console("agent", "list")
    assert (result.code, result.err) == (0, "")
    assert "no hub runs here" in result.out
