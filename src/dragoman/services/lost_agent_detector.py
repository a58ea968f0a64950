"""Entropy detection: escalates tasks whose last turns show signs of a lost agent.

It moves nothing and asks nobody: an escalation is an entry that people and orchestrators can see.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.entropy import Finding, ObservedTurn, Thresholds, detect_signs
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import turns_stream
from dragoman.core.task_state import Task
from dragoman.core.trace import EscalateEntropy, SettleEntropy, TurnLog, TurnRecorded
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import stream_state
from dragoman.engine.queries.tasks import all_tasks
from dragoman.engine.queries.traces import TurnView, last_turns
from dragoman.ledger.entry import Entry

_MAX_ENTRIES = 400
"""After a start, this many of the last entries of a task's turns are read."""


class EntropyService:
    """Evaluates the turns of every task in progress whenever there are new ones."""

    name = "entropy"

    def __init__(self, hub: Hub, thresholds: Thresholds) -> None:
        self._hub = hub
        self._thresholds = thresholds
        self._evaluated: dict[str, int] = {}
        """Task -> version of its turns stream that was evaluated."""

    def run_once(self, now: int) -> int:
        """Record new findings; their number."""
        del now
        evaluated, recorded = dict[str, int](), 0
        for view in all_tasks(self._hub.store, "in-progress"):
            version, count = self._evaluate(view.task)
            if version:
                evaluated[view.task.id] = version
            recorded += count
        self._evaluated = evaluated
        return recorded

    def _evaluate(self, task: Task) -> tuple[int, int]:
        store = self._hub.store
        row = store.stream(turns_stream(task.id))
        if row is None:
            return 0, 0
        since = self._evaluated.get(task.id, max(0, row.version - _MAX_ENTRIES))
        new_positions = _unevaluated_turns(
            store.history(turns_stream(task.id), since, row.version - since)
        )
        if not new_positions:
            return row.version, 0
        log = stream_state(store, row)
        raised = set(log.raised) if isinstance(log, TurnLog) else set[str]()
        window = self._thresholds.window
        turns = last_turns(store, task.id, task.attempts, window + len(new_positions))
        recorded = 0
        for end in _window_ends(turns, new_positions):
            window_turns = list(map(_turn_sample, turns[max(0, end - window) : end]))
            for finding in detect_signs(window_turns, self._thresholds, raised):
                raised ^= {finding.sign}
                self._record_finding(task.id, finding)
                recorded += 1
        return row.version, recorded

    def _record_finding(self, task: str, finding: Any) -> None:
        if isinstance(finding, Finding):
            command = EscalateEntropy(
                task,
                finding.sign,
                finding.detail,
                finding.turns,
                finding.measured,
                finding.threshold,
            )
        else:
            command = SettleEntropy(task, finding.sign, finding.measured)
        self._hub.submit(HUB_ACTOR, command)


def _unevaluated_turns(entries: Sequence[Entry]) -> frozenset[int]:
    """Positions of turns that no finding follows yet."""
    new = set[int]()
    for entry in entries:
        if entry.event == EVENT_NAMES[TurnRecorded]:
            new.add(entry.position)
        else:  # a finding covers all turns before it
            new.clear()
    return frozenset(new)


def _window_ends(turns: Sequence[TurnView], new: frozenset[int]) -> list[int]:
    """Ends of the windows to evaluate: one behind each new turn, as if it had been evaluated when
    it came, and one behind the last.
    """
    ends = {end for end, turn in enumerate(turns, 1) if turn.position in new}
    return sorted(ends | {len(turns)})


def _turn_sample(turn: TurnView) -> ObservedTurn:
    content: Any = turn.envelope["content"]
    metadata: Any = turn.envelope["metadata"]
    confidence = None if _is_default_confidence(metadata) else metadata["confidence"]
    return ObservedTurn(turn.turn_index, confidence, content["action"], content["observation"])


def _is_default_confidence(metadata: Mapping[str, Any]) -> bool:
    """True if the confidence is a default, because the source of the turn has none."""
    match metadata.get("captured"):
        case {"filled": [*names]}:
            return "confidence" in names
        case _:
            return False
