"""The spawner: answers requests for a worker with its session, or with why it has none (S-MAIL-9).

The request itself has put the task into the queue; whoever claims it is the worker, and an agent
for which the hub claims it is one as soon as it has begun. All that this duty goes by is in the
store, so that a request is answered once, whenever the hub comes to it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.authority import why_no_holder
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    Status,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
    TaskTransitioned,
)
from dragoman.core.ids import task_stream
from dragoman.core.moments import duration
from dragoman.core.states.letter import Mail
from dragoman.core.states.task import Task
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import (
    TaskView,
    decode,
    find_agent,
    find_task,
    history,
    names_in_role,
)
from dragoman.engine.reads.mailbox import Letter, refusal_of, whole_list
from dragoman.ledger.entry import read_line

_ON_ITS_WAY: Final[frozenset[Status]] = frozenset({"backlog", "ready"})
"""Statuses in which a task may still be claimed."""
_BY_THE_HUB: Final = "system:"
"""Actor of claims that precede the agent: the hub claims a task, and then starts an agent."""


class Terms(Struct, frozen=True):
    """Policy for requests for workers, from the settings."""

    name: str
    """Addressee of the requests; an agent registered under this name answers them itself."""
    kind: str
    """Type of such a letter in its dialect."""
    within_ms: int
    """Time that a task may wait for a claim."""
    takers: Mapping[str, tuple[str, ...]] = {}
    """Queue -> agents that the hub can start for it; "" stands for tasks of anyone."""
    is_shared: bool = False
    """True if other hubs may work on the store: the queues of their agents are not known here."""


class Verdict(Struct, frozen=True):
    """Outcome of a request."""

    session: str = ""
    """Session of the worker; empty: there is none."""
    reason: str = ""
    """Reason why there is none."""


class _Taken(Struct, frozen=True):
    """Claims of a task since the request; at most one field is set."""

    session: str = ""
    """Session of the last worker, or else its name."""
    starting: str = ""
    """Session that is being started."""
    fault: str = ""
    """Reason why the last one could not be started."""


def _after(taken: _Taken, event: object, *, is_hubs: bool) -> _Taken:
    """Claims after one more event; an attempt without a sign of life has not begun."""
    if isinstance(event, TaskClaimed):
        name = event.session or event.agent
        return _Taken(starting=name) if is_hubs else _Taken(name)
    if not taken.starting:
        return taken
    if isinstance(event, TaskRequeued):
        return _Taken()
    if isinstance(event, TaskTransitioned) and event.unstarted:
        return _Taken(fault=event.reason)
    has_begun = isinstance(event, TaskTransitioned | TaskReported)
    return _Taken(taken.starting) if has_begun else taken


def asked_at(store: Store, terms: Terms, task: Task) -> int:
    """Time of the last unanswered request for a worker on a task; 0: none."""
    return max(
        (
            letter.mail.posted_at
            for letter in whole_list(store, f"asked:{terms.name}")
            if letter.mail.kind == terms.kind and _is_about(store, letter.mail, task)
        ),
        default=0,
    )


def _is_about(store: Store, mail: Mail, task: Task) -> bool:
    found = find_task(store, mail.bead)
    return not isinstance(found, Refusal) and found.task.id == task.id


class Spawner:
    """Answers each request for a worker once its outcome is known."""

    name = "spawner"

    def __init__(self, hub: Hub, terms: Terms, answer: Callable[[Mail, Verdict], object]) -> None:
        """`post_answer` posts the letter with the outcome."""
        self._hub = hub
        self._terms = terms
        self._answer = answer

    def run_once(self, now: int) -> int:
        """Answer requests whose outcome is known; their number."""
        store, terms = self._hub.store, self._terms
        if find_agent(store, terms.name) is not None:
            return 0
        asked = list(whole_list(store, f"asked:{terms.name}"))
        verdicts = [
            (letter.mail, self._verdict(letter, now))
            for letter in asked
            if letter.mail.kind == terms.kind
        ]
        for mail, verdict in verdicts:
            if verdict is not None:
                self._answer(mail, verdict)
        return sum(verdict is not None for _, verdict in verdicts)

    def _verdict(self, letter: Letter, now: int) -> Verdict | None:
        """Outcome of a request; None: not known yet."""
        view = self._asked_for(letter)
        if isinstance(view, Verdict):
            return view
        taken = self._taken_since(view, letter)
        if taken.session:
            return Verdict(taken.session)
        is_late = now >= letter.mail.posted_at + self._terms.within_ms
        why = self._why_nobody(view.task, taken, is_late=is_late)
        return Verdict(reason=why) if why else None

    def _why_nobody(self, task: Task, taken: _Taken, *, is_late: bool) -> str:
        """Reason why nobody will work on the task; empty: somebody may still begin."""
        waited = duration(self._terms.within_ms)
        if taken.starting:
            late = f"{taken.starting} claimed {task.id}, but did not start within {waited}"
            return late if is_late else ""
        if task.status == "in-progress":
            return f"{task.assignee} works on {task.id} already"
        if task.status not in _ON_ITS_WAY:
            return f"{task.id} is {task.status} and cannot be claimed"
        if taken.fault:
            return f"{taken.fault}; {task.id} is {task.status}"
        if no_taker := self._why_no_taker(task.reserved_for):
            return no_taker
        return f"no agent claimed {task.id} within {waited}; it is {task.status}" if is_late else ""

    def _asked_for(self, letter: Letter) -> TaskView | Verdict:
        """Task of the request, or why there is none."""
        if not letter.mail.bead:
            return Verdict(reason="the request names no bead: write Issue: ID in it")
        refusal = refusal_of(self._hub.store, letter)
        if refusal:
            return Verdict(reason=refusal)
        found = find_task(self._hub.store, letter.mail.bead)
        return Verdict(reason=found.detail) if isinstance(found, Refusal) else found

    def _taken_since(self, view: TaskView, letter: Letter) -> _Taken:
        """Claims of the task since the request.

        Compared by ledger position: a millisecond holds many entries.
        """
        task, taken = view.task, _Taken()
        if task.updated_at < letter.mail.posted_at or not task.attempts:
            return taken
        for entry in history(self._hub.store, task_stream(task.id)):
            if entry.position > letter.position:
                is_hubs = read_line(entry.line).actor.startswith(_BY_THE_HUB)
                taken = _after(taken, decode(entry), is_hubs=is_hubs)
        # The claim is the first heartbeat; the next one is of an agent that has begun.
        has_begun = view.lease is not None and view.lease.beats > 1
        return _Taken(taken.starting) if taken.starting and has_begun else taken

    def _why_no_taker(self, wanted: str) -> str:
        """Reason why no agent takes work of this queue; empty: one may.

        Candidates are agents that the hub starts for the queue, or that are registered.
        """
        store = self._hub.store
        if not wanted and names_in_role(store, "agent"):
            return ""
        started = self._terms.takers.get(wanted, ())
        known = {name: find_agent(store, name) for name in (*started, wanted) if name}
        if wanted and known[wanted] is None and self._terms.is_shared:
            return ""
        could = [name for name in known if name in started or known[name] is not None]
        reasons = [why_no_holder(known[name]) for name in could]
        if not all(reasons):
            return ""
        whom = f"work for {wanted}" if wanted else "any work"
        return "; ".join(reasons) or f"no agent is known here that takes {whom}"
