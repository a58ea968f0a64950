"""Orphan recovery: settles the attempts that an earlier hub of this name left in progress.

An attempt whose program was started by that hub has failed; other work goes back to its queue: an
agent elsewhere that goes on with it is refused by its old fence. When the store fails halfway, the
recovery is repeated: settled attempts stay settled.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import EndAttempt, ReleaseTask, ReportOutcome
from dragoman.core.attempt_state import Lease
from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refused
from dragoman.core.intent.state import Intent, intent_of_task
from dragoman.engine.hub import Hub
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.queries.tasks import TaskView, all_tasks

StopOrphans = Callable[[], Collection[str]]
"""Stops what an earlier hub left running; the sessions that it had started, until they are
forgotten."""
ForgetSession = Callable[[str], None]
"""Removes the record that a session was started."""


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

    async def recover(self) -> None:
        """Recover all; a report takes effect. Calling it again after a fault continues the
        recovery.
        """
        if self._stopped_sessions is None:  # once: a second call would stop what has begun since
            self._stopped_sessions = frozenset(await asyncio.to_thread(self._stop_orphans))
        for view in await asyncio.to_thread(lambda: list(self._find_orphans())):
            lease = view.lease
            assert lease is not None
            outcome = await self._hub.submit_async(
                HUB_ACTOR, EndAttempt(view.task.id, lease.session, self._backoff)
            )
            if outcome.receipts[0].status == "in-progress":
                is_started = lease.session in self._stopped_sessions
                with suppress(Refused):  # its lease has ended meanwhile: lease expiry recovers it
                    await self._hub.submit_async(
                        HUB_ACTOR, self._recovery_command(view, lease, is_started=is_started)
                    )
        # Last: a hub that is killed before this must still know that they were started.
        for session in self._stopped_sessions:
            await asyncio.to_thread(self._forget_session, session)

    def _recovery_command(
        self, view: TaskView, lease: Lease, *, is_started: bool
    ) -> ReportOutcome | ReleaseTask:
        task, fence = view.task.id, lease.fence
        if not is_started:
            return ReleaseTask(task, "the hub was killed before it could start the agent", fence)
        reason = "the hub was killed while the agent was at work"
        if self._has_open_request(view):
            # Its request is open until its deadline: it is dispatched again, under the same name.
            return ReleaseTask(task, reason, fence)
        return ReportOutcome(task, "failed", reason, fence=fence, apply=True, backoff=self._backoff)

    def _has_open_request(self, view: TaskView) -> bool:
        """Check whether an intent has an open request for it with a deadline."""

        def find(id: str) -> Intent | None:
            found = find_intent(self._hub.store, id)
            return found if isinstance(found, Intent) else None

        intent = intent_of_task(view.task, find)
        request = None if intent is None else intent.request
        return request is not None and request.deadline is not None

    def _find_orphans(self) -> Iterator[TaskView]:
        for view in all_tasks(self._hub.store, "in-progress"):
            if view.lease is not None and view.lease.session.startswith(f"{self._hub_name}."):
                yield view
