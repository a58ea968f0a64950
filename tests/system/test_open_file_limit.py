"""Limit of open files: raised as far as allowed, and never lowered."""

import subprocess
import sys

import pytest

from tests.requirements import proves

_PROGRAM = """
import resource
from dragoman.system.process_tuning import raise_open_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(raise_open_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@proves("HTTP-ROOM")
@pytest.mark.parametrize(("soft", "hard"), [(64, 300), (300, 300)])
def test_limit_is_raised_to_hard_limit(soft: int, hard: int) -> None:
    program = _PROGRAM.format(soft=soft, hard=hard)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["300"] * 3
