"""Makes turns and events of steps, in the shapes of SAOP.

A turn is one answer of the model: what it thought, what it said and wanted to do, and what it had
observed before. A record says neither how sure an agent was nor how hard its work is: both get the
neutral value of a table, and the turn names them under `metadata.captured.filled`. An agent that
writes `Confidence: 0.8` on a line of its own is taken at its word.
"""

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dragoman.core.moments import to_rfc3339
from dragoman.protocols.saop.capture.steps import (
    Called,
    Ended,
    ModelStep,
    Observed,
    Planned,
    Returned,
    Spoke,
    Step,
    Thought,
)
from dragoman.text.uuid8 import uuid8

FILLED: Final = {"confidence": 0.5, "estimated_complexity": "medium"}
"""Required fields of a turn that no record states -> their neutral values."""

_VERSION: Final = "1.0.0"
_CHUNK: Final = 32_768
"""Limit of one thought event: an event must be shorter than a turn."""
_WORD: Final = 4_096
"""A chunk may end this much earlier so as not to cut a word, which may be a secret of the hub."""
_BETWEEN: Final = "\n\n"
"""Separator of two thoughts of one turn, in the turn and in the events alike."""
_MOST_ARGUMENTS: Final = 131_072
_MOST_LINES: Final = 200
"""Limit of terminal events for one output; the turn has all lines."""
_LONGEST_LINE: Final = 16_384
_CONFIDENCE: Final = re.compile(
    r"^\W{0,4}confidence\W{1,4}(1(?:\.0{1,6})?|0(?:\.[0-9]{1,6})?|[0-9]{1,2}%|100%)\W{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
_TERMINALS: Final = frozenset(
    {"bash", "shell", "local_shell", "shell_command", "exec_command", "terminal"}
)
"""Tools whose output is that of a terminal."""

_encode = msgspec.json.Encoder().encode


class About(Struct, frozen=True):
    """Task, agent and session that a record is imported for, which it does not state itself."""

    task: str
    agent: str = "developer"
    """The agent's SAOP role."""
    session: str = ""
    origin: str = ""
    """Format of the record."""
    own: str = ""
    """Session name within the record, by which a second import recognizes it."""


class Captured(Struct, frozen=True):
    """A message to send."""

    kind: Literal["turn", "event"]
    message: dict[str, Any]


class _Turn(Struct):
    """The turn being built."""

    answer: str
    at: int
    observation: str
    thoughts: list[str] = []
    untold: list[tuple[str, str]] = []
    """Thoughts that are not yet sent as events, each with its position in the record."""
    is_thought_told: bool = False
    actions: list[str] = []
    has_spoken: bool = False
    """The last step was text."""
    has_ended: bool = False
    """The record states that the answer is complete."""


class _Call(Struct, frozen=True):
    """A tool call that has not ended."""

    tool: str
    since: int
    turn: int


class Scribe:
    """Builds turns and events from steps, given in their order."""

    def __init__(self, about: About, now: int, first_turn: int) -> None:
        self._about = about
        self._at = now
        self._index = first_turn
        self._turn: _Turn | None = None
        self._seen: list[str] = []
        """Observations since the turn began."""
        self._open: dict[str, _Call] = {}
        self._take: dict[type[Step], Callable[[Any, str], Iterator[Captured]]] = {
            Thought: self._thought,
            Spoke: self._spoke,
            Planned: self._planned,
            Called: self._called,
            Returned: self._returned,
            Observed: self._observed,
            Ended: self._ended,
        }

    def take(self, step: Step, place: str) -> Iterator[Captured]:
        """Add a step at this position of the record, and yield the messages that are complete."""
        if step.at is not None:
            self._at = step.at
        if isinstance(step, ModelStep):
            yield from self._model(step)
        yield from self._take[type(step)](step, place)

    @property
    def is_resting(self) -> bool:
        """Tell whether the last turn looks finished: it ended with text, and no tool runs.

        A tool of an earlier turn may never end, because its agent was killed.
        """
        turn = self._turn
        runs = any(call.turn == self._index for call in self._open.values())
        return turn is None or (turn.has_spoken and turn.has_ended and not runs)

    def close(self) -> Iterator[Captured]:
        """Yield the turn that is still open, if any."""
        turn = self._turn
        if turn is None:
            return
        yield from self._told_thought()
        self._turn = None
        index, self._index = self._index, self._index + 1
        yield Captured("turn", self._envelope(turn, index))

    # Steps of the model

    def _model(self, step: ModelStep) -> Iterator[Captured]:
        turn = self._turn
        if turn is not None and not self._goes_on(turn, step):
            yield from self.close()
        if self._turn is None:
            self._turn = _Turn(step.answer, self._at, "\n\n".join(self._seen))
            self._seen = []
        self._turn.has_spoken = isinstance(step, Spoke)
        self._turn.has_ended = False

    def _goes_on(self, turn: _Turn, step: ModelStep) -> bool:
        if turn.answer or step.answer:
            return turn.answer == step.answer
        return not self._seen

    def _thought(self, step: Thought, place: str) -> Iterator[Captured]:
        turn = self._turn
        assert turn is not None
        if step.text:
            between = _BETWEEN if turn.thoughts else ""
            turn.untold.append((between + step.text, place))
            turn.thoughts.append(step.text)
        yield from ()

    def _told_thought(self) -> Iterator[Captured]:
        """Yield the thought of the turn as events, before its first tool call or at its end.

        Later thoughts are in the turn only, because a thought has one final chunk.
        """
        turn = self._turn
        if turn is None or turn.is_thought_told or not turn.untold:
            return
        turn.is_thought_told = True
        chunks = [
            (chunk, f"{place}.{start}")
            for text, place in turn.untold
            for start, chunk in _chunks(text)
        ]
        *first, (last, end) = chunks
        for chunk, place in first:
            yield self._thought_event(chunk, place, is_final=False)
        yield self._thought_event(last, f"{end}.final", is_final=True)

    def _spoke(self, step: Spoke, _: str) -> Iterator[Captured]:
        assert self._turn is not None
        if step.text:
            self._turn.actions.append(step.text)
        yield from ()

    def _planned(self, step: Planned, _: str) -> Iterator[Captured]:
        assert self._turn is not None
        self._turn.actions.append(f"{step.tool} {_encode(step.arguments).decode()}")
        yield from self._told_thought()

    def _ended(self, _: Ended, __: str) -> Iterator[Captured]:
        if self._turn is not None:
            self._turn.has_ended = True
        yield from ()

    # Steps of tools and people

    def _called(self, step: Called, place: str) -> Iterator[Captured]:
        yield from self._told_thought()
        self._open[step.call] = _Call(step.tool, self._at, self._index)
        yield self._event(
            place,
            type="TOOL_LIFECYCLE_INVOKED",
            call_id=step.call,
            tool=step.tool,
            arguments=_within(step.arguments),
            timestamp=to_rfc3339(self._at),
        )

    def _returned(self, step: Returned, place: str) -> Iterator[Captured]:
        never_seen = _Call(step.tool or "unknown", self._at, self._index)
        call = self._open.pop(step.call, never_seen)
        tool, since = call.tool, call.since
        if step.has_run and tool.lower() in _TERMINALS:
            yield from self._lines(step.output, place)
        took = max(0, self._at - since) if step.duration_ms is None else step.duration_ms
        yield self._event(
            place,
            type="TOOL_LIFECYCLE_COMPLETED",
            call_id=step.call,
            tool=tool,
            status=step.status,
            duration_ms=took,
            timestamp=to_rfc3339(self._at),
        )
        if step.output:
            self._seen.append(f"{tool}: {step.output}")

    def _observed(self, step: Observed, _: str) -> Iterator[Captured]:
        self._seen.append(step.text)
        yield from ()

    def _lines(self, output: str, place: str) -> Iterator[Captured]:
        lines = output.splitlines()
        for number, line in enumerate(lines[:_MOST_LINES]):
            yield self._pulse(line[:_LONGEST_LINE], f"{place}.{number}")
        if len(lines) > _MOST_LINES:
            more = f"… {len(lines) - _MOST_LINES} more lines: the next turn has all of them"
            yield self._pulse(more, f"{place}.more")

    # Messages

    def _pulse(self, line: str, place: str) -> Captured:
        at = to_rfc3339(self._at)
        return self._event(place, type="SANDBOX_PULSE", line=line, masked=False, timestamp=at)

    def _thought_event(self, chunk: str, place: str, *, is_final: bool) -> Captured:
        return self._event(
            place,
            type="THOUGHT_STREAM",
            agent_id=self._about.agent,
            turn_index=self._index,
            chunk=chunk,
            is_final=is_final,
        )

    def _event(self, place: str, **payload: Any) -> Captured:
        about = self._about
        # Records of one session here share positions, so the id includes the record's own session.
        named = "\0".join((about.task, about.session, about.own, place, payload["type"]))
        return Captured(
            "event",
            {
                "event_id": uuid8(blake2b(named.encode(), digest_size=16).digest()),
                "session_id": self._about.session,
                "payload": payload,
            },
        )

    def _envelope(self, turn: _Turn, index: int) -> dict[str, Any]:
        about, said = self._about, _confidence("\n".join(turn.actions))
        stated = {} if said is None else {"confidence": said}
        return {
            "turn_index": index,
            "agent_id": about.agent,
            "role": about.agent,
            "content": {
                "thought": _BETWEEN.join(turn.thoughts),
                "action": "\n\n".join(turn.actions),
                "observation": turn.observation,
            },
            "metadata": {
                "version": _VERSION,
                "task_id": about.task,
                "timestamp": to_rfc3339(turn.at),
                **FILLED,
                **stated,
                "session_id": self._about.session,
                "captured": {
                    "from": about.origin,
                    **({"session": about.own} if about.own else {}),
                    "filled": [name for name in FILLED if name not in stated],
                },
            },
        }


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split a text at word ends, and yield each chunk with its start."""
    start = 0
    while start < len(text):
        end = start + _CHUNK
        if end < len(text):
            last = max(text.rfind(blank, end - _WORD, end) for blank in " \n\t")
            end = last + 1 or end
        yield start, text[start:end]
        start = end


def _confidence(said: str) -> float | None:
    """Parse the confidence that the agent states; the last statement counts."""
    found = _CONFIDENCE.findall(said)
    if not found:
        return None
    last: str = found[-1]
    return int(last[:-1]) / 100 if last.endswith("%") else float(last)


def _within(arguments: Any) -> Any:
    """Replace arguments that exceed the size of an event; the turn's action has all of them."""
    size = len(_encode(arguments))
    if size <= _MOST_ARGUMENTS:
        return arguments
    return {"left_out": f"{size} bytes: the turn's action has them"}
