"""Workflow of an intent: propose an agent, approve it, dispatch a request, complete it.

One workflow collects the events of the intent, of its task and of its agents that follow from a
command, and folds each of them before the next is decided.
"""

from itertools import count

from msgspec import Struct

from dragoman.core.agent import (
    REPUTATION_FOLDS,
    AgentAssigned,
    AgentRated,
    AgentRelieved,
    Reputation,
)
from dragoman.core.base import Event, Status
from dragoman.core.ids import intent_stream, reputation_stream, task_stream
from dragoman.core.intent import state as intent_state
from dragoman.core.intent.candidate import Candidate, ScoreParts
from dragoman.core.intent.governance import (
    FORBIDDEN_GOAL,
    GOVERNANCE_RULES,
    POLICY_RULES,
    RuleTable,
    agent_visible_texts,
    find_policy_vetoes,
    find_vetoes,
    forbidden_goal_reason,
)
from dragoman.core.intent.scoring import AgentRanker
from dragoman.core.read import Read, StreamEvents
from dragoman.core.task_state import TASK_FOLDS, Task, TaskEdited, TaskTransitioned
from dragoman.core.timestamps import clamp_timestamp

# --- outcome of a request ---------------------------------------------------------------------

NO_FEEDBACK_REASONS: frozenset[str] = frozenset({"cancelled", "blocked", "given up", "unsent"})
"""Reasons for which the hub ends a request without feedback for the agent: a person decided so, or
it was never dispatched.
"""


class RequestOutcome(Struct, frozen=True):
    """Outcome of a request: its result, or the reason for which the hub ended it."""

    success: bool
    error: str = ""
    synthetic: str = ""
    """Reason for which the hub itself ends it; empty: it has a result."""
    digest: str = ""
    output: object = None
    left_out: int = 0
    extra_fields: dict[str, object] = {}

    @property
    def counts_for_agent(self) -> bool:
        """True if the outcome counts for or against the agent."""
        return self.synthetic not in NO_FEEDBACK_REASONS


# --- workflow ---------------------------------------------------------------------------------

MAX_ERROR_CHARS = 500
"""Longest part of an error that is recorded in the chain."""

MAX_SHOWN_VETOES = 8

INACTIVE_STATUSES: frozenset[Status] = frozenset({"backlog", "blocked", "deadletter"})
"""Statuses from which a task is made ready when its intent is dispatched."""

UNFINISHED_STATUSES: frozenset[Status] = frozenset({"backlog", "ready", "in-progress"})
"""Statuses in which the task of an intent needs an agent, or a person's attention."""

OPEN_STATUSES: frozenset[Status] = frozenset({"ready", "in-progress"})
"""Statuses in which a result can end the task."""

GIVEN_UP_STATUSES: frozenset[Status] = frozenset({"blocked", "deadletter", "cancelled"})


class IntentWorkflow:
    """Collects events in order; the intent, the task and the reputations are folded with each of
    them.
    """

    def __init__(self, intent: intent_state.Intent, task: Task, read: Read, now: int) -> None:
        self.intent = intent
        self.task = task
        self.vetoed: dict[str, list[str]] = {}
        """Reasons of vetoes -> the candidates that they kept out."""
        self._events: list[tuple[str, Event]] = []
        self._read = read
        self._now = now
        self._reputations: dict[str, Reputation | None] = {}

    @property
    def events(self) -> StreamEvents:
        """All events so far."""
        return tuple(self._events)

    @property
    def is_owner_vetoed(self) -> bool:
        """True if the task has just gone to an agent that governance vetoes."""
        is_vetoed = any(self.task.assignee in agents for agents in self.vetoed.values())
        return is_vetoed and self.intent.request is None

    def forbidden_reasons(self, extra: object = ()) -> tuple[str, ...]:
        """Reason why nobody may have this goal, given its texts, the task's texts, and `extra`."""
        intent = self.intent
        reason = forbidden_goal_reason(
            intent.goal, intent.policy, agent_visible_texts(intent, self.task, extra)
        )
        return () if reason is None else (reason,)

    def policy_vetoes(self, agent: str, extra: object = ()) -> tuple[str, ...]:
        """Vetoes of the policy against an agent that was chosen by hand."""
        intent, now = self.intent, self._now
        found = find_policy_vetoes(
            agent, self._reputation(agent), intent.requirements(now), intent.policy, now
        )
        return (*self.forbidden_reasons(extra), *found)

    def record_intent(self, event: Event) -> None:
        """Record an event of the intent, which takes it along its table of transitions."""
        before = self.intent.state
        self._events.append((intent_stream(self.intent.id), event))
        self.intent = intent_state.INTENT_FOLDS[type(event)](self.intent, event, self._now)
        after = self.intent.state
        assert before == after or intent_state.can_become(before, after), (
            f"no way from {before} to {after}"
        )

    def record_task(self, event: Event) -> None:
        self._events.append((task_stream(self.task.id), event))
        self.task = TASK_FOLDS[type(event)](self.task, event, self._now)

    def record_others(self, events: StreamEvents) -> None:
        """Record events of other streams that belong to this decision."""
        self._events += events

    def offer_to_next(
        self,
        candidates: tuple[Candidate, ...] = (),
        terms: intent_state.DelegationTerms | None = None,
        request_id: str = "",
    ) -> bool:
        """Dispatch to the first eligible candidate; return whether there was one.

        `candidates` and `terms` are new ones; without them the remaining candidates are tried.
        """
        new_candidates = candidates
        for candidate in candidates or self.intent.candidates:
            if not new_candidates and self._is_skipped(candidate):
                continue
            if not new_candidates and self.intent.tried >= self.intent.max_agents:
                return False
            self._propose(candidate, new_candidates, terms if new_candidates else None)
            new_candidates = ()
            if self._dispatch_unless_vetoed(
                candidate, self._find_vetoes(candidate), GOVERNANCE_RULES, request_id
            ):
                return True
        return False

    def _is_skipped(self, candidate: Candidate) -> bool:
        """Return whether a candidate has failed, or is still vetoed as when it was proposed."""
        intent, agent = self.intent, candidate.agent
        is_known = agent in intent.vetoed
        return agent in intent.failed or (is_known and bool(self._find_vetoes(candidate)))

    def request_if_eligible(self, agent: str, *, is_forgiven: bool) -> None:
        """Request the agent that has the task by hand, if governance permits it."""
        candidate = self.score_candidate(agent)
        self._propose(candidate)
        self._dispatch_unless_vetoed(
            candidate, self.assignment_vetoes(candidate, is_forgiven=is_forgiven), GOVERNANCE_RULES
        )

    def assignment_vetoes(
        self, candidate: Candidate, *, is_forgiven: bool = False
    ) -> tuple[str, ...]:
        """Vetoes against requesting an agent that has the task by hand or would claim it."""
        has_failed = candidate.agent in self.intent.failed and not is_forgiven
        failed = ("it has failed this before",) if has_failed else ()
        return (*self.forbidden_reasons(), *failed, *self._find_vetoes(candidate))

    def score_candidate(self, agent: str) -> Candidate:
        """Score of an agent that was not ranked with others."""
        reputation = self._reputation(agent)
        known = () if reputation is None else (reputation,)
        ranked = AgentRanker(known, self._now).rank(
            self.intent.requirements(self._now), lambda _: False
        )
        return ranked[0] if ranked else Candidate(agent, 0.0, ScoreParts(), 0.0)

    def request_if_permitted(self, agent: str) -> None:
        """Request the owner that somebody chose, if the intent's policy permits it."""
        candidate = self.score_candidate(agent)
        self._propose(candidate)
        self._dispatch_unless_vetoed(candidate, self.policy_vetoes(agent), POLICY_RULES)

    def _dispatch_unless_vetoed(
        self, candidate: Candidate, reasons: tuple[str, ...], rules: RuleTable, request_id: str = ""
    ) -> bool:
        agent, id = candidate.agent, self.intent.id
        if reasons:
            self.record_intent(intent_state.IntentRejected(id, reasons, agent))
            self.vetoed.setdefault("; ".join(reasons), []).append(agent)
            return False
        self.record_intent(intent_state.IntentApproved(id, agent, (FORBIDDEN_GOAL, *rules)))
        self._dispatch(agent, request_id)
        return True

    def _dispatch(self, agent: str, request_id: str = "", until: int | None = None) -> None:
        """Open a request; the task is the agent's from now on.

        `until` is the deadline if the request continues in the time of another one; else it has its
        own.
        """
        task, intent = self.task, self.intent
        under_way = task.status == "in-progress"
        needs_review = True if self._is_own_work(agent) and not task.review_required else None
        owner = agent if task.reserved_for != agent else None
        if needs_review or owner:
            self.record_task(TaskEdited(review_required=needs_review, reserved_for=owner))
        if task.status in INACTIVE_STATUSES:
            self.record_task(TaskTransitioned(task.status, "ready", f"delegated to {agent}"))
        number = intent.requests + 1
        request_id = request_id or self._free_request_id(number)
        time = intent.time_limit(self._now)
        deadline = until or (clamp_timestamp(self._now + time) if time else None)
        after = task.attempts - under_way
        self.record_intent(
            intent_state.IntentDispatched(intent.id, request_id, agent, number, after, deadline)
        )
        self._record_agent_event(AgentAssigned(agent, intent.id, request_id))

    def _is_own_work(self, agent: str) -> bool:
        """Return whether an agent has the request of its own intent: a review must judge it."""
        record = self._read.agent(agent)
        return agent == self.intent.by and (record is None or record.role != "human")

    def _free_request_id(self, number: int) -> str:
        """Id of the request with this number; if it is in use, the next free one."""
        names = (f"{self.intent.id}.{n}" for n in count(number))
        return next(name for name in names if not self._read.requested(name))

    def complete_request(self, request: intent_state.OpenRequest, outcome: RequestOutcome) -> None:
        """End the open request, and record its feedback for the agent in the same decision."""
        id, agent, error = self.intent.id, request.agent, outcome.error
        took = max(self._now - request.sent_at, 0)
        self.record_intent(
            intent_state.IntentCompleted(
                id,
                request.id,
                agent,
                outcome.success,
                took,
                error if len(error) <= MAX_ERROR_CHARS else error[: MAX_ERROR_CHARS - 1] + "…",
                outcome.synthetic,
                outcome.digest,
                outcome.output,
                outcome.left_out,
                outcome.extra_fields,
            )
        )
        # Agents build no record of their own: what one delegates to itself does not count.
        if not outcome.counts_for_agent or agent == self.intent.by:
            self._record_agent_event(AgentRelieved(agent, id, request.id))
            return
        reputation = self._record_agent_event(
            AgentRated(agent, id, request.id, outcome.success, took)
        )
        counted = reputation.successes, reputation.failures
        self.record_intent(
            intent_state.IntentFeedbackApplied(id, request.id, agent, outcome.success, *counted)
        )

    def supersede_request(
        self, request: intent_state.OpenRequest, owner: str, until: int | None = None
    ) -> None:
        """End a request without feedback; the new owner, if there is one, gets another request."""
        self.record_intent(
            intent_state.IntentSuperseded(self.intent.id, request.id, request.agent, owner)
        )
        self._record_agent_event(AgentRelieved(request.agent, self.intent.id, request.id))
        if owner:
            self.renew_request(owner, request.agent, until)

    def rest_request(self, request: intent_state.OpenRequest) -> None:
        """Keep a request whose task has gone to review, where it takes up no capacity."""
        event = AgentRelieved(request.agent, self.intent.id, request.id, in_review=True)
        self._record_agent_event(event)

    def renew_request(self, owner: str, last: str, until: int | None = None) -> None:
        """Open another request; the agent that had the last one may have this one too."""
        if owner == last and not self.policy_vetoes(owner):
            self._dispatch(owner, until=until)
        else:
            self.request_if_permitted(owner)

    def try_next(self, error: str) -> None:
        """After a failure, try the next candidate, or deadletter the task."""
        forbidden = self.forbidden_reasons()
        if self.task.open_blockers or (not forbidden and self.offer_to_next()):
            self.settle()
            return
        if forbidden:
            self.reject_forbidden()
        reason = f"{self._give_up_reason(forbidden)}: {error}"
        if self.task.status != "deadletter":
            self.record_task(
                TaskTransitioned(self.task.status, "deadletter", reason[:MAX_ERROR_CHARS])
            )
        # Also if governance vetoed all others: the failure is what ends it.
        self.record_intent(
            intent_state.IntentNeedsFollowUp(self.intent.id, reason[:MAX_ERROR_CHARS])
        )

    def reject_forbidden(self) -> None:
        """Reject the intent because its texts contain a forbidden goal."""
        self.record_intent(intent_state.IntentRejected(self.intent.id, self.forbidden_reasons()))

    def _give_up_reason(self, forbidden: tuple[str, ...]) -> str:
        """Reason why no further agent is tried; the error of the failure follows it."""
        if forbidden:
            return f"{forbidden[0]}; the last failed"
        intent = self.intent
        if intent.tried >= intent.max_agents:
            several = f"{intent.tried} tries have failed, the last"
            return "its only try has failed" if intent.tried == 1 else several
        return "nobody else may have it, the last failed"

    def settle(self, cancelled: str = "") -> None:
        """End the intent if its task has ended, or ask for follow-up if no agent is requested.

        `cancelled` says who has just cancelled the task, and why: this is recorded even for an
        intent that needed follow-up before.
        """
        status, intent = self.task.status, self.intent
        if status == "done" and intent_state.can_become(intent.state, "Satisfied"):
            self.record_intent(intent_state.IntentSatisfied(self.intent.id))
        if status in GIVEN_UP_STATUSES and (
            cancelled or self.intent.state not in intent_state.RENEWABLE_STATES
        ):
            reason = cancelled or f"its task is {status}"
            self.record_intent(
                intent_state.IntentNeedsFollowUp(
                    self.intent.id, reason[:MAX_ERROR_CHARS], bool(cancelled)
                )
            )
        if (
            status in UNFINISHED_STATUSES
            and intent.request is None
            and intent.state not in intent_state.SETTLED_STATES
        ):
            self.require_follow_up(self.waiting_reason())

    def require_follow_up(self, reason: str) -> None:
        """No agent is requested: somebody has to follow up."""
        is_unwanted = self.task.status == "cancelled"
        self.record_intent(
            intent_state.IntentNeedsFollowUp(self.intent.id, reason[:MAX_ERROR_CHARS], is_unwanted)
        )

    def waiting_reason(self) -> str:
        """Reason why the task is nobody's work now."""
        task = self.task
        if task.status in UNFINISHED_STATUSES and task.open_blockers:
            return f"its task waits for {', '.join(task.open_blockers)}"
        if task.status in UNFINISHED_STATUSES and not task.assignee:
            return "its task has no owner"
        return f"its task is {task.status}"

    def _propose(
        self,
        candidate: Candidate,
        new_candidates: tuple[Candidate, ...] = (),
        terms: intent_state.DelegationTerms | None = None,
    ) -> None:
        intent = self.intent
        self.record_intent(
            intent_state.IntentProposed(
                intent.id,
                candidate.agent,
                candidate.score,
                candidate.parts,
                candidate.threshold,
                new_candidates,
                terms if terms != intent.terms else None,
            )
        )

    def _find_vetoes(self, candidate: Candidate) -> tuple[str, ...]:
        agent, intent, now = candidate.agent, self.intent, self._now
        reputation, record = self._reputation(agent), self._read.agent(agent)
        return find_vetoes(
            candidate, reputation, record, intent.requirements(now), intent.policy, now
        )

    def _reputation(self, agent: str) -> Reputation | None:
        if agent not in self._reputations:
            self._reputations[agent] = self._read.reputation(agent)
        return self._reputations[agent]

    def _record_agent_event(self, event: AgentAssigned | AgentRelieved | AgentRated) -> Reputation:
        """Record an event of an agent's reputation and return the reputation after it."""
        known = self._reputation(event.name)
        reputation = REPUTATION_FOLDS[type(event)](known, event, self._now)
        self._reputations[event.name] = reputation
        self._events.append((reputation_stream(event.name), event))
        return reputation


def is_request_overdue(task: Task, request: intent_state.OpenRequest, now: int) -> bool:
    """Return whether the deadline of a request has passed.

    Time in review does not count, and neither does a session that has reported in time.
    """
    if request.deadline is None or now < request.deadline or task.status not in OPEN_STATUSES:
        return False
    report = task.reported if task.status == "in-progress" else None
    return report is None or report.agent != request.agent or report.at >= request.deadline


def fold_task_events(task: Task, events: StreamEvents, now: int) -> Task:
    """Fold the events that concern this task."""
    stream = task_stream(task.id)
    for name, event in events:
        if name == stream:
            task = TASK_FOLDS[type(event)](task, event, now)
    return task


# --- claim eligibility ------------------------------------------------------------------------


def may_claim(task: Task, agent: str, read: Read, now: int) -> bool:
    """Return whether an agent that claims the next ready task may get this one.

    It may not if governance vetoes it for the task's intent, or if an overdue request must be ended
    first. A claim that names such a task is refused with the reason; a claim of the next task skips
    it.
    """
    intent = intent_state.intent_of_task(task, read.intent)
    if intent is None:
        return True
    if intent.request is not None:
        return not is_request_overdue(task, intent.request, now)
    workflow = IntentWorkflow(intent, task, read, now)
    return not workflow.assignment_vetoes(workflow.score_candidate(agent))
