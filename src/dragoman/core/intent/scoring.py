"""Scores of agents for a goal, and the adaptive threshold of each (S-CCOS-5, S-CCOS-6).

    trust x (0.5 skill + 0.2 constraint + 0.3 (success + newcomer)) + turn - cost

Of a goal only the skills count that it names, by whole words; praise for an agent does not.

The threshold falls with proven reliability and rises with proven failure, by as much as is
certain: it depends on the lower and the upper bound of the success rate, not on the rate itself.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dragoman.core.agent import AgentDescriptor, Evidence, Reputation, Trust, significant_words
from dragoman.core.intent.candidate import LOCALITY_PREFIX, Candidate, Requirements, ScoreParts

# --- threshold --------------------------------------------------------------------------------

BASE_THRESHOLD: Final = 0.25
"""Threshold of an agent with too few results."""

MIN_SAMPLES: Final = 5
"""Number of results from which the threshold adapts."""

MAX_DECREASE: Final = 0.15
"""Largest decrease, for an agent that certainly never fails."""

MAX_INCREASE: Final = 0.55
"""Largest increase, for an agent that certainly always fails."""

MIN_THRESHOLD: Final = 0.10

MAX_THRESHOLD: Final = 0.75


def compute_threshold(evidence: Evidence) -> float:
    """Compute the score that an agent with this evidence has to reach."""
    if evidence.samples < MIN_SAMPLES:
        return BASE_THRESHOLD
    decrease = MAX_DECREASE * max(0.0, 2 * evidence.lower_bound - 1)
    increase = MAX_INCREASE * max(0.0, 1 - 2 * evidence.upper_bound)
    return round(min(max(BASE_THRESHOLD - decrease + increase, MIN_THRESHOLD), MAX_THRESHOLD), 4)


# --- weights ----------------------------------------------------------------------------------

SKILL_WEIGHT: Final = 0.5

CONSTRAINT_WEIGHT: Final = 0.2

SUCCESS_WEIGHT: Final = 0.3

PRIOR_SUCCESS_RATE: Final = 0.5
"""Success rate that is assumed of an unknown agent, until results say otherwise."""

MAX_COST_PENALTY: Final = 0.2
"""Largest penalty for cost; half of it applies at a cost of 1."""

TURN_BONUS: Final = SKILL_WEIGHT + CONSTRAINT_WEIGHT + SUCCESS_WEIGHT + MAX_COST_PENALTY
"""Largest possible difference of two scores: whoever has the newcomers' turn ranks first, above any
threshold.
"""

NEWCOMER_INTERVAL: Final = 10
"""Each time this many pieces of work were assigned, one goes to the least known agent."""

TRUST_FACTORS: Final[Mapping[Trust, float]] = {"T0": 0.7, "T1": 0.85, "T2": 1.0}

_DIGITS: Final = 4

_SCORE_UNITS: Final = 10**_DIGITS

_TURN_BONUS_UNITS: Final = round(TURN_BONUS * _SCORE_UNITS)

_MAX_ORDERINGS: Final = 64
"""The ordering is cached for this many sets of constraints."""


# --- words of goals and skills ----------------------------------------------------------------

# Skills only: they are few and short, and goals are neither.
_skill_words = lru_cache(maxsize=8_192)(significant_words)


# --- ranking ----------------------------------------------------------------------------------


class _AgentScore(Struct, frozen=True, gc=False):
    """The parts of an agent's score that do not depend on the goal."""

    agent: str
    skills: tuple[str, ...]
    single_skills: tuple[tuple[str, ...], ...]
    """Each skill as a tuple of its own."""
    skill_scores: tuple[float, ...]
    """Skill part of the score, by how many of its skills the goal names."""
    constraints: frozenset[str]
    trust: float
    success: float
    newcomer: float
    cost: float
    threshold: float
    samples: float
    assigned: int
    open: int


_RankedCandidate = tuple[int, str, Candidate]
"""Sort key and candidate: the best score first (negated, in units), then the name."""


class _Ordering(Struct, frozen=True):
    """All agents in order, as if the goal named no skill of theirs."""

    ranked: list[_RankedCandidate]
    base_scores: dict[str, tuple[int, float]]
    """Agent -> its score without skills, which may be below zero, and the part for constraints."""


class AgentRanker:
    """Ranks the agents of the registry for a goal.

    What does not depend on the goal is computed once for each agent, and once for each agent and
    set of constraints: a ranking looks only at agents of whose skills the goal names a word.
    """

    def __init__(self, reputations: Iterable[Reputation], now: int) -> None:
        self._entries: dict[str, _AgentScore] = {}
        self._skills: dict[str, list[tuple[str, int, frozenset[str]]]] = {}
        """One word of a skill -> agent, index of the skill, and all words of the skill."""
        self._orderings: dict[frozenset[str], _Ordering] = {}
        """Constraints -> ordering of the agents under them."""
        for reputation in reputations:
            self.update(reputation, now)

    def update(self, reputation: Reputation, now: int) -> None:
        descriptor = reputation.descriptor
        if descriptor is None:
            return
        entry = _score_agent(reputation, descriptor, now)
        before = self._entries.get(entry.agent)
        self._entries[entry.agent] = entry
        for constraints, ordering in self._orderings.items():
            if before is not None:
                base, constraint = ordering.base_scores[before.agent]
                del ordering.ranked[
                    bisect_left(ordering.ranked, _rank_agent(before, base, constraint))
                ]
            base, constraint = ordering.base_scores[entry.agent] = _base_score(entry, constraints)
            insort(ordering.ranked, _rank_agent(entry, base, constraint))
        if before is None or before.skills != entry.skills:
            self._index_skills(entry, before)

    def rank(
        self, requirements: Requirements, may_have_it: Callable[[Candidate], bool] = lambda _: True
    ) -> tuple[Candidate, ...]:
        """Rank all agents, the best first; ties are ordered by name.

        An agent that may not have the work does not take the newcomers' turn from those that may.
        """
        constraints = frozenset(map(str.casefold, requirements.constraints))
        matched = self._match_skills(
            significant_words(" ".join((requirements.goal, *requirements.skills)))
        )
        ordering, entries = self._ordering(constraints), self._entries
        ranked = [row for row in ordering.ranked if row[1] not in matched]
        turn = self._newcomer_turn(matched, ordering, may_have_it)
        if turn is not None:
            ranked.append(turn)
            del matched[turn[1]]
        for agent, found in matched.items():
            base, constraint = ordering.base_scores[agent]
            ranked.append(_rank_agent(entries[agent], base, constraint, found))
        ranked.sort()
        return tuple([candidate for _, _, candidate in ranked])

    def _match_skills(self, words: frozenset[str]) -> dict[str, list[int]]:
        """Agent -> its skills of which the goal has all words."""
        matched: dict[str, list[int]] = {}
        for word in words:
            for agent, index, skill_words in self._skills.get(word, ()):
                if skill_words <= words:
                    matched.setdefault(agent, []).append(index)
        for found in matched.values():
            found.sort()
        return matched

    def _ordering(self, constraints: frozenset[str]) -> _Ordering:
        ordering = self._orderings.get(constraints)
        if ordering is None:
            if len(self._orderings) >= _MAX_ORDERINGS:
                self._orderings.clear()
            base_scores = {
                agent: _base_score(entry, constraints) for agent, entry in self._entries.items()
            }
            ranked = (
                _rank_agent(self._entries[agent], *base) for agent, base in base_scores.items()
            )
            ordering = self._orderings[constraints] = _Ordering(sorted(ranked), base_scores)
        return ordering

    def _newcomer_turn(
        self,
        matched: Mapping[str, list[int]],
        ordering: _Ordering,
        may_have_it: Callable[[Candidate], bool],
    ) -> _RankedCandidate | None:
        """Least known of the matching agents, if it is the newcomers' turn.

        Only work that was assigned to matching agents is counted: else the turn could always fall
        on the same few skills. If no matching agent is eligible, nothing would be assigned and no
        turn would ever come: then agents that only their threshold keeps out are tried, each with
        one piece of work at a time.
        """

        def place(one: _AgentScore, *, is_turn: bool) -> _RankedCandidate:
            return _rank_agent(
                one, *ordering.base_scores[one.agent], matched[one.agent], is_turn=is_turn
            )

        eligible = [self._entries[agent] for agent in matched]
        if (sum(one.assigned for one in eligible) + 1) % NEWCOMER_INTERVAL:
            if any(may_have_it(place(one, is_turn=False)[2]) for one in eligible):
                return None
            eligible = [one for one in eligible if not one.open]
        eligible.sort(key=lambda one: (one.samples, one.assigned, one.agent))
        turns = (place(one, is_turn=True) for one in eligible)
        return next((turn for turn in turns if may_have_it(turn[2])), None)

    def _index_skills(self, entry: _AgentScore, before: _AgentScore | None) -> None:
        """Index the skills of an agent by one word of each."""
        for skill in before.skills if before else ():
            for word in sorted(_skill_words(skill))[:1]:
                known = self._skills[word]
                self._skills[word] = [one for one in known if one[0] != entry.agent]
        for index, skill in enumerate(entry.skills):
            words = _skill_words(skill)
            for word in sorted(words)[:1]:
                self._skills.setdefault(word, []).append((entry.agent, index, words))


# --- scores -----------------------------------------------------------------------------------


def _score_agent(reputation: Reputation, descriptor: AgentDescriptor, now: int) -> _AgentScore:
    localities = (LOCALITY_PREFIX + place for place in descriptor.locality)
    evidence = reputation.evidence(now)
    lower = evidence.lower_bound
    newcomer_credit = max(0.0, PRIOR_SUCCESS_RATE - lower) * max(
        0.0, 1 - evidence.samples / MIN_SAMPLES
    )
    trust, skills = TRUST_FACTORS[descriptor.trust], _distinct_skills(descriptor.skills)
    return _AgentScore(
        reputation.name,
        skills,
        tuple((skill,) for skill in skills),
        _skill_scores(trust, len(skills)),
        frozenset(map(str.casefold, (*descriptor.constraints, *localities))),
        trust,
        round(trust * SUCCESS_WEIGHT * lower, _DIGITS),
        round(trust * SUCCESS_WEIGHT * newcomer_credit, _DIGITS),
        -round(MAX_COST_PENALTY * descriptor.cost / (descriptor.cost + 1), _DIGITS)
        + 0.0,  # and not -0.0
        compute_threshold(evidence),
        evidence.samples,
        reputation.assigned,
        reputation.open,
    )


def _distinct_skills(skills: Iterable[str]) -> tuple[str, ...]:
    """Each skill once: other case or another order of the words makes no other skill."""
    by_words: dict[frozenset[str], str] = {}
    for skill in skills:
        by_words.setdefault(_skill_words(skill), skill)
    return tuple(by_words.values())


def _base_score(entry: _AgentScore, constraints: frozenset[str]) -> tuple[int, float]:
    """Score without skills, in units, and the part for constraints."""
    share = len(constraints & entry.constraints) / len(constraints) if constraints else 1.0
    constraint = round(entry.trust * CONSTRAINT_WEIGHT * share, _DIGITS)
    return round(
        (constraint + entry.success + entry.newcomer + entry.cost) * _SCORE_UNITS
    ), constraint


def _rank_agent(
    entry: _AgentScore,
    base: int,
    constraint: float,
    matched: Sequence[int] = (),
    *,
    is_turn: bool = False,
) -> _RankedCandidate:
    # Counted in whole units, because rounding sums is what takes most of the time.
    agent, skill, turn = (
        entry.agent,
        entry.skill_scores[len(matched)],
        TURN_BONUS if is_turn else 0.0,
    )
    units = base + int(skill * _SCORE_UNITS + 0.5)
    if is_turn:
        units += _TURN_BONUS_UNITS
    score = units / _SCORE_UNITS if units > 0 else 0.0
    parts = ScoreParts(skill, constraint, entry.success, entry.newcomer, turn, entry.cost)
    skills = entry.single_skills[matched[0]] if len(matched) == 1 else _pick_skills(entry, matched)
    return -units, agent, Candidate(agent, score, parts, entry.threshold, skills)


def _pick_skills(entry: _AgentScore, matched: Sequence[int]) -> tuple[str, ...]:
    return tuple([entry.skills[index] for index in matched])


@lru_cache(maxsize=4_096)
def _skill_scores(trust: float, skill_count: int) -> tuple[float, ...]:
    """Skill part of the score of an agent with this many skills, by how many of them the goal
    names.

    A skill that the goal does not name counts half against the others: an agent that can do more
    than is asked for loses little, one that claims everything loses much. Each skill that is named
    removes three quarters of the remaining doubt.
    """
    shares = (
        hits / (hits + (skill_count - hits) / 2) * (1 - 0.25**hits)
        for hits in range(skill_count + 1)
    )
    return tuple(round(trust * SKILL_WEIGHT * share, _DIGITS) for share in shares)
