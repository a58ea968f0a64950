"""What the operations of CCOS are given, beside the three messages themselves."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_FORM, WORD_FORM
from dragoman.core.limits import PAGE, REASON, SKILL, SKILLS, WAIT_MS
from dragoman.core.offers import Spoken, Trust
from dragoman.engine.reads.turns import CURSOR_WORDS
from dragoman.protocols.ccos.wire import AgentId, IntentId

MOST_TOLD: Final = 10_000
"""How many Actions a story has; more are asked for by the page."""

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
    """Arguments; a name that is not known is a mistake and is told."""


class Terms(Asked, frozen=True, kw_only=True):
    """On which terms an agent works."""

    constraints: Words = ()
    locality: Words = ()
    """Where it works on data."""
    trust: Trust | None = None
    """How far it is trusted, T0 to T2; its own word never raises that."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    latency_ms: Annotated[int, Meta(ge=0)] = 0
    capacity: Annotated[int, Meta(ge=0)] = 0
    """How many requests it takes at a time; 0: any number."""


class Register(Terms, frozen=True, kw_only=True):
    """What an agent can do, on which terms, and how it is reached."""

    agent_id: AgentId
    skills: Words
    speaks: tuple[Spoken, ...] = ()
    """The dialects that it understands; none: as it is known, or ccos."""
    reach: str = ""
    """Where it is; empty: it asks for its requests itself."""


class Discover(Terms, frozen=True, kw_only=True):
    """An A2A agent card, to be taken into the registry."""

    card: dict[str, Any]
    agent_id: MaybeAgent = ""
    """What to call the agent; empty: as its card does."""


class Wanted(Asked, frozen=True, kw_only=True):
    """What is to be done, as far as it decides by whom."""

    goal: ShortGoal
    constraints: FewWords = ()
    skills: FewWords = ()
    """What whoever does it must be able to do."""


class Ranked(Wanted, frozen=True, kw_only=True):
    """Who would be asked to do this."""

    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 20


class Delegate(Wanted, frozen=True, kw_only=True):
    """A goal for the agent that is most likely to reach it."""

    intent_id: NewId | None = None
    """Without one it gets an id."""
    params: dict[str, Any] = {}
    deadline: MaybeMoment = ""
    """The moment at which requests fail, whoever has them; those made after it get as much time
    again."""
    within_ms: Annotated[int, Meta(ge=WAIT_MS[0], le=WAIT_MS[1])] | None = None
    """Instead of it: how long each request may take, from when it is made."""
    plan_id: MaybeId = ""
    follows: MaybeId = ""
    """The intent that it follows up."""


class OneIntent(Asked, frozen=True, kw_only=True):
    """An intent, by its id."""

    intent_id: IntentId


class Story(OneIntent, frozen=True, kw_only=True):
    """An intent whose story is told, as far as this."""

    limit: Annotated[int, Meta(ge=1, le=MOST_TOLD)] = MOST_TOLD


class Cancel(Asked, frozen=True, kw_only=True):
    """An intent that is not to be reached any more."""

    intent_id: IntentId
    reason: Annotated[str, Meta(max_length=500)] = ""


class History(Asked, frozen=True, kw_only=True):
    """An intent, and where its history goes on."""

    intent_id: IntentId
    after: Annotated[int, Meta(ge=0)] = 0
    """The number of the last entry of the page before."""
    limit: Count = 200


class Intents(Asked, frozen=True, kw_only=True):
    """Which intents; all that is said must hold."""

    agent_id: str = ""
    plan_id: str = ""
    follows: str = ""
    open: bool = False
    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 50


class Requests(Asked, frozen=True, kw_only=True):
    """Open requests: the caller's, or another agent's."""

    agent_id: MaybeAgent = ""
    limit: Count = 20


class Agents(Asked, frozen=True, kw_only=True):
    """Which agents of the registry."""

    skill: str = ""
    speaks: Spoken | None = None
    after: str = ""
    """The last name of the page before."""
    limit: Count = 100


class WantedActions(Asked, frozen=True, kw_only=True):
    """Which Actions of the causal chain; all that is said must hold."""

    intent_id: str = ""
    plan_id: str = ""
    agent_id: str = ""
    type: str = ""
    parent_id: str = ""
    """Only what this Action has caused."""
    since: MaybeMoment = ""
    until: MaybeMoment = ""
    cursor: Cursor = ""
    """`cursor` of the page before."""
    limit: Count = 100
