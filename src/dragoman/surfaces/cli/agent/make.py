"""`dragoman agent add`, `token`, `revoke`: names that become known, and what speaks for them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer
from msgspec import Struct

from dragoman.core.commands import AnyCommand, IssueToken, KeyAgent, RegisterAgent, RevokeToken
from dragoman.core.events import Role
from dragoman.core.limits import TOKEN_MS
from dragoman.core.moments import to_rfc3339
from dragoman.core.offers import Spoken
from dragoman.surfaces.cli.agent.keys import ended_keys, fates_of_keys
from dragoman.surfaces.cli.agent.offer import (
    CapacityOption,
    ConstraintOption,
    CostOption,
    LatencyOption,
    LocalityOption,
    Offer,
    ReachOption,
    SkillOption,
    TrustOption,
)
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import read_duration
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.core.states.agent import AgentRecord
    from dragoman.core.states.standing import Standing

GivenRole = Literal["agent", "orchestrator", "coordinator", "human", "observer"]
SaopRole = Literal["researcher", "architect", "developer", "reviewer"]
DIALECTS = get_args(Spoken)
NINETY_DAYS_MS = 90 * 86_400_000

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="The agent or person.")
]


def read_life(given: str) -> int:
    """Parse a token lifetime; in milliseconds."""
    life = read_duration(given)
    if TOKEN_MS[0] <= life <= TOKEN_MS[1]:
        return life
    raise ValueError(f"{given!a} is out of range: a token is good for 1s to 366d")


ExpiresOption = Annotated[
    int | None,
    typer.Option(
        "--expires",
        metavar="TIME",
        parser=read_life,
        show_default=False,
        help="How long the token is good: 12h, 30d; else 90d.",
    ),
]


def read_dialect(given: str) -> str:
    """Parse the name of a dialect."""
    if given in DIALECTS:
        return given
    raise ValueError(f"{given!a} is not a dialect; known: {', '.join(DIALECTS)}")


def add(
    call: Call,
    name: NameArgument,
    *,
    role: Annotated[
        GivenRole | None,
        typer.Option(
            "--role", show_default=False, help="Its role; else its present one, or agent."
        ),
    ] = None,
    speaks: Annotated[
        list[str] | None,
        typer.Option(
            "--speaks",
            metavar="DIALECT",
            parser=read_dialect,
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
            parser=read_duration,
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
    reach: ReachOption = None,
) -> Answer:
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
    _check_words(expires, key, overlap, no_token=no_token)
    public = None if key is None else _read_key(key)
    offer = Offer(skill, constraint, locality, trust, cost, latency, capacity, reach)
    with call.writing() as place:
        known = _known(place, name)
        is_armed = known is not None and bool(known.live_tokens(place.hub.clock.now()))
        # Options that are left out keep what is registered.
        said: Role = role or (known.role if known is not None else "agent")
        dialects = tuple(speaks or (known.speaks if known is not None else ()))
        commands: list[AnyCommand] = [RegisterAgent(name, said, dialects, saop_role)]
        if public is not None:
            commands.append(KeyAgent(name, public, overlap))
        described = offer.command(name, _standing(place, name))
        if described is not None:
            commands.append(described)
        given = None if no_token or is_armed else _new_token(place, name, expires)
        if given is not None:
            commands.append(given.command)
        place.hub.do(call.actor(place, call.speaker()), *commands)
        fates = () if public is None else _fates(place, known, name, overlap)

    def show(screen: Screen) -> None:
        spoken = f", speaks {', '.join(dialects)}" if dialects else ""
        plays = f", plays the {saop_role} in SAOP" if saop_role else ""
        screen.line((name, "bold"), f" is known: {said}{spoken}{plays}")
        if described is not None:
            screen.line(f"it can {', '.join(described.skills)}")
        for fate in fates:
            screen.line(fate)
        if given is not None:
            given.show(screen)
        elif is_armed and not no_token:
            screen.line(f"it has a good token; `dragoman agent token {name}` gives one more")

    data: dict[str, object] = {"agent": name, "role": said, "speaks": list(dialects)}
    if described is not None:
        data["skills"] = list(described.skills)
    return Answer(data | (given.data if given else {}), show)


def _check_words(expires: int | None, key: Path | None, overlap: int, *, no_token: bool) -> None:
    """Check that no options exclude each other or lack the one that they belong to."""
    if expires is not None and no_token:
        wrong_usage("--expires and --no-token exclude each other: give one of them")
    if overlap and key is None:
        wrong_usage("--overlap is for --key: say which key takes the place of the old one")


def token(call: Call, name: NameArgument, expires: ExpiresOption = None) -> Answer:
    """Give a known agent one more token, and print it, once.

    To replace a token without a pause: give a new one, hand it over, revoke the old one.

    \b
    Example:
      dragoman agent token swe-backend --expires 30d
    """
    with call.writing() as place:
        given = _new_token(place, name, expires)
        place.hub.do(call.actor(place, call.speaker()), given.command)
    return Answer({"agent": name} | given.data, given.show)


def revoke(
    call: Call,
    name: NameArgument,
    token_id: Annotated[
        str,
        typer.Option(
            "--token",
            metavar="ID",
            show_default=False,
            help="Only this one, by the id that `agent show` lists; else all, and its keys too.",
        ),
    ] = "",
) -> Answer:
    """Revoke credentials: from now on they are refused.

    Without --token all tokens that the agent was ever given end, those of attempts that run now
    too, and so do the keys that it signs with. The agent stays known: `agent token NAME` gives it
    a new token, `agent add NAME --key FILE` a key.

    \b
    Examples:
      dragoman agent revoke swe-backend
      dragoman agent revoke swe-backend --token 3f9a0c55d21e
    """
    with call.writing() as place:
        commands: list[AnyCommand] = [RevokeToken(name, token_id)]
        known, keys = _known(place, name), ()
        if not token_id:
            # Revoking all tokens means that nothing may speak for the agent, so its keys end too.
            commands.append(KeyAgent(name, ""))
            keys = () if known is None else known.good_keys(place.hub.clock.now())
        place.hub.do(call.actor(place, call.speaker()), *commands)
    what = f"token {token_id} is" if token_id else "all tokens are"

    def show(screen: Screen) -> None:
        screen.line((name, "bold"), f": {what} revoked")
        if keys:
            screen.line(ended_keys(name, len(keys)))

    return Answer({"agent": name, "tokenId": token_id or None, "keysEnded": len(keys)}, show)


class _Given(Struct, frozen=True):
    """A newly issued token, shown once."""

    command: IssueToken
    data: dict[str, str]
    """JSON fields of the result."""

    def show(self, screen: Screen) -> None:
        screen.line(f"its token, good until {self.data['expiresAt']}, is shown only this once:")
        screen.line(self.data["token"])


def _known(place: Place, name: str) -> "AgentRecord | None":
    from dragoman.engine.reads.ask import find_agent

    return find_agent(place.hub.store, name)


def _fates(place: Place, before: "AgentRecord | None", name: str, overlap: int) -> tuple[str, ...]:
    after = _known(place, name)
    assert after is not None, "it was registered in the same transaction"
    return fates_of_keys(before, after, place.hub.clock.now(), overlap)


def _standing(place: Place, name: str) -> "Standing | None":
    from dragoman.engine.reads.intents import find_standing

    return find_standing(place.hub.store, name)


def _new_token(place: Place, name: str, expires: int | None) -> _Given:
    from dragoman.system.tokens import new_token

    new = new_token(name)
    expires_at = place.hub.clock.now() + (NINETY_DAYS_MS if expires is None else expires)
    data = {"token": new.text, "tokenId": new.id, "expiresAt": to_rfc3339(expires_at)}
    return _Given(IssueToken(name, new.id, new.digest, expires_at), data)


def _read_key(path: Path) -> str:
    from dragoman.system.public_key import read_public_key

    return read_public_key(path)


VERBS = (Verb("add", add), Verb("token", token), Verb("revoke", revoke))
