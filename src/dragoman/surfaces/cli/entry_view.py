"""A ledger entry as it is shown: one object for programs, one line for people."""

import json

from dragoman.engine.shown.tasks import encode, entry_resource
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.screen import Screen, StyledText
from dragoman.surfaces.cli.words.table import describe_entry

_POSITION_WIDTH = 6
"""Width of positions, so that lines are aligned."""


def entry_to_dict(entry: Entry) -> dict[str, object]:
    """JSON object of an entry, with all its fields."""
    return json.loads(encode(entry_resource(entry)))


def print_entry(entry: Entry, screen: Screen, *, names_task: bool = True) -> None:
    """Print position, time, actor, task and description of an entry on one line."""
    text = describe_entry(entry)
    # `via` is printed only when it says more than that somebody typed a command.
    via = f" (via {text.via})" if text.via not in ("", "cli") else ""
    parts: list[StyledText] = [
        (f"{entry.position:>{_POSITION_WIDTH}}", "dim"),
        f"  {text.at}  ",
        (text.actor, "bold"),
        f"{via}  ",
    ]
    if names_task and text.subject:
        parts += [(text.subject, "cyan"), "  "]
    screen.line(*parts, text.text)
