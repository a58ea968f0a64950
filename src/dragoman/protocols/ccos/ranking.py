"""Who would be asked, and why: every candidate with the parts of its score, and what decides."""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from dragoman.core.governance import check_goal
from dragoman.core.offers import Candidate, Parts, Wish
from dragoman.core.threshold import BASE
from dragoman.engine.operation import Facts
from dragoman.protocols.ccos.arguments import Ranked
from dragoman.protocols.ccos.settings import Choices

PARTS: Final = tuple(field.name for field in fields(Parts))
_CLOSE: Final = 0.0001


class Weighed(Struct, frozen=True):
    """A candidate, what was learned of it, and what governance has against it."""

    candidate: Candidate
    samples: int
    successes: int
    reasons: tuple[str, ...]


def rank(asked: Ranked, facts: Facts, choices: Choices) -> dict[str, Any]:
    """The answer of `ccos.rank`."""
    now = facts.now()
    wish = Wish(asked.goal, asked.constraints, asked.skills, choices.patience_ms)
    ranked = facts.registry.rank(wish, now)
    forbidden = check_goal(asked.goal, choices.policy)
    shown = [_weighed(one, wish, facts, choices, now) for one in ranked[: asked.limit]]
    able = [] if forbidden else [one for one in shown if not one.reasons]
    chosen = able[0].candidate.agent if able else None
    return {
        "goal": asked.goal,
        "candidates": [_row(one) for one in shown],
        "threshold": BASE,
        "of": len(ranked),
        "chosen": chosen,
        "why": forbidden or _why(able, shown, len(ranked)),
    }


def _weighed(candidate: Candidate, wish: Wish, facts: Facts, choices: Choices, now: int) -> Weighed:
    standing = facts.registry.standing(candidate.agent, now)
    reasons = facts.registry.vetoes(candidate, wish, choices.policy, now)
    successes, failures = (standing.successes, standing.failures) if standing else (0, 0)
    return Weighed(candidate, successes + failures, successes, reasons)


def _row(one: Weighed) -> dict[str, Any]:
    candidate = one.candidate
    return {
        "agent_id": candidate.agent,
        "score": candidate.score,
        "parts": {name: getattr(candidate.parts, name) for name in PARTS},
        "threshold": candidate.threshold,
        "matched": list(candidate.matched),
        "results": one.samples,
        "successes": one.successes,
        "eligible": not one.reasons,
        "reasons": list(one.reasons),
    }


def _why(able: list[Weighed], shown: list[Weighed], all_of_them: int) -> str:
    if not shown:
        return "nobody in the registry has said what it can do: `dragoman agent add --skill`"
    if not able:
        what = "those shown" if len(shown) < all_of_them else "them"
        return f"governance has something against all of {what}"
    first = able[0].candidate
    passed = [one.candidate.agent for one in shown[: shown.index(able[0])]]
    better = f"; {', '.join(passed)} would score more, but may not have it" if passed else ""
    if len(able) == 1:
        return f"{first.agent} is the only one that may have it{better}"
    second = able[1].candidate
    lead = first.score - second.score
    if lead < _CLOSE:
        return f"{first.agent} and {second.agent} score the same, and ties go by name{better}"
    gained = sorted(
        ((getattr(first.parts, part) - getattr(second.parts, part), part) for part in PARTS),
        reverse=True,
    )
    by = ", ".join(f"{part} +{gain:.2f}" for gain, part in gained if gain >= _CLOSE)
    return f"{first.agent} is {lead:.2f} ahead of {second.agent}: {by}{better}"
