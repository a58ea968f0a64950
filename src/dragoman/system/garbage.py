"""How a process looks for garbage: seldom, and never among what stays for good.

Nearly everything is freed at once when nobody has it any more. A look goes through all that there
is, and everyone waits for it.
"""

import gc

_MANY_OBJECTS = 50_000
"""So many new ones are worth a look. Modules make as many, and all of them stay: to go through them
again and again, as is usual, takes a tenth of the time of a short command."""


def look_seldom() -> None:
    """From the beginning on: only after very many new objects."""
    gc.set_threshold(_MANY_OBJECTS)


def leave_what_is_there() -> None:
    """When all is loaded that a long life needs: no look goes through it again."""
    gc.collect()
    gc.freeze()
