"""A ledger entry as it is shown: one object for programs, one line for people."""

import json

from dragoman.engine.shown.tasks import encode, shown_entry
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.screen import Part, Screen
from dragoman.surfaces.cli.words.table import tell

_PLACES = 6
"""Width of positions, so that lines are aligned."""


def as_object(entry: Entry) -> dict[str, object]:
    """JSON object of an entry, with all its fields."""
    return json.loads(encode(shown_entry(entry)))


def print_entry(entry: Entry, screen: Screen, *, names_task: bool = True) -> None:
    """Print position, time, actor, task and description of an entry on one line."""
    told = tell(entry)
    # `via` is printed only when it says more than that somebody typed a command.
    via = f" (via {told.via})" if told.via not in ("", "cli") else ""
    parts: list[Part] = [
        (f"{entry.position:>{_PLACES}}", "dim"),
        f"  {told.at}  ",
        (told.actor, "bold"),
        f"{via}  ",
    ]
    if names_task and told.subject:
        parts += [(told.subject, "cyan"), "  "]
    screen.line(*parts, told.words)
