"""agent list and show beside a hub in a process of its own: what its agents do, and why not."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.certificate import make_certificate
from tests.e2e.program import Program
from tests.e2e.test_up import hub, look
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-FLEET")

FREE = '[agents.eve]\ncommand = ["true"]\ntakes_any = false\n'
BUSY = '[agents.ada]\ncommand = ["sleep", "1000"]\ntakes_any = false\n'
BROKEN = '[agents.gone]\ncommand = ["./missing"]\ntakes_any = false\n'
WAITS: dict[str, object] = {
    "running": [],
    "attempts": 0,
    "minutes": 0,
    "output": 0,
    "cost": 0,
    "idle": None,
}
NOT_SHOWN = ": what agents work on, and why one takes no work, is not shown\n"


@pytest.fixture
def office(program: Program) -> Console:
    """Give a command line on the program's data directory, with an agent that has no work."""
    program.data.mkdir()
    (program.data / "dragoman.toml").write_text(FREE)
    office = Console(program.data)
    for name in ("ada", "eve", "gone"):  # a hub does it too, a moment after it has said it listens
        office.ask("agent", "add", name, "--no-token")
    return office


def until(office: Console, name: str, is_so: Callable[[Any], bool]) -> None:
    """Wait until it is so with one that the hub starts."""
    while not is_so(office.ask("agent", "show", name)["started"]):
        continue


def test_a_person_sees_what_agents_work_on_and_why_one_takes_no_work(
    program: Program, office: Console
) -> None:
    (office.data / "dragoman.toml").write_text(FREE + BUSY + BROKEN)
    missing = f"gone could not be started: {Path('missing').absolute()}: No such file or directory"
    with hub(program) as running:
        office.ask("agent", "add", "ben", "--role", "human", "--no-token")
        office.ask("agent", "pause", "eve", "--reason", "it is enough")
        office.make("Login", "--id", "fix-login", "--ready", "--assignee", "ada")
        office.make("Logout", "--ready", "--assignee", "gone")
        until(office, "ada", lambda one: one["running"] == ["fix-login"])
        until(office, "gone", lambda one: one["idle"] == missing)
        while f"\ntakes no work: {missing}\n" not in office("agent", "show", "gone").out:
            continue  # it is just being tried again

        ada, eve = (office("agent", "show", name).out.splitlines() for name in ("ada", "eve"))
        assert ada[1] == "works on fix-login"
        assert ada[2].startswith("today (UTC): 1 attempt, ")
        assert eve[1].endswith(": it is enough")
        assert eve[2] == "today (UTC): 0 attempts, 0 min, 0 bytes of output"
        rows = office("agent", "list").out.splitlines()
        assert rows[0].endswith("  PAUSED  NOW")
        assert rows[1].endswith("  works on fix-login")
        assert rows[2].split() == ["ben", "human", "none", "good"]
        assert rows[3].endswith("  yes     takes no work: it is enough")

        listed = office.ask("agent", "list", "--limit", "3")["agents"]
        api = look(f"{running.url}/v1/agents?limit=3", office.data)["agents"]
        assert [untimed(one) for one in listed] == [untimed(one) for one in api]
        assert listed[1]["started"] is None
        page = office.ask("agent", "list", "--after", "ben", "--limit", "1")["agents"]
        assert page == listed[2:]


def untimed(agent: Any) -> Any:
    """What is told of a started agent, without what grows while one looks."""
    return agent["name"], agent["started"] and {**agent["started"], "minutes": 0}


def test_a_hub_that_speaks_https_is_asked_too(
    program: Program, office: Console, tmp_path: Path
) -> None:
    made = make_certificate(tmp_path)
    settings = f'{FREE}[http]\ntls_cert = "{made}"\ntls_key = "{made}"\n'
    (office.data / "dragoman.toml").write_text(settings)
    with hub(program) as running:
        assert running.url.startswith("https://")
        assert office.ask("agent", "show", "eve")["started"] == WAITS
        assert "\nworks on nothing\n" in office("agent", "show", "eve").out


def test_a_hub_that_was_killed_is_not_asked_though_its_address_is_left(
    program: Program, office: Console
) -> None:
    with hub(program) as running:
        assert office.ask("agent", "show", "eve")["started"] == WAITS
        running.stop(signal.SIGKILL)
        assert running.url in (office.data / "hub.lock").read_text()
        shown = office("agent", "show", "eve")
        assert (shown.code, shown.err) == (0, "")
        assert "no hub runs here that starts it: `dragoman up --data " in shown.out
        assert office.ask("agent", "show", "eve")["started"] is None


def test_a_hub_that_hangs_is_not_waited_for_for_long(program: Program, office: Console) -> None:
    with hub(program) as running:
        running.process.send_signal(signal.SIGSTOP)
        said = office("agent", "list", "--json")
        assert said.code == 0
        assert [one["started"] for one in said.json["agents"]] == [None, None, None]
        silent = f"warning: the hub at {running.url} did not answer within 3 s{NOT_SHOWN}"
        assert said.err == silent
        running.process.send_signal(signal.SIGCONT)
        until(office, "eve", lambda one: one == WAITS)


def test_a_token_that_is_not_the_hub_s_any_more_is_told(program: Program, office: Console) -> None:
    with hub(program) as running:
        (office.data / "token").write_text(f"drgo_{'A' * 43}\n")
        said = office("agent", "show", "eve")
        assert said.code == 0
        assert said.out.startswith("eve is agent, known since ")
        assert said.err.startswith(f"warning: the hub at {running.url} answered 401 (unauthent")
        assert said.err.endswith(NOT_SHOWN)
