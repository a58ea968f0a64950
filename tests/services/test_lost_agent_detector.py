"""Entropy detection on a hub: it escalates once, and moves nothing."""

from typing import Any

import msgspec

from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.entropy import Thresholds
from dragoman.core.task_state import MoveTask
from dragoman.ledger.entry import read_line
from dragoman.protocols.aof.render import render_lines
from dragoman.services.lost_agent_detector import EntropyService
from tests.engine.lab import HUMAN
from tests.protocols.saop.hub import DEVELOPER, TASK, SaopHub
from tests.requirements import proves

pytestmark = proves("SAOP-ENTROPY")


def entropy_events(hub: SaopHub) -> list[Any]:
    """Entropy events in the turns of the task."""
    history = hub.store.history(f"turns:{TASK}", 0, 100)
    lines = [read_line(entry.line) for entry in history]
    signals = [line for line in lines if line.event.startswith("entropy.")]
    return [(line.event, msgspec.json.decode(line.body)["kind"]) for line in signals]


def record_turns(hub: SaopHub, first: int, *confidences: float) -> None:
    """Record turns of the developer."""
    for index, confidence in enumerate(confidences, first):
        content = {"action": chr(97 + index), "observation": "fine"}
        hub.turn(index, content=content, metadata={"confidence": confidence})


def test_falling_confidence_is_escalated_once_and_settles() -> None:
    hub = SaopHub()
    service, now = EntropyService(hub.hub, Thresholds(window=4)), hub.clock.now()
    assert (service.name, service.run_once(now)) == ("entropy", 0)
    record_turns(hub, 0, 0.9, 0.8, 0.6, 0.5)
    assert service.run_once(now) == 1
    assert service.run_once(now) == 0
    assert EntropyService(hub.hub, Thresholds(window=4)).run_once(now) == 0, (
        "a restart says nothing new"
    )
    assert hub.task(TASK).status == "in-progress", "it decides nothing"
    record_turns(hub, 4, 0.5, 0.6, 0.6, 0.7)
    assert service.run_once(now) == 1
    assert entropy_events(hub) == [
        ("entropy.escalated", "falling_confidence"),
        ("entropy.settled", "falling_confidence"),
    ]
    lines = [
        msgspec.json.decode(line)
        for entry in hub.store.history(f"turns:{TASK}", 0, 100)
        for line in render_lines(entry, lambda id: id)
    ]
    assert [(line["type"], line["taskId"]) for line in lines] == [
        ("entropy.escalated", TASK),
        ("entropy.settled", TASK),
    ]
    assert lines[0]["payload"]["turns"] == [0, 1, 2, 3]


def test_inferred_confidence_is_not_judged() -> None:
    hub = SaopHub()
    record_turns(hub, 0, 0.95, 0.95, 0.95)
    for index in range(3, 8):
        content = {"action": chr(97 + index), "observation": "fine"}
        captured = {"from": "claude-code", "filled": ["confidence", "estimated_complexity"]}
        hub.turn(index, content=content, metadata={"confidence": 0.5, "captured": captured})

    assert EntropyService(hub.hub, Thresholds()).run_once(hub.clock.now()) == 0
    assert entropy_events(hub) == []


def test_task_without_a_holder_is_not_judged() -> None:
    hub = SaopHub()
    record_turns(hub, 0, 0.9, 0.7, 0.5, 0.3)
    hub.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    hub.do(HUMAN, MoveTask(TASK, "done"))
    assert EntropyService(hub.hub, Thresholds()).run_once(hub.clock.now()) == 0


def test_turns_that_arrive_together_are_judged_one_by_one() -> None:
    hub = SaopHub()
    record_turns(hub, 0, 0.9, 0.8, 0.6, 0.5, 0.5, 0.6, 0.6, 0.7)
    service = EntropyService(hub.hub, Thresholds(window=4))
    assert service.run_once(hub.clock.now()) == 2
    both = [("entropy.escalated", "falling_confidence"), ("entropy.settled", "falling_confidence")]
    assert entropy_events(hub) == both
    assert service.run_once(hub.clock.now()) == 0
    assert EntropyService(hub.hub, Thresholds(window=4)).run_once(hub.clock.now()) == 0


def test_escalation_by_another_hub_leaves_no_turn_unjudged() -> None:
    hub = SaopHub()
    one, other = (EntropyService(hub.hub, Thresholds(window=4)) for _ in range(2))
    now = hub.clock.now()
    record_turns(hub, 0, 0.9, 0.8, 0.6, 0.5)
    assert (one.run_once(now), other.run_once(now)) == (1, 0)
    record_turns(hub, 4, 0.5, 0.6, 0.6, 0.7)
    assert other.run_once(now) == 1
    assert [event for event, _ in entropy_events(hub)] == ["entropy.escalated", "entropy.settled"]


def test_new_attempt_starts_without_earlier_escalations() -> None:
    hub = SaopHub()
    service, now = EntropyService(hub.hub, Thresholds(window=4)), hub.clock.now()
    record_turns(hub, 0, 0.9, 0.8, 0.6, 0.5)
    assert service.run_once(now) == 1
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
    record_turns(hub, 0, 0.95, 0.7, 0.4, 0.1)
    assert hub.task(TASK).attempts == 2
    assert service.run_once(now) == 1
    assert [event for event, _ in entropy_events(hub)] == [
        "entropy.escalated",
        "entropy.escalated",
    ]
