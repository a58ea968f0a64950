"""The adaptive threshold: what an agent's score has to reach before work is given to it (S-CCOS-6).

It falls with proven reliability and rises with proven failure, by as much as is certain: the lower
and the upper bound of the success rate count, not the rate itself.
"""

from typing import Final

from dragoman.core.states.standing import Evidence

BASE: Final = 0.25
"""Threshold of an agent with too few results."""
ENOUGH: Final = 5
"""Number of results from which the threshold adapts."""
FALL: Final = 0.15
"""Largest decrease, for an agent that certainly never fails."""
RISE: Final = 0.55
"""Largest increase, for an agent that certainly always fails."""
LEAST: Final = 0.10
MOST: Final = 0.75


def threshold(evidence: Evidence) -> float:
    """Compute the score that an agent with this evidence has to reach."""
    if evidence.samples < ENOUGH:
        return BASE
    fall = FALL * max(0.0, 2 * evidence.lower - 1)
    rise = RISE * max(0.0, 1 - 2 * evidence.upper)
    return round(min(max(BASE - fall + rise, LEAST), MOST), 4)
