"""Temporary folders in /dev/shm, so that tests do not wait for a disk.

Tests prove that a sync is requested for every write, and which data remains after a process died;
the effect of a power failure on a disk is out of their reach. Long runs use the disk.

"""

import os
import shutil
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")  # noqa: S108  folders in it are made as in any temporary one
_MIN_FREE_BYTES = 2 * 1024**3
"""A run leaves some hundred megabytes behind, and pytest keeps the folders of three."""


def use_memory() -> None:
    """Make this process, and all that it starts, create temporary folders in memory."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= _MIN_FREE_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)
