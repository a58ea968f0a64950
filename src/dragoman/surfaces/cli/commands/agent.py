"""`dragoman agent`: register agents and people, their tokens, keys and capabilities."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.agent import (
    DEFAULT_PAUSE_REASON,
    AgentDescriptor,
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    Reputation,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
    Trust,
)
from dragoman.core.base import Role
from dragoman.core.command_table import AnyCommand
from dragoman.core.errors import Refused, StoreUnavailable
from dragoman.core.limits import TOKEN_LIFETIME_RANGE_MS
from dragoman.core.timestamps import format_duration, parse_duration, to_rfc3339
from dragoman.engine.queries.agents import find_agent, find_reputation, list_agents
from dragoman.engine.schemas.agents import AgentActivity, AgentResource, agent_resource
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument, option
from dragoman.surfaces.cli.commands.intent import parse_price
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import DataDirectory, ReadOnlyDirectory
from dragoman.surfaces.cli.render import Column, Screen, pluralize

if TYPE_CHECKING:
    from dragoman.core.agent import AgentRecord, PreviousKey


# --- capabilities -----------------------------------------------------------------------------


SkillOption = Annotated[
    list[str] | None, option("--skill", "WORDS", "A skill, which goals can name; repeatable.")
]

ConstraintOption = Annotated[
    list[str] | None, option("--constraint", "WORD", "A constraint that it satisfies; repeatable.")
]

LocalityOption = Annotated[
    list[str] | None,
    option("--locality", "PLACE", "A location of data that it works on; repeatable."),
]

TrustOption = Annotated[
    Trust | None, option("--trust", "", "How far it is trusted, T0 to T2; else T1.")
]

CostOption = Annotated[
    float | None,
    option("--cost", "N", "What a piece of work costs, in a unit of your own.", parser=parse_price),
]

LatencyOption = Annotated[
    int | None,
    option("--latency", "TIME", "How long it usually takes: 30s, 5m.", parser=parse_duration),
]

CapacityOption = Annotated[
    int | None, option("--capacity", "N", "How many requests at a time.", min=0)
]

UrlOption = Annotated[str | None, option("--reach", "URL", "Where it is, if elsewhere.")]


class CapabilityOptions(Struct, frozen=True):
    """Capabilities from the options of a command; None where an option was left out."""

    skills: list[str] | None = None
    constraints: list[str] | None = None
    locality: list[str] | None = None
    trust: Trust | None = None
    cost: float | None = None
    latency_ms: int | None = None
    capacity: int | None = None
    reach: str | None = None

    def to_command(self, name: str, reputation: "Reputation | None") -> DescribeAgent | None:
        """Build the command that describes the agent; options left out keep their values. None: no
        option."""
        # An option that may be repeated is an empty list where it is left out.
        given_values = {
            key: value for key, value in _field_items(self) if value not in (None, [], ())
        }
        if not given_values:
            return None
        descriptor = reputation.descriptor if reputation is not None else None
        existing = dict(_field_items(descriptor)) if descriptor is not None else {}
        merged: dict[str, Any] = existing | given_values
        if "skills" not in merged:
            raise_usage_error("name its skills with --skill WORDS: work is assigned by them")
        for key in ("skills", "constraints", "locality"):
            merged[key] = tuple(merged.get(key, ()))
        return DescribeAgent(name, **merged)


def _field_items(struct: Struct) -> list[tuple[str, Any]]:
    return [(name, getattr(struct, name)) for name in struct.__struct_fields__]


# --- add, token, revoke -----------------------------------------------------------------------

RoleChoice = Literal["agent", "orchestrator", "coordinator", "human", "observer"]

SaopRole = Literal["researcher", "architect", "developer", "reviewer"]

DEFAULT_TOKEN_MS = 90 * 86_400_000

AgentArgument = Annotated[str, argument("NAME", "The agent or person.")]


def parse_token_lifetime(text: str) -> int:
    """Parse a token lifetime; in milliseconds."""
    lifetime = parse_duration(text)
    if TOKEN_LIFETIME_RANGE_MS[0] <= lifetime <= TOKEN_LIFETIME_RANGE_MS[1]:
        return lifetime
    raise ValueError(f"{text!a} is out of range: a token is good for 1s to 366d")


ExpiresOption = Annotated[
    int | None,
    option(
        "--expires",
        "TIME",
        "How long the token is good: 12h, 30d; else 90d.",
        parser=parse_token_lifetime,
    ),
]


def _check_dialects(context: CommandContext, names: Iterable[str]) -> None:
    known = [dialect.name for dialect in context.wiring.dialects()]
    for name in names:
        if name not in known:
            raise_usage_error(f"{name!a} is not a dialect; known: {', '.join(known)}")


def add(
    context: CommandContext,
    name: AgentArgument,
    *,
    role: Annotated[
        RoleChoice | None, option("--role", "", "Its role; else its present one, or agent.")
    ] = None,
    speaks: Annotated[
        list[str] | None,
        option(
            "--speaks",
            "DIALECT",
            "A dialect that it understands; repeatable; else its present ones.",
        ),
    ] = None,
    saop_role: Annotated[
        SaopRole | None,
        option("--saop-role", "", "Its role in SAOP; else its present one, or its name."),
    ] = None,
    expires: ExpiresOption = None,
    no_token: Annotated[
        bool, option("--no-token", "", "Only register it, without a token.")
    ] = False,
    key: Annotated[
        Path | None,
        option(
            "--key",
            "FILE",
            "The public half of the Ed25519 key that it signs with: PEM or OpenSSH.",
        ),
    ] = None,
    overlap: Annotated[
        int,
        option(
            "--overlap",
            "TIME",
            "With --key: how long the old key is good too, up to 7d; else it ends at once.",
            parser=parse_duration,
        ),
    ] = 0,
    skill: SkillOption = None,
    constraint: ConstraintOption = None,
    locality: LocalityOption = None,
    trust: TrustOption = None,
    cost: CostOption = None,
    latency: LatencyOption = None,
    capacity: CapacityOption = None,
    reach: UrlOption = None,
) -> CommandResult:
    """Register an agent or a person, or change its registration.

    Prints a token, once, unless a valid one exists: the hub keeps only its digest, and the holder
    of the token acts for the agent over the network. Here, at the keyboard, `--as NAME` acts in
    its role without one.

    \b
    Examples:
      dragoman agent add swe-backend --speaks aof
      dragoman agent add dispatcher --role orchestrator --expires 30d
      dragoman agent add ben --role human --no-token
      dragoman agent add linguist --skill translate --skill French --trust T2 --cost 0.5
    """
    _check_option_combination(expires, key, overlap, no_token=no_token)
    _check_dialects(context, speaks or ())
    public_key = None if key is None else _read_key(key)
    capabilities = CapabilityOptions(
        skill, constraint, locality, trust, cost, latency, capacity, reach
    )
    with context.open_for_writing() as directory:
        existing = _find_agent(directory, name)
        has_live_token = existing is not None and bool(
            existing.valid_tokens(directory.hub.clock.now())
        )
        # Options that are left out keep what is registered.
        assigned_role: Role = role or (existing.role if existing is not None else "agent")
        dialects = tuple(speaks or (existing.speaks if existing is not None else ()))
        commands: list[AnyCommand] = [RegisterAgent(name, assigned_role, dialects, saop_role)]
        if public_key is not None:
            commands.append(SetAgentKey(name, public_key, overlap))
        description = capabilities.to_command(name, _find_reputation(directory, name))
        if description is not None:
            commands.append(description)
        issued = None if no_token or has_live_token else _new_token(directory, name, expires)
        if issued is not None:
            commands.append(issued.command)
        directory.hub.submit(context.actor(directory, context.acting_agent()), *commands)
        key_changes = (
            () if public_key is None else _describe_key_changes(directory, existing, name, overlap)
        )

    def show(screen: Screen) -> None:
        spoken = f", speaks {', '.join(dialects)}" if dialects else ""
        plays = f", plays the {saop_role} in SAOP" if saop_role else ""
        screen.line((name, "bold"), f" is known: {assigned_role}{spoken}{plays}")
        if description is not None:
            screen.line(f"it can {', '.join(description.skills)}")
        for key_change in key_changes:
            screen.line(key_change)
        if issued is not None:
            issued.print_to(screen)
        elif has_live_token and not no_token:
            screen.line(f"it has a good token; `dragoman agent token {name}` gives one more")

    data: dict[str, object] = {"agent": name, "role": assigned_role, "speaks": list(dialects)}
    if description is not None:
        data["skills"] = list(description.skills)
    return CommandResult(data | (issued.data if issued else {}), show)


def _check_option_combination(
    expires: int | None, key: Path | None, overlap: int, *, no_token: bool
) -> None:
    """Check that no options exclude each other or lack the one that they belong to."""
    if expires is not None and no_token:
        raise_usage_error("--expires and --no-token exclude each other: give one of them")
    if overlap and key is None:
        raise_usage_error("--overlap is for --key: say which key takes the place of the old one")


def token(
    context: CommandContext, name: AgentArgument, expires: ExpiresOption = None
) -> CommandResult:
    """Give a known agent one more token, and print it, once.

    To replace a token without a pause: give a new one, hand it over, revoke the old one.

    \b
    Example:
      dragoman agent token swe-backend --expires 30d
    """
    with context.open_for_writing() as directory:
        issued = _new_token(directory, name, expires)
        directory.hub.submit(context.actor(directory, context.acting_agent()), issued.command)
    return CommandResult({"agent": name} | issued.data, issued.print_to)


def revoke(
    context: CommandContext,
    name: AgentArgument,
    token_id: Annotated[
        str,
        option(
            "--token",
            "ID",
            "Only this one, by the id that `agent show` lists; else all, and its keys too.",
        ),
    ] = "",
) -> CommandResult:
    """Revoke credentials: from now on they are refused.

    Without --token all tokens that the agent was ever given end, those of attempts that run now
    too, and so do the keys that it signs with. The agent stays known: `agent token NAME` gives it
    a new token, `agent add NAME --key FILE` a key.

    \b
    Examples:
      dragoman agent revoke swe-backend
      dragoman agent revoke swe-backend --token 3f9a0c55d21e
    """
    with context.open_for_writing() as directory:
        commands: list[AnyCommand] = [RevokeToken(name, token_id)]
        existing, keys = _find_agent(directory, name), ()
        if not token_id:
            # Revoking all tokens means that nothing may speak for the agent, so its keys end too.
            commands.append(SetAgentKey(name, ""))
            keys = () if existing is None else existing.valid_keys(directory.hub.clock.now())
        directory.hub.submit(context.actor(directory, context.acting_agent()), *commands)
    what = f"token {token_id} is" if token_id else "all tokens are"

    def show(screen: Screen) -> None:
        screen.line((name, "bold"), f": {what} revoked")
        if keys:
            screen.line(describe_ended_keys(name, len(keys)))

    return CommandResult({"agent": name, "tokenId": token_id or None, "keysEnded": len(keys)}, show)


class _IssuedToken(Struct, frozen=True):
    """A newly issued token, shown once."""

    command: IssueToken
    data: dict[str, str]
    """JSON fields of the result."""

    def print_to(self, screen: Screen) -> None:
        screen.line(f"its token, good until {self.data['expiresAt']}, is shown only this once:")
        screen.line(self.data["token"])


def _find_agent(directory: DataDirectory, name: str) -> "AgentRecord | None":
    from dragoman.engine.queries.agents import find_agent

    return find_agent(directory.hub.store, name)


def _describe_key_changes(
    directory: DataDirectory, before: "AgentRecord | None", name: str, overlap: int
) -> tuple[str, ...]:
    after = _find_agent(directory, name)
    assert after is not None, "it was registered in the same transaction"
    return describe_key_changes(before, after, directory.hub.clock.now(), overlap)


def _find_reputation(directory: DataDirectory, name: str) -> "Reputation | None":
    from dragoman.engine.queries.agents import find_reputation

    return find_reputation(directory.hub.store, name)


def _new_token(directory: DataDirectory, name: str, expires: int | None) -> _IssuedToken:
    from dragoman.system.bearer_tokens import new_token

    new = new_token(name)
    expires_at = directory.hub.clock.now() + (DEFAULT_TOKEN_MS if expires is None else expires)
    data = {"token": new.text, "tokenId": new.id, "expiresAt": to_rfc3339(expires_at)}
    return _IssuedToken(IssueToken(name, new.id, new.digest, expires_at), data)


def _read_key(path: Path) -> str:
    from dragoman.system.keys import read_public_key

    return read_public_key(path)


# --- signing keys -----------------------------------------------------------------------------


def describe_key_changes(
    before: "AgentRecord | None", after: "AgentRecord", now: int, overlap: int
) -> tuple[str, ...]:
    """Describe the effect of a key change: one sentence per formerly good key, or for the first
    key."""
    if before is None or not before.key:
        return ("its key is registered: what it signs is accepted from now on",)
    effective = f"in {format_duration(overlap)}" if overlap else "from now on"
    former = before.valid_previous_key(now)
    if before.key == after.key:
        return _describe_same_key(former, after.valid_previous_key(now), effective)
    replaced = f"its old key is replaced: what that one signs is refused {effective}"
    if former is None or former.key in after.valid_keys(now):
        return (replaced,)
    former_until = to_rfc3339(former.until)
    return (
        replaced,
        f"the key before that was good until {former_until}, and is refused from now on",
    )


def describe_ended_keys(name: str, count: int) -> str:
    """Tell that the agent's signing keys have ended, and how it can sign again."""
    keys = "its signing key has" if count == 1 else f"its {count} signing keys have"
    return (
        f"{keys} ended too: what it signs is refused from now on; "
        f"`dragoman agent add {name} --key FILE` makes a key good"
    )


def _describe_same_key(
    former: "PreviousKey | None", remaining: "PreviousKey | None", effective: str
) -> tuple[str, ...]:
    if former is None:
        return ("it has this key already, and no other one is good",)
    if remaining is None or remaining.until < former.until:
        return (f"its old key ends sooner: what that one signs is refused {effective}",)
    until = to_rfc3339(remaining.until)
    return (f"its old key is good until {until}, as before: an overlap cannot be extended",)


# --- work of agents, from the running hub -----------------------------------------------------

T = TypeVar("T")

_UNKNOWN_TO_HUB = "it was added to the settings after the hub began: restart the hub"


class _AgentReply(Struct, frozen=True):
    name: str
    activity: AgentActivity | None


class _AgentPageReply(Struct, frozen=True):
    agents: tuple[_AgentReply, ...]


class HubAgents(Struct, frozen=True):
    """Agents that a hub starts, as the running hub describes them."""

    directory: ReadOnlyDirectory
    statuses: Mapping[str, AgentActivity | None] | None
    """Status by agent name; None: no hub runs here, or it does not answer."""

    def status_of(self, name: str) -> AgentActivity | None:
        """Status of one agent, if this hub starts it."""
        return (self.statuses or {}).get(name)

    def needs_hub(self, *names: str) -> bool:
        """Tell whether a hub would start one of these agents and none runs."""
        return (
            self.directory.hub_address is None
            and not self.directory.configured_agents.isdisjoint(names)
        )

    def current_work(self, name: str) -> str:
        """Current work of an agent, or why it takes none; empty: this hub does not start it."""
        return "; ".join(self._describe_work(name))

    def print(self, agent: AgentResource, screen: Screen) -> None:
        """Print the current work of an agent and its usage of today."""
        reason = None if agent.paused is None else agent.paused.reason
        for line in self._describe_work(agent.name, known_reason=reason):
            screen.line(line)
        activity = self.status_of(agent.name)
        if activity is not None:
            screen.line(_format_usage(activity))

    def _describe_work(self, name: str, known_reason: str | None = None) -> list[str]:
        """Describe the work of an agent; leaves out a reason for its idleness that is
        `known_reason`."""
        activity = self.status_of(name)
        if activity is None:
            is_late = self.statuses is not None and name in self.directory.configured_agents
            return [f"takes no work: {_UNKNOWN_TO_HUB}"] if is_late else []
        lines = [f"works on {', '.join(activity.running)}"] if activity.running else []
        if activity.idle is None:
            return lines or ["works on nothing"]
        more = "more " if lines else ""
        return (
            lines
            if activity.idle == known_reason
            else [*lines, f"takes no {more}work: {activity.idle}"]
        )


def query_page(
    context: CommandContext, directory: ReadOnlyDirectory, after: str, limit: int
) -> HubAgents:
    """Ask the running hub for the agents of a page."""
    query = urlencode({"limit": limit} | ({"after": after} if after else {}))
    page = _query_hub(context, directory, f"/v1/agents?{query}", _AgentPageReply)
    return HubAgents(
        directory, None if page is None else {one.name: one.activity for one in page.agents}
    )


def query_agent(context: CommandContext, directory: ReadOnlyDirectory, name: str) -> HubAgents:
    """Ask the running hub for one agent."""
    agent = _query_hub(context, directory, f"/v1/agents/{quote(name, safe='')}", _AgentReply)
    return HubAgents(directory, None if agent is None else {name: agent.activity})


def _query_hub(
    context: CommandContext, directory: ReadOnlyDirectory, path: str, shape: type[T]
) -> T | None:
    if directory.hub_address is None:
        return None
    # Needed only while a hub runs.
    from dragoman.system.hub_client import get_from_hub

    try:
        return get_from_hub(directory.hub_address, path, shape)
    except StoreUnavailable as error:
        context.err.line(
            ("warning: ", "yellow"),
            f"{error.detail}: what agents work on, and why one takes no work, is not shown",
        )
        return None


def _format_usage(activity: AgentActivity) -> str:
    cost = f", cost {_format_number(activity.cost)}" if activity.cost else ""
    return (
        f"today (UTC): {pluralize(activity.attempts, 'attempt')}, "
        f"{_format_number(activity.minutes)} min, "
        f"{pluralize(activity.output, 'byte')} of output{cost}"
    )


def _format_number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


# --- list, show -------------------------------------------------------------------------------

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
    after: Annotated[str, option("--after", "NAME", "Begin after this name.")] = "",
    limit: LimitOption = 100,
) -> CommandResult:
    """List agents and people by name.

    While a hub runs here, also what each agent that it starts does now, or why it takes no work:
    with --json as `activity`, which is null for all others and when no hub runs or answers.

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
    today: with --json as `activity`, else null.

    \b
    Example:
      dragoman agent show swe-backend
    """
    with context.open_readonly() as directory:
        now = directory.clock.now()
        record = find_agent(directory.store, name)
        reputation = find_reputation(directory.store, name)
    if record is None:
        raise Refused(not_found.agent(name))
    agent, hub_agents = agent_resource(record, now), query_agent(context, directory, name)
    data = _agent_to_dict(agent, hub_agents)
    if reputation is not None and reputation.descriptor is not None:
        data["offer"] = {
            **msgspec.structs.asdict(reputation.descriptor),
            "skills": list(reputation.descriptor.skills),
            "successes": reputation.successes,
            "failures": reputation.failures,
            "open": reputation.open,
        }

    def print_all(screen: Screen) -> None:
        _print_agent(agent, hub_agents, screen)
        if hub_agents.needs_hub(name):
            screen.line(f"no hub runs here that starts it: `{context.next_command('up')}` does")
        if reputation is not None and reputation.descriptor is not None:
            _print_capabilities(reputation, reputation.descriptor, screen)

    return CommandResult(data, print_all)


def _agent_to_dict(agent: AgentResource, hub_agents: HubAgents) -> dict[str, object]:
    """JSON object of one agent."""
    activity = msgspec.to_builtins(hub_agents.status_of(agent.name))
    return {**msgspec.to_builtins(agent), "activity": activity}


def _print_agents(page: list[AgentResource], hub_agents: HubAgents, screen: Screen) -> None:
    rows = [(*_agent_row(agent), hub_agents.current_work(agent.name)) for agent in page]
    if any(now for *_, now in rows):
        screen.table((*_AGENT_COLUMNS, _WORK_COLUMN), rows)
    else:
        screen.table(_AGENT_COLUMNS, [row[:-1] for row in rows])


def _print_capabilities(
    reputation: Reputation, descriptor: AgentDescriptor, screen: Screen
) -> None:
    cost = f", costs {descriptor.cost:g}" if descriptor.cost else ""
    screen.line(f"can {', '.join(descriptor.skills)}; trust {descriptor.trust}{cost}")
    if descriptor.reach:
        screen.line(f"is at {descriptor.reach}")
    done = reputation.successes + reputation.failures
    if done:
        are = "is" if reputation.open == 1 else "are"
        good = f"{reputation.successes} of {done} requests went well"
        screen.line(f"{good}; {reputation.open} {are} open")


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


# --- pause, resume ----------------------------------------------------------------------------


def pause(
    context: CommandContext,
    name: AgentArgument,
    reason: Annotated[
        str, option("--reason", "TEXT", "The reason, shown to others.", show_default=True)
    ] = DEFAULT_PAUSE_REASON,
) -> CommandResult:
    """Stop the hub from starting work of an agent.

    What it works on goes on. An agent that asks for its work itself is not held back by it:
    `dragoman agent revoke` does that.

    \b
    Example:
      dragoman agent pause swe-backend --reason "the build is broken"
    """
    with context.open_for_writing() as directory:
        directory.hub.submit(
            context.actor(directory, context.acting_agent()), PauseAgent(name, reason)
        )
    return _pause_result(name, "paused", f": {reason}")


def resume(context: CommandContext, name: AgentArgument) -> CommandResult:
    """Let a paused agent go on.

    \b
    Example:
      dragoman agent resume swe-backend
    """
    from dragoman.engine.queries.agents import find_agent

    with context.open_for_writing() as directory:
        record = find_agent(directory.hub.store, name)
        was_paused = (
            record is not None and record.active_pause(directory.hub.clock.now()) is not None
        )
        directory.hub.submit(context.actor(directory, context.acting_agent()), ResumeAgent(name))
    return _pause_result(name, "not paused", " any more" if was_paused else ", and was not")


def _pause_result(name: str, state: str, detail: str) -> CommandResult:
    data = {"agent": name, "state": state}
    return CommandResult(data, lambda screen: screen.line((name, "bold"), f" is {state}{detail}"))


COMMANDS = (
    CliCommand("add", add),
    CliCommand("token", token),
    CliCommand("revoke", revoke),
    CliCommand("list", list_registered, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("pause", pause),
    CliCommand("resume", resume),
)
