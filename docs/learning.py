"""How delegation learns, tried out: three agents, many intents; its tables and its plot.

`uv run python docs/learning.py` writes `learning.svg` and the parts of `delegation.md` between its
marks. The simulation knows no clock and no chance of its own: both are handed in.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path

from msgspec import Struct

from dragoman.core.agent import (
    REPUTATION_FOLDS,
    AgentAssigned,
    AgentDescriptor,
    AgentRated,
    Evidence,
    Reputation,
)
from dragoman.core.intent.candidate import Requirements
from dragoman.core.intent.scoring import AgentRanker, compute_threshold

DOCS = Path(__file__).parent
QUALITIES = (0.9, 0.6, 0.3)
"""How often each of three agents truly succeeds."""
INTENTS = 400
WINDOW = 20
SEED = 20_260_215
"""Any other shows the same, which `tests/docs/test_learning.py` tries."""
_MINUTE = 60_000
_NAMES = ("anna", "bert", "cleo")
_GOAL = Requirements("write python")
_MARK = re.compile(r"(<!-- simulated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

Draw = Callable[[], float]
"""Gives a number from 0 to 1, another one each time."""
Choice = Callable[[Sequence[Reputation], int, Draw], str]
"""Whom the next intent is given to; empty: nobody."""


def lots(seed: int) -> Draw:
    """Numbers that look like chance and are the same everywhere."""
    state = seed

    def draw() -> float:
        nonlocal state
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (state >> 11) / 2**53

    return draw


class Trace(Struct, frozen=True):
    """What became of a row of intents: whose they were, and how they ended."""

    given: tuple[str, ...]
    successes: tuple[bool, ...]
    best: str

    @property
    def success(self) -> float:
        """The part of all that succeeded."""
        return sum(self.successes) / len(self.successes)

    def share_of_best(self, first: int, last: int) -> float:
        """The part of these intents that the best agent had."""
        part = self.given[first:last]
        return part.count(self.best) / len(part)


def by_score(reputations: Sequence[Reputation], now: int, draw: Draw) -> str:
    """As this hub chooses."""
    del draw
    first = AgentRanker(reputations, now).rank(_GOAL)[0]
    return first.agent if first.meets_threshold else ""


def by_chance(reputations: Sequence[Reputation], now: int, draw: Draw) -> str:
    """Any of them."""
    del now
    return reputations[int(draw() * len(reputations))].name


def by_origin(constraint: float) -> Choice:
    """As the formulas of the origin choose, for trusted agents with the skill, at no cost.

    They look for a word of a constraint in the goal: it is there (1) or is not (0).
    """

    def choose(reputations: Sequence[Reputation], now: int, draw: Draw) -> str:
        del now, draw
        scored = [
            (0.5 + 0.3 * constraint + 0.2 * _rate(reputation), reputation)
            for reputation in reputations
        ]
        score, first = max(scored, key=lambda one: one[0])
        return first.name if score > _threshold_of_origin(first) else ""

    return choose


CHOICES: dict[str, Choice] = {
    "this hub": by_score,
    "by chance": by_chance,
    "origin, constraint named": by_origin(1),
    "origin, no constraint named": by_origin(0),
}


def simulate(choose: Choice, qualities: Sequence[float], draw: Draw) -> Trace:
    """Give out intents one after the other; each has ended before the next is given out."""
    true = dict(zip(_NAMES, qualities, strict=True))
    reputations = {
        name: Reputation(name, AgentDescriptor(("python",), trust="T2")) for name in _NAMES
    }
    given, successes = list[str](), list[bool]()
    for number in range(INTENTS):
        now = number * _MINUTE
        name = choose(tuple(reputations.values()), now, draw)
        success = bool(name) and draw() < true[name]
        given.append(name)
        successes.append(success)
        if name:
            reputations[name] = _after(reputations[name], f"i{number}", now, success=success)
    return Trace(tuple(given), tuple(successes), max(true, key=lambda name: true[name]))


def traces(choose: Choice, draw: Draw) -> list[Trace]:
    """One simulation for each way of naming the three, so that no name is lucky."""
    return [simulate(choose, order, draw) for order in permutations(QUALITIES)]


def success_of(runs: Sequence[Trace]) -> float:
    """The part of all intents that succeeded."""
    return sum(run.success for run in runs) / len(runs)


def shares_of_best(runs: Sequence[Trace]) -> list[float]:
    """The part of each window that the best agent had."""
    return [
        sum(run.share_of_best(first, first + WINDOW) for run in runs) / len(runs)
        for first in range(0, INTENTS, WINDOW)
    ]


def _after(reputation: Reputation, intent: str, now: int, *, success: bool) -> Reputation:
    name = reputation.name
    given = REPUTATION_FOLDS[AgentAssigned](reputation, AgentAssigned(name, intent, intent), now)
    return REPUTATION_FOLDS[AgentRated](
        given, AgentRated(name, intent, intent, success, _MINUTE), now
    )


def _rate(reputation: Reputation) -> float:
    samples = reputation.successes + reputation.failures
    return reputation.successes / samples if samples else 0.0


def _threshold_of_origin(reputation: Reputation) -> float:
    if reputation.successes + reputation.failures < 5:
        return 0.65
    recent = 0.0
    for result in reputation.recent:
        recent = 0.8 * recent + 0.2 * (result == "1")
    return min(max(0.7 * _rate(reputation) + 0.3 * recent, 0.3), 0.9)


# What the page shows


def thresholds() -> str:
    """The threshold after so many successes and failures."""
    counts = (0, 2, 4, 5, 10, 20, 32)
    head = "| failures \\ successes | " + " | ".join(map(str, counts)) + " |"
    lines = [head, "|---" * (len(counts) + 1) + "|"]
    for bad in counts:
        cells = (_cell(good, bad) for good in counts)
        lines.append(f"| **{bad}** | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(good: int, bad: int) -> str:
    if good + bad > max(32, good, bad):
        return ""
    return f"{compute_threshold(Evidence(good + bad, good)):.2f}"


def outcomes() -> str:
    """How much succeeds, and how much of the work the best agent has at first and at last."""
    head = f"| chosen | succeeded | best agent, first {WINDOW} | best agent, last {WINDOW} |"
    lines = [head, "|---|---|---|---|"]
    for name, choose in CHOICES.items():
        runs = traces(choose, lots(SEED))
        shares = shares_of_best(runs)
        cells = (success_of(runs), shares[0], shares[-1])
        lines.append(f"| {name} | " + " | ".join(f"{cell:.0%}" for cell in cells) + " |")
    return "\n".join(lines)


PARTS: dict[str, Callable[[], str]] = {"thresholds": thresholds, "outcomes": outcomes}


def page(text: str) -> str:
    """The page with its simulated parts as they come out now."""
    return _MARK.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", text)


_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 300, 60, 24
_SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
    'font-family="sans-serif" font-size="12" role="img">'
)
_COLOURS = ("#1b6ca8", "#8a8a8a", "#c0532b", "#d9a441")


def plot() -> str:
    """The share of the best agent over time, for each way of choosing, as SVG."""
    right, bottom = _WIDTH - 200, _HEIGHT - 48
    lines = [
        _SVG,
        "<title>Share of work that the best of three agents gets</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        *_axes(right, bottom),
    ]
    for index, (name, choose) in enumerate(CHOICES.items()):
        runs = traces(choose, lots(SEED))
        points = _points(shares_of_best(runs), right, bottom)
        colour, at = _COLOURS[index], _TOP + 20 * index + 10
        lines += [
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>',
            f'<rect x="{right + 12}" y="{at - 9}" width="10" height="10" fill="{colour}"/>',
            f'<text x="{right + 28}" y="{at}">{name}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _axes(right: int, bottom: int) -> Iterator[str]:
    for step in range(5):
        y = bottom - (bottom - _TOP) * step / 4
        yield f'<line x1="{_LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:g}" text-anchor="end">{25 * step}%</text>'
    yield f'<text x="{_LEFT}" y="{bottom + 18}">first intents</text>'
    yield f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{INTENTS} intents</text>'
    yield f'<text x="{_LEFT}" y="{bottom + 38}">share of work of the best of three agents</text>'


def _points(shares: Sequence[float], right: int, bottom: int) -> str:
    step = (right - _LEFT) / (len(shares) - 1)
    return " ".join(
        f"{_LEFT + step * index:.1f},{bottom - (bottom - _TOP) * share:.1f}"
        for index, share in enumerate(shares)
    )


def main() -> None:
    """Write what has changed."""
    told = DOCS / "delegation.md"
    for path, new in (
        (told, page(told.read_text(encoding="utf-8"))),
        (DOCS / "learning.svg", plot()),
    ):
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main()
