"""Who is most likely to do something well: every agent's score, with its parts (S-CCOS-5).

    trust x (0.5 skill + 0.2 constraint + 0.3 (success + newcomer)) + turn - cost

What a goal says about agents does not count: only whether it names their skills, by whole words.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dragoman.core.offers import PLACE, Candidate, Parts, Trust, Wish
from dragoman.core.rules.threshold import ENOUGH, threshold
from dragoman.core.states.standing import Descriptor, Standing
from dragoman.text.words import words_of

SKILL: Final = 0.5
CONSTRAINT: Final = 0.2
SUCCESS: Final = 0.3
DOUBT: Final = 0.5
"""Success rate that is assumed of an unknown agent, until results say otherwise."""
COST: Final = 0.2
"""Largest penalty for cost; half of it applies at a cost of 1."""
TURN: Final = SKILL + CONSTRAINT + SUCCESS + COST
"""Largest possible difference of two scores: whoever has the newcomers' turn ranks first, above any
threshold.
"""
EVERY: Final = 10
"""Each time this many pieces of work were assigned, one goes to the least known agent."""
TRUST: Final[Mapping[Trust, float]] = {"T0": 0.7, "T1": 0.85, "T2": 1.0}

_DIGITS: Final = 4
_UNITS: Final = 10**_DIGITS
_TURN_UNITS: Final = round(TURN * _UNITS)
_ORDERS: Final = 64
"""The ordering is cached for this many sets of constraints."""

MEANINGLESS: Final = frozenset(
    words_of(
        "a all am an and any anything are as at be best by can do every everything for from good "
        "has have i in is it me most my of on or our that the this to top use we with you your "
        "agent agents expert"
    )
)
"""Words that occur in any goal, or that any agent may claim: naming them is no match."""


def telling(text: str) -> frozenset[str]:
    """Words of a text that are not stop words."""
    return frozenset(words_of(text)) - MEANINGLESS


# Skills only: they are few and short, and goals are neither.
_telling_of_skill = lru_cache(maxsize=8_192)(telling)


class _Entry(Struct, frozen=True, gc=False):
    """The parts of an agent's score that do not depend on the goal."""

    agent: str
    skills: tuple[str, ...]
    alone: tuple[tuple[str, ...], ...]
    """Each skill as a tuple of its own."""
    levels: tuple[float, ...]
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


_Place = tuple[int, str, Candidate]
"""Sort key and candidate: the best score first (negated, in units), then the name."""


class _Order(Struct, frozen=True):
    """All agents in order, as if the goal named no skill of theirs."""

    places: list[_Place]
    bases: dict[str, tuple[int, float]]
    """Agent -> its score without skills, which may be below zero, and the part for constraints."""


class Roster:
    """Ranks the agents of the registry for a goal.

    What does not depend on the goal is computed once for each agent, and once for each agent and
    set of constraints: a ranking looks only at agents of whose skills the goal names a word.
    """

    def __init__(self, standings: Iterable[Standing], now: int) -> None:
        self._entries: dict[str, _Entry] = {}
        self._skills: dict[str, list[tuple[str, int, frozenset[str]]]] = {}
        """One word of a skill -> agent, index of the skill, and all words of the skill."""
        self._orders: dict[frozenset[str], _Order] = {}
        """Constraints -> ordering of the agents under them."""
        for standing in standings:
            self.put(standing, now)

    def put(self, standing: Standing, now: int) -> None:
        """Update the scores of an agent."""
        descriptor = standing.descriptor
        if descriptor is None:
            return
        entry = _entry(standing, descriptor, now)
        before = self._entries.get(entry.agent)
        self._entries[entry.agent] = entry
        for asked, order in self._orders.items():
            if before is not None:
                base, constraint = order.bases[before.agent]
                del order.places[bisect_left(order.places, _place(before, base, constraint))]
            base, constraint = order.bases[entry.agent] = _base(entry, asked)
            insort(order.places, _place(entry, base, constraint))
        if before is None or before.skills != entry.skills:
            self._learn(entry, before)

    def rank(
        self, wish: Wish, may_have_it: Callable[[Candidate], bool] = lambda _: True
    ) -> tuple[Candidate, ...]:
        """Rank all agents, the best first; ties are ordered by name.

        An agent that may not have the work does not take the newcomers' turn from those that may.
        """
        asked = frozenset(map(str.casefold, wish.constraints))
        matched = self._matched(telling(" ".join((wish.goal, *wish.skills))))
        order, entries = self._order(asked), self._entries
        places = [place for place in order.places if place[1] not in matched]
        turn = self._whose_turn(matched, order, may_have_it)
        if turn is not None:
            places.append(turn)
            del matched[turn[1]]
        for agent, found in matched.items():
            base, constraint = order.bases[agent]
            places.append(_place(entries[agent], base, constraint, found))
        places.sort()
        return tuple([candidate for _, _, candidate in places])

    def _matched(self, words: frozenset[str]) -> dict[str, list[int]]:
        """Agent -> its skills of which the goal has all words."""
        matched: dict[str, list[int]] = {}
        for word in words:
            for agent, index, told in self._skills.get(word, ()):
                if told <= words:
                    matched.setdefault(agent, []).append(index)
        for found in matched.values():
            found.sort()
        return matched

    def _order(self, asked: frozenset[str]) -> _Order:
        order = self._orders.get(asked)
        if order is None:
            if len(self._orders) >= _ORDERS:
                self._orders.clear()
            bases = {agent: _base(entry, asked) for agent, entry in self._entries.items()}
            places = (_place(self._entries[agent], *base) for agent, base in bases.items())
            order = self._orders[asked] = _Order(sorted(places), bases)
        return order

    def _whose_turn(
        self,
        matched: Mapping[str, list[int]],
        order: _Order,
        may_have_it: Callable[[Candidate], bool],
    ) -> _Place | None:
        """Least known of the matching agents, if it is the newcomers' turn.

        Only work that was assigned to matching agents is counted: else the turn could always fall
        on the same few skills. If no matching agent is eligible, nothing would be assigned and no
        turn would ever come: then agents that only their threshold keeps out are tried, each with
        one piece of work at a time.
        """

        def place(one: _Entry, *, is_turn: bool) -> _Place:
            return _place(one, *order.bases[one.agent], matched[one.agent], is_turn=is_turn)

        able = [self._entries[agent] for agent in matched]
        if (sum(one.assigned for one in able) + 1) % EVERY:
            if any(may_have_it(place(one, is_turn=False)[2]) for one in able):
                return None
            able = [one for one in able if not one.open]
        able.sort(key=lambda one: (one.samples, one.assigned, one.agent))
        turns = (place(one, is_turn=True) for one in able)
        return next((turn for turn in turns if may_have_it(turn[2])), None)

    def _learn(self, entry: _Entry, before: _Entry | None) -> None:
        """Index the skills of an agent by one word of each."""
        for skill in before.skills if before else ():
            for word in sorted(_telling_of_skill(skill))[:1]:
                known = self._skills[word]
                self._skills[word] = [one for one in known if one[0] != entry.agent]
        for index, skill in enumerate(entry.skills):
            words = _telling_of_skill(skill)
            for word in sorted(words)[:1]:
                self._skills.setdefault(word, []).append((entry.agent, index, words))


def _entry(standing: Standing, descriptor: Descriptor, now: int) -> _Entry:
    places = (PLACE + place for place in descriptor.locality)
    evidence = standing.evidence(now)
    lower = evidence.lower
    doubt = max(0.0, DOUBT - lower) * max(0.0, 1 - evidence.samples / ENOUGH)
    trust, skills = TRUST[descriptor.trust], _apart(descriptor.skills)
    return _Entry(
        standing.name,
        skills,
        tuple((skill,) for skill in skills),
        _levels(trust, len(skills)),
        frozenset(map(str.casefold, (*descriptor.constraints, *places))),
        trust,
        round(trust * SUCCESS * lower, _DIGITS),
        round(trust * SUCCESS * doubt, _DIGITS),
        -round(COST * descriptor.cost / (descriptor.cost + 1), _DIGITS) + 0.0,  # and not -0.0
        threshold(evidence),
        evidence.samples,
        standing.assigned,
        standing.open,
    )


def _apart(skills: Iterable[str]) -> tuple[str, ...]:
    """Each skill once: other case or another order of the words makes no other skill."""
    by_words: dict[frozenset[str], str] = {}
    for skill in skills:
        by_words.setdefault(_telling_of_skill(skill), skill)
    return tuple(by_words.values())


def _base(entry: _Entry, asked: frozenset[str]) -> tuple[int, float]:
    """Score without skills, in units, and the part for constraints."""
    kept = len(asked & entry.constraints) / len(asked) if asked else 1.0
    constraint = round(entry.trust * CONSTRAINT * kept, _DIGITS)
    return round((constraint + entry.success + entry.newcomer + entry.cost) * _UNITS), constraint


def _place(
    entry: _Entry,
    base: int,
    constraint: float,
    named: Sequence[int] = (),
    *,
    is_turn: bool = False,
) -> _Place:
    # Counted in whole units, because rounding sums is what takes most of the time.
    agent, skill, turn = entry.agent, entry.levels[len(named)], TURN if is_turn else 0.0
    units = base + int(skill * _UNITS + 0.5)
    if is_turn:
        units += _TURN_UNITS
    score = units / _UNITS if units > 0 else 0.0
    parts = Parts(skill, constraint, entry.success, entry.newcomer, turn, entry.cost)
    skills = entry.alone[named[0]] if len(named) == 1 else _picked(entry, named)
    return -units, agent, Candidate(agent, score, parts, entry.threshold, skills)


def _picked(entry: _Entry, named: Sequence[int]) -> tuple[str, ...]:
    return tuple([entry.skills[index] for index in named])


@lru_cache(maxsize=4_096)
def _levels(trust: float, claimed: int) -> tuple[float, ...]:
    """Skill part of the score of an agent with this many skills, by how many of them the goal
    names.

    A skill that the goal does not name counts half against the others: an agent that can do more
    than is asked for loses little, one that claims everything loses much. Each skill that is named
    removes three quarters of the remaining doubt.
    """
    shares = (
        hits / (hits + (claimed - hits) / 2) * (1 - 0.25**hits) for hits in range(claimed + 1)
    )
    return tuple(round(trust * SKILL * share, _DIGITS) for share in shares)
