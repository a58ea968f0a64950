"""The spawner: answers requests for a worker with its session, or with a reason (S-MAIL-9).

The request itself has put the task into the queue; the agent that claims it is the worker. One for
which the hub claims the task is the worker as soon as it has begun. All facts are in the store, so
a request is answered once, whenever the hub comes to it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.authority import holder_objection
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.mail import Mail
from dragoman.core.task_state import Task, TaskTransitioned
from dragoman.core.timestamps import format_duration
from dragoman.engine.hub import Hub
from dragoman.engine.queries.agents import find_agent, names_in_role
from dragoman.engine.queries.mail import Letter, all_mail, find_refusal
from dragoman.engine.queries.streams import decode_event, stream_entries
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.ledger.entry import read_line

# --- policy and result ------------------------------------------------------------------------

_CLAIMABLE: Final[frozenset[Status]] = frozenset({"backlog", "ready"})
"""Statuses in which a task may still be claimed."""

_SYSTEM_ACTOR: Final = "system:"
"""Actor of claims that precede the agent: the hub claims a task, and then starts an agent."""


class SpawnPolicy(Struct, frozen=True):
    """Policy for requests for workers, from the settings."""

    spawner: str
    """Addressee of the requests; an agent registered under this name answers them itself."""
    letter_kind: str
    """Type of such a letter in its dialect."""
    timeout_ms: int
    """Time that a task may wait for a claim."""
    agents_by_queue: Mapping[str, tuple[str, ...]] = {}
    """Queue -> agents that the hub can start for it; "" stands for tasks of anyone."""
    is_shared_store: bool = False
    """True if other hubs may work on the store: the queues of their agents are not known here."""


class SpawnResult(Struct, frozen=True):
    """Outcome of a request."""

    session: str = ""
    """Session of the worker; empty: there is none."""
    reason: str = ""
    """Reason why there is none."""


# --- claims since a request -------------------------------------------------------------------


class _Claims(Struct, frozen=True):
    """Claims of a task since the request; at most one field is set."""

    session: str = ""
    """Session of the last worker, or else its name."""
    starting: str = ""
    """Session that is being started."""
    start_problem: str = ""
    """Reason why the last one could not be started."""


def _fold_event(claims: _Claims, event: object, *, is_hub_claim: bool) -> _Claims:
    """Claims after one more event; an attempt without a sign of life has not begun."""
    if isinstance(event, TaskClaimed):
        name = event.session or event.agent
        return _Claims(starting=name) if is_hub_claim else _Claims(name)
    if not claims.starting:
        return claims
    if isinstance(event, TaskRequeued):
        return _Claims()
    if isinstance(event, TaskTransitioned) and event.failed_to_start:
        return _Claims(start_problem=event.reason)
    has_begun = isinstance(event, TaskTransitioned | TaskReported)
    return _Claims(claims.starting) if has_begun else claims


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
        claims = self._claims_since(view, letter)
        if claims.session:
            return SpawnResult(claims.session)
        is_late = now >= letter.mail.posted_at + self._policy.timeout_ms
        reason = self._decline_reason(view.task, claims, is_late=is_late)
        return SpawnResult(reason=reason) if reason else None

    def _decline_reason(self, task: Task, claims: _Claims, *, is_late: bool) -> str:
        """Reason why nobody will work on the task; empty: somebody may still begin."""
        waited = format_duration(self._policy.timeout_ms)
        if claims.starting:
            late = f"{claims.starting} claimed {task.id}, but did not start within {waited}"
            return late if is_late else ""
        if task.status == "in-progress":
            return f"{task.assignee} works on {task.id} already"
        if task.status not in _CLAIMABLE:
            return f"{task.id} is {task.status} and cannot be claimed"
        if claims.start_problem:
            return f"{claims.start_problem}; {task.id} is {task.status}"
        if no_taker := self._no_agent_reason(task.reserved_for):
            return no_taker
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

    def _claims_since(self, view: TaskView, letter: Letter) -> _Claims:
        """Claims of the task since the request.

        Compared by ledger position: a millisecond holds many entries.
        """
        task, claims = view.task, _Claims()
        if task.updated_at < letter.mail.posted_at or not task.attempts:
            return claims
        for entry in stream_entries(self._hub.store, task_stream(task.id)):
            if entry.position > letter.position:
                is_hub_claim = read_line(entry.line).actor.startswith(_SYSTEM_ACTOR)
                claims = _fold_event(claims, decode_event(entry), is_hub_claim=is_hub_claim)
        # The claim is the first heartbeat; the next one is of an agent that has begun.
        has_begun = view.lease is not None and view.lease.heartbeats > 1
        return _Claims(claims.starting) if claims.starting and has_begun else claims

    def _no_agent_reason(self, queue: str) -> str:
        """Reason why no agent takes work of this queue; empty: one may.

        Candidates are agents that the hub starts for the queue, or that are registered.
        """
        store = self._hub.store
        if not queue and names_in_role(store, "agent"):
            return ""
        startable = self._policy.agents_by_queue.get(queue, ())
        known = {name: find_agent(store, name) for name in (*startable, queue) if name}
        if queue and known[queue] is None and self._policy.is_shared_store:
            return ""
        candidates = [name for name in known if name in startable or known[name] is not None]
        reasons = [holder_objection(known[name]) for name in candidates]
        if not all(reasons):
            return ""
        kind_of_work = f"work for {queue}" if queue else "any work"
        return "; ".join(reasons) or f"no agent is known here that takes {kind_of_work}"
