"""`dragoman agent list` and `show`: who is known, by what, and what it does while a hub runs."""

from typing import Annotated

import msgspec
import typer

from dragoman.core import missing
from dragoman.core.errors import Refused
from dragoman.core.states.standing import AgentDescriptor, Reputation
from dragoman.engine.reads.ask import find_agent, list_agents
from dragoman.engine.reads.intents import find_standing
from dragoman.engine.shown.agents import AgentResource, agent_resource
from dragoman.surfaces.cli.agent.make import AgentArgument
from dragoman.surfaces.cli.agent.started import HubAgents, query_agent, query_page
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.verb import CliCommand

_TOKEN_STYLES = {"good": "green", "expired": "yellow", "revoked": "red"}
_AGENT_COLUMNS = (
    Column("NAME", "bold"),
    Column("ROLE"),
    Column("SPEAKS"),
    Column("TOKENS"),
    Column("PAUSED", "yellow"),
)
_WORK_COLUMN = Column("NOW")
_TOKEN_COLUMNS = (
    Column("TOKEN"),
    Column("STATE", styles=_TOKEN_STYLES),
    Column("ISSUED"),
    Column("EXPIRES"),
)


def list_registered(
    context: CommandContext,
    after: Annotated[
        str,
        typer.Option("--after", metavar="NAME", show_default=False, help="Begin after this name."),
    ] = "",
    limit: LimitOption = 100,
) -> CommandResult:
    """List agents and people by name.

    While a hub runs here, also what each agent that it starts does now, or why it takes no work:
    with --json as `started`, which is null for all others and when no hub runs or answers.

    \b
    Examples:
      dragoman agent list
      dragoman agent list --json
    """
    with context.open_readonly() as directory:
        now = directory.clock.now()
        records = list_agents(directory.store, after, limit + 1)
    page = [agent_resource(record, now) for record in records[:limit]]
    next_name = page[-1].name if len(records) > limit else None
    hub_agents = query_page(context, directory, after, limit)
    data = {"agents": [_agent_to_dict(agent, hub_agents) for agent in page], "next": next_name}

    def show_table(screen: Screen) -> None:
        if page:
            _print_agents(page, hub_agents, screen)
        else:
            screen.line("no agents yet: add one with `dragoman agent add NAME`")
        if next_name is not None:
            screen.line(f"There are more: add --after {next_name}")
        if hub_agents.needs_hub(*(agent.name for agent in page)):
            screen.line(f"no hub runs here that starts agents: `{context.next_command('up')}` does")

    return CommandResult(data, show_table)


def show(context: CommandContext, name: AgentArgument) -> CommandResult:
    """Show what is known of an agent or a person.

    Of its tokens their ids and times, never the tokens themselves. While a hub runs here that
    starts the agent, also which tasks it works on, why it takes no work, and what it has used
    today: with --json as `started`, else null.

    \b
    Example:
      dragoman agent show swe-backend
    """
    with context.open_readonly() as directory:
        now = directory.clock.now()
        record = find_agent(directory.store, name)
        standing = find_standing(directory.store, name)
    if record is None:
        raise Refused(missing.agent(name))
    agent, hub_agents = agent_resource(record, now), query_agent(context, directory, name)
    data = _agent_to_dict(agent, hub_agents)
    if standing is not None and standing.descriptor is not None:
        data["offer"] = {
            **msgspec.structs.asdict(standing.descriptor),
            "skills": list(standing.descriptor.skills),
            "successes": standing.successes,
            "failures": standing.failures,
            "open": standing.open,
        }

    def print_all(screen: Screen) -> None:
        _print_agent(agent, hub_agents, screen)
        if hub_agents.needs_hub(name):
            screen.line(f"no hub runs here that starts it: `{context.next_command('up')}` does")
        if standing is not None and standing.descriptor is not None:
            _print_capabilities(standing, standing.descriptor, screen)

    return CommandResult(data, print_all)


def _agent_to_dict(agent: AgentResource, hub_agents: HubAgents) -> dict[str, object]:
    """JSON object of one agent."""
    started = msgspec.to_builtins(hub_agents.status_of(agent.name))
    return {**msgspec.to_builtins(agent), "started": started}


def _print_agents(page: list[AgentResource], hub_agents: HubAgents, screen: Screen) -> None:
    rows = [(*_agent_row(agent), hub_agents.current_work(agent.name)) for agent in page]
    if any(now for *_, now in rows):
        screen.table((*_AGENT_COLUMNS, _WORK_COLUMN), rows)
    else:
        screen.table(_AGENT_COLUMNS, [row[:-1] for row in rows])


def _print_capabilities(standing: Reputation, descriptor: AgentDescriptor, screen: Screen) -> None:
    cost = f", costs {descriptor.cost:g}" if descriptor.cost else ""
    screen.line(f"can {', '.join(descriptor.skills)}; trust {descriptor.trust}{cost}")
    if descriptor.reach:
        screen.line(f"is at {descriptor.reach}")
    done = standing.successes + standing.failures
    if done:
        are = "is" if standing.open == 1 else "are"
        good = f"{standing.successes} of {done} requests went well"
        screen.line(f"{good}; {standing.open} {are} open")


def _agent_row(agent: AgentResource) -> tuple[str, ...]:
    good = sum(token.state == "good" for token in agent.tokens)
    paused = agent.paused
    until = "" if paused is None else f"until {paused.until}" if paused.until else "yes"
    tokens = str(good) if good else "none good"
    return agent.name, agent.role, ", ".join(agent.speaks), tokens, until


def _print_agent(agent: AgentResource, hub_agents: HubAgents, screen: Screen) -> None:
    screen.line((agent.name, "bold"), f" is {agent.role}, known since {agent.registered_at}")
    if agent.paused is not None:
        until = f" until {agent.paused.until}" if agent.paused.until else ""
        screen.line((f"paused since {agent.paused.since}{until}: ", "yellow"), agent.paused.reason)
    hub_agents.print(agent, screen)
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
        screen.table(_TOKEN_COLUMNS, rows)
    else:
        screen.line("it has no valid token")


LIST_COMMANDS = (
    CliCommand("list", list_registered, takes_as=False),
    CliCommand("show", show, takes_as=False),
)
