"""The adaptive threshold: what an agent's score has to reach before work is given to it (S-CCOS-6).

It falls with proven reliability and rises with proven failure, by as much as is certain: the lower
and the upper bound of the success rate count, not the rate itself.
"""

from typing import Final

from dragoman.core.states.standing import Evidence

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
