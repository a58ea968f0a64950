"""The course of an intent: what follows from one step to the next, for it, its task, its agents."""

from itertools import count
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from dragoman.core.deciding.ending import Ending
from dragoman.core.events import (
    AgentAssigned,
    AgentRated,
    AgentRelieved,
    IntentApproved,
    IntentCompleted,
    IntentDispatched,
    IntentEvent,
    IntentFedBack,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    StandingEvent,
    Status,
    TaskEdited,
    TaskEvent,
    TaskTransitioned,
)
from dragoman.core.ids import intent_stream, standing_stream, task_stream
from dragoman.core.moments import within_span
from dragoman.core.offers import Candidate, Parts, Policy
from dragoman.core.reading import Read, StreamEvents
from dragoman.core.rules.governance import (
    FORBIDDEN_GOAL,
    POLICY,
    RULES,
    Rules,
    against_policy,
    check_goal,
    told_beside,
    vetoes,
)
from dragoman.core.rules.scoring import Roster
from dragoman.core.states.intent import EVOLVE_INTENT, OVER, RENEWABLE, Intent, OpenRequest
from dragoman.core.states.standing import EVOLVE_STANDING, Standing
from dragoman.core.states.task import Task
from dragoman.core.states.task_fold import EVOLVE_TASK

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

SHOWN_ERROR = 500
"""Longest part of an error that is recorded in the chain."""
SHOWN_VETOES = 8

AT_REST: frozenset[Status] = frozenset({"backlog", "blocked", "deadletter"})
"""Statuses from which a task is made ready when its intent is dispatched."""
WAITING: frozenset[Status] = frozenset({"backlog", "ready", "in-progress"})
"""Statuses in which the task of an intent needs an agent, or a person's attention."""
UNDER_WAY: frozenset[Status] = frozenset({"ready", "in-progress"})
"""Statuses in which a result can end the task."""
GIVEN_UP: frozenset[Status] = frozenset({"blocked", "deadletter", "cancelled"})


class Terms(Struct, frozen=True):
    """Terms on which an intent is delegated from now on."""

    policy: Policy
    patience_ms: int
    tries: int
    kept_bytes: int
    passed_on: dict[str, object]
    due_by: int = 0


class Course:
    """Collects events in order; the intent, the task and the reputations are folded with each of
    them.
    """

    def __init__(self, intent: Intent, task: Task, read: Read, now: int) -> None:
        self.intent = intent
        self.task = task
        self.vetoed: dict[str, list[str]] = {}
        """Reasons of vetoes -> the candidates that they kept out."""
        self._events: list[tuple[str, AnyEvent]] = []
        self._read = read
        self._now = now
        self._standings: dict[str, Standing | None] = {}

    @property
    def events(self) -> StreamEvents:
        """All events so far."""
        return tuple(self._events)

    @property
    def is_kept_from_owner(self) -> bool:
        """True if the task has just gone to an agent that governance vetoes."""
        kept = any(self.task.assignee in agents for agents in self.vetoed.values())
        return kept and self.intent.request is None

    def forbidden(self, more: object = ()) -> tuple[str, ...]:
        """Reason why nobody may have this goal, given its texts, the task's texts, and `extra`."""
        intent = self.intent
        why = check_goal(intent.goal, intent.policy, told_beside(intent, self.task, more))
        return () if why is None else (why,)

    def against(self, agent: str, more: object = ()) -> tuple[str, ...]:
        """Vetoes of the policy against an agent that was chosen by hand."""
        intent, now = self.intent, self._now
        against = against_policy(agent, self._standing(agent), intent.wish(now), intent.policy, now)
        return (*self.forbidden(more), *against)

    def say(self, event: IntentEvent) -> None:
        """Record an event of the intent."""
        self._events.append((intent_stream(self.intent.id), event))
        self.intent = EVOLVE_INTENT[type(event)](self.intent, event, self._now)

    def move(self, event: TaskEvent) -> None:
        """Record an event of its task."""
        self._events.append((task_stream(self.task.id), event))
        self.task = EVOLVE_TASK[type(event)](self.task, event, self._now)

    def tell(self, others: StreamEvents) -> None:
        """Record events of other streams that belong to this decision."""
        self._events += others

    def offer(
        self,
        candidates: tuple[Candidate, ...] = (),
        terms: Terms | None = None,
        request_id: str = "",
    ) -> bool:
        """Dispatch to the first eligible candidate; return whether there was one.

        `candidates` and `terms` are new ones; without them the remaining candidates are tried.
        """
        anew = candidates
        for candidate in candidates or (*self.intent.candidates, *self._former_owners()):
            if not anew and self._is_passed_over(candidate):
                continue
            if not anew and self.intent.tried >= self.intent.tries:
                return False
            self._propose(candidate, anew, terms)
            anew = ()
            if self._give(candidate, self._vetoes(candidate), RULES, request_id):
                return True
        return False

    def _is_passed_over(self, candidate: Candidate) -> bool:
        """Return whether a candidate has failed, or is still vetoed as when it was proposed."""
        intent, agent = self.intent, candidate.agent
        is_known = agent in intent.turned_down
        return agent in intent.failed or (is_known and bool(self._vetoes(candidate)))

    def _former_owners(self) -> tuple[Candidate, ...]:
        """Former owners who handed the task over and are no longer ranked, the last one first."""
        ranked = {candidate.agent for candidate in self.intent.candidates}
        owners = (agent for agent in reversed(self.task.chain) if agent not in ranked)
        return tuple(map(self.candidate, filter(self.intent.was_relieved, owners)))

    def ask(self, agent: str, *, is_forgiven: bool) -> None:
        """Request the agent that has the task by hand, if governance permits it."""
        candidate = self.candidate(agent)
        self._propose(candidate)
        self._give(candidate, self.why_not(candidate, is_forgiven=is_forgiven), RULES)

    def why_not(self, candidate: Candidate, *, is_forgiven: bool = False) -> tuple[str, ...]:
        """Vetoes against requesting an agent that has the task by hand or would claim it."""
        has_failed = candidate.agent in self.intent.failed and not is_forgiven
        failed = ("it has failed this before",) if has_failed else ()
        return (*self.forbidden(), *failed, *self._vetoes(candidate))

    def candidate(self, agent: str) -> Candidate:
        """Score of an agent that was not ranked with others."""
        standing = self._standing(agent)
        known = () if standing is None else (standing,)
        ranked = Roster(known, self._now).rank(self.intent.wish(self._now), lambda _: False)
        return ranked[0] if ranked else Candidate(agent, 0.0, Parts(), 0.0)

    def hand_to(self, agent: str) -> None:
        """Request the owner that somebody chose, if the intent's policy permits it."""
        candidate = self.candidate(agent)
        self._propose(candidate)
        self._give(candidate, self.against(agent), POLICY)

    def _give(
        self, candidate: Candidate, against: tuple[str, ...], rules: Rules, request_id: str = ""
    ) -> bool:
        """Dispatch to the candidate if no rule vetoes it; return whether it was dispatched."""
        agent, id = candidate.agent, self.intent.id
        if against:
            self.say(IntentRejected(id, against, agent))
            self.vetoed.setdefault("; ".join(against), []).append(agent)
            return False
        self.say(IntentApproved(id, agent, (FORBIDDEN_GOAL, *rules)))
        self._dispatch(agent, request_id)
        return True

    def _dispatch(self, agent: str, request_id: str = "", until: int | None = None) -> None:
        """Open a request; the task is the agent's from now on.

        `until` is the deadline if the request continues in the time of another one; else it has its
        own.
        """
        task, intent = self.task, self.intent
        under_way = task.status == "in-progress"
        if task.reserved_for != agent:
            self.move(TaskEdited(reserved_for=agent))
        if task.status in AT_REST:
            self.move(TaskTransitioned(task.status, "ready", f"delegated to {agent}"))
        number = intent.requests + 1
        request_id = request_id or self._free_name(number)
        time = intent.time_from(self._now)
        deadline = until or (within_span(self._now + time) if time else None)
        after = task.attempts - under_way
        self.say(IntentDispatched(intent.id, request_id, agent, number, after, deadline))
        self._about(AgentAssigned(agent, intent.id, request_id))

    def _free_name(self, number: int) -> str:
        """Id of the request with this number; if it is in use, the next free one."""
        names = (f"{self.intent.id}.{n}" for n in count(number))
        return next(name for name in names if not self._read.requested(name))

    def complete(self, request: OpenRequest, ending: Ending) -> None:
        """End the open request, and record its feedback for the agent in the same decision."""
        id, agent, error = self.intent.id, request.agent, ending.error
        took = max(self._now - request.sent_at, 0)
        self.say(
            IntentCompleted(
                id,
                request.id,
                agent,
                ending.success,
                took,
                error if len(error) <= SHOWN_ERROR else error[: SHOWN_ERROR - 1] + "…",
                ending.synthetic,
                ending.digest,
                ending.output,
                ending.left_out,
                ending.passed_on,
            )
        )
        # Agents build no record of their own: what one delegates to itself does not count.
        if not ending.feedback or agent == self.intent.by:
            self._about(AgentRelieved(agent, id, request.id))
            return
        standing = self._about(AgentRated(agent, id, request.id, ending.success, took))
        counted = standing.successes, standing.failures
        self.say(IntentFedBack(id, request.id, agent, ending.success, *counted))

    def supersede(self, request: OpenRequest, owner: str, until: int | None = None) -> None:
        """End a request without feedback; the new owner, if there is one, gets another request."""
        self.say(IntentSuperseded(self.intent.id, request.id, request.agent, owner))
        self._about(AgentRelieved(request.agent, self.intent.id, request.id))
        if owner:
            self.renew(owner, request.agent, until)

    def renew(self, owner: str, last: str, until: int | None = None) -> None:
        """Open another request; the agent that had the last one may have this one too."""
        if owner == last and not self.against(owner):
            self._dispatch(owner, until=until)
        else:
            self.hand_to(owner)

    def go_on(self, why: str) -> None:
        """After a failure, try the next candidate, or deadletter the task."""
        forbidden = self.forbidden()
        if self.task.open_blockers or (not forbidden and self.offer()):
            self.settle()
            return
        if forbidden:
            self.forbid()
        reason = f"{self._why_not_on(forbidden)}: {why}"
        if self.task.status != "deadletter":
            self.move(TaskTransitioned(self.task.status, "deadletter", reason[:SHOWN_ERROR]))
        # Also if governance vetoed all others: the failure is what ends it.
        self.say(IntentNeedsFollowUp(self.intent.id, reason[:SHOWN_ERROR]))

    def forbid(self) -> None:
        """Reject the intent because its texts contain a forbidden goal."""
        self.say(IntentRejected(self.intent.id, self.forbidden()))

    def _why_not_on(self, forbidden: tuple[str, ...]) -> str:
        """Reason why no further agent is tried; the error of the failure follows it."""
        if forbidden:
            return f"{forbidden[0]}; the last failed"
        intent = self.intent
        if intent.tried >= intent.tries:
            several = f"{intent.tried} tries have failed, the last"
            return "its only try has failed" if intent.tried == 1 else several
        return "nobody else may have it, the last failed"

    def settle(self, cancelled: str = "") -> None:
        """End the intent if its task has ended, or ask for follow-up if no agent is requested.

        `cancelled` says who has just cancelled the task, and why: this is recorded even for an
        intent that needed follow-up before.
        """
        status, intent = self.task.status, self.intent
        if status == "done" and self.intent.state != "Satisfied":
            self.say(IntentSatisfied(self.intent.id))
        if status in GIVEN_UP and (cancelled or self.intent.state not in RENEWABLE):
            why = cancelled or f"its task is {status}"
            self.say(IntentNeedsFollowUp(self.intent.id, why[:SHOWN_ERROR], bool(cancelled)))
        if status in WAITING and intent.request is None and intent.state not in OVER:
            self.wait(self.why_waiting())

    def wait(self, why: str) -> None:
        """No agent is requested: somebody has to follow up."""
        is_unwanted = self.task.status == "cancelled"
        self.say(IntentNeedsFollowUp(self.intent.id, why[:SHOWN_ERROR], is_unwanted))

    def why_waiting(self) -> str:
        """Reason why the task is nobody's work now."""
        task = self.task
        if task.status in WAITING and task.open_blockers:
            return f"its task waits for {', '.join(task.open_blockers)}"
        if task.status in WAITING and not task.assignee:
            return "its task has no owner"
        return f"its task is {task.status}"

    def _propose(
        self,
        candidate: Candidate,
        anew: tuple[Candidate, ...] = (),
        terms: Terms | None = None,
    ) -> None:
        intent = self.intent
        now = Terms(
            intent.policy, intent.patience_ms, intent.tries, intent.kept_bytes, intent.passed_on
        )
        then = terms or now
        self.say(
            IntentProposed(
                self.intent.id,
                candidate.agent,
                candidate.score,
                candidate.parts,
                candidate.threshold,
                anew,
                then.policy if then.policy != now.policy else None,
                then.patience_ms if then.patience_ms != now.patience_ms else None,
                then.tries if then.tries != now.tries else 0,
                then.due_by if anew else 0,
                then.kept_bytes if then.kept_bytes != now.kept_bytes else None,
                then.passed_on if then.passed_on != now.passed_on else None,
            )
        )

    def _vetoes(self, candidate: Candidate) -> tuple[str, ...]:
        agent, intent, now = candidate.agent, self.intent, self._now
        standing, record = self._standing(agent), self._read.agent(agent)
        return vetoes(candidate, standing, record, intent.wish(now), intent.policy, now)

    def _standing(self, agent: str) -> Standing | None:
        if agent not in self._standings:
            self._standings[agent] = self._read.standing(agent)
        return self._standings[agent]

    def _about(self, event: StandingEvent) -> Standing:
        """Record an event of an agent's reputation and return the reputation after it."""
        known = self._standing(event.name)
        standing = EVOLVE_STANDING[type(event)](known, event, self._now)
        self._standings[event.name] = standing
        self._events.append((standing_stream(event.name), event))
        return standing


def is_late(task: Task, request: OpenRequest, now: int) -> bool:
    """Return whether the deadline of a request has passed.

    Time in review does not count, and neither does a session that has reported in time.
    """
    if request.deadline is None or now < request.deadline or task.status not in UNDER_WAY:
        return False
    report = task.reported if task.status == "in-progress" else None
    return report is None or report.agent != request.agent or report.at >= request.deadline


def task_after(task: Task, events: StreamEvents, now: int) -> Task:
    """Fold the events that concern this task."""
    stream = task_stream(task.id)
    for name, event in events:
        if name == stream:
            task = EVOLVE_TASK[cast(type[TaskEvent], type(event))](task, event, now)
    return task
