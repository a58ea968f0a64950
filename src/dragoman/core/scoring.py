"""Who is most likely to do something well: every agent's score, with its parts (S-CCOS-5).

    trust x (0.5 skill + 0.2 constraint + 0.3 (success + newcomer)) + turn - cost

What a goal says about agents does not count: only whether it names their skills, by whole words.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.offers import PLACE, Candidate, Parts, Trust, Wish
from dragoman.core.standing import Standing
from dragoman.core.threshold import ENOUGH, threshold
from dragoman.text.words import words_of

SKILL: Final = 0.5
CONSTRAINT: Final = 0.2
SUCCESS: Final = 0.3
DOUBT: Final = 0.5
"""The success rate that is believed of somebody unknown, until results say otherwise."""
TURN: Final = 0.5
EVERY: Final = 10
"""Every so many-th piece of work is the newcomers': it goes to whoever is known least."""
COST: Final = 0.2
"""The most that a price can take away; half of it is taken at a price of 1."""
TRUST: Final[Mapping[Trust, float]] = {"T0": 0.7, "T1": 0.85, "T2": 1.0}

MEANINGLESS: Final = frozenset(
    words_of(
        "a all am an and any anything are as at be best by can do every everything for from good "
        "has have i in is it me most my of on or our that the this to top use we with you your "
        "agent agents expert"
    )
)
"""Words that stand in any goal, or that anyone may say of itself: naming them is no match."""


def telling(text: str) -> frozenset[str]:
    """The words of a text that say something."""
    return frozenset(words_of(text)) - MEANINGLESS


class _Entry(Struct, frozen=True, gc=False):
    """An agent, as far as its score does not depend on what is to be done."""

    agent: str
    skills: tuple[tuple[str, frozenset[str]], ...]
    """Each with its words; without those that say nothing."""
    claimed: int
    """How many skills it says that it has."""
    constraints: frozenset[str]
    trust: float
    success: float
    newcomer: float
    cost: float
    threshold: float
    samples: float
    assigned: int


class Roster:
    """Everyone whom something can be delegated to, at one moment; words are looked up once."""

    def __init__(self, standings: Iterable[Standing], now: int) -> None:
        self._entries = [
            _entry(standing, now) for standing in standings if standing.descriptor is not None
        ]
        self._assigned = sum(entry.assigned for entry in self._entries)

    def rank(self, wish: Wish) -> tuple[Candidate, ...]:
        """All of them, the most likely first; ties go by name."""
        words = telling(" ".join((wish.goal, *wish.skills)))
        asked = frozenset(map(str.casefold, wish.constraints))
        matched = [_matched(entry, words) for entry in self._entries]
        turn = self._whose_turn(matched)
        ranked = [
            _candidate(entry, found, asked, is_turn=entry is turn)
            for entry, found in zip(self._entries, matched, strict=True)
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.agent))
        return tuple(ranked)

    def _whose_turn(self, matched: list[tuple[str, ...]]) -> _Entry | None:
        """Of those who could do it, whoever is known least, if it is the newcomers' turn."""
        if (self._assigned + 1) % EVERY:
            return None
        able = [entry for entry, found in zip(self._entries, matched, strict=True) if found]
        return min(able, key=lambda one: (one.samples, one.assigned, one.agent), default=None)


def _entry(standing: Standing, now: int) -> _Entry:
    descriptor = standing.descriptor
    assert descriptor is not None
    places = (PLACE + place for place in descriptor.locality)
    evidence = standing.evidence(now)
    lower = evidence.lower
    doubt = max(0.0, DOUBT - lower) * max(0.0, 1 - evidence.samples / ENOUGH)
    trust = TRUST[descriptor.trust]
    return _Entry(
        standing.name,
        tuple((skill, words) for skill in descriptor.skills if (words := telling(skill))),
        len(descriptor.skills),
        frozenset(map(str.casefold, (*descriptor.constraints, *places))),
        trust,
        round(trust * SUCCESS * lower, 4),
        round(trust * SUCCESS * doubt, 4),
        round(-COST * descriptor.cost / (descriptor.cost + 1), 4),
        threshold(evidence),
        evidence.samples,
        standing.assigned,
    )


def _matched(entry: _Entry, words: frozenset[str]) -> tuple[str, ...]:
    """The skills all of whose words the goal has."""
    return tuple([skill for skill, told in entry.skills if told <= words])


def _candidate(
    entry: _Entry, matched: tuple[str, ...], asked: frozenset[str], *, is_turn: bool
) -> Candidate:
    # A skill that the goal does not name counts against the others by half: whoever can do more
    # than is asked for is no worse for it by much, and whoever claims to be able to do all is.
    # Each one that it does name takes away three quarters of the doubt whether that is enough.
    hits, others = len(matched), entry.claimed - len(matched)
    skill = hits / (hits + others / 2) * (1 - 0.25**hits) if matched else 0.0
    kept = len(asked & entry.constraints) / len(asked) if asked else 1.0
    parts = Parts(
        round(entry.trust * SKILL * skill, 4),
        round(entry.trust * CONSTRAINT * kept, 4),
        entry.success,
        entry.newcomer,
        TURN if is_turn else 0.0,
        entry.cost,
    )
    score = (
        parts.skill + parts.constraint + parts.success + parts.newcomer + parts.turn + parts.cost
    )
    return Candidate(entry.agent, round(max(0.0, score), 4), parts, entry.threshold, matched)
