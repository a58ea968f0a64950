"""`dragoman agent rank` and `discover`: who would be given a goal, and who is new."""

from typing import Annotated, Any

import typer

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.agent.offer import (
    CapacityOption,
    ConstraintOption,
    CostOption,
    LatencyOption,
    LocalityOption,
    StrangerTrustOption,
)
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.intent.view import print_ranking
from dragoman.surfaces.cli.mail.asking import looked_up, replied
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.reading import endpoint_at, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb
from dragoman.text.fault_words import in_words

_WEB = ("http://", "https://")
_MOST_BYTES = 256 * 1024
_WELL_KNOWN = "/.well-known/agent-card.json"


def rank(
    call: Call,
    goal: Annotated[
        str, typer.Argument(metavar="GOAL", show_default=False, help="What is to be done.")
    ],
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="WORD",
            show_default=False,
            help="A constraint on candidates; repeatable.",
        ),
    ] = None,
    skill: Annotated[
        list[str] | None,
        typer.Option(
            "--skill",
            metavar="WORDS",
            show_default=False,
            help="A required skill; repeatable.",
        ),
    ] = None,
    *,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="`next` of the page before.")
    ] = 0,
    limit: LimitOption = 20,
) -> Answer:
    """Rank the candidates for a goal, and show why.

    Every candidate is shown with the parts of its score.

    Nothing is delegated by this. Deadlines are not taken into account; `delegate` with --within or
    --deadline may choose another agent, by the rule of latency. RESULTS counts all results, and
    SUCCESS goes by the last 32. `dragoman agents rank` is the same.

    \b
    Example:
      dragoman agent rank "Translate the manual into French"
    """
    wanted = {
        "goal": goal,
        "constraints": list(constraint or ()),
        "skills": list(skill or ()),
        "after": after,
        "limit": limit,
    }
    ranked = looked_up(call, "ccos.rank", **wanted)
    return Answer(ranked, lambda screen: print_ranking(ranked, screen))


def discover(
    call: Call,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            show_default=False,
            help="An A2A agent card, or the address of its host.",
        ),
    ],
    *,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", show_default=False, help="What to call it; else as its card."
        ),
    ] = "",
    constraint: ConstraintOption = None,
    locality: LocalityOption = None,
    trust: StrangerTrustOption = None,
    cost: CostOption = None,
    latency: LatencyOption = None,
    capacity: CapacityOption = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST",
            show_default=False,
            help="A host that may be asked although its address is a private or local one.",
        ),
    ] = None,
) -> Answer:
    """Register an agent by its A2A agent card.

    The card says what the agent can do and where it is. How far it is trusted is for you to say:
    T0, no trust at all, unless --trust says more.

    \b
    Examples:
      dragoman agent discover card.json --name planner
      dragoman agent discover https://planner.example --trust T1
    """
    is_web = source.startswith(_WEB)
    card = _fetched(source, allow_host or ()) if is_web else read_source(source, _MOST_BYTES)
    terms: dict[str, Any] = {
        "agent_id": name,
        "constraints": list(constraint or ()),
        "locality": list(locality or ()),
        "trust": trust,
        "cost": cost,
        "latency_ms": latency,
        "capacity": capacity,
    }
    given = {key: value for key, value in terms.items() if value not in (None, "", [])}
    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        reply = replied(place, "ccos.discover", {"card": _parsed(card, source)} | given, actor)

    def show(screen: Screen) -> None:
        screen.line((reply["agent_id"], "bold"), f" can {', '.join(reply['skills'])}")
        if "remark" in reply:
            screen.line(("note: ", "yellow"), reply["remark"])

    return Answer(reply, show)


def _parsed(card: bytes, source: str) -> Any:
    from dragoman.text.strict_json import StrictJsonError, parse_json

    try:
        return parse_json(card, _MOST_BYTES)
    except StrictJsonError as error:
        raise Refused(
            Refusal("invalid_json", f"{source} holds no agent card: {error.reason}")
        ) from None


def _fetched(url: str, allowed: list[str] | tuple[()]) -> bytes:
    endpoint = endpoint_at(_card_of(url), "the address", allowed)
    try:
        status, card = endpoint.get({"Accept": "application/json"}, _MOST_BYTES + 1)
    except OSError as error:
        why = f"{url} cannot be read: {in_words(error)}"
        hint = "; `--allow-host HOST` lets a private one be asked" if "allow_hosts" in why else ""
        raise Refused(Refusal("invalid_field", why + hint)) from None
    if status != 200:
        raise Refused(Refusal("invalid_field", f"{url} answered {status}, and no card"))
    return card


def _card_of(url: str) -> str:
    """URL of a host's agent card: the well-known path, unless the URL has a path of its own."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return url if path else f"{scheme}://{host}{_WELL_KNOWN}"


VERBS = (Verb("rank", rank), Verb("discover", discover))
