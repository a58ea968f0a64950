"""The spawner: answers requests for a worker with its session, or with why it has none (S-MAIL-9).

The request itself has put the task into the queue; whoever claims it is the worker. All that this
duty goes by is in the store, so that a request is answered once, whenever the hub comes to it.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dragoman.core.authority import why_no_worker
from dragoman.core.errors import Refusal
from dragoman.core.events import CommandRefused, Status, TaskClaimed
from dragoman.core.ids import task_stream
from dragoman.core.moments import duration
from dragoman.core.states.letter import Mail
from dragoman.core.states.task import Task
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import decode, find_agent, find_task, history, names_in_role
from dragoman.engine.reads.mailbox import Letter, whole_list
from dragoman.ledger.entry import read_line

_ON_ITS_WAY: Final[frozenset[Status]] = frozenset({"backlog", "ready"})
"""A task that somebody may still take."""


class Terms(Struct, frozen=True):
    """What the settings say about requests for workers."""

    name: str
    """To whom they are addressed; an agent that is registered under it answers them itself."""
    kind: str
    """What its dialect calls such a letter."""
    within_ms: int
    """How long a task may wait for somebody to take it."""
    queues: frozenset[str] = frozenset()
    """Whose tasks the agents take that the hub can start; "" stands for those of anyone."""


class Verdict(Struct, frozen=True):
    """What became of a request."""

    session: str = ""
    """Of the worker; empty: there is none."""
    reason: str = ""
    """Why there is none."""


class Spawner:
    """Answers every request for a worker that has come to an end."""

    name = "spawner"

    def __init__(self, hub: Hub, terms: Terms, answer: Callable[[Mail, Verdict], object]) -> None:
        """`answer` posts the letter that says so."""
        self._hub = hub
        self._terms = terms
        self._answer = answer

    def run_once(self, now: int) -> int:
        """Answer what can be answered; how many requests that were."""
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
        """None: it is not known yet."""
        mail, task = letter.mail, self._asked_for(letter)
        if isinstance(task, Verdict):
            return task
        session = self._session_since(task, letter)
        if session:
            return Verdict(session)
        if task.status == "in-progress":
            return Verdict(reason=f"{task.assignee} works on {task.id} already")
        if task.status not in _ON_ITS_WAY:
            return Verdict(reason=f"{task.id} is {task.status}: nobody can take it")
        if not self._can_be_taken(task):
            whom = f"work for {task.reserved_for}" if task.reserved_for else "any work"
            return Verdict(reason=f"no agent is known here that takes {whom}")
        if now < mail.posted_at + self._terms.within_ms:
            return None
        waited = duration(self._terms.within_ms)
        return Verdict(reason=f"nobody took {task.id} within {waited}; it is {task.status}")

    def _asked_for(self, letter: Letter) -> Task | Verdict:
        """The task that waits for a worker, or why none does."""
        if not letter.mail.bead:
            return Verdict(reason="the request names no bead: write Issue: ID in it")
        refusal = self._refusal_of(letter)
        if refusal:
            return Verdict(reason=refusal)
        found = find_task(self._hub.store, letter.mail.bead)
        return Verdict(reason=found.detail) if isinstance(found, Refusal) else found.task

    def _refusal_of(self, letter: Letter) -> str:
        """Why the request did not put the task into the queue; empty: it did.

        What a request is refused besides its letter stands right behind it, with the same cause.
        """
        first, *behind = self._hub.store.entries(letter.position - 1, 2)
        posted = read_line(first.line)
        for entry in behind:
            event = decode(entry)
            is_same = read_line(entry.line).cause == posted.cause
            if is_same and isinstance(event, CommandRefused):
                return event.detail
        # A refusal that has just been recorded is not recorded again.
        return why_no_worker(posted.actor)

    def _session_since(self, task: Task, letter: Letter) -> str:
        """The stay in which the task was taken since then, or else who took it; empty: nobody.

        What came first is told by the places in the ledger: a millisecond holds many entries.
        """
        if task.updated_at < letter.mail.posted_at or not task.attempts:
            return ""
        taken = ""
        for entry in history(self._hub.store, task_stream(task.id)):
            event = decode(entry)
            if isinstance(event, TaskClaimed) and entry.position > letter.position:
                taken = event.session or event.agent
        return taken

    def _can_be_taken(self, task: Task) -> bool:
        """Whether there is anybody who takes such a task: started by the hub, or registered."""
        if task.reserved_for in self._terms.queues:
            return True
        store, wanted = self._hub.store, task.reserved_for
        return bool(find_agent(store, wanted) if wanted else names_in_role(store, "agent"))
