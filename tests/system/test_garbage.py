"""What is there when a long life begins is not looked through again."""

import subprocess
import sys

from tests.requirements import proves

_STORY = """
import gc
from dragoman.system.garbage import leave_what_is_there, look_seldom

look_seldom()
ring = []
ring.append(ring)
del ring
leave_what_is_there()
print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 1_000, gc.collect())
"""


@proves("HUB-UP")
def test_what_is_loaded_is_left_out_of_later_looks() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _STORY], capture_output=True, text=True, check=True
    ).stdout
    assert told.split() == ["True", "True", "0"]
