"""`dragoman agent list` and `show`: who is known, by what, and what it does while a hub runs."""

from typing import Annotated

import msgspec
import typer

from dragoman.core import missing
from dragoman.core.errors import Refused
from dragoman.core.states.standing import Descriptor, Standing
from dragoman.engine.reads.ask import find_agent, list_agents
from dragoman.engine.reads.intents import find_standing
from dragoman.engine.shown.agents import ShownAgent, shown_agent
from dragoman.surfaces.cli.agent.make import NameArgument
from dragoman.surfaces.cli.agent.started import Fleet, ask_of_one, ask_of_page
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.verb import Verb

_STATES = {"good": "green", "expired": "yellow", "revoked": "red"}
_AGENTS = (
    Column("NAME", "bold"),
    Column("ROLE"),
    Column("SPEAKS"),
    Column("TOKENS"),
    Column("PAUSED", "yellow"),
)
_NOW = Column("NOW")
_TOKENS = (Column("TOKEN"), Column("STATE", styles=_STATES), Column("ISSUED"), Column("EXPIRES"))


def list_known(
    call: Call,
    after: Annotated[
        str,
        typer.Option("--after", metavar="NAME", show_default=False, help="Begin after this name."),
    ] = "",
    limit: LimitOption = 100,
) -> Answer:
    """List agents and people by name.

    While a hub runs here, also what each agent that it starts does now, or why it takes no work:
    with --json as `started`, which is null for all others and when no hub runs or answers.

    \b
    Examples:
      dragoman agent list
      dragoman agent list --json
    """
    with call.looking() as look:
        now = look.clock.now()
        found = list_agents(look.store, after, limit + 1)
    page = [shown_agent(record, now) for record in found[:limit]]
    further = page[-1].name if len(found) > limit else None
    fleet = ask_of_page(call, look, after, limit)
    data = {"agents": [_told(agent, fleet) for agent in page], "next": further}

    def show_table(screen: Screen) -> None:
        if page:
            _print_page(page, fleet, screen)
        else:
            screen.line("no agents yet: add one with `dragoman agent add NAME`")
        if further is not None:
            screen.line(f"There are more: add --after {further}")
        if fleet.is_missed(*(agent.name for agent in page)):
            screen.line(f"no hub runs here that starts agents: `{call.next_command('up')}` does")

    return Answer(data, show_table)


def show(call: Call, name: NameArgument) -> Answer:
    """Show what is known of an agent or a person.

    Of its tokens their ids and times, never the tokens themselves. While a hub runs here that
    starts the agent, also which tasks it works on, why it takes no work, and what it has used
    today: with --json as `started`, else null.

    \b
    Example:
      dragoman agent show swe-backend
    """
    with call.looking() as look:
        now = look.clock.now()
        record = find_agent(look.store, name)
        standing = find_standing(look.store, name)
    if record is None:
        raise Refused(missing.agent(name))
    agent, fleet = shown_agent(record, now), ask_of_one(call, look, name)
    data = _told(agent, fleet)
    if standing is not None and standing.descriptor is not None:
        data["offer"] = {
            **msgspec.structs.asdict(standing.descriptor),
            "skills": list(standing.descriptor.skills),
            "successes": standing.successes,
            "failures": standing.failures,
            "open": standing.open,
        }

    def print_all(screen: Screen) -> None:
        _print(agent, fleet, screen)
        if fleet.is_missed(name):
            screen.line(f"no hub runs here that starts it: `{call.next_command('up')}` does")
        if standing is not None and standing.descriptor is not None:
            _print_offer(standing, standing.descriptor, screen)

    return Answer(data, print_all)


def _told(agent: ShownAgent, fleet: Fleet) -> dict[str, object]:
    """JSON object of one agent."""
    started = msgspec.to_builtins(fleet.started(agent.name))
    return {**msgspec.to_builtins(agent), "started": started}


def _print_page(page: list[ShownAgent], fleet: Fleet, screen: Screen) -> None:
    rows = [(*_row(agent), fleet.now(agent.name)) for agent in page]
    if any(now for *_, now in rows):
        screen.table((*_AGENTS, _NOW), rows)
    else:
        screen.table(_AGENTS, [row[:-1] for row in rows])


def _print_offer(standing: Standing, descriptor: Descriptor, screen: Screen) -> None:
    cost = f", costs {descriptor.cost:g}" if descriptor.cost else ""
    screen.line(f"can {', '.join(descriptor.skills)}; trust {descriptor.trust}{cost}")
    if descriptor.reach:
        screen.line(f"is at {descriptor.reach}")
    done = standing.successes + standing.failures
    if done:
        are = "is" if standing.open == 1 else "are"
        good = f"{standing.successes} of {done} requests went well"
        screen.line(f"{good}; {standing.open} {are} open")


def _row(agent: ShownAgent) -> tuple[str, ...]:
    good = sum(token.state == "good" for token in agent.tokens)
    paused = agent.paused
    until = "" if paused is None else f"until {paused.until}" if paused.until else "yes"
    tokens = str(good) if good else "none good"
    return agent.name, agent.role, ", ".join(agent.speaks), tokens, until


def _print(agent: ShownAgent, fleet: Fleet, screen: Screen) -> None:
    screen.line((agent.name, "bold"), f" is {agent.role}, known since {agent.registered_at}")
    if agent.paused is not None:
        until = f" until {agent.paused.until}" if agent.paused.until else ""
        screen.line((f"paused since {agent.paused.since}{until}: ", "yellow"), agent.paused.reason)
    fleet.print(agent, screen)
    if agent.speaks:
        screen.line(f"speaks {', '.join(agent.speaks)}")
    if agent.saop_role is not None:
        screen.line(f"plays the {agent.saop_role} in SAOP")
    if agent.key is not None:
        screen.line(f"signs with the Ed25519 key {agent.key}")
    if agent.former_key_until is not None:
        screen.line(f"its key before that is good until {agent.former_key_until}")
    if agent.tokens:
        rows = [
            (token.id, token.state, token.issued_at, token.expires_at) for token in agent.tokens
        ]
        screen.table(_TOKENS, rows)
    else:
        screen.line("it has no valid token")


VERBS = (Verb("list", list_known, speaks=False), Verb("show", show, speaks=False))
