"""Draws the recorded example of the entropy detector: turns, confidence, and what was told when."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from msgspec import Struct

from dragoman.core.entropy import Finding, ObservedTurn, SettledSign, Thresholds, detect_signs
from dragoman.protocols import saop

EXAMPLE = Path(__file__).parent / "dialects" / "entropy-example.jsonl"
PLOT = EXAMPLE.with_name("entropy.svg")

_WIDTH, _HEIGHT = 880, 380
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 24, 24, 130
_COLOURS = {"falling_confidence": "#b3261e", "repeated_error": "#8250df", "loop": "#9a6700"}


class Mark(Struct, frozen=True):
    """What was told after a turn."""

    turn: int
    sign: str
    is_over: bool
    text: str


def recorded() -> list[ObservedTurn]:
    """The turns of the example, checked as the hub checks them."""
    lines = EXAMPLE.read_bytes().splitlines()
    turns = [saop.TurnEnvelopeSchema.parse(line) for line in lines]
    return [
        ObservedTurn(
            int(turn.turn_index),
            turn.metadata.confidence,
            turn.content.action,
            turn.content.observation,
        )
        for turn in turns
    ]


def marks(turns: Sequence[ObservedTurn], thresholds: Thresholds | None = None) -> list[Mark]:
    """What the duty tells, if it looks after every turn."""
    told, raised = list[Mark](), set[str]()
    for count, turn in enumerate(turns, 1):
        for found in detect_signs(turns[:count], thresholds or Thresholds(), raised):
            told.append(_mark(turn, found))
            raised ^= {found.sign}
    return told


def _mark(turn: ObservedTurn, found: Finding | SettledSign) -> Mark:
    if isinstance(found, SettledSign):
        return Mark(turn.index, found.sign, True, f"{found.sign} is over")
    return Mark(turn.index, found.sign, False, f"{found.sign}: {found.detail}")


def draw(turns: Sequence[ObservedTurn]) -> str:
    """The picture."""
    return "\n".join(_lines(turns)) + "\n"


def _lines(turns: Sequence[ObservedTurn]) -> Iterator[str]:
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(turn: int) -> float:
        return round(_LEFT + wide * turn / (len(turns) - 1), 1)

    def y(confidence: float) -> float:
        return round(_TOP + high * (1 - confidence), 1)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img">'
    )
    yield "<title>Confidence by turn, and what the entropy detector told</title>"
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    for tenth in range(0, 11, 2):
        at = y(tenth / 10)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}" stroke="#e0e0e0"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4}" text-anchor="end">{tenth / 10:g}</text>'
    for turn in turns:
        yield (
            f'<text x="{x(turn.index)}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
            f"{turn.index}</text>"
        )
    points = " ".join(f"{x(turn.index)},{y(turn.confidence)}" for turn in turns)
    yield f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="2"/>'
    for turn in turns:
        yield f'<circle cx="{x(turn.index)}" cy="{y(turn.confidence)}" r="3" fill="#1f6feb"/>'
    for row, mark in enumerate(marks(turns)):
        at, colour = x(mark.turn), _COLOURS[mark.sign]
        dash = ' stroke-dasharray="4 4"' if mark.is_over else ""
        yield (
            f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" '
            f'stroke="{colour}"{dash}/>'
        )
        below = _HEIGHT - _BOTTOM + 38 + 15 * row
        yield (
            f'<text x="{_LEFT}" y="{below}" fill="{colour}">after turn {mark.turn}: '
            f"{escape(mark.text[:120])}</text>"
        )
    yield "</svg>"


if __name__ == "__main__":
    PLOT.write_text(draw(recorded()), encoding="utf-8")
