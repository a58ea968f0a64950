"""Folders in memory: tests wait for no disk where the machine has memory to spare.

What is proven is that we ask for everything to be synced, and what is found after a process died;
what a disk makes of it when the power fails, no test can see. Long runs use the disk all the same.
"""

import os
import shutil
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")  # noqa: S108  folders in it are made as in any temporary one
_MIN_FREE_BYTES = 2 * 1024**3
"""A run leaves some hundred megabytes behind, and pytest keeps the folders of three."""


def use_memory() -> None:
    """Let this process, and all that it starts, make temporary folders in memory."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= _MIN_FREE_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)
