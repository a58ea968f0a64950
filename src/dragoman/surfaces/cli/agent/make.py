"""`dragoman agent add`, `token`, `revoke`: names that become known, and what speaks for them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer
from msgspec import Struct

from dragoman.core.commands import AnyCommand, IssueToken, RegisterAgent, RevokeToken, SetAgentKey
from dragoman.core.events import Role
from dragoman.core.limits import TOKEN_LIFETIME_RANGE_MS
from dragoman.core.moments import to_rfc3339
from dragoman.core.offers import DialectName
from dragoman.surfaces.cli.agent.keys import describe_ended_keys, describe_key_changes
from dragoman.surfaces.cli.agent.offer import (
    CapabilityOptions,
    CapacityOption,
    ConstraintOption,
    CostOption,
    LatencyOption,
    LocalityOption,
    SkillOption,
    TrustOption,
    UrlOption,
)
from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import parse_time_span
from dragoman.surfaces.cli.verb import CliCommand

if TYPE_CHECKING:
    from dragoman.core.states.agent import AgentRecord
    from dragoman.core.states.standing import Reputation

RoleChoice = Literal["agent", "orchestrator", "coordinator", "human", "observer"]
SaopRole = Literal["researcher", "architect", "developer", "reviewer"]
DIALECTS = get_args(DialectName)
DEFAULT_TOKEN_MS = 90 * 86_400_000

AgentArgument = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="The agent or person.")
]


def parse_token_lifetime(text: str) -> int:
    """Parse a token lifetime; in milliseconds."""
    lifetime = parse_time_span(text)
    if TOKEN_LIFETIME_RANGE_MS[0] <= lifetime <= TOKEN_LIFETIME_RANGE_MS[1]:
        return lifetime
    raise ValueError(f"{text!a} is out of range: a token is good for 1s to 366d")


ExpiresOption = Annotated[
    int | None,
    typer.Option(
        "--expires",
        metavar="TIME",
        parser=parse_token_lifetime,
        show_default=False,
        help="How long the token is good: 12h, 30d; else 90d.",
    ),
]


def parse_dialect(text: str) -> str:
    """Parse the name of a dialect."""
    if text in DIALECTS:
        return text
    raise ValueError(f"{text!a} is not a dialect; known: {', '.join(DIALECTS)}")


def add(
    context: CommandContext,
    name: AgentArgument,
    *,
    role: Annotated[
        RoleChoice | None,
        typer.Option(
            "--role", show_default=False, help="Its role; else its present one, or agent."
        ),
    ] = None,
    speaks: Annotated[
        list[str] | None,
        typer.Option(
            "--speaks",
            metavar="DIALECT",
            parser=parse_dialect,
            show_default=False,
            help="A dialect that it understands; repeatable; else its present ones.",
        ),
    ] = None,
    saop_role: Annotated[
        SaopRole | None,
        typer.Option(
            "--saop-role",
            show_default=False,
            help="Its role in SAOP; else its present one, or its name.",
        ),
    ] = None,
    expires: ExpiresOption = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Only register it, without a token.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            show_default=False,
            help="The public half of the Ed25519 key that it signs with: PEM or OpenSSH.",
        ),
    ] = None,
    overlap: Annotated[
        int,
        typer.Option(
            "--overlap",
            metavar="TIME",
            parser=parse_time_span,
            show_default=False,
            help="With --key: how long the old key is good too, up to 7d; else it ends at once.",
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
        description = capabilities.to_command(name, _find_standing(directory, name))
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
        typer.Option(
            "--token",
            metavar="ID",
            show_default=False,
            help="Only this one, by the id that `agent show` lists; else all, and its keys too.",
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
    from dragoman.engine.reads.ask import find_agent

    return find_agent(directory.hub.store, name)


def _describe_key_changes(
    directory: DataDirectory, before: "AgentRecord | None", name: str, overlap: int
) -> tuple[str, ...]:
    after = _find_agent(directory, name)
    assert after is not None, "it was registered in the same transaction"
    return describe_key_changes(before, after, directory.hub.clock.now(), overlap)


def _find_standing(directory: DataDirectory, name: str) -> "Reputation | None":
    from dragoman.engine.reads.intents import find_standing

    return find_standing(directory.hub.store, name)


def _new_token(directory: DataDirectory, name: str, expires: int | None) -> _IssuedToken:
    from dragoman.system.tokens import new_token

    new = new_token(name)
    expires_at = directory.hub.clock.now() + (DEFAULT_TOKEN_MS if expires is None else expires)
    data = {"token": new.text, "tokenId": new.id, "expiresAt": to_rfc3339(expires_at)}
    return _IssuedToken(IssueToken(name, new.id, new.digest, expires_at), data)


def _read_key(path: Path) -> str:
    from dragoman.system.public_key import read_public_key

    return read_public_key(path)


CREDENTIAL_COMMANDS = (
    CliCommand("add", add),
    CliCommand("token", token),
    CliCommand("revoke", revoke),
)
