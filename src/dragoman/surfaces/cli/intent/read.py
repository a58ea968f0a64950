"""The group `dragoman intent`: goals that were delegated, and the Actions of their chains."""

from typing import Annotated, Any

import typer

from dragoman.core.moments import to_rfc3339
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.intent.delegate import IntentArgument
from dragoman.surfaces.cli.intent.view import print_action, print_intent, print_intents
from dragoman.surfaces.cli.mail.asking import call_and_collect_warnings, query_operation
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import parse_timestamp
from dragoman.surfaces.cli.verb import CliCommand


def _text_option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, show_default=False, help=text)


AgentFilterOption = Annotated[
    str, _text_option("--agent", "NAME", "Only what was assigned to this agent.")
]
PlanFilterOption = Annotated[str, _text_option("--plan", "ID", "Only of this plan.")]


def show(context: CommandContext, intent: IntentArgument) -> CommandResult:
    """Show how an intent stands.

    Its request, its result, and who was tried.

    \b
    Example:
      dragoman intent show i-7
    """
    intent_reply = query_operation(context, "ccos.intent", intent_id=intent)
    return CommandResult(intent_reply, lambda screen: print_intent(intent_reply, screen))


def list_intents(
    context: CommandContext,
    *,
    agent: AgentFilterOption = "",
    plan: PlanFilterOption = "",
    follows: Annotated[
        str, _text_option("--follows", "INTENT", "Only follow-ups of this intent.")
    ] = "",
    is_open: Annotated[bool, typer.Option("--open", help="Only open intents.")] = False,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="`next` of the page before.")
    ] = 0,
    limit: LimitOption = 50,
) -> CommandResult:
    """List intents, the oldest first.

    Where several options are given, all of them must hold.

    \b
    Example:
      dragoman intent list --open
    """
    arguments = {
        "agent_id": agent,
        "plan_id": plan,
        "follows": follows,
        "open": is_open,
        "after": after,
        "limit": limit,
    }
    reply = query_operation(context, "ccos.intents", **arguments)

    def print_page(screen: Screen) -> None:
        print_intents(reply["intents"], screen)
        if "next" in reply:
            screen.line(f"There are more: add --after {reply['next']}")

    return CommandResult(reply, print_page)


def actions(
    context: CommandContext,
    intent: Annotated[str, _text_option("--intent", "ID", "Only of this intent.")] = "",
    *,
    plan: PlanFilterOption = "",
    agent: Annotated[str, _text_option("--agent", "NAME", "Only about this agent.")] = "",
    kind: Annotated[
        str, _text_option("--type", "TYPE", "Only of this type, e.g. TaskCompleted.")
    ] = "",
    parent: Annotated[
        str, _text_option("--parent", "ACTION", "Only Actions that this one has caused.")
    ] = "",
    since: Annotated[
        int | None,
        typer.Option(
            "--since",
            metavar="RFC3339",
            parser=parse_timestamp,
            show_default=False,
            help="From this moment on.",
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until",
            metavar="RFC3339",
            parser=parse_timestamp,
            show_default=False,
            help="Before this moment.",
        ),
    ] = None,
    cursor: Annotated[str, _text_option("--after", "CURSOR", "`cursor` of the page before.")] = "",
    limit: LimitOption = 100,
) -> CommandResult:
    """List Actions of the causal chain, by any of their fields.

    \b
    Examples:
      dragoman intent actions --agent ada --type TaskCompleted
      dragoman intent actions --parent "i-7#4"
    """
    arguments: dict[str, Any] = {
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
    reply = query_operation(context, "ccos.actions", **arguments)

    def print_page(screen: Screen) -> None:
        for action in reply["actions"]:
            print_action(action, screen)
        if not reply["actions"]:
            screen.line("there are no such Actions")
        if reply["more"]:
            screen.line(f"There are more: add --after {reply['cursor']}")

    return CommandResult(reply, print_page)


def cancel(
    context: CommandContext,
    intent: IntentArgument,
    reason: Annotated[str, _text_option("--reason", "TEXT", "Why.")] = "",
) -> CommandResult:
    """Cancel an intent; it does not count as a failure of its agent.

    Its open request ends.

    \b
    Example:
      dragoman intent cancel i-7 --reason "no longer needed"
    """
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        arguments = {"intent_id": intent, "reason": reason}
        reply = call_and_collect_warnings(directory, "ccos.cancel", arguments, actor)
    return CommandResult(reply, lambda screen: screen.line((intent, "bold"), " is cancelled"))


COMMANDS = (
    CliCommand("show", show, takes_as=False),
    CliCommand("list", list_intents, takes_as=False),
    CliCommand("actions", actions, takes_as=False),
    CliCommand("cancel", cancel),
)
