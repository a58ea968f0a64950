"""What a delegation is weighed with: the parts of a score, a candidate, the rules of a policy."""

from typing import Final, Literal

from msgspec import Struct

Trust = Literal["T0", "T1", "T2"]
"""How far an agent is trusted: T0 by nobody yet, T1 as usual, T2 wholly."""

Spoken = Literal["aof", "agentmail", "saop", "acp", "ccos"]
"""The dialects that there are, for whoever says which of them an agent understands."""

TIERS: tuple[Trust, ...] = ("T0", "T1", "T2")
"""The tiers, lowest first."""


KEPT_BYTES: Final = 65_536
"""Up to this size an output stands in the ledger, unless the settings say otherwise."""
PLACE: Final = "locality:"
"""How a constraint begins that names the place where the work must be done."""


class Parts(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a score is made of; it is their sum: skill + ... + cost, but never less than 0."""

    skill: float = 0.0
    constraint: float = 0.0
    success: float = 0.0
    newcomer: float = 0.0
    """The benefit of the doubt, while there are few results to judge by."""
    turn: float = 0.0
    """Given to whoever is known least when it is the newcomers' turn."""
    cost: float = 0.0
    """What its price takes away."""


class Candidate(Struct, frozen=True, omit_defaults=True, gc=False):
    """An agent that might do something, and why it stands where it stands."""

    agent: str
    score: float
    parts: Parts
    threshold: float
    """What its score has to reach."""
    matched: tuple[str, ...] = ()
    """Those of its skills that the goal names."""

    @property
    def is_good_enough(self) -> bool:
        """Whether its score reaches its threshold."""
        return self.score >= self.threshold


class Policy(Struct, frozen=True, omit_defaults=True):
    """[ccos.policy]"""

    cost_ceiling: float | None = None
    """The most that an agent may cost; unset: any price."""
    trust_floor: Trust = "T0"
    """The least trust that an agent must have: T0, T1 or T2."""
    data_locality: tuple[str, ...] = ()
    """The only places where data may be worked on, e.g. eu; empty: anywhere."""
    required_skills: tuple[str, ...] = ()
    """Skills that whoever is delegated to must have, whatever the goal is."""
    forbidden_goals: tuple[str, ...] = ()
    """Words or phrases; a goal that has one of them is delegated to nobody."""


class Wish(Struct, frozen=True):
    """What is to be done, as far as it decides by whom."""

    goal: str
    constraints: tuple[str, ...] = ()
    """What whoever does it should be able to keep to; locality:PLACE is a must."""
    skills: tuple[str, ...] = ()
    """What whoever does it must be able to do."""
    patience_ms: int = 0
    """How long it may take; 0: as long as it likes."""
