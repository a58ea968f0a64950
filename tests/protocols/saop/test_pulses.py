"""Lines of a terminal: a private key that goes over several of them is on record in none."""

from typing import Any

from dragoman.protocols import saop
from tests.protocols.saop.desk import OLGA, Desk, event, pulse
from tests.requirements import proves
from tests.text.test_redact import PEM

pytestmark = proves("REDACT-LINES")

LINES = ["x", *PEM.splitlines(), "y"]
MASKED = [False, False, *[True] * (len(LINES) - 4), False, False]


def told(desk: Desk, session: str = "s-1") -> list[Any]:
    """What is on record of the terminal of a session."""
    return [one["payload"] for one in desk.events(session_id=session)]


def test_a_key_in_lines_of_their_own_is_masked_in_each() -> None:
    desk = Desk()
    for number, line in enumerate(LINES):
        reply = desk.event(number, pulse(line))
        assert reply["masked"] == MASKED[number]
    assert [one["masked"] for one in told(desk)] == MASKED
    assert b"q7Xz" not in b"".join(entry.line for entry in desk.store.entries(0, 100))
    assert [one["line"] for one in told(desk)[:2]] == LINES[:2]
    assert [one["line"] for one in told(desk)[-2:]] == LINES[-2:]


def test_another_hub_goes_on_where_the_first_has_stopped() -> None:
    choices = saop.Choices(tails=saop.ShortTails())
    first = Desk(choices)
    second = Desk(choices, first)
    for number, line in enumerate(LINES):
        (first if number < 3 else second).event(number, pulse(line))
    assert [one["masked"] for one in told(second)] == MASKED


def test_terminals_of_others_are_others_and_a_repeat_changes_nothing() -> None:
    desk = Desk()
    for number, line in enumerate(LINES[:4]):
        desk.event(number, pulse(line))
    desk.event(90, pulse(LINES[3]), session="s-2")
    desk.call("saop.event", event(91, pulse(LINES[-2])), OLGA)
    desk.event(0, pulse(LINES[0]))
    for number, line in enumerate(LINES[4:], start=4):
        desk.event(number, pulse(line))
    mine = [one for one in told(desk) if one["line"] != LINES[-2]]
    assert [one["masked"] for one in mine] == [*MASKED[:-2], False]
    assert not told(desk, "s-2")[0]["masked"], "nothing has begun there"
