"""`dragoman handoff draft`, `validate`, `propose`, `discard`: a package before it is offered."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, run_action, run_action_in
from dragoman.surfaces.cli.handoff.offer import read_arguments
from dragoman.surfaces.cli.verb import CliCommand


def draft(
    context: CommandContext,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            show_default=False,
            help="Parts of the input of `acp_handoff`, as JSON; options override them.",
        ),
    ] = "",
    *,
    id: Annotated[
        str,
        typer.Option(
            "--id", metavar="ID", show_default=False, help="The draft; else a new one begins."
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option("--to", metavar="NAME", show_default=False, help="The recipient."),
    ] = "",
) -> CommandResult:
    """Begin a draft that only you see, or replace parts of it.

    A part that is written replaces the same part; all others stay. `dragoman handoff list
    --status draft --as NAME` lists your drafts, `dragoman handoff show` shows one.

    \b
    Examples:
      dragoman handoff draft parts.json --id fix-login-1 --to bob --as ada
      echo '{"context": {"summary": "half done"}}' | dragoman handoff draft - --id fix-login-1
    """
    arguments = read_arguments(source, "draft") if source else {}
    if not (arguments or id or to):
        raise_usage_error("say what to write: a file, or - for standard input, or --to NAME")
    options = {name: value for name, value in (("handoff_id", id), ("to_agent", to)) if value}
    with context.open_for_writing() as directory:
        return run_action_in(context, directory, "draft", arguments | options)


def validate(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Say what a draft of yours still lacks; nothing changes.

    \b
    Example:
      dragoman handoff validate fix-login-1 --as ada
    """
    with context.open_for_reading() as directory:
        return run_action_in(context, directory, "validate", {"handoff_id": id})


def propose(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Offer a draft of yours to its recipient.

    From here on it does not change.

    \b
    Example:
      dragoman handoff propose fix-login-1 --as ada
    """
    return run_action(context, "propose", {"handoff_id": id})


def discard(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Discard a draft of yours.

    An offer is taken back by `handoff withdraw` instead.

    \b
    Example:
      dragoman handoff discard fix-login-1 --as ada
    """
    return run_action(context, "discard", {"handoff_id": id})


DRAFT_COMMANDS = (
    CliCommand("draft", draft),
    CliCommand("validate", validate),
    CliCommand("propose", propose),
    CliCommand("discard", discard),
)
