"""`dragoman agent rank` and `discover`: candidates for a goal, and agents from A2A cards."""

from typing import Annotated, Any

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument, option
from dragoman.surfaces.cli.commands.agent import (
    CapacityOption,
    ConstraintOption,
    CostOption,
    DiscoveredTrustOption,
    LatencyOption,
    LocalityOption,
)
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    Reply,
    call_and_collect_warnings,
    make_endpoint,
    query_operation,
    read_source,
)
from dragoman.surfaces.cli.render import Column, Screen
from dragoman.text.error_messages import describe_exception

# --- rank -------------------------------------------------------------------------------------


def rank(
    context: CommandContext,
    goal: Annotated[str, argument("GOAL", "What is to be done.")],
    constraint: Annotated[
        list[str] | None, option("--constraint", "WORD", "A constraint on candidates; repeatable.")
    ] = None,
    skill: Annotated[
        list[str] | None, option("--skill", "WORDS", "A required skill; repeatable.")
    ] = None,
    *,
    after: Annotated[
        int, option("--after", "N", "`next` of the page before.", min=0, show_default=True)
    ] = 0,
    limit: LimitOption = 20,
) -> CommandResult:
    """Rank the candidates for a goal, and show why.

    Every candidate is shown with the parts of its score.

    Nothing is delegated by this. Deadlines are not taken into account; `delegate` with --within or
    --deadline may choose another agent, by the rule of latency. RESULTS counts all results, and
    SUCCESS goes by the last 32. `dragoman agents rank` is the same.

    \b
    Example:
      dragoman agent rank "Translate the manual into French"
    """
    arguments = {
        "goal": goal,
        "constraints": list(constraint or ()),
        "skills": list(skill or ()),
        "after": after,
        "limit": limit,
    }
    ranking = query_operation(context, "ccos.rank", **arguments)
    return CommandResult(ranking, lambda screen: print_ranking(ranking, screen))


_RANKING_COLUMNS = (
    Column("AGENT", "bold"),
    Column("TRUST"),
    Column("SCORE"),
    Column("NEEDS"),
    Column("SKILL"),
    Column("CONSTRAINT"),
    Column("SUCCESS"),
    Column("NEWCOMER"),
    Column("TURN"),
    Column("COST"),
    Column("RESULTS"),
    Column("VERDICT", styles={"may have it": "green"}),
)

_SCORE_PARTS = ("skill", "constraint", "success", "newcomer", "turn", "cost")


def print_ranking(ranking: Reply, screen: Screen) -> None:
    """Print every candidate with the parts of its score, and why one is chosen."""
    if ranking["candidates"]:
        screen.table(_RANKING_COLUMNS, [_ranking_row(one) for one in ranking["candidates"]])
    if "next" in ranking:
        remaining = ranking["of"] - ranking["next"]
        screen.line(f"and {remaining} more: add --after {ranking['next']}")
    screen.line(ranking["why"] if ranking["chosen"] else f"nobody: {ranking['why']}")


def _ranking_row(candidate: Reply) -> tuple[str, ...]:
    results = f"{candidate['successes']}/{candidate['results']}" if candidate["results"] else "new"
    verdict = "; ".join(candidate["reasons"]) or "may have it"
    parts = (f"{candidate['parts'][part]:.3f}" for part in _SCORE_PARTS)
    verdict = f"{verdict}; {candidate['remark']}" if "remark" in candidate else verdict
    score, needs = f"{candidate['score']:.3f}", f"{candidate['threshold']:.3f}"
    return candidate["agent_id"], candidate["trust"], score, needs, *parts, results, verdict


# --- discover ---------------------------------------------------------------------------------

_URL_SCHEMES = ("http://", "https://")

_MAX_CARD_BYTES = 256 * 1024

_WELL_KNOWN_PATH = "/.well-known/agent-card.json"


def discover(
    context: CommandContext,
    source: Annotated[str, argument("FILE|URL", "An A2A agent card, or the address of its host.")],
    *,
    name: Annotated[str, option("--name", "NAME", "What to call it; else as its card.")] = "",
    constraint: ConstraintOption = None,
    locality: LocalityOption = None,
    trust: DiscoveredTrustOption = None,
    cost: CostOption = None,
    latency: LatencyOption = None,
    capacity: CapacityOption = None,
    allow_host: Annotated[
        list[str] | None,
        option(
            "--allow-host",
            "HOST",
            "A host that may be asked although its address is a private or local one.",
        ),
    ] = None,
) -> CommandResult:
    """Register an agent by its A2A agent card.

    The card says what the agent can do and where it is. How far it is trusted is for you to say:
    T0, no trust at all, unless --trust says more.

    \b
    Examples:
      dragoman agent discover card.json --name planner
      dragoman agent discover https://planner.example --trust T1
    """
    is_web = source.startswith(_URL_SCHEMES)
    card = _fetch_card(source, allow_host or ()) if is_web else read_source(source, _MAX_CARD_BYTES)
    terms: dict[str, Any] = {
        "agent_id": name,
        "constraints": list(constraint or ()),
        "locality": list(locality or ()),
        "trust": trust,
        "cost": cost,
        "latency_ms": latency,
        "capacity": capacity,
    }
    given_terms = {key: value for key, value in terms.items() if value not in (None, "", [])}
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        reply = call_and_collect_warnings(
            directory, "ccos.discover", {"card": _parse_card(card, source)} | given_terms, actor
        )

    def show(screen: Screen) -> None:
        screen.line((reply["agent_id"], "bold"), f" can {', '.join(reply['skills'])}")
        if "remark" in reply:
            screen.line(("note: ", "yellow"), reply["remark"])

    return CommandResult(reply, show)


def _parse_card(card: bytes, source: str) -> Any:
    from dragoman.text.strict_json import StrictJsonError, parse_json

    try:
        return parse_json(card, _MAX_CARD_BYTES)
    except StrictJsonError as error:
        raise Refused(
            Refusal("invalid_json", f"{source} holds no agent card: {error.reason}")
        ) from None


def _fetch_card(url: str, allowed_hosts: list[str] | tuple[()]) -> bytes:
    endpoint = make_endpoint(_card_url(url), "the address", allowed_hosts)
    try:
        status, card = endpoint.get({"Accept": "application/json"}, _MAX_CARD_BYTES + 1)
    except OSError as error:
        reason = f"{url} cannot be read: {describe_exception(error)}"
        hint = (
            "; `--allow-host HOST` lets a private one be asked" if "allow_hosts" in reason else ""
        )
        raise Refused(Refusal("invalid_field", reason + hint)) from None
    if status != 200:
        raise Refused(Refusal("invalid_field", f"{url} answered {status}, and no card"))
    return card


def _card_url(url: str) -> str:
    """URL of a host's agent card: the well-known path, unless the URL has a path of its own."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return url if path else f"{scheme}://{host}{_WELL_KNOWN_PATH}"


COMMANDS = (
    CliCommand("rank", rank),
    CliCommand("discover", discover),
)
