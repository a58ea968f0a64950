"""`dragoman handoff draft`, `validate`, `propose`, `discard`: a package before it is offered."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, answered, asked
from dragoman.surfaces.cli.handoff.offer import from_file
from dragoman.surfaces.cli.verb import Verb


def draft(
    call: Call,
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
) -> Answer:
    """Begin a draft that only you see, or replace parts of it.

    A part that is written replaces the same part; all others stay. `dragoman handoff list
    --status draft --as NAME` lists your drafts, `dragoman handoff show` shows one.

    \b
    Examples:
      dragoman handoff draft parts.json --id fix-login-1 --to bob --as ada
      echo '{"context": {"summary": "half done"}}' | dragoman handoff draft - --id fix-login-1
    """
    said = from_file(source, "draft") if source else {}
    if not (said or id or to):
        wrong_usage("say what to write: a file, or - for standard input, or --to NAME")
    given = {name: value for name, value in (("handoff_id", id), ("to_agent", to)) if value}
    with call.writing() as place:
        return answered(call, place, "draft", said | given)


def validate(call: Call, id: HandoffArgument) -> Answer:
    """Say what a draft of yours still lacks; nothing changes.

    \b
    Example:
      dragoman handoff validate fix-login-1 --as ada
    """
    with call.reading() as place:
        return answered(call, place, "validate", {"handoff_id": id})


def propose(call: Call, id: HandoffArgument) -> Answer:
    """Offer a draft of yours to its recipient.

    From here on it does not change.

    \b
    Example:
      dragoman handoff propose fix-login-1 --as ada
    """
    return asked(call, "propose", {"handoff_id": id})


def discard(call: Call, id: HandoffArgument) -> Answer:
    """Discard a draft of yours.

    An offer is taken back by `handoff withdraw` instead.

    \b
    Example:
      dragoman handoff discard fix-login-1 --as ada
    """
    return asked(call, "discard", {"handoff_id": id})


VERBS = (
    Verb("draft", draft),
    Verb("validate", validate),
    Verb("propose", propose),
    Verb("discard", discard),
)
