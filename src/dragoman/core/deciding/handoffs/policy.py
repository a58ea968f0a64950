"""Whether the task of an intent may go to somebody by a handoff: its policy says (S-CCOS-4)."""

from dragoman.core.limits import REASON
from dragoman.core.reading import Read
from dragoman.core.rules.governance import against_policy, check_goal, told_beside
from dragoman.core.states.intent import intent_of
from dragoman.core.states.task import Task


def why_not_to(agent: str, task: Task, read: Read, now: int, package: object = ()) -> str:
    """Why this agent may not have it, with what the package says; empty: nothing is against it."""
    intent = intent_of(task, read.intent)
    if intent is None:
        return ""
    forbidden = check_goal(intent.goal, intent.policy, told_beside(intent, task, package))
    reasons = against_policy(agent, read.standing(agent), intent.wish(now), intent.policy, now)
    against = "; ".join((*((forbidden,) if forbidden else ()), *reasons))
    return f"{agent} may not have the intent {intent.id}: {against}"[:REASON] if against else ""
