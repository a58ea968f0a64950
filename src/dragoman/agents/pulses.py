"""The lines of one attempt on their way into its trace: in order, in batches, and only so many.

The program never waits for it, and a hub that cannot write just now loses lines here, not the
program its work: what is lost is counted, and said as soon as something can be written again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from dragoman.agents.output import Pulse, hub_line
from dragoman.core.errors import DragomanError

RecordLines = Callable[[Sequence[Pulse]], Awaitable[object]]
"""Records lines in the trace, all or none; DragomanError: not possible now."""

_BATCH_LINES: Final = 100
_LIMIT_MESSAGE: Final = "the line limit is reached (trace_lines): the rest is in output.log"


class LineRecorder:
    """Records lines in order, in batches, up to a limit; new lines wait for the batch before."""

    def __init__(self, record: RecordLines, limit: int) -> None:
        self._record = record
        self._remaining = limit
        self._pending: list[Pulse] = []
        self._lost = 0
        self._recording: asyncio.Task[None] | None = None

    def add(self, pulses: Iterable[Pulse]) -> None:
        """Add printed lines; the last recorded one says that the limit is reached."""
        for pulse in pulses:
            if self._remaining <= 0:
                break
            self._remaining -= 1
            self._pending.append(pulse if self._remaining else hub_line(pulse, _LIMIT_MESSAGE))
        if self._pending and self._recording is None:
            self._recording = asyncio.get_running_loop().create_task(self._record_all())

    async def flush(self) -> None:
        """Wait until all lines are recorded."""
        if self._recording is not None:
            await self._recording

    async def _record_all(self) -> None:
        while self._pending:
            batch, self._pending = self._pending[:_BATCH_LINES], self._pending[_BATCH_LINES:]
            missing = f"{self._lost} lines are missing here: the hub could not write them"
            loss_notice = [hub_line(batch[0], missing)] if self._lost else []
            try:
                await self._record((*loss_notice, *batch))
            except DragomanError:  # a full disk: the log has them, if it has room
                self._lost += len(batch)
            else:
                self._lost = 0
        self._recording = None
