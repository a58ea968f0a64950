"""A page of what happened to one thing: its entries in the ledger, from one of them on."""

from collections.abc import Mapping, Sequence

from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.call import CommandResult
from dragoman.surfaces.cli.entry_view import entry_to_dict, print_entry
from dragoman.surfaces.cli.screen import Screen


def history_result(owner: Mapping[str, str], entries: Sequence[Entry], limit: int) -> CommandResult:
    """Result with at most `limit` entries of one thing; `owner` names it in the JSON object."""
    page = entries[:limit]
    next_version = page[-1].version if len(entries) > limit else None
    data = {**owner, "entries": [entry_to_dict(entry) for entry in page], "next": next_version}

    def print_entries(screen: Screen) -> None:
        for entry in page:
            print_entry(entry, screen, names_task=False)
        if next_version is not None:
            screen.line(f"There are more: add --after {next_version}")

    return CommandResult(data, print_entries)
