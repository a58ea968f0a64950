"""Process of a hub that starts a program for a task and may be killed; the program reports its
start."""

import asyncio
import json
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.agents.running_hub import FAST, running_hub
from tests.crash.hub_run import Report, Reporter
from tests.crash.kill_points import Kill, KillPoints

TASK: Final = "TASK-2026-02-09-001"
STARTED: Final = "started"
"""File beside the data directory: the session of every started program, one per line."""

_PROGRAM: Final = """
echo "$DRAGOMAN_SESSION" >> "$0"
echo done > "$DRAGOMAN_FOLDER/outputs/summary.md"
printf 'AOF/1 {"protocol":"aof","version":1,"type":"completion.report","taskId":"%s",\
"fromAgent":"ada","toAgent":"dispatcher","sentAt":"2026-02-09T21:00:00Z","payload":\
{"outcome":"done","summaryRef":"outputs/summary.md","notes":"by a program",\
"tests":{"total":1,"passed":1,"failed":0}}}\\n' "$DRAGOMAN_TASK"
"""


class DispatchJob(Struct, frozen=True, tag="dispatch"):
    """Data directory of the hub, and the point at which it is killed."""

    data: str
    reports: str
    kill: Kill = Kill()
    microseconds: int = 0


def run_dispatch(job: DispatchJob) -> None:
    """Dispatch the task."""
    report = Reporter(job.reports)
    points = KillPoints(job.kill, lambda name: report(Report("dies", text=name)))
    points.stage = "dispatch"
    points.install()
    asyncio.run(_dispatch_task(Path(job.data)))
    report(Report("ended"))


async def _dispatch_task(data: Path) -> None:
    command = json.dumps(["sh", "-c", _PROGRAM, str(data.parent / STARTED)])
    settings = f"{FAST}[retry]\nbase_ms = 1\ncap_ms = 2\n[agents.ada]\ncommand = {command}\n"
    async with running_hub(data, settings) as hub:
        if not hub.store.head():
            hub.make("Once", id=TASK, max_attempts=100)
        await hub.until_status(TASK, "review")
        await hub.until_idle()
