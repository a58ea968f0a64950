"""A completion report of 600 bytes, from the wire to the disk, beside the append of its bytes."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import msgspec
import uvloop
from msgspec import Struct

from bench.callers import Call, drive, open_hub
from bench.raw import RawFront, RawLog
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.engine.hub import Hub
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.files.layout import task_folder_path
from dragoman.files.task_work_folder import has_task_file
from dragoman.protocols import aof
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from dragoman.system.safe_fs import SafeDisk

AGENT = Actor("agent", "swe-backend")
PERSON = Actor("human", "reviewer")

_BYTES = 600
_SUMMARY = "outputs/summary.md"
_BUSY = 1_000
"""So many tasks of a store are reported on in ordinary times."""
_AT_ONCE = 500
"""So many tasks are made in one request."""
_A_DAY = 86_400_000
_STRIDE = 7_919
"""A prime: reports reach every task before one of them gets its second, and jump about."""

HasFile = Callable[[str, str], bool]


def raw_append(folder: Path, callers: int, seconds: float) -> float:
    """Messages per second of the hand-written loop, which does not look at them."""

    @asynccontextmanager
    async def appends() -> AsyncGenerator[Call]:
        log = RawLog(folder / "raw.db")
        front = RawFront(log.write)
        messages = reports(task_ids(_BUSY), count())
        yield lambda: front.write(next(messages))
        front.close()
        log.close()

    return uvloop.run(drive(appends(), callers, seconds))


class Reporter:
    """A hub with tasks that an agent works on, and the interpreter in front of it."""

    def __init__(self, hub: Hub, messages: Iterator[bytes], has_file: HasFile) -> None:
        self._messages = messages
        self._router = Router(hub, (aof.dialect(),), StoreFacts(hub.store, has_file))

    def reports_per_second(self, callers: int, seconds: float) -> float:
        """Reports that were read, checked, decided and committed, each with its own answer."""

        @asynccontextmanager
        async def sends() -> AsyncGenerator[Call]:
            yield self._report

        return uvloop.run(drive(sends(), callers, seconds))

    async def _report(self) -> None:
        answer = await self._router.send_async(next(self._messages), speaker=AGENT)
        assert isinstance(answer, Accepted), answer
        assert not answer.repeated, answer
        assert not answer.warnings, answer


class Reporters(Struct, frozen=True):
    """Two desks of one hub, all of whose tasks are claimed."""

    busy: Reporter
    """Reports go to a thousand tasks that lie far apart; their summaries are on the disk."""
    everywhere: Reporter
    """Reports go to all tasks in turn; their summaries are taken to be there, because some disks
    need minutes to make 100,000 folders."""


@contextmanager
def open_reporters(folder: Path, tasks: int) -> Generator[Reporters]:
    """A data directory with so many tasks."""
    names = task_ids(tasks)
    busy = names[:: max(1, tasks // _BUSY)]
    numbers = count()
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        claim_tasks(hub, names)
        lay_summaries(folder, busy)
        yield Reporters(
            Reporter(
                hub, reports(busy, numbers), partial(has_task_file, hub.store, SafeDisk(folder))
            ),
            Reporter(hub, reports(names, numbers), lambda _task, _ref: True),
        )


def claim_tasks(hub: Hub, names: Sequence[str]) -> None:
    """Make tasks and claim them, many in one commit."""
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        hub.submit(PERSON, *(CreateTask(f"task {name}", id=name, ready=True) for name in part))
        hub.submit(AGENT, *(ClaimTask(name, AGENT.name, ttl_ms=_A_DAY) for name in part))


def lay_summaries(folder: Path, names: Sequence[str]) -> None:
    """Put the file that a report names into the folder of each task."""
    for name in names:
        summary = folder / task_folder_path("in-progress", name) / _SUMMARY
        summary.parent.mkdir(parents=True)
        summary.touch()


def task_ids(tasks: int) -> Sequence[str]:
    """So many AOF ids of one day."""
    return [f"TASK-2026-02-09-{number:08d}" for number in range(1, tasks + 1)]


def reports(tasks: Sequence[str], numbers: Iterator[int]) -> Iterator[bytes]:
    """Completion reports of 600 bytes, as different as their numbers, each on another task."""
    for number in numbers:
        yield _report(tasks[number * _STRIDE % len(tasks)], number, _MORE)


def _report(task: str, number: int, more: str) -> bytes:
    return msgspec.json.encode(
        {
            "protocol": "aof",
            "version": 1,
            "type": "completion.report",
            "taskId": task,
            "fromAgent": AGENT.name,
            "toAgent": "dispatcher",
            "sentAt": "2026-02-09T21:10:00.000Z",
            "payload": {
                "outcome": "done",
                "summaryRef": _SUMMARY,
                "deliverables": ["src/api/users.ts", "src/api/auth.ts"],
                "tests": {"total": 120, "passed": 120, "failed": 0},
                "blockers": [],
                "notes": f"Report {number:012d}: all acceptance criteria met. {more}",
            },
        }
    )


_MORE = "." * (_BYTES - len(_report(task_ids(1)[0], 0, "")))
