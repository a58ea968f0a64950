"""Bytecode cache that all test processes share, kept for the next run.

Many tests start real processes. Build machines often set PYTHONDONTWRITEBYTECODE, and then each
process compiles all of our modules and all that they import.
"""

import os
import sys
from pathlib import Path

_DISABLING_VARIABLE = "PYTHONDONTWRITEBYTECODE"
_FOLDER_VARIABLE = "PYTHONPYCACHEPREFIX"


def keep_bytecode(folder: Path) -> None:
    """Make this process, and all that it starts, cache compiled modules in a folder."""
    os.environ.pop(_DISABLING_VARIABLE, None)
    os.environ[_FOLDER_VARIABLE] = sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False
