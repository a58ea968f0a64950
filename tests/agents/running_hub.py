"""A hub on a real SQLite whose dispatcher starts real programs, with ways to wait for it."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw

from dragoman.bootstrap.data_directory import open_directory
from dragoman.bootstrap.runners import open_dispatcher
from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.read import Receipt
from dragoman.core.task_state import CreateTask, Task
from dragoman.engine.auth import Authenticator
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.ledger.entry import Line, read_line
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.services.dispatch.dispatcher import Dispatcher

PERSON = Actor("human", "hera")
OWNER_TOKEN = b"the owner's token of a test"
SECRET = bytes(32)
FAST = "[dispatch]\npoll_ms = 200\nstop_grace_ms = 300\n[hub]\ndrain_ms = 0\n"
"""Settings with short polls and without grace periods."""
PATIENCE = 30.0
"""Longer than anything here takes on a slow machine; a passing test never waits so long."""

REPORT = """
import json, os, sys
def say(kind, **payload):
    task, agent = os.environ["DRAGOMAN_TASK"], os.environ["DRAGOMAN_AGENT"]
    print("AOF/1 " + json.dumps({
        "protocol": "aof", "version": 1, "type": kind, "taskId": task, "fromAgent": agent,
        "toAgent": "dispatcher", "sentAt": "2026-02-09T21:00:00Z", "payload": payload,
    }), flush=True)
def report(outcome="done", **more):
    with open(os.environ["DRAGOMAN_FOLDER"] + "/outputs/summary.md", "w") as summary:
        summary.write("what was done")
    say("completion.report", outcome=outcome, summaryRef="outputs/summary.md",
        tests={"total": 1, "passed": 1, "failed": 0}, notes="said by a program", **more)
"""
"""Defines `say` and `report` in a Python program."""


def agent_section(name: str, program: str, **settings: object) -> str:
    """Settings of an agent that is a Python program."""
    words = [sys.executable, "-c", REPORT + program]
    lines = [f"[agents.{name}]", f"command = {json.dumps(words)}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine of a test."""
    asyncio.run(scenario)


class RunningHub:
    """A data directory with a hub, its dispatcher and its identity service."""

    def __init__(self, data: Path, settings: str, config: Path | None) -> None:
        data.mkdir(exist_ok=True)
        (data / "dragoman.toml").write_text(settings)
        self.directory = open_directory(data, "", None, create=True)
        self.data = data
        self.store = self.directory.hub.store
        self.identity = Authenticator(self.store, SECRET, OWNER_TOKEN, self.directory.hub.clock)
        opened = open_dispatcher(self.directory, self.identity, "http://hub", config)
        self.dispatcher: Dispatcher = opened[0]
        self.build_agents = opened[1]
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.directory.hints.subscribe(self._wake)

    def do(self, *commands: Command, actor: Actor = PERSON) -> Receipt:
        """Submit commands that must be accepted; returns the last receipt."""
        return self.directory.hub.submit(actor, *commands).receipts[-1]

    def make(self, title: str = "a task", **fields: Any) -> str:
        """Create a ready task."""
        return self.do(CreateTask(title, ready=True, **fields)).task

    def view(self, task: str) -> TaskView:
        """A task and its lease."""
        found = find_task(self.store, task)
        assert not isinstance(found, Refusal), found
        return found

    def task(self, task: str) -> Task:
        """A task."""
        return self.view(task).task

    def lines(self, stream: str = "") -> list[Line[Raw]]:
        """Entries of the ledger, of one task or of all streams."""
        read = [read_line(entry.line) for entry in all_entries(self.store)]
        return [line for line in read if not stream or line.stream == f"task:{stream}"]

    def log(self, task: str) -> str:
        """Output of the current attempt."""
        return (self.data / "runs" / self.task(task).aof_id / "output.log").read_text()

    def state(self, name: str) -> AgentState:
        """Dispatch state of an agent."""
        return next(state for state in self.dispatcher.agent_states() if state.name == name)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after every commit."""
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_status(self, task: str, *statuses: str) -> Task:
        """Wait until the task has one of these statuses."""
        await self.until(lambda: self.task(task).status in statuses)
        return self.task(task)

    async def until_idle(self) -> None:
        """Wait until no agent is running."""
        async with asyncio.timeout(PATIENCE):
            await self.dispatcher.wait_idle()

    def _wake(self, _: Collection[str]) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)


@asynccontextmanager
async def running_hub(
    data: Path, settings: str, *, start: bool = True, config: Path | None = None
) -> AsyncGenerator[RunningHub]:
    """Open a hub and run its dispatcher; stop both in the order of a real hub.

    `config`: a file that the settings are said to come from.
    """
    hub = RunningHub(data, settings, config)
    try:
        if not start:
            yield hub
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(hub.dispatcher.run())
            try:
                yield hub
            finally:
                hub.dispatcher.stop()
    finally:
        hub.directory.hub.close()
