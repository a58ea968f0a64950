"""Process-wide settings: garbage collection thresholds and the limit of open files.

Nearly every object is freed by its reference count. A collection goes through all objects, and
every request waits for it, so collections are rare and skip what was loaded at start.
"""

import gc
import resource

# --- garbage collection -----------------------------------------------------------------------

_LOADING_THRESHOLD = 500_000
"""New objects before a collection. Loading the modules makes fewer, and all of them stay: their
collection costs a short command a tenth of its time."""

_GC_THRESHOLD = 50_000


def tune_gc() -> None:
    """Raise the collection threshold, at process start."""
    gc.set_threshold(_LOADING_THRESHOLD)


def freeze_gc() -> None:
    """Exclude all present objects from later collections, once a long-lived process is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)


# --- open files -------------------------------------------------------------------------------

_WANTED_LIMIT = 65_536
"""A higher limit would only slow down programs that close all inherited descriptors."""


def raise_open_file_limit() -> int:
    """Raise the soft limit as far as this process may, up to what is wanted; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED_LIMIT
    limit = _WANTED_LIMIT if hard == resource.RLIM_INFINITY else min(hard, _WANTED_LIMIT)
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(soft, limit)
