"""Commands about the plain files of a data directory: watch, rebuild, export, import."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb


def watch_files(call: Call) -> None:
    """Follow inbox/ and edited task files, until Ctrl-C.

    \b
    Example:
      dragoman watch-files
    """
    with call.writing() as place:
        while True:
            now = place.hub.clock.now()
            done = {duty.name: duty.run_once(now) for duty in place.file_duties}
            if any(done.values()):
                told = {name: count for name, count in done.items() if count}
                words = ", ".join(f"{name} {count}" for name, count in told.items())
                call.tell(Answer({"duties": told}, lambda screen, words=words: screen.line(words)))
                call.out.flush()
            call.warn(place)
            if not call.wait():
                return


def rebuild_files(call: Call) -> Answer:
    """Write all files anew from the ledger: tasks, runs, events.

    What an agent or a person put into a task's folder stays.

    \b
    Example:
      dragoman rebuild-files
    """
    with (
        call.writing() as place,
        call.err.progress("tasks", sum(place.hub.store.counts().values())) as progress,
    ):
        tasks = place.projector.rebuild(progress)
    return Answer({"tasks": tasks}, lambda screen: screen.line(f"files of {tasks} tasks written"))


def export(
    call: Call,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The archive to make.")
    ],
) -> Answer:
    """Write the whole data directory into one file, verified.

    The ledger with its hashes, checkpoints, settings, tasks' folders and runs; no private key.

    \b
    Example:
      dragoman export backup.tar
    """
    if target.is_dir() or not target.absolute().parent.is_dir():
        wrong_usage(f"{target} cannot be written: name a file in a folder that exists")
    with (
        call.writing() as place,
        call.err.progress("entries", place.hub.store.head()) as progress,
    ):
        manifest = place.export(target, progress)
    data = {
        "file": str(target),
        "ledger": manifest.ledger,
        "entries": manifest.head,
        "members": len(manifest.members),
        "leftOut": manifest.left_out,
    }

    def show(screen: Screen) -> None:
        parts = len(manifest.members)
        screen.line((str(target), "bold"), f": {manifest.head} entries, {parts} parts")
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
    with it, and nothing is made.

    \b
    Example:
      dragoman import backup.tar --data restored
    """
    if not archive.is_file():
        wrong_usage(f"{archive} cannot be read: there is no such file")
    with call.err.progress("entries", 0) as progress:
        manifest = call.house.import_archive(archive, call.data, call.shared.store, progress)
    with call.writing():
        pass  # opening it makes its keys, signs the ledger and writes the files
    data = {"data": str(call.data), "ledger": manifest.ledger, "entries": manifest.head}
    return Answer(
        data, lambda screen: screen.line(f"{call.data}: {manifest.head} entries, all as they were")
    )


VERBS = (
    Verb("watch-files", watch_files, speaks=False),
    Verb("rebuild-files", rebuild_files, speaks=False),
    Verb("export", export, speaks=False),
    Verb("import", import_, speaks=False),
)
