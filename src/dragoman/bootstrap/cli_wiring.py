"""Wiring of the command line: every part of a hub, imported when a command needs it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman.surfaces.cli.caller import RunLocally
from dragoman.surfaces.cli.data_directory import (
    CliWiring,
    DataDirectory,
    Evidence,
    ReadOnlyDirectory,
)
from dragoman.surfaces.cli.render import ProgressBars

if TYPE_CHECKING:
    from dragoman.bootstrap.data_directory import EngineParts
    from dragoman.config import Settings
    from dragoman.engine.operation import Dialect
    from dragoman.engine.ports import Clock, Gap
    from dragoman.engine.schemas.tasks import TaskDetail
    from dragoman.files.archive import Manifest
    from dragoman.surfaces.cli.hub_commands import HubDirectory
    from dragoman.surfaces.cli.hub_lifecycle import HubProcess
    from dragoman.text.redact import Redactor


# Databases, keys and dialects are imported when a command needs them: `--help` does not.


def _open_directory(
    data: Path,
    store: str,
    now: int | None,
    *,
    create: bool,
    new_keys: bool = False,
) -> DataDirectory:
    from dragoman.bootstrap import open_directory

    return open_directory(data, store, now, create=create, new_keys=new_keys)


def _open_readonly(data: Path, store: str, now: int | None) -> ReadOnlyDirectory:
    from dragoman.bootstrap.stores import open_readonly

    return open_readonly(data, store, now)


def _open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    from dragoman.bootstrap.data_directory import open_evidence

    return open_evidence(data, store, now)


def _build_dialects() -> "Sequence[Dialect]":
    from dragoman.bootstrap import build_dialects

    return build_dialects()


def _open_demo_directory(data: Path, clock: "Clock") -> DataDirectory:
    from dragoman.bootstrap import open_demo_directory

    return open_demo_directory(data, clock)


def _build_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[DataDirectory, HubProcess]":
    from dragoman.bootstrap import build_hub

    return build_hub(data, store, host, port, config)


def _watch_remote_hub(
    task: str, after: int | None, on_gap: "Callable[[Gap], None]"
) -> "AbstractContextManager[tuple[TaskDetail, Iterator[Mapping[str, Any]]]]":
    from dragoman.bootstrap.remote_hub import watch_remote_hub

    return watch_remote_hub(task, after, on_gap)


def _query_remote_hub(operation: str, arguments: "Mapping[str, Any]") -> "Any":
    from dragoman.bootstrap.remote_hub import query_remote_hub

    return query_remote_hub(operation, arguments)


def _find_redactor(data: Path) -> "Redactor":
    from dragoman.bootstrap.redaction import find_redactor

    return find_redactor(data)


def _check_settings(settings: "Settings", data: Path) -> None:
    from dragoman.bootstrap.preflight import check_settings

    check_settings(settings, data)


def _restore_archive(
    profile: str, archive: Path, data: Path, store: str, bars: ProgressBars
) -> "Manifest":
    from dragoman.bootstrap.archives import restore_archive

    return restore_archive(profile, archive, data, store, bars)


CLI_WIRING = CliWiring(
    _open_directory,
    _open_readonly,
    _open_evidence,
    _build_dialects,
    _open_demo_directory,
    _build_hub,
    _watch_remote_hub,
    _query_remote_hub,
    _find_redactor,
    _check_settings,
    _restore_archive,
)


# --- commands inside a running hub ------------------------------------------------------------


def open_for_commands(hub_directory: DataDirectory, parts: "EngineParts") -> "HubDirectory":
    """Open the directory of a running hub for its commands."""
    from dragoman.bootstrap.data_directory import CommandEngine, open_in_hub
    from dragoman.surfaces.cli.hub_commands import HubDirectory

    opened = open_in_hub(hub_directory, parts)
    engine = opened.hub.engine
    assert isinstance(engine, CommandEngine)
    return HubDirectory(opened, lambda: engine.writes, partial(_wire_to_hub, opened))


def _wire_to_hub(opened: DataDirectory, data: Path) -> CliWiring:
    """Wiring of a command inside the hub: what is not of this data directory runs elsewhere."""

    def check(path: Path, store: str, now: int | None) -> None:
        if path != data or store or now is not None:
            raise RunLocally

    def open_it(
        path: Path,
        store: str,
        now: int | None,
        *,
        create: bool,
        new_keys: bool = False,
    ) -> DataDirectory:
        del create
        check(path, store, now)
        if new_keys:
            raise RunLocally
        return opened

    def read_it(path: Path, store: str, now: int | None) -> ReadOnlyDirectory:
        from dragoman.system.hub_lock import find_hub

        check(path, store, now)
        hub, agents = opened.hub, frozenset(opened.settings.agents)
        return ReadOnlyDirectory(hub.store, hub.clock, find_hub(opened.path), agents, hub.close)

    return replace(CLI_WIRING, open_directory=open_it, open_readonly=read_it)
