"""The entropy duty on a hub: it tells what it sees, once, and moves nothing."""

from typing import Any

import msgspec

from dragoman.core.commands import ClaimTask, MoveTask, ReportOutcome
from dragoman.core.rules.entropy import Thresholds
from dragoman.ledger.entry import read_line
from dragoman.protocols.aof.render import render_lines
from dragoman.services.entropy import Entropy
from tests.engine.lab import HUMAN
from tests.protocols.saop.hub import DEVELOPER, TASK, SaopHub
from tests.requirements import proves

pytestmark = proves("SAOP-ENTROPY")


def told(desk: SaopHub) -> list[Any]:
    """What was said about turns."""
    kept = desk.store.history(f"turns:{TASK}", 0, 100)
    lines = [read_line(entry.line) for entry in kept]
    signs = [line for line in lines if line.event.startswith("entropy.")]
    return [(line.event, msgspec.json.decode(line.body)["kind"]) for line in signs]


def show(desk: SaopHub, first: int, *confidences: float) -> None:
    """Turns of the developer."""
    for index, confidence in enumerate(confidences, first):
        said = {"action": chr(97 + index), "observation": "fine"}
        desk.turn(index, content=said, metadata={"confidence": confidence})


def test_falling_confidence_is_told_once_and_settles() -> None:
    desk = SaopHub()
    duty, now = Entropy(desk.hub, Thresholds(window=4)), desk.clock.now()
    assert (duty.name, duty.run_once(now)) == ("entropy", 0)
    show(desk, 0, 0.9, 0.8, 0.6, 0.5)
    assert duty.run_once(now) == 1
    assert duty.run_once(now) == 0
    assert Entropy(desk.hub, Thresholds(window=4)).run_once(now) == 0, "a restart says nothing new"
    assert desk.task(TASK).status == "in-progress", "it decides nothing"
    show(desk, 4, 0.5, 0.6, 0.6, 0.7)
    assert duty.run_once(now) == 1
    assert told(desk) == [
        ("entropy.escalated", "falling_confidence"),
        ("entropy.settled", "falling_confidence"),
    ]
    lines = [
        msgspec.json.decode(line)
        for entry in desk.store.history(f"turns:{TASK}", 0, 100)
        for line in render_lines(entry, lambda id: id)
    ]
    assert [(line["type"], line["taskId"]) for line in lines] == [
        ("entropy.escalated", TASK),
        ("entropy.settled", TASK),
    ]
    assert lines[0]["payload"]["turns"] == [0, 1, 2, 3]


def test_confidence_that_nobody_stated_is_not_judged() -> None:
    desk = SaopHub()
    show(desk, 0, 0.95, 0.95, 0.95)
    for index in range(3, 8):
        said = {"action": chr(97 + index), "observation": "fine"}
        captured = {"from": "claude-code", "filled": ["confidence", "estimated_complexity"]}
        desk.turn(index, content=said, metadata={"confidence": 0.5, "captured": captured})

    assert Entropy(desk.hub, Thresholds()).run_once(desk.clock.now()) == 0
    assert told(desk) == []


def test_work_that_nobody_does_is_not_judged() -> None:
    desk = SaopHub()
    show(desk, 0, 0.9, 0.7, 0.5, 0.3)
    desk.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    desk.do(HUMAN, MoveTask(TASK, "done"))
    assert Entropy(desk.hub, Thresholds()).run_once(desk.clock.now()) == 0


def test_turns_that_come_all_at_once_are_judged_one_by_one() -> None:
    desk = SaopHub()
    show(desk, 0, 0.9, 0.8, 0.6, 0.5, 0.5, 0.6, 0.6, 0.7)
    duty = Entropy(desk.hub, Thresholds(window=4))
    assert duty.run_once(desk.clock.now()) == 2
    both = [("entropy.escalated", "falling_confidence"), ("entropy.settled", "falling_confidence")]
    assert told(desk) == both
    assert duty.run_once(desk.clock.now()) == 0
    assert Entropy(desk.hub, Thresholds(window=4)).run_once(desk.clock.now()) == 0


def test_what_another_hub_told_first_leaves_no_turn_unjudged() -> None:
    desk = SaopHub()
    one, other = (Entropy(desk.hub, Thresholds(window=4)) for _ in range(2))
    now = desk.clock.now()
    show(desk, 0, 0.9, 0.8, 0.6, 0.5)
    assert (one.run_once(now), other.run_once(now)) == (1, 0)
    show(desk, 4, 0.5, 0.6, 0.6, 0.7)
    assert other.run_once(now) == 1
    assert [event for event, _ in told(desk)] == ["entropy.escalated", "entropy.settled"]


def test_another_attempt_begins_without_what_was_told_of_the_last_one() -> None:
    desk = SaopHub()
    duty, now = Entropy(desk.hub, Thresholds(window=4)), desk.clock.now()
    show(desk, 0, 0.9, 0.8, 0.6, 0.5)
    assert duty.run_once(now) == 1
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
    show(desk, 0, 0.95, 0.7, 0.4, 0.1)
    assert desk.task(TASK).attempts == 2
    assert duty.run_once(now) == 1
    assert [event for event, _ in told(desk)] == ["entropy.escalated", "entropy.escalated"]
