"""A process that works through a fixed script and kills itself at a failpoint.

It prints a line for every request that was answered: whatever is printed must be there after the
crash. Run again without a failpoint, it repeats the script under the same keys and finishes it.
"""

import os
import signal
import sys
from pathlib import Path

from dragoman.bootstrap import open_store
from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id

START = 1_770_670_500_000
PERSON = Actor("human", "lea")
ADA = Actor("agent", "ada")

SCRIPT: tuple[tuple[str, Actor, tuple[AnyCommand, ...]], ...] = (
    ("create", PERSON, (CreateTask("first", id="one", ready=True),)),
    (
        "create and link",
        PERSON,
        (
            CreateTask("second", id="two", ready=True, aliases=("bead:ol-2",)),
            LinkTask("two", kind="blocked-by", target="one"),
        ),
    ),
    ("claim", ADA, (ClaimTask("one", agent="ada"),)),
    ("beat", ADA, (RenewLease("one"),)),
    ("note", ADA, (NoteTask("one", "half way"),)),
    ("report", ADA, (ReportOutcome("one", outcome="done", apply=True),)),
    ("done", PERSON, (MoveTask("one", to="done"),)),
    ("claim the freed one", ADA, (ClaimTask("ol-2", agent="ada"),)),
)


class Killer:
    """Kills this process, as a power cut would, the n-th time it passes a failpoint."""

    def __init__(self, name: str, times: int) -> None:
        self._name = name
        self._left = times

    def __call__(self, name: str) -> None:
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main(store_url: str, failpoint: str, times: int) -> None:
    """Play the script."""
    store = open_store(store_url, Path())
    killer = Killer(failpoint, times)
    hub = Hub(Engine(store, HandClock(START), bytes(32), failpoint=killer), new_id)
    for key, actor, commands in SCRIPT:
        answer = hub.do(actor, *commands, key=key)
        sys.stdout.write(f"{key}: {answer.receipts[-1].status}\n")
        sys.stdout.flush()
    hub.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
