"""`agent list` and `show` beside a hub in its own process: work and idleness of agents."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.certificate import make_certificate
from tests.e2e.program import Program
from tests.e2e.test_up import get_json, run_hub
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-FLEET")

IDLE_AGENT = '[agents.eve]\ncommand = ["true"]\ntakes_unassigned = false\n'
BUSY_AGENT = '[agents.ada]\ncommand = ["sleep", "1000"]\ntakes_unassigned = false\n'
BROKEN_AGENT = '[agents.gone]\ncommand = ["./missing"]\ntakes_unassigned = false\n'
IDLE_STATUS: dict[str, object] = {
    "running": [],
    "attempts": 0,
    "minutes": 0,
    "output": 0,
    "cost": 0,
    "idle": None,
}
NOT_SHOWN = ": what agents work on, and why one takes no work, is not shown\n"


@pytest.fixture
def console(program: Program) -> Console:
    """Give a command line on the program's data directory, with an agent without work."""
    program.data.mkdir()
    (program.data / "dragoman.toml").write_text(IDLE_AGENT)
    console = Console(program.data)
    # A hub does it too, soon after it has printed its address.
    for name in ("ada", "eve", "gone"):
        console.ask("agent", "add", name, "--no-token")
    return console


def wait_until(console: Console, name: str, condition: Callable[[Any], bool]) -> None:
    """Wait until the status of an agent satisfies a condition."""
    while not condition(console.ask("agent", "show", name)["activity"]):
        continue


def test_list_and_show_describe_work_and_reasons_for_idleness(
    program: Program, console: Console
) -> None:
    (console.data / "dragoman.toml").write_text(IDLE_AGENT + BUSY_AGENT + BROKEN_AGENT)
    missing = f"gone could not be started: {Path('missing').absolute()}: No such file or directory"
    with run_hub(program) as running:
        console.ask("agent", "add", "ben", "--role", "human", "--no-token")
        console.ask("agent", "pause", "eve", "--reason", "it is enough")
        console.make("Login", "--id", "fix-login", "--ready", "--assignee", "ada")
        console.make("Logout", "--ready", "--assignee", "gone")
        wait_until(console, "ada", lambda one: one["running"] == ["fix-login"])
        wait_until(console, "gone", lambda one: one["idle"] == missing)
        while f"\ntakes no work: {missing}\n" not in console("agent", "show", "gone").out:
            continue  # the next attempt to start it is under way

        ada, eve = (console("agent", "show", name).out.splitlines() for name in ("ada", "eve"))
        assert ada[1] == "works on fix-login"
        assert ada[2].startswith("today (UTC): attempts 1, ")
        assert eve[1].endswith(": it is enough")
        assert eve[2] == "takes no work: it is enough"
        assert eve[3] == "today (UTC): attempts 0, 0 min, 0 bytes of output"
        rows = console("agent", "list").out.splitlines()
        assert rows[0].endswith("  PAUSED  NOW")
        assert rows[1].endswith("  works on fix-login")
        assert rows[2].split() == ["ben", "human", "none", "good"]
        assert rows[3].endswith("  yes     takes no work: it is enough")

        listed = console.ask("agent", "list", "--limit", "3")["agents"]
        api = get_json(f"{running.url}/v1/agents?limit=3", console.data)["agents"]
        assert [without_minutes(one) for one in listed] == [without_minutes(one) for one in api]
        assert listed[1]["activity"] is None
        page = console.ask("agent", "list", "--after", "ben", "--limit", "1")["agents"]
        assert page == listed[2:]


def without_minutes(agent: Any) -> Any:
    """The status of an agent without the minutes, which grow meanwhile."""
    return agent["name"], agent["activity"] and {**agent["activity"], "minutes": 0}


def test_hub_with_https_is_queried(program: Program, console: Console, tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    settings = f'{IDLE_AGENT}[http]\ntls_cert = "{made}"\ntls_key = "{made}"\n'
    (console.data / "dragoman.toml").write_text(settings)
    with run_hub(program) as running:
        assert running.url.startswith("https://")
        assert console.ask("agent", "show", "eve")["activity"] == IDLE_STATUS
        assert "\nworks on nothing\n" in console("agent", "show", "eve").out


def test_killed_hub_is_not_queried(program: Program, console: Console) -> None:
    with run_hub(program) as running:
        assert console.ask("agent", "show", "eve")["activity"] == IDLE_STATUS
        running.stop(signal.SIGKILL)
        assert running.url in (console.data / "hub.lock").read_text()
        shown = console("agent", "show", "eve")
        assert (shown.code, shown.err) == (0, "")
        assert "no hub runs here that starts agents: `dragoman up --data " in shown.out
        assert console.ask("agent", "show", "eve")["activity"] is None


def test_hanging_hub_is_abandoned_after_a_timeout(program: Program, console: Console) -> None:
    with run_hub(program) as running:
        running.process.send_signal(signal.SIGSTOP)
        result = console("agent", "list", "--json")
        assert result.code == 0
        assert [one["activity"] for one in result.json["agents"]] == [None] * 4
        silent = f"warning: the hub at {running.url} did not answer within 3 s{NOT_SHOWN}"
        assert result.err == silent
        running.process.send_signal(signal.SIGCONT)
        wait_until(console, "eve", lambda one: one == IDLE_STATUS)


def test_token_of_another_hub_is_a_warning(program: Program, console: Console) -> None:
    with run_hub(program) as running:
        (console.data / "token").write_text(f"drgo_{'A' * 43}\n")
        result = console("agent", "show", "eve")
        assert result.code == 0
        assert result.out.startswith("eve is agent, known since ")
        assert result.err.startswith(f"warning: the hub at {running.url} answered 401 (unauthent")
        assert result.err.endswith(NOT_SHOWN)
