"""Candidates for a goal: requirements, scores, policy."""

from typing import Final

from msgspec import Struct

from dragoman.core.agent import Trust

DEFAULT_MAX_OUTPUT_BYTES: Final = 65_536
"""Largest output that is stored in the ledger, unless the settings say otherwise."""
LOCALITY_PREFIX: Final = "locality:"
"""Prefix of a constraint that names the place where the work must be done."""


class ScoreParts(Struct, frozen=True, omit_defaults=True, gc=False):
    """Parts of a score; the score is their sum, but never below 0."""

    skill: float = 0.0
    constraint: float = 0.0
    success: float = 0.0
    newcomer: float = 0.0
    """Bonus of an agent with few results."""
    turn: float = 0.0
    """Bonus of the least known agent when it is the newcomers' turn."""
    cost: float = 0.0
    """Penalty for its cost."""


class Candidate(Struct, frozen=True, omit_defaults=True, gc=False):
    """An agent with its score for a goal, and the parts of that score."""

    agent: str
    score: float
    parts: ScoreParts
    threshold: float
    """Score that it has to reach."""
    matched: tuple[str, ...] = ()
    """Skills of the agent that the goal names."""

    @property
    def meets_threshold(self) -> bool:
        """True if the score reaches the threshold."""
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


class Requirements(Struct, frozen=True):
    """Requirements of a piece of work, by which an agent is chosen."""

    goal: str
    constraints: tuple[str, ...] = ()
    """Constraints that the agent should meet; locality:PLACE is mandatory."""
    skills: tuple[str, ...] = ()
    """Skills that the agent must have."""
    patience_ms: int = 0
    """Time limit; 0: none."""
