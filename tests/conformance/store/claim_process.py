"""Process that claims a task on command: `claim_process KIND LOCATION AGENT TASK`."""

import sys

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.engine.request import Committed
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import NOW, Hub
from tests.conformance.store.storages import open_at


def main(kind: str, location: str, agent: str, task: str) -> None:
    """Print "prepared", wait for a line, claim the task, and print the outcome."""
    store = open_at(kind, location)
    hub = Hub(store, ManualClock(NOW))
    print_line("prepared")
    sys.stdin.readline()
    outcome = hub.ask(Actor("agent", agent), ClaimTask(task, agent))
    print_line("claimed" if isinstance(outcome, Committed) else outcome.code)
    store.close()


def print_line(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
