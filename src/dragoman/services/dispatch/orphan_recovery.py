"""Orphan recovery: settles the attempts that an earlier hub of this name left in progress.

An attempt whose program was started by that hub has failed; other work is resumed in the same
attempt, or goes back to its queue. When the store fails halfway, the recovery is repeated: settled
attempts stay settled, resumed ones are left alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import EndAttempt, ReleaseTask, ReportOutcome
from dragoman.core.attempt_state import Lease
from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refused
from dragoman.core.intent.state import Intent, intent_of_task
from dragoman.core.task_state import PRIORITY_RANK
from dragoman.engine.hub import Hub
from dragoman.engine.ports import TaskQuery
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.queries.tasks import TaskView, list_tasks

_PAGE = 500

StopOrphans = Callable[[], Collection[str]]
"""Stops what an earlier hub left running; the sessions that it had started, until they are
forgotten."""
ForgetSession = Callable[[str], None]
"""Removes the record that a session was started."""
ResumeAttempt = Callable[[TaskView], Awaitable[str]]
"""Resumes an attempt; the reason why it cannot be resumed, or nothing."""

CountAttempt = Callable[[TaskView], None]
"""Counts each attempt that an earlier hub started, before it is recovered."""


class OrphanedAttempts:
    """Attempts that an earlier hub of this name left in progress."""

    def __init__(
        self,
        hub: Hub,
        hub_name: str,
        backoff: Backoff,
        stop_orphans: StopOrphans,
        forget_session: ForgetSession,
    ) -> None:
        self._hub = hub
        self._hub_name = hub_name
        self._backoff = backoff
        self._stop_orphans = stop_orphans
        self._forget_session = forget_session
        self._stopped_sessions: Collection[str] | None = None
        """Sessions whose programs were stopped; None: not checked yet."""
        self._recovered_sessions = set[str]()

    async def recover(self, resume: ResumeAttempt, count: CountAttempt) -> None:
        """Recover all; an attempt without a left-over program is resumed if possible.

        A report takes effect. Calling it again after a fault continues the recovery.
        """
        if self._stopped_sessions is None:  # once: a second call would stop what has begun since
            self._stopped_sessions = frozenset(await asyncio.to_thread(self._stop_orphans))
        orphans = await asyncio.to_thread(lambda: sorted(self._find_orphans(), key=_priority_key))
        for view in orphans:
            lease = view.lease
            assert lease is not None
            task = view.task.id
            count(view)
            outcome = await self._hub.submit_async(
                HUB_ACTOR, EndAttempt(task, lease.session, self._backoff)
            )
            if outcome.receipts[0].status == "in-progress":
                is_started = lease.session in self._stopped_sessions
                await self._recover_one(view, lease, resume, is_started=is_started)
            self._recovered_sessions.add(lease.session)
        # Last: a hub that is killed before this must still know that they were started.
        for session in self._stopped_sessions:
            await asyncio.to_thread(self._forget_session, session)

    async def _recover_one(
        self, view: TaskView, lease: Lease, resume: ResumeAttempt, *, is_started: bool
    ) -> None:
        task = view.task.id
        if is_started:
            reason = "the hub was killed while the agent was at work"
            if self._has_open_request(view):
                # Its request is open until its deadline: it is dispatched again, under the same
                # name.
                await self._end_attempt(ReleaseTask(task, reason, lease.fence))
                return
            report = ReportOutcome(
                task, "failed", reason, fence=lease.fence, apply=True, backoff=self._backoff
            )
            await self._end_attempt(report)
        elif refusal := await resume(view):
            await self._end_attempt(ReleaseTask(task, refusal, lease.fence))

    def _has_open_request(self, view: TaskView) -> bool:
        """Check whether an intent has an open request for it with a deadline."""

        def find(id: str) -> Intent | None:
            found = find_intent(self._hub.store, id)
            return found if isinstance(found, Intent) else None

        intent = intent_of_task(view.task, find)
        request = None if intent is None else intent.request
        return request is not None and request.deadline is not None

    async def _end_attempt(self, command: ReportOutcome | ReleaseTask) -> None:
        """End an attempt on behalf of the hub."""
        with suppress(Refused):  # its lease has ended meanwhile: lease expiry recovers it
            await self._hub.submit_async(HUB_ACTOR, command)

    def _find_orphans(self) -> Iterator[TaskView]:
        prefix, query = f"{self._hub_name}.", TaskQuery(status="in-progress", limit=_PAGE)
        while page := list_tasks(self._hub.store, query):
            for view in page:
                session = "" if view.lease is None else view.lease.session
                if session.startswith(prefix) and session not in self._recovered_sessions:
                    yield view
            query = TaskQuery(status="in-progress", before=page[-1].number, limit=_PAGE)


def _priority_key(view: TaskView) -> tuple[int, int]:
    """Sort key of dispatch: by priority, then by age."""
    return PRIORITY_RANK[view.task.priority], view.number
