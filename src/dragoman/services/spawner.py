"""The spawner: answers requests for a worker with its session, or with a reason (S-MAIL-9).

The request itself has put the task into the queue; the agent that claims it is the worker. All
facts are in the store, so a request is answered once, whenever the hub comes to it.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import TaskClaimed
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.mail import Mail
from dragoman.core.task_state import Task, TaskTransitioned
from dragoman.core.timestamps import format_duration
from dragoman.engine.hub import Hub
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.mail import Letter, all_mail, find_refusal
from dragoman.engine.queries.tasks import TaskView, find_task

# --- policy and result ------------------------------------------------------------------------

_CLAIMABLE: Final[frozenset[Status]] = frozenset({"backlog", "ready"})
"""Statuses in which a task may still be claimed."""


class SpawnPolicy(Struct, frozen=True):
    """Policy for requests for workers, from the settings."""

    spawner: str
    """Addressee of the requests; an agent registered under this name answers them itself."""
    letter_kind: str
    """Type of such a letter in its dialect."""
    timeout_ms: int
    """Time that a task may wait for a claim."""


class SpawnResult(Struct, frozen=True):
    """Outcome of a request."""

    session: str = ""
    """Session of the worker; empty: there is none."""
    reason: str = ""
    """Reason why there is none."""


# --- service ----------------------------------------------------------------------------------


class Spawner:
    """Answers each request for a worker once its outcome is known."""

    name = "spawner"

    def __init__(
        self, hub: Hub, policy: SpawnPolicy, post_answer: Callable[[Mail, SpawnResult], object]
    ) -> None:
        """`post_answer` posts the letter with the outcome."""
        self._hub = hub
        self._policy = policy
        self._post_answer = post_answer

    def run_once(self, now: int) -> int:
        """Answer requests whose outcome is known; their number."""
        store, policy = self._hub.store, self._policy
        if find_agent(store, policy.spawner) is not None:
            return 0
        letters = list(all_mail(store, f"asked:{policy.spawner}"))
        results = [
            (letter.mail, self._decide(letter, now))
            for letter in letters
            if letter.mail.kind == policy.letter_kind
        ]
        for mail, result in results:
            if result is not None:
                self._post_answer(mail, result)
        return sum(verdict is not None for _, verdict in results)

    def _decide(self, letter: Letter, now: int) -> SpawnResult | None:
        """Outcome of a request; None: not known yet."""
        view = self._requested_task(letter)
        if isinstance(view, SpawnResult):
            return view
        session = self._session_since(view.task, letter)
        if session:
            return SpawnResult(session)
        is_late = now >= letter.mail.posted_at + self._policy.timeout_ms
        reason = self._decline_reason(view.task, is_late=is_late)
        return SpawnResult(reason=reason) if reason else None

    def _decline_reason(self, task: Task, *, is_late: bool) -> str:
        """Reason why nobody will work on the task; empty: somebody may still begin."""
        if task.status == "in-progress":
            return f"{task.assignee} works on {task.id} already"
        if task.status not in _CLAIMABLE:
            return f"{task.id} is {task.status} and cannot be claimed"
        waited = format_duration(self._policy.timeout_ms)
        return f"no agent claimed {task.id} within {waited}; it is {task.status}" if is_late else ""

    def _requested_task(self, letter: Letter) -> TaskView | SpawnResult:
        """Task of the request, or why there is none."""
        if not letter.mail.bead:
            return SpawnResult(reason="the request names no bead: write Issue: ID in it")
        refusal = find_refusal(self._hub.store, letter)
        if refusal:
            return SpawnResult(reason=refusal)
        found = find_task(self._hub.store, letter.mail.bead)
        return SpawnResult(reason=found.detail) if isinstance(found, Refusal) else found

    def _session_since(self, task: Task, letter: Letter) -> str:
        """Session of the last claim of the task since the request, or else its agent; empty: none.

        Compared by ledger position: a millisecond holds many entries.
        """
        if task.updated_at < letter.mail.posted_at or not task.attempts:
            return ""
        session = ""
        for entry in stream_entries(self._hub.store, task_stream(task.id)):
            event = decode_event(entry) if entry.position > letter.position else None
            if isinstance(event, TaskClaimed):
                session = event.session or event.agent
            elif isinstance(event, TaskTransitioned) and event.failed_to_start:
                session = ""
        return session
