"""How a process looks for garbage: seldom, and never among what stays for good.

Nearly everything is freed at once when nobody has it any more. A look goes through all that there
is, and everyone waits for it.
"""

import gc

_GC_THRESHOLD = 50_000
"""New objects before a collection. Loading the modules makes as many, and all of them stay: the
default threshold costs a short command a tenth of its time."""


def tune_gc() -> None:
    """Raise the collection threshold, at process start."""
    gc.set_threshold(_GC_THRESHOLD)


def freeze_gc() -> None:
    """Exclude all present objects from later collections, once a long-lived process is loaded."""
    gc.collect()
    gc.freeze()
