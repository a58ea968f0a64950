"""`dragoman agent`: register agents and people, their tokens, keys and capabilities."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from dragoman.core.agent import (
    DEFAULT_PAUSE_REASON,
    AgentRecord,
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
    Trust,
)
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.core.limits import TOKEN_LIFETIME_RANGE_MS
from dragoman.core.timestamps import parse_duration, to_rfc3339
from dragoman.engine.queries.agents import find_agent, find_reputation
from dragoman.engine.queries.status import AgentStatus, find_anybody, list_everybody
from dragoman.engine.schemas.agents import AgentActivity, agent_resource
from dragoman.engine.sentences import fill
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument, option
from dragoman.surfaces.cli.commands.intent import parse_price
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import DataDirectory, ReadOnlyDirectory
from dragoman.surfaces.cli.generated import print_rows
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.cli.suggestions import suggesting_agent

if TYPE_CHECKING:
    from dragoman.core.agent import Reputation

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
    known = {dialect.name: dialect for dialect in context.wiring.dialects()}
    for entry in names:
        name, slash, version = entry.partition("/")
        if name not in known:
            raise_usage_error(f"{entry!a} is not a dialect; known: {', '.join(known)}")
        if slash and not known[name].is_spoken_as(entry):
            spoken = known[name].version
            raise_usage_error(
                f"this hub speaks version {spoken} of {name}, and nothing would reach an agent "
                f"that reads version {version!a} alone: name {name}/{spoken}, or {name}"
            )


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
            "A dialect that it understands (aof, or aof/1); repeatable; else its present ones.",
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
        str | None,
        option(
            "--key",
            "FILE",
            "The public half of the Ed25519 key that it signs with: PEM or OpenSSH.",
        ),
    ] = None,
    skill: Annotated[
        list[str] | None, option("--skill", "WORDS", "A skill, which goals can name; repeatable.")
    ] = None,
    constraint: Annotated[
        list[str] | None,
        option("--constraint", "WORD", "A constraint that it satisfies; repeatable."),
    ] = None,
    locality: Annotated[
        list[str] | None,
        option("--locality", "PLACE", "A location of data that it works on; repeatable."),
    ] = None,
    trust: Annotated[
        Trust | None, option("--trust", "", "How far it is trusted, T0 to T2; else T1.")
    ] = None,
    cost: Annotated[
        float | None,
        option(
            "--cost", "N", "What a piece of work costs, in a unit of your own.", parser=parse_price
        ),
    ] = None,
    latency: Annotated[
        int | None,
        option("--latency", "TIME", "How long it usually takes: 30s, 5m.", parser=parse_duration),
    ] = None,
    capacity: Annotated[
        int | None, option("--capacity", "N", "How many requests at a time.", min=0)
    ] = None,
    reach: Annotated[str | None, option("--reach", "URL", "Where it is, if elsewhere.")] = None,
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
    if expires is not None and no_token:
        raise_usage_error("--expires and --no-token exclude each other: give one of them")
    _check_dialects(context, speaks or ())
    public_key = None if key is None else _read_key(key)
    # An option that may be repeated is an empty list where it is left out.
    terms = {
        "skills": skill or None,
        "constraints": constraint or None,
        "locality": locality or None,
        "trust": trust,
        "cost": cost,
        "latency_ms": latency,
        "capacity": capacity,
        "reach": reach,
    }
    with context.open_for_writing(create_missing=True) as directory:
        store = directory.hub.store
        now = directory.hub.clock.now()
        # Options that are left out keep what is registered.
        before = find_agent(store, name) or AgentRecord(name, "agent", (), now)
        has_live_token = bool(before.valid_tokens(now))
        assigned_role, dialects = role or before.role, tuple(speaks or before.speaks)
        commands: list[Command] = [RegisterAgent(name, assigned_role, dialects, saop_role)]
        if public_key is not None:
            commands.append(SetAgentKey(name, public_key))
        description = _describe_command(name, terms, find_reputation(store, name))
        if description is not None:
            commands.append(description)
        issued = None if no_token or has_live_token else _new_token(directory, name, expires)
        if issued is not None:
            commands.append(issued.command)
        directory.hub.submit(context.actor(directory, context.acting_agent()), *commands)

    def show(screen: Screen) -> None:
        spoken = f", speaks {', '.join(dialects)}" if dialects else ""
        plays = f", plays the {saop_role} in SAOP" if saop_role else ""
        screen.line((name, "bold"), f" is known: {assigned_role}{spoken}{plays}")
        if description is not None:
            screen.line(f"it can {', '.join(description.skills)}")
        if public_key is not None:
            screen.line(_describe_key_change(before.key, public_key))
        if issued is not None:
            issued.print_to(screen)
        elif has_live_token and not no_token:
            screen.line(f"it has a good token; `dragoman agent token {name}` gives one more")

    described = {} if description is None else {"skills": list(description.skills)}
    data = {"agent": name, "role": assigned_role, "speaks": list(dialects)}
    return CommandResult(data | described | (issued.data if issued else {}), show)


def _describe_command(
    name: str, terms: Mapping[str, Any], reputation: "Reputation | None"
) -> DescribeAgent | None:
    """Command that describes the agent; options left out keep their values. None: no option."""
    given = {field: value for field, value in terms.items() if value is not None}
    if not given:
        return None
    descriptor = reputation.descriptor if reputation is not None else None
    merged = ({} if descriptor is None else msgspec.structs.asdict(descriptor)) | given
    if "skills" not in merged:
        raise_usage_error("name its skills with --skill WORDS: work is assigned by them")
    for field in ("skills", "constraints", "locality"):
        merged[field] = tuple(merged.get(field, ()))
    return DescribeAgent(name, **merged)


def _describe_key_change(before: str, key: str) -> str:
    if not before:
        return "its key is registered: what it signs is accepted from now on"
    if before == key:
        return "it has this key already"
    return "its old key is replaced: what that one signs is refused from now on"


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
        _submit(context, directory, name, issued.command)
    return CommandResult({"agent": name} | issued.data, issued.print_to)


def revoke(
    context: CommandContext,
    name: AgentArgument,
    token_id: Annotated[
        str,
        option(
            "--token",
            "ID",
            "Only this one, by the id that `agent show` lists; else all, and its key too.",
        ),
    ] = "",
) -> CommandResult:
    """Revoke credentials: from now on they are refused.

    Without --token all tokens that the agent was ever given end, those of attempts that run now
    too, and so does the key that it signs with. The agent stays known: `agent token NAME` gives it
    a new token, `agent add NAME --key FILE` a key.

    \b
    Examples:
      dragoman agent revoke swe-backend
      dragoman agent revoke swe-backend --token 3f9a0c55d21e
    """
    with context.open_for_writing() as directory:
        commands: list[Command] = [RevokeToken(name, token_id)]
        existing = find_agent(directory.hub.store, name)
        if not token_id:
            # Revoking all tokens means that nothing may speak for the agent, so its key ends too.
            commands.append(SetAgentKey(name, ""))
        _submit(context, directory, name, *commands)
    what = f"token {token_id} is" if token_id else "all tokens are"
    key_ended = not token_id and existing is not None and bool(existing.key)

    def show(screen: Screen) -> None:
        screen.line((name, "bold"), f": {what} revoked")
        if key_ended:
            screen.line(
                "its signing key has ended too: what it signs is refused from now on; "
                f"`dragoman agent add {name} --key FILE` makes a key good"
            )

    data = {"agent": name, "tokenId": token_id or None, "keyEnded": key_ended}
    return CommandResult(data, show)


def _submit(
    context: CommandContext, directory: DataDirectory, name: str, *commands: Command
) -> None:
    """Submit commands about an agent; a refusal because nobody has the name suggests another."""
    with suggesting_agent(directory.hub.store, name):
        directory.hub.submit(context.actor(directory, context.acting_agent()), *commands)


class _IssuedToken(Struct, frozen=True):
    """A newly issued token, shown once."""

    command: IssueToken
    data: dict[str, str]
    """JSON fields of the result."""

    def print_to(self, screen: Screen) -> None:
        screen.line(f"its token, good until {self.data['expiresAt']}, is shown only this once:")
        screen.line(self.data["token"])


def _new_token(directory: DataDirectory, name: str, expires: int | None) -> _IssuedToken:
    from dragoman.system.bearer_tokens import new_token

    new = new_token(name)
    expires_at = directory.hub.clock.now() + (DEFAULT_TOKEN_MS if expires is None else expires)
    data = {"token": new.text, "tokenId": new.id, "expiresAt": to_rfc3339(expires_at)}
    return _IssuedToken(IssueToken(name, new.id, new.digest, expires_at), data)


_MAX_KEY_BYTES = 65_536


def _read_key(file: str) -> str:
    from dragoman.system.keys import parse_public_key

    return parse_public_key(read_source(file, _MAX_KEY_BYTES), file)


# --- work of agents, from the running hub -----------------------------------------------------

T = TypeVar("T")


class _AgentReply(Struct, frozen=True):
    name: str
    activity: AgentActivity | None


class _AgentPageReply(Struct, frozen=True):
    agents: tuple[_AgentReply, ...]


def _query_hub(
    context: CommandContext, directory: ReadOnlyDirectory, path: str, shape: type[T]
) -> T | None:
    """Ask the running hub, if there is one."""
    if directory.hub_address is None:
        return None
    # Needed only while a hub runs.
    from dragoman.system.hub_client import ask_hub

    try:
        return ask_hub(directory.hub_address, "GET", path, shape)
    except StoreUnavailable as error:
        context.err.line(
            ("warning: ", "yellow"),
            f"{error.detail}: what agents work on, and why one takes no work, is not shown",
        )
        return None


WORK = (
    "works on {activity.running}|{?activity.running}; takes no more work: {activity.idle}"
    "|{!activity.running}takes no work: {activity.idle}"
    "|{?activity}{!activity.running}{!activity.idle}works on nothing"
)
"""Line on the work of an agent, or on why it takes none; empty: this hub does not start it."""

_USAGE = (
    "{?activity}today (UTC): attempts {activity.attempts}, {activity.minutes} min, "
    "{activity.output} bytes of output|{?activity.cost}, cost {activity.cost}"
)


def _print_hub_hint(
    screen: Screen, context: CommandContext, directory: ReadOnlyDirectory, *names: str
) -> None:
    """Say that no hub runs which would start one of these agents."""
    if directory.hub_address is None and not directory.configured_agents.isdisjoint(names):
        screen.line(f"no hub runs here that starts agents: `{context.next_command('up')}` does")


# --- list, show -------------------------------------------------------------------------------

_TOKEN_STYLES = {"good": "green", "expired": "yellow", "revoked": "red"}

_AGENT_COLUMNS = {
    "NAME": "{name}",
    "ROLE": "{role}|{!registered}, not registered",
    "SPEAKS": "{speaks}",
    "TOKENS": "{?good}{good}|{!good}none good",
    "HOLDS": "{held}",
    "PAUSED": "{?paused}{!paused.until}yes|until {paused.until}",
}

_MAX_HELD = 3
"""Tasks of one agent that a row of the table names."""

_TOKEN_COLUMNS = {
    "TOKEN": "{id}",
    "STATE": "{state}",
    "ISSUED": "{issuedAt}",
    "EXPIRES": "{expiresAt}",
}

_SESSION_COLUMNS = {
    "SESSION": "{session}",
    "IS": "{state}",
    "SINCE": "{since}",
    "QUESTION": "{text}",
}

_SESSION_STYLES = {"waiting": "bold magenta"}

_AGENT_LINES = (
    "{?registered}{name} is {role}, known since {registeredAt}",
    "{!registered}{name} is {role}, and not registered: `dragoman agent add {name}` does that",
    "holds {held}",
    "paused since {paused.since}| until {paused.until}|: {paused.reason}",
    WORK,
    _USAGE,
    "speaks {speaks}",
    "plays the {saopRole} in SAOP",
    "signs with the Ed25519 key {key}",
)

_OFFER_LINES = (
    "can {offer.skills}; trust {offer.trust}|{?offer.cost}, costs {offer.cost}",
    "is at {offer.reach}",
    "{?results}{offer.successes} of {results} requests went well, {offer.open} open",
)


def list_registered(
    context: CommandContext,
    after: Annotated[str, option("--after", "NAME", "Begin after this name.")] = "",
    limit: LimitOption = 100,
) -> CommandResult:
    """List agents and people by name, and the tasks that each holds.

    Everybody is there who is registered or has spoken; who has only spoken is marked as not
    registered.

    While a hub runs here, also what each agent that it starts does now, or why it takes no work:
    with --json as `activity`, which is null for all others and when no hub runs or answers.

    \b
    Examples:
      dragoman agent list
      dragoman agent list --json
    """
    with context.open_readonly() as directory:
        now = directory.clock.now()
        everybody = list_everybody(directory.store, now)
    found = [agent for agent in everybody if agent.name > after]
    next_name = found[limit - 1].name if len(found) > limit else None
    query = urlencode({"limit": limit} | ({"after": after} if after else {}))
    page = _query_hub(context, directory, f"/v1/agents?{query}", _AgentPageReply)
    activities = {one.name: one.activity for one in page.agents} if page else {}
    agents = [_agent_to_dict(agent, now, activities.get(agent.name)) for agent in found[:limit]]
    rows = [
        agent
        | {
            "good": sum(token["state"] == "good" for token in agent["tokens"]),
            "held": _describe_held(agent["holds"]),
        }
        for agent in agents
    ]

    def show_table(screen: Screen) -> None:
        if rows:
            has_work = any(row["activity"] for row in rows)
            columns = _AGENT_COLUMNS | ({"NOW": WORK} if has_work else {})
            print_rows(screen, columns, rows, {})
        else:
            screen.line("no agents yet: add one with `dragoman agent add NAME`")
        if next_name is not None:
            screen.line(f"There are more: add --after {next_name}")
        _print_hub_hint(screen, context, directory, *(agent["name"] for agent in agents))

    return CommandResult({"agents": agents, "next": next_name}, show_table)


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
        with suggesting_agent(directory.store, name):
            agent = find_anybody(directory.store, now, name)
            if isinstance(agent, Refusal):
                raise Refused(agent)
        reputation = find_reputation(directory.store, name)
    reply = _query_hub(context, directory, f"/v1/agents/{quote(name, safe='')}", _AgentReply)
    activity = None if reply is None else reply.activity
    data = _agent_to_dict(agent, now, activity)
    if reputation is not None and reputation.descriptor is not None:
        data["offer"] = {
            **msgspec.to_builtins(msgspec.structs.asdict(reputation.descriptor)),
            "successes": reputation.successes,
            "failures": reputation.failures,
            "open": reputation.open,
        }
    is_running = activity is not None and set(activity.running) == set(agent.holds)
    shown = data | {
        # What the hub has started for it is told as its work.
        "held": "" if is_running else ", ".join(agent.holds),
        "results": reputation.successes + reputation.failures if reputation else 0,
    }

    def print_all(screen: Screen) -> None:
        _print_lines(screen, _AGENT_LINES, shown)
        if data["tokens"]:
            print_rows(screen, _TOKEN_COLUMNS, data["tokens"], _TOKEN_STYLES)
        else:
            screen.line("it has no valid token")
        if data["sessions"]:
            print_rows(screen, _SESSION_COLUMNS, data["sessions"], _SESSION_STYLES)
        _print_hub_hint(screen, context, directory, name)
        _print_lines(screen, _OFFER_LINES, shown)

    return CommandResult(data, print_all)


def _agent_to_dict(agent: AgentStatus, now: int, activity: AgentActivity | None) -> dict[str, Any]:
    """JSON object of one agent."""
    shown: dict[str, Any] = msgspec.to_builtins(agent_resource(agent, now))
    return shown | {"activity": msgspec.to_builtins(activity)}


def _describe_held(tasks: list[str]) -> str:
    """Name the tasks that an agent holds; of many the first ones."""
    more = f" and {len(tasks) - _MAX_HELD} more" if tasks[_MAX_HELD:] else ""
    return ", ".join(tasks[:_MAX_HELD]) + more


def _print_lines(screen: Screen, templates: tuple[str, ...], values: Mapping[str, Any]) -> None:
    for line in filter(None, (fill(template, values) for template in templates)):
        screen.line(line)


# --- pause, resume ----------------------------------------------------------------------------


def pause(
    context: CommandContext,
    name: AgentArgument,
    reason: Annotated[
        str, option("--reason", "TEXT", "The reason, shown to others.", show_default=True)
    ] = DEFAULT_PAUSE_REASON,
) -> CommandResult:
    """Give an agent no more work, whoever starts it.

    What it works on goes on.

    \b
    Example:
      dragoman agent pause swe-backend --reason "the build is broken"
    """
    return _set_pause(context, PauseAgent(name, reason), "paused", f": {reason}")


def resume(context: CommandContext, name: AgentArgument) -> CommandResult:
    """Let a paused agent go on.

    \b
    Example:
      dragoman agent resume swe-backend
    """
    return _set_pause(context, ResumeAgent(name), "not paused", "")


def _set_pause(
    context: CommandContext, command: PauseAgent | ResumeAgent, state: str, detail: str
) -> CommandResult:
    with context.open_for_writing() as directory:
        _submit(context, directory, command.name, command)
    return CommandResult(
        {"agent": command.name, "state": state},
        lambda screen: screen.line((command.name, "bold"), f" is {state}{detail}"),
    )


COMMANDS = (
    CliCommand("add", add),
    CliCommand("token", token),
    CliCommand("revoke", revoke),
    CliCommand("list", list_registered, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("pause", pause),
    CliCommand("resume", resume),
)
