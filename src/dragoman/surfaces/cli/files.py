"""Commands about the plain files of a data directory: watch, rebuild, export, import."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.reading import check_readable
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb
from dragoman.surfaces.cli.words.phrases import counted


def watch_files(call: Call) -> None:
    """Follow inbox/ and edited task files, until Ctrl-C.

    \b
    Example:
      dragoman watch-files
    """
    from dragoman.system.hub_lock import HubRunning, holder

    warned = frozenset[str]()
    with call.writing() as place:
        if (by := holder(place.data)) is not None:
            raise HubRunning(
                f"a hub works on {place.data} (process {by.pid}) and follows these files itself"
            )
        while True:
            now = place.hub.clock.now()
            done = {duty.name: duty.run_once(now) for duty in place.file_duties}
            if any(done.values()):
                told = {name: count for name, count in done.items() if count}
                words = ", ".join(f"{name} {count}" for name, count in told.items())
                call.tell(Answer({"duties": told}, lambda screen, words=words: screen.line(words)))
                call.out.flush()
            warned = call.warn(place, warned)
            if not call.wait():
                return


def rebuild_files(call: Call) -> Answer:
    """Write all files anew from the ledger.

    Tasks, runs, events, letters, and the audit logs of handoffs. What an agent or a person put into
    a task's folder stays, and so do copies of artifacts, which the ledger knows by their hash only.

    \b
    Example:
      dragoman rebuild-files
    """
    with (
        call.writing(makes=False) as place,
        call.err.progress("tasks", sum(place.hub.store.counts().values())) as progress,
    ):
        tasks = place.projector.rebuild(progress)
    of = "1 task" if tasks == 1 else f"{tasks} tasks"
    return Answer({"tasks": tasks}, lambda screen: screen.line(f"files of {of} written"))


def export(
    call: Call,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The archive to make.")
    ],
) -> Answer:
    """Write the whole data directory into one file, verified.

    The ledger with its hashes, checkpoints, tasks' folders, runs and inbox, and the settings but
    for [store] and [notify]. No private key, secret or password. A file of that name is replaced,
    in one step and only by an archive that is complete.

    \b
    Example:
      dragoman export hub.tar
    """
    if target == Path("-"):
        wrong_usage(
            "an archive has to be complete before anybody reads it, so it is not written to "
            "standard output: name a file"
        )
    if target.is_dir() or not target.absolute().parent.is_dir():
        wrong_usage(f"{target} cannot be written: name a file in a folder that exists")
    is_there = target.exists()
    with (
        call.reading() as place,
        call.err.progress("entries", place.hub.store.head()) as progress,
    ):
        if place.checkpoints.lines():
            # Importers check the checkpoints by the public key, so the archive needs it.
            _ = place.checkpoints.public
        manifest = place.export(target, progress)
    data = {
        "file": str(target),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "members": len(manifest.members),
        "leftOut": manifest.left_out,
        "replaced": is_there,
    }

    def show(screen: Screen) -> None:
        parts, entries = len(manifest.members), counted(manifest.head, "entry", "entries")
        instead = ", in place of the file that was there" if is_there else ""
        screen.line((str(target), "bold"), f": {entries}, {parts} parts{instead}")
        for path in manifest.left_out:
            screen.line(f"  left out, because it is no plain file: {path}")

    return Answer(data, show)


def import_(
    call: Call,
    archive: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="An exported archive.")
    ],
) -> Answer:
    """Make a data directory out of an exported one.

    Every hash is checked first. A damaged archive is refused by the first thing that is wrong
    with it, and nothing is made. Its settings are kept under imported/ and do not count.

    \b
    Example:
      dragoman import hub.tar --data elsewhere
    """
    check_readable(archive)
    with call.err.progress("entries", 0) as progress:
        manifest = call.house.import_archive(archive, call.data, call.shared.store, progress)
    with call.writing():
        pass  # opening the directory makes its keys, signs the ledger and writes the files
    settings = _kept_settings(call.data)
    data = {
        "data": str(call.data),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "settings": None if settings is None else str(settings),
    }

    def show(screen: Screen) -> None:
        screen.line(f"{call.data}: {counted(manifest.head, 'entry', 'entries')}, all as they were")
        if settings is not None:
            screen.line(f"  its settings are kept in {settings} and do not count here:")
            screen.line(f"  copy what you want of them to {call.data / settings.name}")

    return Answer(data, show)


def _kept_settings(data: Path) -> Path | None:
    """Path of the settings that came with an imported archive, if it had any."""
    path = data / "imported" / "dragoman.toml"
    return path if path.exists() else None


VERBS = (
    Verb("watch-files", watch_files, speaks=False),
    Verb("rebuild-files", rebuild_files, speaks=False),
    Verb("export", export, speaks=False),
    Verb("import", import_, speaks=False),
)
