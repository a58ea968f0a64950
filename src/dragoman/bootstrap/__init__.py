"""The only place where all parts meet: a data directory and its store become a hub with duties."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.bootstrap.hubs import build_hub
    from dragoman.bootstrap.looks import open_readonly
    from dragoman.bootstrap.places import import_archive, open_demo_directory, open_directory
    from dragoman.bootstrap.speaking import build_dialects
    from dragoman.bootstrap.starters import open_dispatcher
    from dragoman.bootstrap.stores import open_store

__all__ = [
    "build_dialects",
    "build_hub",
    "import_archive",
    "open_demo_directory",
    "open_directory",
    "open_dispatcher",
    "open_readonly",
    "open_store",
]

_FILES = {
    "dialects": "speaking",
    "import_archive": "places",
    "open_dispatcher": "starters",
    "open_hub": "hubs",
    "open_look": "looks",
    "open_place": "places",
    "open_stage": "places",
    "open_store": "stores",
}


def __getattr__(name: str) -> Any:
    # Imported on demand: listing tasks needs neither dialects nor services.
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
