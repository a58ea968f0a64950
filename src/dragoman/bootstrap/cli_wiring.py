"""Wiring of the command line: every part of a hub, imported when a command needs it."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman.surfaces.cli.caller import RunLocally
from dragoman.surfaces.cli.data_directory import CliWiring, DataDirectory, ReadOnlyDirectory

if TYPE_CHECKING:
    from dragoman.bootstrap.data_directory import EngineParts
    from dragoman.surfaces.cli.hub_commands import HubDirectory


def _call(module: str, function: str, *arguments: Any, **options: Any) -> Any:
    """Call a function of this package, whose module is imported only now: `--help` needs none."""
    return getattr(import_module(f"{__package__}.{module}"), function)(*arguments, **options)


CLI_WIRING = CliWiring(
    open_directory=partial(_call, "data_directory", "open_directory"),
    open_readonly=partial(_call, "stores", "open_readonly"),
    dialects=partial(_call, "dialects", "build_dialects"),
    open_demo_directory=partial(_call, "data_directory", "open_demo_directory"),
    build_hub=partial(_call, "open_hub", "build_hub"),
    redactor=partial(_call, "known_secrets", "find_redactor"),
    check_settings=partial(_call, "preflight", "check_settings"),
    restore_archive=partial(_call, "archives", "restore_archive"),
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
        hub, settings = opened.hub, opened.settings
        return ReadOnlyDirectory(
            store=hub.store,
            clock=hub.clock,
            hub_address=find_hub(opened.path),
            configured_agents=frozenset(settings.agents),
            served_names=settings.served_names,
            teamspaces=settings.teamspaces,
            close=hub.close,
        )

    return replace(CLI_WIRING, open_directory=open_it, open_readonly=read_it)
