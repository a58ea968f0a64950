"""An intent: a goal on its way to an agent and back, and how each event changes it (S-CCOS-4)."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentEvent,
    IntentFedBack,
    IntentFollowed,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.offers import KEPT_BYTES, Candidate, Policy, Wish
from dragoman.core.states.task import Task

KIND: Final = "intent"
"""The kind of name under which the task of an intent is known."""

IntentState = Literal[
    "New",
    "DelegationProposed",
    "DelegationApproved",
    "DelegationRejected",
    "TaskDispatched",
    "TaskCompleted",
    "FeedbackApplied",
    "Satisfied",
    "NeedsFollowUp",
]

OVER: Final[frozenset[IntentState]] = frozenset(
    {"DelegationRejected", "Satisfied", "NeedsFollowUp"}
)
"""In these nothing happens by itself any more."""
RENEWABLE: Final[frozenset[IntentState]] = frozenset({"DelegationRejected", "NeedsFollowUp"})
"""From these it may be delegated anew."""

REMEMBERED_RESULTS: Final = 32
REMEMBERED_ANOMALIES: Final = 8
"""An anomaly that equals one of the last few is a repeat and adds no entry."""
REMEMBERED_RUNS: Final = 64
"""So many runs of numbers of updates are remembered of a request: with more, the lowest gap between
them is closed, as if its numbers had come."""
ANOMALIES_PER_MINUTE: Final = 60
_MINUTE_MS: Final = 60_000


class OpenRequest(Struct, frozen=True, omit_defaults=True, gc=False):
    """What an agent was asked for and has not brought back."""

    id: str
    agent: str
    number: int
    sent_at: int
    after: int
    deadline: int | None = None
    pieces: tuple[tuple[int, int], ...] = ()
    """The numbers of the updates that came, in their order: the first and last of every run."""

    def has_heard(self, piece: int) -> bool:
        """Whether an update with this number came before; 0: it has none."""
        return any(first <= piece <= last for first, last in self.pieces)


class Closed(Struct, frozen=True, omit_defaults=True, gc=False):
    """A request that has come to its end."""

    id: str
    agent: str
    at: int
    success: bool = False
    synthetic: str = ""
    digest: str = ""
    is_superseded: bool = False


class Intent(Struct, frozen=True, omit_defaults=True):
    """An intent as it stands now, folded from the stream `intent:ID`."""

    id: str
    task: str
    goal: str
    by: str
    created_at: int
    state: IntentState = "New"
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    plan: str = ""
    follows: str = ""
    followed_by: tuple[str, ...] = ()
    tries: int = 3
    policy: Policy = Policy()
    due_by: int = 0
    kept_bytes: int = KEPT_BYTES
    passed_on: dict[str, object] = {}
    candidates: tuple[Candidate, ...] = ()
    """Those of the last ranking who were not asked yet, the best first."""
    turned_down: tuple[str, ...] = ()
    """Those of them whom governance has had something against: they are asked once that is gone."""
    tried: int = 0
    """How many of them have failed since: who was stopped by a person's word, or whose task went to
    another, was not tried."""
    request: OpenRequest | None = None
    requests: int = 0
    """How many requests were ever made."""
    closed: tuple[Closed, ...] = ()
    agents: tuple[str, ...] = ()
    """Everyone who ever had a request of it."""
    failed: tuple[str, ...] = ()
    """Those who failed since that ranking: they are not tried again."""
    reasons: tuple[str, ...] = ()
    """Why it was rejected, or needs somebody to follow it up."""
    updates: int = 0
    anomalies: int = 0
    recent: tuple[str, ...] = ()
    """The last anomalies, in short."""
    minute: int = 0
    in_minute: int = 0
    """How many anomalies there were in that minute."""

    def wish(self, now: int) -> Wish:
        """What is to be done, as far as it decides by whom."""
        return Wish(self.goal, self.constraints, self.skills, self.time_from(now))

    def time_from(self, now: int) -> int:
        """How long a request may take that is made now; 0: as long as it likes.

        The moment that was said stands for whoever is asked before it. After it there is as much
        time again for each of those who are tried instead (S-CCOS-4).
        """
        return self.due_by - now if self.due_by > now else self.patience_ms

    @property
    def deadline(self) -> int | None:
        """When the open request has to be ended."""
        return None if self.request is None else self.request.deadline

    def was_relieved(self, agent: str) -> bool:
        """Whether the last request of this agent ended because the task went to another."""
        last = next((one for one in reversed(self.closed) if one.agent == agent), None)
        return last is not None and last.is_superseded

    def is_repeat(self, event: IntentAnomaly) -> bool:
        """Whether an anomaly equals one of the last few."""
        return _gist(event) in self.recent

    def is_flooded(self, now: int) -> bool:
        """Whether no more anomalies are taken in this minute."""
        return self.minute == now // _MINUTE_MS and self.in_minute >= ANOMALIES_PER_MINUTE


def intent_of(task: Task, find: Callable[[str], "Intent | None"]) -> "Intent | None":
    """The intent that a task belongs to: named by the task, and naming it."""
    if not task.aliases:
        return None
    prefix = f"{KIND}:"
    named = (find(a.removeprefix(prefix)) for a in task.aliases if a.startswith(prefix))
    return next((one for one in named if one is not None and one.task == task.id), None)


def lists_of_intent(intent: Intent) -> tuple[str, ...]:
    """The lists on which it stands: all, its plan's, its agents', what it follows, what is open."""
    lists = ["intents", *(f"delegated:{name}" for name in intent.agents)]
    if intent.plan:
        lists.append(f"plan:{intent.plan}")
    if intent.follows:
        lists.append(f"follows:{intent.follows}")
    if intent.state not in OVER:
        lists.append("intents:open")
    if intent.request is not None:
        lists += ["requests", f"requests:{intent.request.agent}"]
    return tuple(lists)


def _created(_: None, event: IntentCreated, at: int) -> Intent:
    return Intent(
        event.id,
        event.task,
        event.goal,
        event.by,
        at,
        params=event.params,
        constraints=event.constraints,
        skills=event.skills,
        patience_ms=event.patience_ms,
        plan=event.plan,
        follows=event.follows,
        tries=event.tries,
        policy=event.policy,
        kept_bytes=event.kept_bytes,
        passed_on=event.passed_on,
    )


def _proposed(intent: Intent, event: IntentProposed, at: int) -> Intent:
    del at
    return replace(
        intent,
        state="DelegationProposed",
        candidates=event.candidates or intent.candidates,
        turned_down=() if event.candidates else intent.turned_down,
        tried=0 if event.candidates else intent.tried,
        failed=() if event.candidates else intent.failed,
        policy=event.policy or intent.policy,
        patience_ms=intent.patience_ms if event.patience_ms is None else event.patience_ms,
        tries=event.tries or intent.tries,
        due_by=event.due_by if event.candidates else intent.due_by,
        kept_bytes=intent.kept_bytes if event.kept_bytes is None else event.kept_bytes,
        passed_on=intent.passed_on if event.passed_on is None else event.passed_on,
        reasons=(),
    )


def _approved(intent: Intent, event: IntentApproved, at: int) -> Intent:
    del event, at
    return replace(intent, state="DelegationApproved")


def _rejected(intent: Intent, event: IntentRejected, at: int) -> Intent:
    del at
    named = (event.agent,) if event.agent else ()
    turned_down = tuple(dict.fromkeys((*intent.turned_down, *named)))
    return replace(
        intent,
        state="DelegationRejected",
        turned_down=turned_down,
        reasons=event.reasons,
        due_by=event.due_by or intent.due_by,
    )


def _dispatched(intent: Intent, event: IntentDispatched, at: int) -> Intent:
    request = OpenRequest(
        event.request_id, event.agent, event.number, at, event.after, event.deadline
    )
    agents = tuple(dict.fromkeys((*intent.agents, event.agent)))
    return replace(
        intent,
        state="TaskDispatched",
        candidates=tuple(one for one in intent.candidates if one.agent != event.agent),
        request=request,
        requests=event.number,
        agents=agents,
        reasons=(),
    )


def _updated(intent: Intent, event: IntentUpdated, at: int) -> Intent:
    del at
    request = intent.request
    if request is not None and event.sequence:
        request = replace(request, pieces=_with_piece(request.pieces, event.sequence))
    return replace(intent, updates=intent.updates + 1, request=request)


def _with_piece(runs: tuple[tuple[int, int], ...], piece: int) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*runs, (piece, piece))):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    if len(joined) > REMEMBERED_RUNS:
        joined[:2] = [(joined[0][0], joined[1][1])]
    return tuple(joined)


def _completed(intent: Intent, event: IntentCompleted, at: int) -> Intent:
    ended = Closed(event.request_id, event.agent, at, event.success, event.synthetic, event.digest)
    return replace(intent, state="TaskCompleted", request=None, closed=_with(intent, ended))


def _fed_back(intent: Intent, event: IntentFedBack, at: int) -> Intent:
    del at
    # What was ended without a word about the agent does not speak against it, and was no try.
    if event.success:
        return replace(intent, state="FeedbackApplied")
    failed = tuple(dict.fromkeys((*intent.failed, event.agent)))
    return replace(intent, state="FeedbackApplied", failed=failed, tried=intent.tried + 1)


def _satisfied(intent: Intent, event: IntentSatisfied, at: int) -> Intent:
    del event, at
    return replace(intent, state="Satisfied", candidates=(), turned_down=())


def _needs_follow_up(intent: Intent, event: IntentNeedsFollowUp, at: int) -> Intent:
    del at
    # Whoever takes it up again may fail: then the others are still there to be asked.
    left = () if event.cancelled else intent.candidates
    return replace(intent, state="NeedsFollowUp", candidates=left, reasons=(event.reason,))


def _superseded(intent: Intent, event: IntentSuperseded, at: int) -> Intent:
    ended = Closed(event.request_id, event.agent, at, is_superseded=True)
    return replace(intent, request=None, closed=_with(intent, ended))


def _followed(intent: Intent, event: IntentFollowed, at: int) -> Intent:
    del at
    return replace(intent, followed_by=(*intent.followed_by, event.by))


def _odd(intent: Intent, event: IntentAnomaly, at: int) -> Intent:
    minute = at // _MINUTE_MS
    before = intent.in_minute if intent.minute == minute else 0
    return replace(
        intent,
        anomalies=intent.anomalies + 1,
        recent=(*intent.recent, _gist(event))[-REMEMBERED_ANOMALIES:],
        minute=minute,
        in_minute=before + 1,
    )


def _with(intent: Intent, ended: Closed) -> tuple[Closed, ...]:
    return (*intent.closed, ended)[-REMEMBERED_RESULTS:]


def _gist(event: IntentAnomaly) -> str:
    said = f"{event.agent} {event.request_id} {event.reason}".encode()
    return blake2b(said, digest_size=8).hexdigest()


EVOLVE_INTENT: dict[type[IntentEvent], Callable[[Any, Any, int], Intent]] = {
    IntentCreated: _created,
    IntentProposed: _proposed,
    IntentApproved: _approved,
    IntentRejected: _rejected,
    IntentDispatched: _dispatched,
    IntentUpdated: _updated,
    IntentCompleted: _completed,
    IntentFedBack: _fed_back,
    IntentSatisfied: _satisfied,
    IntentNeedsFollowUp: _needs_follow_up,
    IntentSuperseded: _superseded,
    IntentFollowed: _followed,
    IntentAnomaly: _odd,
}
"""Event -> the intent after it, from the intent before it (None at first) and its time."""
