"""The only place where all parts meet: a data directory and its store become a hub with duties."""

from dragoman.bootstrap.hubs import open_hub
from dragoman.bootstrap.places import dialects, import_archive, open_place, open_stage
from dragoman.bootstrap.starters import open_dispatcher
from dragoman.bootstrap.stores import open_store

__all__ = [
    "dialects",
    "import_archive",
    "open_dispatcher",
    "open_hub",
    "open_place",
    "open_stage",
    "open_store",
]
