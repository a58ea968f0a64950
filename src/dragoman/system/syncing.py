"""Several open files made durable at once."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_MAX_SEQUENTIAL: Final = 2
_THREADS: Final = 8


def fsync_all(descriptors: Sequence[int]) -> None:
    """Sync all files; many are synced in parallel."""
    if len(descriptors) <= _MAX_SEQUENTIAL:
        for descriptor in descriptors:
            os.fsync(descriptor)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(os.fsync, descriptors))
