"""Signs of entropy in turns: when they are raised, and when they settle."""

import pytest
from msgspec.structs import replace

from dragoman.core.entropy import (
    Finding,
    ObservedTurn,
    SettledSign,
    Thresholds,
    detect_signs,
    digest_text,
    extract_error,
    find_final_loop,
    fit_slope,
)
from tests.requirements import proves

pytestmark = proves("SAOP-ENTROPY")

DEFAULTS = Thresholds()


def turns_with(
    *confidences: float, action: str = "", observation: str = "ok"
) -> list[ObservedTurn]:
    """Turns of these confidences, each with an action of its own unless one is given."""
    return [
        ObservedTurn(index, confidence, action or chr(97 + index), observation)
        for index, confidence in enumerate(confidences)
    ]


def test_falling_confidence_is_found_with_its_turns() -> None:
    (found,) = detect_signs(turns_with(0.9, 0.8, 0.7, 0.6), DEFAULTS, ())

    assert found == Finding(
        "falling_confidence",
        "confidence fell from 0.9 in turn 0 to 0.6 in turn 3: by 0.1 a turn",
        (0, 1, 2, 3),
        0.1,
        0.05,
    )


@pytest.mark.parametrize(
    "confidences",
    [(0.9, 0.8, 0.7), (0.9, 0.9, 0.88, 0.9), (0.5, 0.6, 0.7, 0.8), (0.9,), ()],
)
def test_few_or_steady_turns_give_no_finding(confidences: tuple[float, ...]) -> None:
    assert detect_signs(turns_with(*confidences), DEFAULTS, ()) == []


def test_turns_without_confidence_are_ignored() -> None:
    without = [ObservedTurn(n, None, chr(97 + n), "ok") for n in range(3, 8)]
    assert detect_signs([*turns_with(0.95, 0.95, 0.95), *without], DEFAULTS, ()) == []
    falling = [ObservedTurn(n, 0.9 - n / 10, "a", "b") for n in (4, 5, 6, 7)]
    (found,) = detect_signs([without[0], *falling], replace(DEFAULTS, max_cycles=9), ())
    assert isinstance(found, Finding)
    assert found.turns == (4, 5, 6, 7)


def test_error_is_found_at_either_end_of_long_text() -> None:
    assert extract_error("compiling x\n" * 9_000 + "ERROR: boom 7") == "error: boom #"
    assert extract_error("ERROR: boom 7\n" + "compiling x\n" * 9_000) == "error: boom #"


def test_value_near_threshold_is_reported_once() -> None:
    raised = ("falling_confidence",)
    falling, wavering = turns_with(0.9, 0.8, 0.7, 0.6), turns_with(0.9, 0.88, 0.85, 0.83)

    assert detect_signs(falling, DEFAULTS, raised) == []
    assert detect_signs(wavering, DEFAULTS, ()) == []
    assert detect_signs(wavering, DEFAULTS, raised) == [], "it is not over yet"
    assert detect_signs(turns_with(0.8, 0.8, 0.8, 0.8), DEFAULTS, raised) == [
        SettledSign("falling_confidence", 0.0)
    ]


def test_errors_that_differ_in_numbers_are_the_same() -> None:
    turns = [
        ObservedTurn(n, 0.9, f"try {chr(97 + n)}", f"ran it\nError: no file /tmp/x{n} (0x7f{n}a)")
        for n in range(3)
    ]
    (found,) = detect_signs(turns, DEFAULTS, ())

    assert isinstance(found, Finding)
    assert (found.sign, found.turns, found.measured) == ("repeated_error", (0, 1, 2), 3)
    assert "error: no file /tmp/x# (#)" in found.detail
    assert detect_signs(turns[:2], DEFAULTS, ("repeated_error",)) == []
    assert detect_signs(turns[:1], DEFAULTS, ("repeated_error",)) == [
        SettledSign("repeated_error", 1)
    ]
    assert extract_error("all is well\nnothing to see") == ""
    for fine in ("10 passed, 0 failed", "no error found here", "errors: 0, failures=0"):
        assert extract_error(fine) == ""
    assert extract_error("1 failed, no errors") == "# failed, no errors"


def test_different_actions_are_no_loop() -> None:
    turns = [ObservedTurn(n, 0.9, f"read page {n} of the book", f"it says {n}") for n in range(4)]
    assert detect_signs(turns, DEFAULTS, ()) == []


def test_loop_is_reported_after_two_rounds() -> None:
    turns = [ObservedTurn(n, 0.9, "AB"[n % 2], f"saw {n}") for n in range(5)]
    found = detect_signs(turns, DEFAULTS, ())

    assert isinstance(found[0], Finding)
    assert (found[0].sign, found[0].turns, found[0].measured) == ("loop", (1, 2, 3, 4), 2)
    assert "B → A" in found[0].detail
    assert detect_signs([*turns, ObservedTurn(5, 0.9, "C", "new")], DEFAULTS, ("loop",)) == [
        SettledSign("loop", 1)
    ]
    assert detect_signs(turns, DEFAULTS, ("loop",)) == []


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("", (0, 1)),
        ("a", (0, 1)),
        ("abab", (2, 2)),
        ("xababab", (2, 3)),
        ("abcabc", (3, 2)),
        ("aaaa", (2, 2)),
        ("abcd", (0, 1)),
        ("abcdabcd", (4, 2)),
        ("ababc", (0, 1)),
    ],
)
def test_loop_is_the_shortest_period_at_the_end(row: str, found: tuple[int, int]) -> None:
    assert find_final_loop(list(row)) == found


def test_window_limits_turns_and_digests_ignore_numbers() -> None:
    turns = turns_with(0.9, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6)

    assert detect_signs(turns, Thresholds(window=4), ()) == []
    assert fit_slope([1.0, 2.0, 3.0]) == 1.0
    assert digest_text("Ran 12 tests\n in 3s") == digest_text("ran 99  tests in 7s")
    assert digest_text("a") != digest_text("b")
