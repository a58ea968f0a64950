"""Files of a data directory: rebuild-files, export, import, backup, restore."""

from pathlib import Path
from typing import Annotated

from dragoman.surfaces.cli.command import CliCommand, argument
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    open_file,
    raise_usage_error,
)
from dragoman.surfaces.cli.render import UNSIGNED_WARNING, Screen, pluralize


def check_readable(path: Path) -> None:
    """End the call unless this is a file that can be read more than once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise_usage_error(f"{path} cannot be read: it is not a regular file")
    open_file(path).close()


# --- plain files ------------------------------------------------------------------------------


def rebuild_files(context: CommandContext) -> CommandResult:
    """Write all files anew from the ledger.

    Tasks, runs, events, letters, and the audit logs of handoffs. What an agent or a person put into
    a task's folder stays, and so do copies of artifacts, which the ledger knows by their hash only.

    \b
    Example:
      dragoman rebuild-files
    """
    with (
        context.open_for_writing(create_missing=False) as directory,
        context.err.progress(
            "tasks", sum(directory.hub.store.status_counts().values())
        ) as progress,
    ):
        tasks = directory.projector.rebuild(progress)
    of = "1 task" if tasks == 1 else f"{tasks} tasks"
    return CommandResult({"tasks": tasks}, lambda screen: screen.line(f"files of {of} written"))


# --- export, import ---------------------------------------------------------------------------


def export(
    context: CommandContext,
    target: Annotated[Path, argument("FILE", "The archive to make.")],
) -> CommandResult:
    """Write the whole data directory into one file, verified.

    The ledger, checkpoints, tasks' folders, artifacts and the inbox. No settings, no private key
    and no secret. A file of that name is replaced, in one step and only by an archive that is
    complete.

    \b
    Example:
      dragoman export hub.tar
    """
    if target == Path("-"):
        raise_usage_error(
            "an archive has to be complete before anybody reads it, so it is not written to "
            "standard output: name a file"
        )
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise_usage_error(f"{target} cannot be written: name a file in a folder that exists")
    replaces = target.exists()
    with context.open_for_reading() as directory:
        manifest = directory.archive("export", target, context.err.progress)
    data = {
        "file": str(target),
        "ledger": manifest.ledger,
        "entries": manifest.entries,
        "skippedFiles": manifest.omitted,
        "replaced": replaces,
    }

    def show(screen: Screen) -> None:
        instead = ", in place of the file that was there" if replaces else ""
        entries = pluralize(manifest.entries, "entry", "entries")
        screen.line((str(target), "bold"), f": {entries}{instead}")
        for path in manifest.omitted:
            screen.line(f"  left out, because it is no plain file: {path}")

    return CommandResult(data, show)


def import_(
    context: CommandContext,
    archive: Annotated[Path, argument("FILE", "An exported archive.")],
) -> CommandResult:
    """Make a data directory out of an exported one.

    A damaged archive is refused by the first thing that is wrong with it, and nothing is made.

    \b
    Example:
      dragoman import hub.tar --data elsewhere
    """
    check_readable(archive)
    manifest = context.wiring.restore_archive(
        "export", archive, context.data, context.shared.store, context.err.progress
    )
    with context.open_for_writing(founds=True):
        pass  # opening the directory makes its keys, signs the ledger and writes the files
    data = {
        "data": str(context.data),
        "ledger": manifest.ledger,
        "entries": manifest.entries,
    }

    def show(screen: Screen) -> None:
        screen.line(
            f"{context.data}: {pluralize(manifest.entries, 'entry', 'entries')}, all as they were"
        )

    return CommandResult(data, show)


# --- backup, restore --------------------------------------------------------------------------


def backup(
    context: CommandContext,
    target: Annotated[Path, argument("FILE", "The file to make.")],
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
    with context.open_for_reading() as directory:
        manifest = directory.archive("backup", target, context.err.progress)
        is_signed = not manifest.entries or directory.checkpoints.last() is not None
        context.print_warnings(directory)
    size = target.stat().st_size
    data = {
        "file": str(target),
        "bytes": size,
        "ledger": manifest.ledger,
        "entries": manifest.entries,
        "skippedFiles": manifest.omitted,
        "warnings": [] if is_signed else [UNSIGNED_WARNING],
    }

    def show(screen: Screen) -> None:
        screen.line(
            (str(target), "bold"),
            f": {pluralize(manifest.entries, 'entry', 'entries')}, {size} bytes, read back: good",
        )
        if not is_signed:
            screen.line(("warning: ", "yellow"), UNSIGNED_WARNING)
        screen.line("  it holds the hub's private keys and tokens: keep it where secrets belong")
        for path in manifest.omitted:
            screen.line(f"  left out, because it is no plain file: {path}")

    return CommandResult(data, show)


def restore(
    context: CommandContext,
    source: Annotated[Path, argument("FILE", "A file of `backup`.")],
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
    manifest = context.wiring.restore_archive(
        "backup", source, context.data, context.shared.store, context.err.progress
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
        "entries": manifest.entries,
        "madeAt": manifest.made_at,
    }

    def show(screen: Screen) -> None:
        screen.line(
            f"{context.data}: {pluralize(manifest.entries, 'entry', 'entries')}, as they were when "
            "the "
            f"backup was made ({manifest.made_at})"
        )
        screen.line(f"Next: {context.next_command('verify')}")
        screen.line("Make sure that the old hub never runs again")

    return CommandResult(data, show)


COMMANDS = (
    CliCommand("rebuild-files", rebuild_files, takes_as=False),
    CliCommand("export", export, takes_as=False),
    CliCommand("import", import_, takes_as=False),
    CliCommand("backup", backup, takes_as=False),
    CliCommand("restore", restore, takes_as=False),
)
