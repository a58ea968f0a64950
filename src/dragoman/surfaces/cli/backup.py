"""`dragoman backup` and `dragoman restore`: a hub as it was, somewhere else."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.reading import check_readable
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb
from dragoman.surfaces.cli.words.phrases import UNSIGNED, counted


def backup(
    call: Call,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The file to make.")
    ],
) -> Answer:
    """Write all that a hub needs into one file.

    With it the hub can go on elsewhere, as it was.

    A hub and others may work on meanwhile: all that was acknowledged before is in it. It is read
    back and verified before it gets its name. A file that is there is never replaced.

    It holds private keys, tokens and the settings with their passwords: only you can read it, and
    it belongs where your secrets are. Not in it: what the ledger makes anew (task files, letters,
    event lines), links, agents that run, and anything outside of the data directory and its store.

    \b
    Example:
      dragoman backup /mnt/backups/hub-1.tar
    """
    if target == Path("-"):
        wrong_usage(
            "a backup is read back before it gets its name, so it is not written to standard "
            "output: name a file"
        )
    if target.exists():
        wrong_usage(f"{target} is there, and a backup replaces nothing: name another file")
    if not target.absolute().parent.is_dir():
        wrong_usage(f"{target} cannot be written: name a file in a folder that exists")
    if target.resolve().is_relative_to(call.data.resolve()):
        wrong_usage(
            f"{target} is in the data directory that it is a backup of, and would be lost with it: "
            "name a place outside, best on another disk"
        )
    # A restored hub could not go on without the keys that its store knows.
    with call.reading(keyed=True) as place:
        manifest = place.backup(target, call.err.progress)
        is_signed = not manifest.head or place.checkpoints.last() is not None
        call.warn(place)
    size = target.stat().st_size
    data = {
        "file": str(target),
        "bytes": size,
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "members": len(manifest.members),
        "leftOut": manifest.left_out,
        "warnings": [] if is_signed else [UNSIGNED],
    }

    def show(screen: Screen) -> None:
        screen.line(
            (str(target), "bold"),
            f": {counted(manifest.head, 'entry', 'entries')}, {size} bytes, read back: good",
        )
        if not is_signed:
            screen.line(("warning: ", "yellow"), UNSIGNED)
        screen.line("  it holds the hub's private keys and tokens: keep it where secrets belong")
        for path in manifest.left_out:
            screen.line(f"  left out, because it is no plain file: {path}")

    return Answer(data, show)


def restore(
    call: Call,
    source: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A file of `backup`.")
    ],
) -> Answer:
    """Make a data directory and its store out of a backup.

    Everything is checked first. Nothing is ever replaced: the directory must be new or empty, and
    so must the store: that of --store, else the one that the settings in the backup name, else a
    file in the directory. Without --store a hub that used PostgreSQL goes back to its place there.

    The hub goes on under its old keys and id. Make sure that the old one never runs again: the two
    would sign different ledgers by one name.

    \b
    Example:
      dragoman restore /mnt/backups/hub-1.tar --data /srv/hub
    """
    if source.is_dir():
        wrong_usage(
            f"{source} is a directory: name the file that `dragoman backup` made; where to restore "
            "it to is said with --data"
        )
    check_readable(source)
    manifest = call.house.restore(source, call.data, call.shared.store, call.err.progress)
    with (
        call.writing(makes=False) as place,
        call.err.progress("tasks", sum(place.hub.store.counts().values())) as progress,
    ):
        place.projector.rebuild(progress)
    data = {
        "data": str(call.data),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "madeAt": manifest.exported_at,
    }

    def show(screen: Screen) -> None:
        screen.line(
            f"{call.data}: {counted(manifest.head, 'entry', 'entries')}, as they were when the "
            f"backup was made ({manifest.exported_at})"
        )
        screen.line(f"Next: {call.next_command('verify')}")
        screen.line("Make sure that the old hub never runs again")

    return Answer(data, show)


VERBS = (
    Verb("backup", backup, speaks=False),
    Verb("restore", restore, speaks=False),
)
