"""What the operations of CCOS are given, beside the three messages themselves."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_FORM, WORD_FORM
from dragoman.core.limits import PAGE, REASON, SKILL, SKILLS, WAIT_MS
from dragoman.core.offers import Spoken, Trust
from dragoman.engine.reads.turns import CURSOR_WORDS
from dragoman.protocols.ccos.wire import AgentId, IntentId

MOST_TOLD: Final = 10_000
"""Largest number of Actions in one answer of `ccos.why`; more are queried by page."""

Words = tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...]
FewWords = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=SKILL)], ...], Meta(max_length=SKILLS)
]
ShortGoal = Annotated[str, Meta(min_length=1, max_length=REASON)]
NewId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{WORD_FORM})$", "minLength": 1})]
MaybeId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{WORD_FORM})?$"})]
MaybeAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_FORM})?$"})]
MaybeMoment = Annotated[str, Meta(max_length=100, description="RFC 3339; empty: any")]
Cursor = Annotated[
    str, Meta(pattern=r"^(?:[0-9]{1,16}\.[0-9]{1,16})?$(?!\n)", extra={"reason": CURSOR_WORDS})
]
Count = Annotated[int, Meta(ge=1, le=PAGE)]


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of an operation; an unknown name is refused."""


class Terms(Asked, frozen=True, kw_only=True):
    """Terms of an agent."""

    constraints: Words = ()
    locality: Words = ()
    """Places where it processes data."""
    trust: Trust | None = None
    """Trust in it, T0 to T2; its own word never raises that."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    latency_ms: Annotated[int, Meta(ge=0)] = 0
    capacity: Annotated[int, Meta(ge=0)] = 0
    """Largest number of open requests; 0: no limit."""


class Register(Terms, frozen=True, kw_only=True):
    """Skills and terms of an agent, and how it is reached."""

    agent_id: AgentId
    skills: Words
    speaks: tuple[Spoken, ...] = ()
    """Dialects that it understands; none: unchanged, or ccos."""
    reach: str = ""
    """Its address; empty: it polls for its requests."""


class Discover(Terms, frozen=True, kw_only=True):
    """An A2A agent card to be registered."""

    card: dict[str, Any]
    agent_id: MaybeAgent = ""
    """Name of the agent; empty: taken from its card."""


class Wanted(Asked, frozen=True, kw_only=True):
    """Requirements by which an agent is chosen."""

    goal: ShortGoal
    constraints: FewWords = ()
    skills: FewWords = ()
    """Skills that the agent must have."""


class Ranked(Wanted, frozen=True, kw_only=True):
    """Query of the agents that a goal would go to."""

    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 20


class Delegate(Wanted, frozen=True, kw_only=True):
    """A goal for the agent that is most likely to reach it."""

    intent_id: NewId | None = None
    """Empty: the hub makes one."""
    params: dict[str, Any] = {}
    deadline: MaybeMoment = ""
    """Time at which requests fail; a request that is made after it gets as much time again."""
    within_ms: Annotated[int, Meta(ge=WAIT_MS[0], le=WAIT_MS[1])] | None = None
    """Instead of it: time limit of each request, from when it is made."""
    plan_id: MaybeId = ""
    follows: MaybeId = ""
    """Intent that it follows up."""


class OneIntent(Asked, frozen=True, kw_only=True):
    """An intent, by its id."""

    intent_id: IntentId


class Story(OneIntent, frozen=True, kw_only=True):
    """Query of an intent's causal chain, up to a number of Actions."""

    limit: Annotated[int, Meta(ge=1, le=MOST_TOLD)] = MOST_TOLD


class Cancel(Asked, frozen=True, kw_only=True):
    """An intent to be cancelled."""

    intent_id: IntentId
    reason: Annotated[str, Meta(max_length=500)] = ""


class History(Asked, frozen=True, kw_only=True):
    """Query of an intent, and of a page of its history."""

    intent_id: IntentId
    after: Annotated[int, Meta(ge=0)] = 0
    """Number of the last entry of the page before."""
    limit: Count = 200


class Intents(Asked, frozen=True, kw_only=True):
    """Query of intents; all filters must match."""

    agent_id: str = ""
    plan_id: str = ""
    follows: str = ""
    open: bool = False
    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 50


class Requests(Asked, frozen=True, kw_only=True):
    """Query of open requests: the caller's, or another agent's."""

    agent_id: MaybeAgent = ""
    limit: Count = 20


class Agents(Asked, frozen=True, kw_only=True):
    """Query of the registry."""

    skill: str = ""
    speaks: Spoken | None = None
    after: str = ""
    """Last name of the page before."""
    limit: Count = 100


class WantedActions(Asked, frozen=True, kw_only=True):
    """Query of Actions of the causal chain; all filters must match."""

    intent_id: str = ""
    plan_id: str = ""
    agent_id: str = ""
    type: str = ""
    parent_id: str = ""
    """Only Actions that this one caused."""
    since: MaybeMoment = ""
    until: MaybeMoment = ""
    cursor: Cursor = ""
    """`cursor` of the page before."""
    limit: Count = 100
