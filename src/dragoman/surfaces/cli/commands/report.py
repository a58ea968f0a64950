"""`dragoman report`: a day of the whole hub."""

import json
from pathlib import Path
from typing import Annotated, Any

from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.day_report import read_day
from dragoman.engine.queries.numbers import DAY_MS
from dragoman.engine.schemas.day_report import day_of, day_report_resource
from dragoman.engine.schemas.tasks import encode
from dragoman.surfaces.cli.caller import require_own_process
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.day_report_text import day_as_html, day_as_markdown
from dragoman.system.safe_fs import write_atomically


def _parse_day(text: str) -> int:
    try:
        return parse_rfc3339(f"{text}T00:00:00Z")
    except ValueError:
        raise ValueError(f"{text!a} is not a day: write it like 2026-02-09") from None


def report(
    context: CommandContext,
    *,
    day: Annotated[
        int | None,
        option(
            "--day", "DATE", "The day (UTC), such as 2026-02-09; else today.", parser=_parse_day
        ),
    ] = None,
    html: Annotated[
        Path | None,
        option("--html", "FILE", "Write one HTML page that opens without a hub, and no Markdown."),
    ] = None,
) -> CommandResult:
    """Report a day, in Markdown.

    What was finished, failed, given up and escalated, by agent, with tokens and cost where agents
    report them, and what waits for a person now.

    \b
    Examples:
      dragoman report
      dragoman report --day 2026-02-09 --html day.html
    """
    if html is not None:
        require_own_process()
    with context.open_readonly() as directory:
        store, now, reader = (
            directory.store,
            directory.clock.now(),
            context.bearer_as_reader(directory),
        )
        begin = now - now % DAY_MS if day is None else day
        attention = find_attention(store, now, served=directory.served_names, reader=reader)
        found = read_day(store, begin, now, attention, reader)
    if html is not None:
        write_atomically(html, day_as_html(found).encode())
    data: dict[str, Any] = json.loads(encode(day_report_resource(found)))

    def print_report(screen: Screen) -> None:
        if html is not None:
            screen.line(f"wrote the report of {day_of(begin)} to {html}")
            return
        for line in day_as_markdown(found):
            screen.line(line)

    return CommandResult(data, print_report)


COMMANDS = (CliCommand("report", report, takes_as=False),)
