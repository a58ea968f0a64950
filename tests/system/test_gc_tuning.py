"""Garbage collection: objects loaded at start are frozen, and collections are rare."""

import subprocess
import sys

from tests.requirements import proves

_PROGRAM = """
import gc
from dragoman.system.process_tuning import freeze_gc, tune_gc

tune_gc()
ring = []
ring.append(ring)
del ring
freeze_gc()
print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 1_000, gc.collect())
"""


@proves("HUB-UP")
def test_loaded_objects_are_frozen() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["True", "True", "0"]
