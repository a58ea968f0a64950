"""A file that is on its way to the disk while it is written: at its end there is less to wait for.

It is durable when it was synced, and not before: this only has the disk begin earlier.
"""

import os
from contextlib import suppress
from io import FileIO
from typing import Any, Final

_MIN_WRITEBACK_BYTES: Final = 1 << 20
"""Smaller writes are not worth starting a writeback of their own."""


class EarlyWritebackFile(FileIO):
    """File whose writeback starts with every large write, so that the final sync is shorter."""

    def write(self, b: Any, /) -> int:
        """Write what the system takes at a time, and start its writeback."""
        start = self.tell()
        count = super().write(b)
        if count >= _MIN_WRITEBACK_BYTES and hasattr(os, "posix_fadvise"):
            # Linux writes out pages that nobody needs in memory, and does not wait for it. File
            # systems may ignore the hint; write errors are reported by the later sync.
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), start, count, os.POSIX_FADV_DONTNEED)
        return count
