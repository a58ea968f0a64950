"""Others of the field, each in an environment of its own: a task put in, taken, and done, durably.

They are not ours to depend on: uv fetches each when it is measured, and it runs as a script.
"""

import subprocess
from pathlib import Path
from time import perf_counter

from msgspec import Struct

from bench.callers import open_hub
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.task_state import CreateTask
from dragoman.engine.ports import Store
from dragoman.system.clock import new_id

_AGENT = Actor("agent", "swe-backend")
_PERSON = Actor("human", "reviewer")


class Peer(Struct, frozen=True):
    """A package, and the script beside this file that measures it."""

    package: str
    script: str

    def per_second(self, folder: Path, seconds: float) -> float:
        """Tasks a second of one caller."""
        script = Path(__file__).with_name(self.script)
        words = ["run", "--quiet", "--isolated", "--no-project", "--with", self.package]
        done = subprocess.run(
            ["uv", *words, "python", str(script), str(folder.absolute()), str(seconds)],
            check=True,
            capture_output=True,
            text=True,
        )
        return float(done.stdout.splitlines()[-1])


PEERS = (
    Peer("huey", "huey_tasks.py"),
    Peer("persist-queue", "persist_queue_items.py"),
    Peer("dbos", "dbos_workflows.py"),
)


def ours_per_second(store: Store, seconds: float) -> float:
    """The same here: made, claimed, reported as done, each a durable entry under its own key."""
    done, begun = 0, perf_counter()
    with open_hub(store) as hub:
        while perf_counter() < begun + seconds:
            made = CreateTask("a task of ordinary length", ready=True, review_required=False)
            task = hub.submit(_PERSON, made, key=new_id()).receipts[0].task
            hub.submit(_AGENT, ClaimTask(task, agent=_AGENT.name), key=new_id())
            hub.submit(_AGENT, ReportOutcome(task, outcome="done", apply=True), key=new_id())
            done += 1
    return done / (perf_counter() - begun)
