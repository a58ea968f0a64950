"""A hub that starts a program for a task, and may die while it does; the program says it began."""

import asyncio
import json
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.agents.running_hub import FAST, running_hub
from tests.crash.life import Said, Voice
from tests.crash.points import Kill, Points

TASK: Final = "TASK-2026-02-09-001"
STARTED: Final = "started"
"""A file beside the data directory: the session of every program that began, a line each."""

_PROGRAM: Final = """
echo "$DRAGOMAN_SESSION" >> "$0"
echo done > "$DRAGOMAN_FOLDER/outputs/summary.md"
printf 'AOF/1 {"protocol":"aof","version":1,"type":"completion.report","taskId":"%s",\
"fromAgent":"ada","toAgent":"dispatcher","sentAt":"2026-02-09T21:00:00Z","payload":\
{"outcome":"done","summaryRef":"outputs/summary.md","notes":"by a program",\
"tests":{"total":1,"passed":1,"failed":0}}}\\n' "$DRAGOMAN_TASK"
"""


class Dispatch(Struct, frozen=True, tag="dispatch"):
    """Where the hub is, and when it is to die."""

    data: str
    said: str
    kill: Kill = Kill()
    microseconds: int = 0


def dispatch(job: Dispatch) -> None:
    """Have the task done."""
    say = Voice(job.said)
    points = Points(job.kill, lambda name: say(Said("dies", text=name)))
    points.stage = "dispatch"
    points.install()
    asyncio.run(_have_it_done(Path(job.data)))
    say(Said("ended"))


async def _have_it_done(data: Path) -> None:
    words = json.dumps(["sh", "-c", _PROGRAM, str(data.parent / STARTED)])
    settings = f"{FAST}[retry]\nbase_ms = 1\ncap_ms = 2\n[agents.ada]\ncommand = {words}\n"
    async with running_hub(data, settings) as hub:
        if not hub.store.head():
            hub.make("Once", id=TASK, max_attempts=100)
        await hub.until_status(TASK, "review")
        await hub.until_idle()
