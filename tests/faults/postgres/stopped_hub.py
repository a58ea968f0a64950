"""Hub in a process that stops itself in the middle of a transaction: `stopped_hub URL TASK`."""

import os
import signal
import sys

from msgspec.structs import replace

from dragoman.core.attempt import ReportOutcome
from dragoman.core.task_state import NoteTask
from dragoman.engine.request import Committed
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ALICE, ANN, NOW, Hub

IDLE_MS = 1_000
"""Time after which the server ends an idle transaction."""


def main(url: str, task: str) -> None:
    """Report, stop with the task locked, go on when resumed, and print the outcome."""
    store = PostgresStore(replace(parse_url(url), idle_timeout_ms=IDLE_MS))
    hub = Hub(store, ManualClock(NOW))
    stops = iter([True])

    def stop_once(failpoint: str) -> None:
        if failpoint == "decided" and next(stops, False):
            os.kill(os.getpid(), signal.SIGSTOP)

    hub.on_failpoint = stop_once
    for actor, command in (
        (ALICE, ReportOutcome(task, outcome="done", apply=True)),
        (ANN, NoteTask(task, "all the same")),
    ):
        outcome = hub.ask(actor, command)
        sys.stdout.write("done\n" if isinstance(outcome, Committed) else f"{outcome.code}\n")
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
