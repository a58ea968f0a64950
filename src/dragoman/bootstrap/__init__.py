"""Composition root: the only place where all parts meet."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.bootstrap.data_directory import open_demo_directory, open_directory
    from dragoman.bootstrap.dialects import build_dialects
    from dragoman.bootstrap.open_hub import build_hub
    from dragoman.bootstrap.runners import open_dispatcher
    from dragoman.bootstrap.stores import open_readonly, open_store

__all__ = [
    "build_dialects",
    "build_hub",
    "open_demo_directory",
    "open_directory",
    "open_dispatcher",
    "open_readonly",
    "open_store",
]

_FILES = {
    "build_dialects": "dialects",
    "build_hub": "open_hub",
    "open_demo_directory": "data_directory",
    "open_directory": "data_directory",
    "open_dispatcher": "runners",
    "open_readonly": "stores",
    "open_store": "stores",
}


def __getattr__(name: str) -> Any:
    # Imported on demand: listing tasks needs neither dialects nor services.
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
