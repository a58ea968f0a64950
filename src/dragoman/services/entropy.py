"""The entropy duty: looks at the last turns of all work in progress, and tells what they look like.

It moves nothing and asks nobody: an escalation is an entry that people and orchestrators can see.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import EscalateEntropy, SettleEntropy
from dragoman.core.events import EVENT_NAMES, TurnRecorded
from dragoman.core.ids import turns_stream
from dragoman.core.rules.entropy import Finding, Seen, Thresholds, judge
from dragoman.core.states.task import Task
from dragoman.core.states.trace import TurnLog
from dragoman.engine.hub import Hub
from dragoman.engine.ports import BoardQuery
from dragoman.engine.reads.ask import list_tasks, state_of
from dragoman.engine.reads.turns import ShownTurn, last_turns
from dragoman.ledger.entry import Entry

_PAGE = 200
_MOST_AT_ONCE = 400
"""After a start, this many of the last entries of a task's turns are read."""


class Entropy:
    """Evaluates the turns of every task in progress whenever there are new ones."""

    name = "entropy"

    def __init__(self, hub: Hub, thresholds: Thresholds) -> None:
        self._hub = hub
        self._thresholds = thresholds
        self._judged: dict[str, int] = {}
        """Task -> version of its turns stream that was evaluated."""

    def run_once(self, now: int) -> int:
        """Record new findings; their number."""
        del now
        judged, told = dict[str, int](), 0
        for task in self._in_progress():
            version, count = self._judge(task)
            if version:
                judged[task.id] = version
            told += count
        self._judged = judged
        return told

    def _judge(self, task: Task) -> tuple[int, int]:
        store = self._hub.store
        row = store.stream(turns_stream(task.id))
        if row is None:
            return 0, 0
        since = self._judged.get(task.id, max(0, row.version - _MOST_AT_ONCE))
        new = _new_turns(store.history(turns_stream(task.id), since, row.version - since))
        if not new:
            return row.version, 0
        log = state_of(store, row)
        raised = set(log.raised) if isinstance(log, TurnLog) else set[str]()
        window = self._thresholds.window
        turns = last_turns(store, task.id, task.attempts, window + len(new))
        told = 0
        for end in _ends(turns, new):
            last = list(map(_seen, turns[max(0, end - window) : end]))
            for one in judge(last, self._thresholds, raised):
                raised ^= {one.sign}
                self._tell(task.id, one)
                told += 1
        return row.version, told

    def _tell(self, task: str, found: Any) -> None:
        if isinstance(found, Finding):
            told = EscalateEntropy(
                task, found.sign, found.detail, found.turns, found.measured, found.threshold
            )
        else:
            told = SettleEntropy(task, found.sign, found.measured)
        self._hub.do(SYSTEM, told)

    def _in_progress(self) -> Iterator[Task]:
        query = BoardQuery(status="in-progress", limit=_PAGE)
        while page := list_tasks(self._hub.store, query):
            yield from (view.task for view in page)
            query = BoardQuery(status="in-progress", before=page[-1].number, limit=_PAGE)


def _new_turns(entries: Sequence[Entry]) -> frozenset[int]:
    """Positions of turns that no finding follows yet."""
    new = set[int]()
    for entry in entries:
        if entry.event == EVENT_NAMES[TurnRecorded]:
            new.add(entry.position)
        else:  # a finding covers all turns before it
            new.clear()
    return frozenset(new)


def _ends(turns: Sequence[ShownTurn], new: frozenset[int]) -> list[int]:
    """Ends of the windows to evaluate: one behind each new turn, as if it had been evaluated when
    it came, and one behind the last.
    """
    ends = {end for end, turn in enumerate(turns, 1) if turn.position in new}
    return sorted(ends | {len(turns)})


def _seen(turn: ShownTurn) -> Seen:
    content: Any = turn.envelope["content"]
    metadata: Any = turn.envelope["metadata"]
    confidence = None if _is_filler(metadata) else metadata["confidence"]
    return Seen(turn.turn_index, confidence, content["action"], content["observation"])


def _is_filler(metadata: Mapping[str, Any]) -> bool:
    """True if the confidence is a default, because the source of the turn has none."""
    match metadata.get("captured"):
        case {"filled": [*names]}:
            return "confidence" in names
        case _:
            return False
