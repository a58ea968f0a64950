"""A page of what happened to one thing: its entries in the ledger, from one of them on."""

from collections.abc import Mapping, Sequence

from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.call import Answer
from dragoman.surfaces.cli.entry_view import as_object, print_entry
from dragoman.surfaces.cli.screen import Screen


def history_page(name: Mapping[str, str], entries: Sequence[Entry], limit: int) -> Answer:
    """Result with at most `limit` entries of one thing; `owner` names it in the JSON object."""
    page = entries[:limit]
    further = page[-1].version if len(entries) > limit else None
    data = {**name, "entries": [as_object(entry) for entry in page], "next": further}

    def show_lines(screen: Screen) -> None:
        for entry in page:
            print_entry(entry, screen, names_task=False)
        if further is not None:
            screen.line(f"There are more: add --after {further}")

    return Answer(data, show_lines)
