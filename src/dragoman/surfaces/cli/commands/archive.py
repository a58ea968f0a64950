"""Files of a data directory: rebuild-files, export, import, backup, restore."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.surfaces.cli.command import CliCommand, argument
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    open_file,
    raise_usage_error,
)
from dragoman.surfaces.cli.render import UNSIGNED_WARNING, Screen, pluralize

if TYPE_CHECKING:
    from dragoman.files.archive import Manifest


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
        context.open_for_writing() as directory,
        context.err.progress(
            "tasks", sum(directory.hub.store.status_counts().values())
        ) as progress,
    ):
        tasks = directory.projector.rebuild(progress)
    of = "1 task" if tasks == 1 else f"{tasks} tasks"
    return CommandResult({"tasks": tasks}, lambda screen: screen.line(f"files of {of} written"))


# --- what was written, and what was made of it ------------------------------------------------


def _check_target(target: Path, kind: str) -> None:
    """End the call unless a file can be written there."""
    if target == Path("-"):
        raise_usage_error(
            f"{kind} is read back before anybody else reads it, so it is not written to standard "
            "output: name a file"
        )
    if target.exists():
        raise_usage_error(f"{target} is there, and {kind} replaces nothing: name another file")
    if not target.absolute().parent.is_dir():
        raise_usage_error(f"{target} cannot be written: name a file in a folder that exists")


def _archive_result(
    target: Path, manifest: "Manifest", note: str, *lines: str, **more: object
) -> CommandResult:
    """Result of a command that has written an archive."""
    data = {
        "file": str(target),
        "ledger": manifest.ledger,
        "entries": manifest.entries,
        "skippedFiles": manifest.omitted,
        **more,
    }

    def show(screen: Screen) -> None:
        entries = pluralize(manifest.entries, "entry", "entries")
        screen.line((str(target), "bold"), f": {entries}{note}")
        for line in (
            *lines,
            *(f"left out, because it is no plain file: {path}" for path in manifest.omitted),
        ):
            screen.line(f"  {line}")

    return CommandResult(data, show)


def _directory_result(
    context: CommandContext, manifest: "Manifest", note: str, *lines: str
) -> CommandResult:
    """Result of a command that has made a data directory of an archive."""
    data = {
        "data": str(context.data),
        "ledger": manifest.ledger,
        "entries": manifest.entries,
        "madeAt": manifest.made_at,
    }

    def show(screen: Screen) -> None:
        screen.line(f"{context.data}: {pluralize(manifest.entries, 'entry', 'entries')}, {note}")
        for line in lines:
            screen.line(line)

    return CommandResult(data, show)


# --- export, import ---------------------------------------------------------------------------


def export(
    context: CommandContext,
    target: Annotated[Path, argument("FILE", "The archive to make.")],
) -> CommandResult:
    """Write the whole data directory into one file, verified.

    The ledger, checkpoints, tasks' folders, artifacts and the inbox. No settings, no private key
    and no secret. A file that is there is never replaced.

    \b
    Example:
      dragoman export hub.tar
    """
    _check_target(target, "an archive")
    with context.open_for_reading() as directory:
        manifest = directory.archive("export", target, context.err.progress)
    return _archive_result(target, manifest, "")


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
    return _directory_result(context, manifest, "all as they were")


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
    _check_target(target, "a backup")
    if target.resolve().is_relative_to(context.data.resolve()):
        raise_usage_error(
            f"{target} is in the data directory that it is a backup of, and would be lost with it: "
            "name a place outside, best on another disk"
        )
    with context.open_for_reading() as directory:
        manifest = directory.archive("backup", target, context.err.progress)
        is_signed = not manifest.entries or directory.checkpoints.last() is not None
        context.print_warnings(directory)
    size, warnings = target.stat().st_size, [] if is_signed else [UNSIGNED_WARNING]
    return _archive_result(
        target,
        manifest,
        f", {size} bytes, read back: good",
        *(f"warning: {warning}" for warning in warnings),
        "it holds the hub's private keys and tokens: keep it where secrets belong",
        bytes=size,
        warnings=warnings,
    )


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
    rebuild_files(context)
    return _directory_result(
        context,
        manifest,
        f"as they were when the backup was made ({manifest.made_at})",
        f"Next: {context.next_command('verify')}",
        "Make sure that the old hub never runs again",
    )


COMMANDS = (
    CliCommand("rebuild-files", rebuild_files, takes_as=False),
    CliCommand("export", export, takes_as=False),
    CliCommand("import", import_, takes_as=False),
    CliCommand("backup", backup, takes_as=False),
    CliCommand("restore", restore, takes_as=False),
)
