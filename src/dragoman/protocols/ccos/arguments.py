"""What the operations of CCOS are given, beside the three messages themselves."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_PATTERN, ID_PATTERN
from dragoman.core.limits import MAX_PAGE, MAX_REASON, MAX_SKILL_LENGTH, MAX_SKILLS, WAIT_RANGE_MS
from dragoman.core.offers import DialectName, Trust
from dragoman.engine.reads.turns import OPTIONAL_CURSOR_DESCRIPTION
from dragoman.protocols.ccos.wire import AgentId, IntentId

MAX_WHY_ACTIONS: Final = 10_000
"""Largest number of Actions in one answer of `ccos.why`; more are queried by page."""

WordList = tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...]
ShortWordList = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=MAX_SKILL_LENGTH)], ...],
    Meta(max_length=MAX_SKILLS),
]
GoalText = Annotated[str, Meta(min_length=1, max_length=MAX_REASON)]
NewId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{ID_PATTERN})$", "minLength": 1})]
OptionalId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{ID_PATTERN})?$"})]
OptionalAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_PATTERN})?$"})]
OptionalMoment = Annotated[str, Meta(max_length=100, description="RFC 3339; empty: any")]
Cursor = Annotated[
    str,
    Meta(
        pattern=r"^(?:[0-9]{1,16}\.[0-9]{1,16})?$(?!\n)",
        extra={"reason": OPTIONAL_CURSOR_DESCRIPTION},
    ),
]
Count = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of an operation; an unknown name is refused."""


class AgentTerms(Arguments, frozen=True, kw_only=True):
    """Terms of an agent."""

    constraints: WordList = ()
    locality: WordList = ()
    """Places where it processes data."""
    trust: Trust | None = None
    """Trust in it, T0 to T2; its own word never raises that."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    latency_ms: Annotated[int, Meta(ge=0)] = 0
    capacity: Annotated[int, Meta(ge=0)] = 0
    """Largest number of open requests; 0: no limit."""


class Register(AgentTerms, frozen=True, kw_only=True):
    """Skills and terms of an agent, and how it is reached."""

    agent_id: AgentId
    skills: WordList
    speaks: tuple[DialectName, ...] = ()
    """Dialects that it understands; none: unchanged, or ccos."""
    reach: str = ""
    """Its address; empty: it polls for its requests."""


class Discover(AgentTerms, frozen=True, kw_only=True):
    """An A2A agent card to be registered."""

    card: dict[str, Any]
    agent_id: OptionalAgent = ""
    """Name of the agent; empty: taken from its card."""


class GoalArguments(Arguments, frozen=True, kw_only=True):
    """Requirements by which an agent is chosen."""

    goal: GoalText
    constraints: ShortWordList = ()
    skills: ShortWordList = ()
    """Skills that the agent must have."""


class RankQuery(GoalArguments, frozen=True, kw_only=True):
    """Query of the agents that a goal would go to."""

    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 20


class Delegate(GoalArguments, frozen=True, kw_only=True):
    """A goal for the agent that is most likely to reach it."""

    intent_id: NewId | None = None
    """Empty: the hub makes one."""
    params: dict[str, Any] = {}
    deadline: OptionalMoment = ""
    """Time at which requests fail; a request that is made after it gets as much time again."""
    within_ms: Annotated[int, Meta(ge=WAIT_RANGE_MS[0], le=WAIT_RANGE_MS[1])] | None = None
    """Instead of it: time limit of each request, from when it is made."""
    plan_id: OptionalId = ""
    follows: OptionalId = ""
    """Intent that it follows up."""


class OneIntent(Arguments, frozen=True, kw_only=True):
    """An intent, by its id."""

    intent_id: IntentId


class WhyQuery(OneIntent, frozen=True, kw_only=True):
    """Query of an intent's causal chain, up to a number of Actions."""

    limit: Annotated[int, Meta(ge=1, le=MAX_WHY_ACTIONS)] = MAX_WHY_ACTIONS


class Cancel(Arguments, frozen=True, kw_only=True):
    """An intent to be cancelled."""

    intent_id: IntentId
    reason: Annotated[str, Meta(max_length=500)] = ""


class IntentQuery(Arguments, frozen=True, kw_only=True):
    """Query of an intent, and of a page of its history."""

    intent_id: IntentId
    after: Annotated[int, Meta(ge=0)] = 0
    """Number of the last entry of the page before."""
    limit: Count = 200


class IntentsQuery(Arguments, frozen=True, kw_only=True):
    """Query of intents; all filters must match."""

    agent_id: str = ""
    plan_id: str = ""
    follows: str = ""
    open: bool = False
    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 50


class RequestsQuery(Arguments, frozen=True, kw_only=True):
    """Query of open requests: the caller's, or another agent's."""

    agent_id: OptionalAgent = ""
    limit: Count = 20


class AgentsQuery(Arguments, frozen=True, kw_only=True):
    """Query of the registry."""

    skill: str = ""
    speaks: DialectName | None = None
    after: str = ""
    """Last name of the page before."""
    limit: Count = 100


class ActionsQuery(Arguments, frozen=True, kw_only=True):
    """Query of Actions of the causal chain; all filters must match."""

    intent_id: str = ""
    plan_id: str = ""
    agent_id: str = ""
    type: str = ""
    parent_id: str = ""
    """Only Actions that this one caused."""
    since: OptionalMoment = ""
    until: OptionalMoment = ""
    cursor: Cursor = ""
    """`cursor` of the page before."""
    limit: Count = 100
