"""Masking of terminal lines: a private key over several lines is recorded in none."""

from typing import Any

from dragoman.protocols import saop
from tests.protocols.saop.hub import OLGA, SaopHub, event, pulse
from tests.requirements import proves
from tests.text.test_redact import PEM

pytestmark = proves("REDACT-LINES")

LINES = ["x", *PEM.splitlines(), "y"]
MASKED = [False, False, *[True] * (len(LINES) - 4), False, False]


def recorded_lines(hub: SaopHub, session: str = "s-1") -> list[Any]:
    """Return the recorded terminal payloads of a session."""
    return [one["payload"] for one in hub.events(session_id=session)]


def test_private_key_over_several_lines_is_masked_in_each() -> None:
    hub = SaopHub()
    for number, line in enumerate(LINES):
        reply = hub.event(number, pulse(line))
        assert reply["masked"] == MASKED[number]
    assert [one["masked"] for one in recorded_lines(hub)] == MASKED
    assert b"q7Xz" not in b"".join(entry.line for entry in hub.store.entries(0, 100))
    assert [one["line"] for one in recorded_lines(hub)[:2]] == LINES[:2]
    assert [one["line"] for one in recorded_lines(hub)[-2:]] == LINES[-2:]


def test_second_hub_continues_masking_a_private_key() -> None:
    choices = saop.Choices(tails=saop.MemoryCarryOver())
    first = SaopHub(choices)
    second = SaopHub(choices, first)
    for number, line in enumerate(LINES):
        (first if number < 3 else second).event(number, pulse(line))
    assert [one["masked"] for one in recorded_lines(second)] == MASKED


def test_masking_is_separate_per_terminal_and_unchanged_by_repeats() -> None:
    hub = SaopHub()
    for number, line in enumerate(LINES[:4]):
        hub.event(number, pulse(line))
    hub.event(90, pulse(LINES[3]), session="s-2")
    hub.call("saop.event", event(91, pulse(LINES[-2])), OLGA)
    hub.event(0, pulse(LINES[0]))
    for number, line in enumerate(LINES[4:], start=4):
        hub.event(number, pulse(line))
    mine = [one for one in recorded_lines(hub) if one["line"] != LINES[-2]]
    assert [one["masked"] for one in mine] == [*MASKED[:-2], False]
    assert not recorded_lines(hub, "s-2")[0]["masked"], "nothing has begun there"
