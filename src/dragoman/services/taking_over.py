"""Taking over: what an earlier hub of this name has left is settled before anything else.

A program that it had started has lost its attempt; other work goes on in that same attempt, or back
to its queue if it cannot. When the store fails halfway, it is asked again: what was settled is
settled, and what has begun is left alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import EndAttempt, ReleaseTask, ReportOutcome
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import Refused
from dragoman.core.states.intent import Intent, intent_of
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import PRIORITY_RANK
from dragoman.engine.hub import Hub
from dragoman.engine.ports import BoardQuery
from dragoman.engine.reads.ask import TaskView, list_tasks
from dragoman.engine.reads.intents import find_intent

_PAGE = 500

Sweep = Callable[[], Collection[str]]
"""Stops what an earlier hub left running; the sessions that it had started, until they are
forgotten."""
Forget = Callable[[str], None]
"""Removes the record that a session was started."""
GoOn = Callable[[TaskView], Awaitable[str]]
"""Resumes an attempt; the reason why it cannot be resumed, or nothing."""

Note = Callable[[TaskView], None]
"""Counts each attempt that an earlier hub started, before it is recovered."""


class Estate:
    """Attempts that an earlier hub of this name left in progress."""

    def __init__(self, hub: Hub, name: str, backoff: Backoff, sweep: Sweep, forget: Forget) -> None:
        self._hub = hub
        self._name = name
        self._backoff = backoff
        self._sweep = sweep
        self._forget = forget
        self._started: Collection[str] | None = None
        """Sessions whose programs were stopped; None: not checked yet."""
        self._settled = set[str]()

    async def settle(self, go_on: GoOn, note: Note) -> None:
        """Recover all; an attempt without a left-over program is resumed if possible.

        A report takes effect. Calling it again after a fault continues the recovery.
        """
        if self._started is None:  # once: a second call would stop what has begun since
            self._started = frozenset(await asyncio.to_thread(self._sweep))
        left = await asyncio.to_thread(lambda: sorted(self._left_behind(), key=_urgency))
        for view in left:
            lease = view.lease
            assert lease is not None
            task = view.task.id
            note(view)
            done = await self._hub.do_soon(SYSTEM, EndAttempt(task, lease.session, self._backoff))
            if done.receipts[0].status == "in-progress":
                is_started = lease.session in self._started
                await self._settle_one(view, lease, go_on, is_started=is_started)
            self._settled.add(lease.session)
        # Last: a hub that is killed before this must still know that they were started.
        for session in self._started:
            await asyncio.to_thread(self._forget, session)

    async def _settle_one(
        self, view: TaskView, lease: Lease, go_on: GoOn, *, is_started: bool
    ) -> None:
        task = view.task.id
        if is_started:
            why = "the hub was killed while the agent was at work"
            if self._is_asked_for(view):
                # Its request is open until its deadline: it is dispatched again, under the same
                # name.
                await self._end(ReleaseTask(task, why, lease.fence))
                return
            report = ReportOutcome(
                task, "failed", why, fence=lease.fence, apply=True, backoff=self._backoff
            )
            await self._end(report)
        elif why_not := await go_on(view):
            await self._end(ReleaseTask(task, why_not, lease.fence))

    def _is_asked_for(self, view: TaskView) -> bool:
        """Check whether an intent has an open request for it with a deadline."""

        def find(id: str) -> Intent | None:
            found = find_intent(self._hub.store, id)
            return found if isinstance(found, Intent) else None

        intent = intent_of(view.task, find)
        request = None if intent is None else intent.request
        return request is not None and request.deadline is not None

    async def _end(self, command: ReportOutcome | ReleaseTask) -> None:
        """End an attempt on behalf of the hub."""
        with suppress(Refused):  # its lease has ended meanwhile: lease expiry recovers it
            await self._hub.do_soon(SYSTEM, command)

    def _left_behind(self) -> Iterator[TaskView]:
        ours, query = f"{self._name}.", BoardQuery(status="in-progress", limit=_PAGE)
        while page := list_tasks(self._hub.store, query):
            for view in page:
                session = "" if view.lease is None else view.lease.session
                if session.startswith(ours) and session not in self._settled:
                    yield view
            query = BoardQuery(status="in-progress", before=page[-1].number, limit=_PAGE)


def _urgency(view: TaskView) -> tuple[int, int]:
    """Sort key of dispatch: by priority, then by age."""
    return PRIORITY_RANK[view.task.priority], view.number
