"""The group `dragoman intent`: goals that were delegated, and the Actions of their chains."""

from typing import Annotated, Any

import typer

from dragoman.core.moments import to_rfc3339
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.intent.delegate import IntentArgument
from dragoman.surfaces.cli.intent.view import print_action, print_intent, print_intents
from dragoman.surfaces.cli.mail.asking import looked_up, replied
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import read_moment
from dragoman.surfaces.cli.verb import Verb


def _named(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, show_default=False, help=text)


AgentOption = Annotated[str, _named("--agent", "NAME", "Only what was assigned to this agent.")]
PlanOption = Annotated[str, _named("--plan", "ID", "Only of this plan.")]


def show(call: Call, intent: IntentArgument) -> Answer:
    """Show how an intent stands.

    Its request, its result, and who was tried.

    \b
    Example:
      dragoman intent show i-7
    """
    found = looked_up(call, "ccos.intent", intent_id=intent)
    return Answer(found, lambda screen: print_intent(found, screen))


def list_them(
    call: Call,
    *,
    agent: AgentOption = "",
    plan: PlanOption = "",
    follows: Annotated[str, _named("--follows", "INTENT", "Only follow-ups of this intent.")] = "",
    is_open: Annotated[bool, typer.Option("--open", help="Only open intents.")] = False,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="`next` of the page before.")
    ] = 0,
    limit: LimitOption = 50,
) -> Answer:
    """List intents, the oldest first.

    Where several options are given, all of them must hold.

    \b
    Example:
      dragoman intent list --open
    """
    wanted = {
        "agent_id": agent,
        "plan_id": plan,
        "follows": follows,
        "open": is_open,
        "after": after,
        "limit": limit,
    }
    found = looked_up(call, "ccos.intents", **wanted)

    def print_page(screen: Screen) -> None:
        print_intents(found["intents"], screen)
        if "next" in found:
            screen.line(f"There are more: add --after {found['next']}")

    return Answer(found, print_page)


def actions(
    call: Call,
    intent: Annotated[str, _named("--intent", "ID", "Only of this intent.")] = "",
    *,
    plan: PlanOption = "",
    agent: Annotated[str, _named("--agent", "NAME", "Only about this agent.")] = "",
    kind: Annotated[str, _named("--type", "TYPE", "Only of this type, e.g. TaskCompleted.")] = "",
    parent: Annotated[
        str, _named("--parent", "ACTION", "Only Actions that this one has caused.")
    ] = "",
    since: Annotated[
        int | None,
        typer.Option(
            "--since",
            metavar="RFC3339",
            parser=read_moment,
            show_default=False,
            help="From this moment on.",
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until",
            metavar="RFC3339",
            parser=read_moment,
            show_default=False,
            help="Before this moment.",
        ),
    ] = None,
    cursor: Annotated[str, _named("--after", "CURSOR", "`cursor` of the page before.")] = "",
    limit: LimitOption = 100,
) -> Answer:
    """List Actions of the causal chain, by any of their fields.

    \b
    Examples:
      dragoman intent actions --agent ada --type TaskCompleted
      dragoman intent actions --parent "i-7#4"
    """
    wanted: dict[str, Any] = {
        "intent_id": intent,
        "plan_id": plan,
        "agent_id": agent,
        "type": kind,
        "parent_id": parent,
        "since": "" if since is None else to_rfc3339(since),
        "until": "" if until is None else to_rfc3339(until),
        "cursor": cursor,
        "limit": limit,
    }
    found = looked_up(call, "ccos.actions", **wanted)

    def print_page(screen: Screen) -> None:
        for action in found["actions"]:
            print_action(action, screen)
        if not found["actions"]:
            screen.line("there are no such Actions")
        if found["more"]:
            screen.line(f"There are more: add --after {found['cursor']}")

    return Answer(found, print_page)


def cancel(
    call: Call,
    intent: IntentArgument,
    reason: Annotated[str, _named("--reason", "TEXT", "Why.")] = "",
) -> Answer:
    """Cancel an intent; it does not count as a failure of its agent.

    Its open request ends.

    \b
    Example:
      dragoman intent cancel i-7 --reason "no longer needed"
    """
    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        wanted = {"intent_id": intent, "reason": reason}
        reply = replied(place, "ccos.cancel", wanted, actor)
    return Answer(reply, lambda screen: screen.line((intent, "bold"), " is cancelled"))


VERBS = (
    Verb("show", show, speaks=False),
    Verb("list", list_them, speaks=False),
    Verb("actions", actions, speaks=False),
    Verb("cancel", cancel),
)
