"""`dragoman translate`: a message of one dialect in another, without a hub."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.command import CliCommand, SourceArgument, option
from dragoman.surfaces.cli.context import (
    STANDARD_INPUT,
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.engine.operation import Dialect


def translate(
    context: CommandContext,
    source: SourceArgument = STANDARD_INPUT,
    *,
    from_: Annotated[str, option("--from", "DIALECT", "The dialect that it is in.")] = "",
    to: Annotated[str, option("--to", "DIALECT", "The dialect that it shall be in.")] = "",
    explain: Annotated[
        bool, option("--explain", "", "Say also what is lost, filled in, or told otherwise.")
    ] = False,
) -> CommandResult:
    """Translate a message to another dialect.

    It prints the message, as one line of JSON. Nothing is invented: what the other dialect cannot
    say stands in its free text and is a loss; a required field that is missing gets the neutral
    value of a published table. --json and --explain list both.

    \b
    Examples:
      dragoman translate --from aof --to agentmail report.json
      dragoman translate --from agentmail --to ccos --explain < letter.json
    """
    from dragoman.engine.translation import translate as translate_message
    from dragoman.engine.translation import translation_resource

    own, other = _find_dialect(context, "--from", from_), _find_dialect(context, "--to", to)
    made = translate_message(read_source(source, own.limits.max_bytes), own, other)
    if isinstance(made, Refusal):
        raise Refused(made)
    data = translation_resource(made)
    return CommandResult(data, lambda screen: _print(data, screen, explain=explain))


def _find_dialect(context: CommandContext, flag: str, name: str) -> "Dialect":
    dialects = {dialect.name: dialect for dialect in context.wiring.dialects()}
    if name not in dialects:
        problem = f"{name!a} is not a dialect" if name else f"name a dialect with {flag}"
        raise_usage_error(f"{problem}; known: {', '.join(dialects)}")
    return dialects[name]


def _print(made: Mapping[str, Any], screen: Screen, *, explain: bool) -> None:
    screen.json(made["message"])
    if not explain:
        return
    form = " as a notice, which has no message of its own" if made["is_notice"] else ""
    screen.line(f"{made['to']} says it{form}: {made['kind'].replace('_', ' ')}")
    for label, rows in (("lost", made["losses"]), ("filled in", made["filled"])):
        for row in rows:
            screen.line(f"{label}: {row['field']} = {json.dumps(row['value'], ensure_ascii=False)}")
    if not (made["losses"] or made["filled"]):
        screen.line("nothing is lost, and nothing was filled in")


COMMANDS = (CliCommand("translate", translate, takes_as=False),)
