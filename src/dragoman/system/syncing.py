"""Several open files made durable at once."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_FEW: Final = 2
_AT_ONCE: Final = 8


def sync_all(descriptors: Sequence[int]) -> None:
    """Sync all files; many are synced in parallel."""
    if len(descriptors) <= _FEW:
        for descriptor in descriptors:
            os.fsync(descriptor)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(os.fsync, descriptors))
