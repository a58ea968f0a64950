"""`dragoman backup` and `dragoman restore`: a hub as it was, somewhere else."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.reading import check_readable
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand
from dragoman.surfaces.cli.words.phrases import UNSIGNED_WARNING, pluralize


def backup(
    context: CommandContext,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The file to make.")
    ],
) -> CommandResult:
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
        raise_usage_error(
            "a backup is read back before it gets its name, so it is not written to standard "
            "output: name a file"
        )
    if target.exists():
        raise_usage_error(f"{target} is there, and a backup replaces nothing: name another file")
    if not target.absolute().parent.is_dir():
        raise_usage_error(f"{target} cannot be written: name a file in a folder that exists")
    if target.resolve().is_relative_to(context.data.resolve()):
        raise_usage_error(
            f"{target} is in the data directory that it is a backup of, and would be lost with it: "
            "name a place outside, best on another disk"
        )
    # A restored hub could not go on without the keys that its store knows.
    with context.open_for_reading(keyed=True) as directory:
        manifest = directory.backup(target, context.err.progress)
        is_signed = not manifest.head or directory.checkpoints.last() is not None
        context.print_warnings(directory)
    size = target.stat().st_size
    data = {
        "file": str(target),
        "bytes": size,
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "members": len(manifest.members),
        "leftOut": manifest.left_out,
        "warnings": [] if is_signed else [UNSIGNED_WARNING],
    }

    def show(screen: Screen) -> None:
        screen.line(
            (str(target), "bold"),
            f": {pluralize(manifest.head, 'entry', 'entries')}, {size} bytes, read back: good",
        )
        if not is_signed:
            screen.line(("warning: ", "yellow"), UNSIGNED_WARNING)
        screen.line("  it holds the hub's private keys and tokens: keep it where secrets belong")
        for path in manifest.left_out:
            screen.line(f"  left out, because it is no plain file: {path}")

    return CommandResult(data, show)


def restore(
    context: CommandContext,
    source: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A file of `backup`.")
    ],
) -> CommandResult:
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
        raise_usage_error(
            f"{source} is a directory: name the file that `dragoman backup` made; where to restore "
            "it to is said with --data"
        )
    check_readable(source)
    manifest = context.wiring.restore_backup(
        source, context.data, context.shared.store, context.err.progress
    )
    with (
        context.open_for_writing(create_missing=False) as directory,
        context.err.progress(
            "tasks", sum(directory.hub.store.status_counts().values())
        ) as progress,
    ):
        directory.projector.rebuild(progress)
    data = {
        "data": str(context.data),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "madeAt": manifest.exported_at,
    }

    def show(screen: Screen) -> None:
        screen.line(
            f"{context.data}: {pluralize(manifest.head, 'entry', 'entries')}, as they were when "
            "the "
            f"backup was made ({manifest.exported_at})"
        )
        screen.line(f"Next: {context.next_command('verify')}")
        screen.line("Make sure that the old hub never runs again")

    return CommandResult(data, show)


BACKUP_COMMANDS = (
    CliCommand("backup", backup, takes_as=False),
    CliCommand("restore", restore, takes_as=False),
)
