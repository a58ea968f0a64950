"""Worker stopped for twice its TTL and resumed: every write of its comes too late.

Worker and hub are real processes that speak HTTP; only the hub's clock is moved by hand.
"""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.client.backend import Backend, running_backend
from tests.requirements import proves
from tests.system.child_processes import Child, next_line, resume

pytestmark = proves("TIME-STOPPED-WORKER")

TTL: Final = 60_000

HTTP_WORKER: Final = """
import json, sys, urllib.error, urllib.request

WRITES = {
    "heartbeat": {},
    "note": {"text": "late"},
    "update": {"progress": "late"},
    "move": {"to": "blocked", "reason": "late"},
    "report": {"outcome": "done"},
    "release": {"reason": "late"},
}
url, token = sys.argv[1:]

def ask(path, body):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(sent) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)

claim = ask("/v1/work", {"agent": "ada", "ttl_ms": 60000})
task, fence = claim["task"]["id"], claim["fence"]
print(task, flush=True)
sys.stdin.readline()
for name, body in WRITES.items():
    answer = ask(f"/v1/tasks/{task}/{name}", {**body, "fence": fence})
    print(name, answer.get("code", "accepted"), flush=True)
"""

SDK_WORKER: Final = """
import asyncio, sys
from dragoman.client import LeaseLost, connect

async def main():
    async with connect(sys.argv[1], sys.argv[2]) as hub:
        work = await anext(hub.work(agent="ada", ttl_ms=60000))
        print(work.task.id, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await work.complete("late")

# Which is told first, its report or its first heartbeat, depends on when it was stopped.
try:
    asyncio.run(main())
except LeaseLost as lost:
    print(str(lost).partition(":")[0], flush=True)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Backend]:
    """Hub on a disk that agents can call."""
    with running_backend(tmp_path) as made:
        yield made


@contextmanager
def worker(program: str, stage: Backend) -> Generator[Child]:
    """Start a worker in a process of its own; it is killed at the end if it still runs."""
    command = [sys.executable, "-c", program, stage.url, stage.tokens["ada"]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def stop_and_reclaim(stage: Backend, process: Child) -> tuple[str, Any]:
    """Stop the worker for twice its TTL, while bob claims its task; returns the task's id and
    state."""
    task = next_line(process)
    process.send_signal(signal.SIGSTOP)
    stage.advance(2 * TTL)
    stage.advance(TTL)
    claim = stage.server.post("/v1/work", {"agent": "bob", "ttl_ms": TTL}, by="bob")
    assert (claim["task"]["id"], claim["fence"]) == (task, 2)
    process.send_signal(signal.SIGCONT)
    return task, stage.server.get(f"/v1/tasks/{task}")


def finish_as_bob(stage: Backend, task: str, before: Any) -> None:
    """Check that bob's task is untouched, and complete it."""
    assert stage.server.get(f"/v1/tasks/{task}") == before
    stage.server.post(f"/v1/tasks/{task}/report", {"outcome": "done", "fence": 2}, by="bob")
    assert stage.status(task) == "review"
    assert len(stage.streams_with("task.reported")) == 1


def test_writes_of_resumed_worker_are_refused(stage: Backend) -> None:
    stage.create_task("Stopped")
    with worker(HTTP_WORKER, stage) as process:
        task, before = stop_and_reclaim(stage, process)
        resume(process)
        assert process.stdout is not None
        answers = dict(line.split() for line in process.stdout)
    assert answers == dict.fromkeys(
        ("heartbeat", "note", "update", "move", "report", "release"), "lease_lost"
    )
    finish_as_bob(stage, task, before)


def test_sdk_raises_lease_lost_in_resumed_worker(stage: Backend) -> None:
    stage.create_task("Stopped")
    with worker(SDK_WORKER, stage) as process:
        task, before = stop_and_reclaim(stage, process)
        resume(process)
        assert next_line(process) == "lease_lost"
    finish_as_bob(stage, task, before)
