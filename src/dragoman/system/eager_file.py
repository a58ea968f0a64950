"""A file that is on its way to the disk while it is written: at its end there is less to wait for.

It is durable when it was synced, and not before: this only has the disk begin earlier.
"""

import os
from contextlib import suppress
from io import FileIO
from typing import Any, Final

_LARGE: Final = 1 << 20
"""Less than this is not worth a beginning of its own."""


class EagerFile(FileIO):
    """A file to write into, from its start to its end."""

    def write(self, b: Any, /) -> int:
        """As much as the system takes at a time; the disk begins with it."""
        start = self.tell()
        count = super().write(b)
        if count >= _LARGE and hasattr(os, "posix_fadvise"):
            # Linux writes out what nobody needs in memory, and does not wait for it. No file system
            # has to know that, and whoever syncs is told of what could not be written.
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), start, count, os.POSIX_FADV_DONTNEED)
        return count
