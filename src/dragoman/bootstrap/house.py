"""What the command line is handed: every part of a hub, loaded when a command needs it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.surfaces.cli.place import Evidence, House, Look, Place
from dragoman.surfaces.cli.screen import Bars, Progress

if TYPE_CHECKING:
    from dragoman.config import Settings
    from dragoman.engine.operation import Dialect
    from dragoman.engine.ports import Clock
    from dragoman.engine.shown.tasks import WholeTask
    from dragoman.engine.subscribe import Gap
    from dragoman.files.archives.archive_format import Manifest
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.text.redact import Redactor


# Databases, keys and dialects are imported when a command needs them: `--help` does not.


def _open_place(
    data: Path,
    store: str,
    now: int | None,
    *,
    create: bool,
    new_keys: bool = False,
    keyed: bool = True,
) -> Place:
    from dragoman.bootstrap import open_place

    return open_place(data, store, now, create=create, new_keys=new_keys, keyed=keyed)


def _open_look(data: Path, store: str, now: int | None) -> Look:
    from dragoman.bootstrap.looks import open_look

    return open_look(data, store, now)


def _open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    from dragoman.bootstrap.keyed import open_evidence

    return open_evidence(data, store, now)


def _dialects() -> "Sequence[Dialect]":
    from dragoman.bootstrap import dialects

    return dialects()


def _import_archive(archive: Path, data: Path, store: str, progress: Progress) -> "Manifest":
    from dragoman.bootstrap import import_archive

    return import_archive(archive, data, store, progress)


def _open_stage(data: Path, clock: "Clock") -> Place:
    from dragoman.bootstrap import open_stage

    return open_stage(data, clock)


def _open_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[Place, RunningHub]":
    from dragoman.bootstrap import open_hub

    return open_hub(data, store, host, port, config)


def _watch_hub(
    task: str, after: int | None, on_gap: "Callable[[Gap], None]"
) -> "AbstractContextManager[tuple[WholeTask, Iterator[Mapping[str, Any]]]]":
    from dragoman.bootstrap.watching import watch_hub

    return watch_hub(task, after, on_gap)


def _ask_hub(operation: str, arguments: "Mapping[str, Any]") -> "Any":
    from dragoman.bootstrap.watching import ask_hub

    return ask_hub(operation, arguments)


def _redactor(data: Path) -> "Redactor":
    from dragoman.bootstrap.redaction import find_redactor

    return find_redactor(data)


def _check_settings(settings: "Settings", data: Path) -> None:
    from dragoman.bootstrap.usable import check_usable

    check_usable(settings, data)


def _restore(backup: Path, data: Path, store: str, bars: Bars) -> "Manifest":
    from dragoman.bootstrap.backups import restore_backup

    return restore_backup(backup, data, store, bars)


HOUSE = House(
    _open_place,
    _open_look,
    _open_evidence,
    _dialects,
    _import_archive,
    _open_stage,
    _open_hub,
    _watch_hub,
    _ask_hub,
    _redactor,
    _check_settings,
    _restore,
)
