"""Commands about the plain files of a data directory: watch, rebuild, export, import."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.reading import check_readable
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand
from dragoman.surfaces.cli.words.phrases import pluralize


def watch_files(context: CommandContext) -> None:
    """Follow inbox/ and edited task files, until Ctrl-C.

    \b
    Example:
      dragoman watch-files
    """
    from dragoman.system.hub_lock import HubRunning, find_lock_holder

    already_printed = frozenset[str]()
    with context.open_for_writing() as directory:
        if (running := find_lock_holder(directory.path)) is not None:
            raise HubRunning(
                f"a hub works on {directory.path} (process {running.pid}) and follows these "
                "files itself"
            )
        while True:
            now = directory.hub.clock.now()
            outcomes = {duty.name: duty.run_once(now) for duty in directory.file_services}
            if any(outcomes.values()):
                counts = {name: count for name, count in outcomes.items() if count}
                summary = ", ".join(f"{name} {count}" for name, count in counts.items())
                context.print_result(
                    CommandResult(
                        {"duties": counts}, lambda screen, words=summary: screen.line(words)
                    )
                )
                context.out.flush()
            already_printed = context.print_warnings(directory, already_printed)
            if not context.wait():
                return


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


def export(
    context: CommandContext,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The archive to make.")
    ],
) -> CommandResult:
    """Write the whole data directory into one file, verified.

    The ledger with its hashes, checkpoints, tasks' folders, runs and inbox, and the settings but
    for [store] and [notify]. No private key, secret or password. A file of that name is replaced,
    in one step and only by an archive that is complete.

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
    with (
        context.open_for_reading() as directory,
        context.err.progress("entries", directory.hub.store.head()) as progress,
    ):
        if directory.checkpoints.lines():
            # Importers check the checkpoints by the public key, so the archive needs it.
            _ = directory.checkpoints.public
        manifest = directory.export(target, progress)
    data = {
        "file": str(target),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "members": len(manifest.members),
        "leftOut": manifest.left_out,
        "replaced": replaces,
    }

    def show(screen: Screen) -> None:
        parts, entries = len(manifest.members), pluralize(manifest.head, "entry", "entries")
        instead = ", in place of the file that was there" if replaces else ""
        screen.line((str(target), "bold"), f": {entries}, {parts} parts{instead}")
        for path in manifest.left_out:
            screen.line(f"  left out, because it is no plain file: {path}")

    return CommandResult(data, show)


def import_(
    context: CommandContext,
    archive: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="An exported archive.")
    ],
) -> CommandResult:
    """Make a data directory out of an exported one.

    Every hash is checked first. A damaged archive is refused by the first thing that is wrong
    with it, and nothing is made. Its settings are kept under imported/ and do not count.

    \b
    Example:
      dragoman import hub.tar --data elsewhere
    """
    check_readable(archive)
    with context.err.progress("entries", 0) as progress:
        manifest = context.wiring.import_archive(
            archive, context.data, context.shared.store, progress
        )
    with context.open_for_writing():
        pass  # opening the directory makes its keys, signs the ledger and writes the files
    settings = _imported_settings(context.data)
    data = {
        "data": str(context.data),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "settings": None if settings is None else str(settings),
    }

    def show(screen: Screen) -> None:
        screen.line(
            f"{context.data}: {pluralize(manifest.head, 'entry', 'entries')}, all as they were"
        )
        if settings is not None:
            screen.line(f"  its settings are kept in {settings} and do not count here:")
            screen.line(f"  copy what you want of them to {context.data / settings.name}")

    return CommandResult(data, show)


def _imported_settings(data: Path) -> Path | None:
    """Path of the settings that came with an imported archive, if it had any."""
    path = data / "imported" / "dragoman.toml"
    return path if path.exists() else None


FILE_COMMANDS = (
    CliCommand("watch-files", watch_files, takes_as=False),
    CliCommand("rebuild-files", rebuild_files, takes_as=False),
    CliCommand("export", export, takes_as=False),
    CliCommand("import", import_, takes_as=False),
)
