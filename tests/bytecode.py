"""Compiled modules: kept from one process of the tests to the next, and to the next run.

Many tests start real processes. A machine that builds things often forbids Python to keep what it
has compiled, and then every one of them compiles all of our modules and all that they import.
"""

import os
import sys
from pathlib import Path

_DISABLING_VARIABLE = "PYTHONDONTWRITEBYTECODE"
_FOLDER_VARIABLE = "PYTHONPYCACHEPREFIX"


def keep_bytecode(folder: Path) -> None:
    """Let this process, and all that it starts, keep compiled modules in a folder."""
    os.environ.pop(_DISABLING_VARIABLE, None)
    os.environ[_FOLDER_VARIABLE] = sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False
