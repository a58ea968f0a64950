"""The adaptive threshold: what an agent's score has to reach before work is given to it (S-CCOS-6).

It falls with proven reliability and rises with proven failure, by as much as is certain: the lower
and the upper bound of the success rate count, not the rate itself.
"""

from typing import Final

from dragoman.core.states.standing import Evidence

BASE: Final = 0.25
"""Where it stands for everyone of whom too little is known."""
ENOUGH: Final = 5
"""So many results it takes before it moves."""
FALL: Final = 0.15
"""So much it falls for one that surely never fails."""
RISE: Final = 0.55
"""So much it rises for one that surely always fails."""
LEAST: Final = 0.10
MOST: Final = 0.75


def threshold(evidence: Evidence) -> float:
    """What the score of an agent with these results has to reach."""
    if evidence.samples < ENOUGH:
        return BASE
    fall = FALL * max(0.0, 2 * evidence.lower - 1)
    rise = RISE * max(0.0, 1 - 2 * evidence.upper)
    return round(min(max(BASE - fall + rise, LEAST), MOST), 4)
