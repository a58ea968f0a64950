"""A command of this program in a process of its own, with the environment of this one."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct


class CommandOutput(Struct, frozen=True):
    """Output of a command."""

    out: bytes
    err: bytes


def run_own_command(words: Sequence[str], variables: Mapping[str, str]) -> CommandOutput:
    """Run `dragoman` with these words; it goes to the hub that is meant."""
    done = subprocess.run(
        (sys.executable, "-m", "dragoman", *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=dict(variables),
    )
    return CommandOutput(done.stdout, done.stderr)
