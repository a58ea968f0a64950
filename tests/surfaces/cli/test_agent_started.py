"""agent list and show: what agents do that a hub starts, in words; without one, all else."""

import pytest

from dragoman.bootstrap import open_look
from dragoman.engine.shown.agents import Started
from dragoman.surfaces.cli.agent.started import Fleet
from dragoman.system.hub_lock import HubLock
from dragoman.system.token_file import load_or_create_token
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-FLEET")

AGENTS = '[agents.ada]\ncommand = ["true"]\n'
NOBODY_LISTENS = "http://127.0.0.1:1"


@pytest.fixture
def office(dragoman: Console) -> Console:
    """Give a data directory that has ada in its settings, and ben only among the known."""
    dragoman("init")
    for name in ("ada", "ben"):
        dragoman("agent", "add", name, "--no-token")
    with (dragoman.data / "dragoman.toml").open("a") as settings:
        settings.write(AGENTS)
    return dragoman


def started(*running: str, idle: str | None = None) -> Started:
    return Started(running=running, attempts=0, minutes=0, output=0, cost=0, idle=idle)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (started(), "works on nothing"),
        (started("t-1", "t-2"), "works on t-1, t-2"),
        (started(idle="it is broken"), "takes no work: it is broken"),
        (started("t-1", idle="it is paused"), "works on t-1; takes no more work: it is paused"),
        (
            None,
            "takes no work: the hub began before the settings named it: start the hub again",
        ),
    ],
)
def test_what_one_does_is_told_in_a_few_words(
    office: Console, known: Started | None, words: str
) -> None:
    look = open_look(office.data, "", None)
    look.store.close()
    fleet = Fleet(look, {"ada": known, "ben": None})
    assert fleet.now("ada") == words
    assert fleet.now("ben") == fleet.now("nobody") == ""


def test_without_a_hub_nobody_is_told_to_do_anything_and_how_that_is_mended(
    office: Console,
) -> None:
    start = f"`dragoman up --data {office.data}` does"
    listed = office("agent", "list")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[0].split()[-1] == "PAUSED"
    assert listed.out.splitlines()[-1] == f"no hub runs here that starts agents: {start}"
    shown = office("agent", "show", "ada").out.splitlines()
    assert shown[-1] == f"no hub runs here that starts it: {start}"
    assert [one["started"] for one in office.ask("agent", "list")["agents"]] == [None, None]
    assert office.ask("agent", "show", "ada")["started"] is None


def test_whom_no_hub_would_start_is_shown_as_before(office: Console) -> None:
    assert "hub" not in office("agent", "show", "ben").out
    (office.data / "dragoman.toml").unlink()
    assert "hub" not in office("agent", "list").out


def test_a_hub_whose_door_is_closed_is_named_and_all_else_is_told(office: Console) -> None:
    load_or_create_token(office.data)
    with HubLock.acquire(office.data, "dragoman up") as lock:
        lock.announce(NOBODY_LISTENS)
        listed, shown = office("agent", "list"), office("agent", "show", "ada")
        program = office("agent", "show", "ada", "--json")
    for said in (listed, shown, program):
        assert said.code == 0
        assert said.err == (
            f"warning: the hub at {NOBODY_LISTENS} cannot be asked (Connection refused): what "
            "agents work on, and why one takes no work, is not shown\n"
        )
    assert [line.split()[0] for line in listed.out.splitlines()] == ["NAME", "ada", "ben"]
    assert shown.out.startswith("ada is agent, known since ")
    assert program.json["started"] is None


def test_an_address_that_a_dead_hub_has_left_is_not_asked(office: Console) -> None:
    load_or_create_token(office.data)
    with HubLock.acquire(office.data, "dragoman up") as lock:
        lock.announce(NOBODY_LISTENS)
        left = (office.data / "hub.lock").read_bytes()
    (office.data / "hub.lock").write_bytes(left)
    said = office("agent", "list")
    assert (said.code, said.err) == (0, "")
    assert "no hub runs here" in said.out
