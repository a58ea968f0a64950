"""The lines of one attempt on their way into its trace: in order, in batches, and only so many.

The program never waits for it, and a hub that cannot write just now loses lines here, not the
program its work: what is lost is counted, and said as soon as something can be written again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from dragoman.agents.output import Pulse, hub_s
from dragoman.core.errors import DragomanError

Tell = Callable[[Sequence[Pulse]], Awaitable[object]]
"""Records lines in the trace, all or none; DragomanError: not possible now."""

_BATCH: Final = 100
_NO_MORE: Final = "the line limit is reached (trace_lines): the rest is in output.log"


class Pulses:
    """Records lines in order, in batches, up to a limit; new lines wait for the batch before."""

    def __init__(self, tell: Tell, most: int) -> None:
        self._tell = tell
        self._left = most
        self._waiting: list[Pulse] = []
        self._lost = 0
        self._telling: asyncio.Task[None] | None = None

    def add(self, pulses: Iterable[Pulse]) -> None:
        """Add printed lines; the last recorded one says that the limit is reached."""
        for pulse in pulses:
            if self._left <= 0:
                break
            self._left -= 1
            self._waiting.append(pulse if self._left else hub_s(pulse, _NO_MORE))
        if self._waiting and self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell_all())

    async def end(self) -> None:
        """Wait until all lines are recorded."""
        if self._telling is not None:
            await self._telling

    async def _tell_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            missing = f"{self._lost} lines are missing here: the hub could not write them"
            before = [hub_s(batch[0], missing)] if self._lost else []
            try:
                await self._tell((*before, *batch))
            except DragomanError:  # a full disk: the log has them, if it has room
                self._lost += len(batch)
            else:
                self._lost = 0
        self._telling = None
