"""Build SAOP turns and events from a session record, line by line.

A turn is one answer of the model: its thoughts, its text and tool requests, and what was observed
before. A record states neither the agent's confidence nor the complexity of its work: both get a
neutral value from a table, and the turn names them under `metadata.captured.filled`. A line
`Confidence: 0.8` that the agent itself writes is used instead.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.timestamps import to_rfc3339
from dragoman.text.keyed_digest import uuid8
from dragoman_traces.claude_code import ClaudeCode
from dragoman_traces.codex import Codex
from dragoman_traces.otel import OpenTelemetry
from dragoman_traces.steps import (
    AgentStep,
    AnswerEnd,
    AnswerText,
    ModelStep,
    Observation,
    Record,
    Thought,
    ToolEnd,
    ToolRequest,
    ToolStart,
    as_record,
)

# --- turns and events from steps --------------------------------------------------------------

NEUTRAL_VALUES: Final = {"confidence": 0.5, "estimated_complexity": "medium"}
"""Required fields of a turn that no record states -> their neutral values."""

_VERSION: Final = "1.0.0"

_MAX_CHUNK_CHARS: Final = 32_768
"""Limit of one thought event: an event must be shorter than a turn."""

_MAX_WORD_CHARS: Final = 4_096
"""A chunk may end this much earlier so as not to cut a word."""

_THOUGHT_SEPARATOR: Final = "\n\n"
"""Separator of two thoughts of one turn, in the turn and in the events alike."""

_MAX_ARGUMENT_BYTES: Final = 131_072

_MAX_LINES: Final = 200
"""Limit of terminal events for one output; the turn has all lines."""

_MAX_LINE_CHARS: Final = 16_384

_CONFIDENCE: Final = re.compile(
    r"^\W{0,4}confidence\W{1,4}(1(?:\.0{1,6})?|0(?:\.[0-9]{1,6})?|[0-9]{1,2}%|100%)\W{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)

_TERMINAL_TOOLS: Final = frozenset(
    {"bash", "shell", "local_shell", "shell_command", "exec_command", "terminal"}
)
"""Tools whose output is that of a terminal."""

_encode = msgspec.json.Encoder().encode


class CaptureTarget(Struct, frozen=True):
    """Task, agent and session that a record is imported for, which it does not state itself."""

    task: str
    agent: str = "developer"
    """The agent's SAOP role."""
    session: str = ""
    origin: str = ""
    """Format of the record."""
    own: str = ""
    """Session name within the record, by which a second import recognizes it."""


class CapturedMessage(Struct, frozen=True):
    """A message to send."""

    kind: Literal["turn", "event"]
    message: dict[str, Any]


class _OpenTurn(Struct):
    """The turn being built."""

    answer: str
    at: int
    observation: str
    thoughts: list[str] = []
    unsent_thoughts: list[tuple[str, str]] = []
    """Thoughts that are not yet sent as events, each with its position in the record."""
    is_thought_sent: bool = False
    actions: list[str] = []
    has_spoken: bool = False
    """The last step was text."""
    has_ended: bool = False
    """The record states that the answer is complete."""


class _OpenCall(Struct, frozen=True):
    """A tool call that has not ended."""

    tool: str
    started_at: int
    turn_index: int


class TraceBuilder:
    """Builds turns and events from steps, given in their order."""

    def __init__(self, target: CaptureTarget, now: int, first_turn: int) -> None:
        self._target = target
        self._now = now
        self._turn_index = first_turn
        self._turn: _OpenTurn | None = None
        self._observations: list[str] = []
        """Observations since the turn began."""
        self._open_calls: dict[str, _OpenCall] = {}
        self._handlers: dict[type[AgentStep], Callable[[Any, str], Iterator[CapturedMessage]]] = {
            Thought: self._add_thought,
            AnswerText: self._add_text,
            ToolRequest: self._add_tool_request,
            ToolStart: self._start_tool,
            ToolEnd: self._end_tool,
            Observation: self._add_observation,
            AnswerEnd: self._end_answer,
        }

    def add(self, step: AgentStep, place: str) -> Iterator[CapturedMessage]:
        """Add a step at this position of the record, and yield the messages that are complete."""
        if step.at is not None:
            self._now = step.at
        if isinstance(step, ModelStep):
            yield from self._prepare_turn(step)
        yield from self._handlers[type(step)](step, place)

    @property
    def is_idle(self) -> bool:
        """Tell whether the last turn looks finished: it ended with text, and no tool runs.

        A tool of an earlier turn may never end, because its agent was killed.
        """
        turn = self._turn
        is_tool_running = any(
            call.turn_index == self._turn_index for call in self._open_calls.values()
        )
        return turn is None or (turn.has_spoken and turn.has_ended and not is_tool_running)

    def close(self) -> Iterator[CapturedMessage]:
        """Yield the turn that is still open, if any."""
        turn = self._turn
        if turn is None:
            return
        yield from self._flush_thought()
        self._turn = None
        index, self._turn_index = self._turn_index, self._turn_index + 1
        yield CapturedMessage("turn", self._turn_envelope(turn, index))

    # Steps of the model

    def _prepare_turn(self, step: ModelStep) -> Iterator[CapturedMessage]:
        turn = self._turn
        if turn is not None and not self._continues_turn(turn, step):
            yield from self.close()
        if self._turn is None:
            self._turn = _OpenTurn(step.answer, self._now, "\n\n".join(self._observations))
            self._observations = []
        self._turn.has_spoken = isinstance(step, AnswerText)
        self._turn.has_ended = False

    def _continues_turn(self, turn: _OpenTurn, step: ModelStep) -> bool:
        if turn.answer or step.answer:
            return turn.answer == step.answer
        return not self._observations

    def _add_thought(self, step: Thought, place: str) -> Iterator[CapturedMessage]:
        turn = self._turn
        assert turn is not None
        if step.text:
            separator = _THOUGHT_SEPARATOR if turn.thoughts else ""
            turn.unsent_thoughts.append((separator + step.text, place))
            turn.thoughts.append(step.text)
        yield from ()

    def _flush_thought(self) -> Iterator[CapturedMessage]:
        """Yield the thought of the turn as events, before its first tool call or at its end.

        Later thoughts are in the turn only, because a thought has one final chunk.
        """
        turn = self._turn
        if turn is None or turn.is_thought_sent or not turn.unsent_thoughts:
            return
        turn.is_thought_sent = True
        chunks = [
            (chunk, f"{place}.{start}")
            for text, place in turn.unsent_thoughts
            for start, chunk in _split_chunks(text)
        ]
        *earlier, (last, end) = chunks
        for chunk, place in earlier:
            yield self._thought_event(chunk, place, is_final=False)
        yield self._thought_event(last, f"{end}.final", is_final=True)

    def _add_text(self, step: AnswerText, _: str) -> Iterator[CapturedMessage]:
        assert self._turn is not None
        if step.text:
            self._turn.actions.append(step.text)
        yield from ()

    def _add_tool_request(self, step: ToolRequest, _: str) -> Iterator[CapturedMessage]:
        assert self._turn is not None
        self._turn.actions.append(f"{step.tool} {_encode(step.arguments).decode()}")
        yield from self._flush_thought()

    def _end_answer(self, _: AnswerEnd, __: str) -> Iterator[CapturedMessage]:
        if self._turn is not None:
            self._turn.has_ended = True
        yield from ()

    # Steps of tools and people

    def _start_tool(self, step: ToolStart, place: str) -> Iterator[CapturedMessage]:
        yield from self._flush_thought()
        self._open_calls[step.call_id] = _OpenCall(step.tool, self._now, self._turn_index)
        yield self._event(
            place,
            type="TOOL_LIFECYCLE_INVOKED",
            call_id=step.call_id,
            tool=step.tool,
            arguments=_limit_arguments(step.arguments),
            timestamp=to_rfc3339(self._now),
        )

    def _end_tool(self, step: ToolEnd, place: str) -> Iterator[CapturedMessage]:
        unknown_call = _OpenCall(step.tool or "unknown", self._now, self._turn_index)
        call = self._open_calls.pop(step.call_id, unknown_call)
        tool, started_at = call.tool, call.started_at
        if step.has_run and tool.lower() in _TERMINAL_TOOLS:
            yield from self._terminal_events(step.output, place)
        duration_ms = (
            max(0, self._now - started_at) if step.duration_ms is None else step.duration_ms
        )
        yield self._event(
            place,
            type="TOOL_LIFECYCLE_COMPLETED",
            call_id=step.call_id,
            tool=tool,
            status=step.status,
            duration_ms=duration_ms,
            timestamp=to_rfc3339(self._now),
        )
        if step.output:
            self._observations.append(f"{tool}: {step.output}")

    def _add_observation(self, step: Observation, _: str) -> Iterator[CapturedMessage]:
        self._observations.append(step.text)
        yield from ()

    def _terminal_events(self, output: str, place: str) -> Iterator[CapturedMessage]:
        lines = output.splitlines()
        for number, line in enumerate(lines[:_MAX_LINES]):
            yield self._pulse_event(line[:_MAX_LINE_CHARS], f"{place}.{number}")
        if len(lines) > _MAX_LINES:
            more = f"… {len(lines) - _MAX_LINES} more lines: the next turn has all of them"
            yield self._pulse_event(more, f"{place}.more")

    # Messages

    def _pulse_event(self, line: str, place: str) -> CapturedMessage:
        at = to_rfc3339(self._now)
        return self._event(place, type="SANDBOX_PULSE", line=line, masked=False, timestamp=at)

    def _thought_event(self, chunk: str, place: str, *, is_final: bool) -> CapturedMessage:
        return self._event(
            place,
            type="THOUGHT_STREAM",
            agent_id=self._target.agent,
            turn_index=self._turn_index,
            chunk=chunk,
            is_final=is_final,
        )

    def _event(self, place: str, **payload: Any) -> CapturedMessage:
        target = self._target
        # Records of one session here share positions, so the id includes the record's own session.
        identity = "\0".join((target.task, target.session, target.own, place, payload["type"]))
        return CapturedMessage(
            "event",
            {
                "event_id": uuid8(blake2b(identity.encode(), digest_size=16).digest()),
                "session_id": self._target.session,
                "payload": payload,
            },
        )

    def _turn_envelope(self, turn: _OpenTurn, index: int) -> dict[str, Any]:
        target, confidence = self._target, _parse_confidence("\n".join(turn.actions))
        stated = {} if confidence is None else {"confidence": confidence}
        return {
            "turn_index": index,
            "agent_id": target.agent,
            "role": target.agent,
            "content": {
                "thought": _THOUGHT_SEPARATOR.join(turn.thoughts),
                "action": "\n\n".join(turn.actions),
                "observation": turn.observation,
            },
            "metadata": {
                "version": _VERSION,
                "task_id": target.task,
                "timestamp": to_rfc3339(turn.at),
                **NEUTRAL_VALUES,
                **stated,
                "session_id": self._target.session,
                "captured": {
                    "from": target.origin,
                    **({"session": target.own} if target.own else {}),
                    "filled": [name for name in NEUTRAL_VALUES if name not in stated],
                },
            },
        }


def _split_chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split a text at word ends, and yield each chunk with its start."""
    start = 0
    while start < len(text):
        end = start + _MAX_CHUNK_CHARS
        if end < len(text):
            last = max(text.rfind(blank, end - _MAX_WORD_CHARS, end) for blank in " \n\t")
            end = last + 1 or end
        yield start, text[start:end]
        start = end


def _parse_confidence(text: str) -> float | None:
    """Parse the confidence that the agent states; the last statement counts."""
    matches = _CONFIDENCE.findall(text)
    if not matches:
        return None
    last: str = matches[-1]
    return int(last[:-1]) / 100 if last.endswith("%") else float(last)


def _limit_arguments(arguments: Any) -> Any:
    """Replace arguments that exceed the size of an event; the turn's action has all of them."""
    size = len(_encode(arguments))
    if size <= _MAX_ARGUMENT_BYTES:
        return arguments
    return {"left_out": f"{size} bytes: the turn's action has them"}


# --- formats ----------------------------------------------------------------------------------


class Reader(Protocol):
    """Reader of one format of session records."""

    name: str
    session: str
    """Session name within the record, empty until a line states it."""
    has_whole_answers: bool
    """An answer is one line, instead of being spread over several."""

    @staticmethod
    def recognizes(line: Record) -> bool:
        """Tell whether a line can only be of this format."""
        ...

    def steps(self, line: Record) -> Iterator[AgentStep]:
        """Convert a line to steps."""
        ...


READERS: Final[dict[str, type[Reader]]] = {
    one.name: one for one in (ClaudeCode, Codex, OpenTelemetry)
}
"""Format -> its reader. To add a format, add a line here."""


# --- transcripts ------------------------------------------------------------------------------

_DEFAULT_SESSION: Final = "transcript"

StartSession = Callable[[str, str], tuple[str, int]]
"""Called with the record's session name and the proposed one; returns the session name to use and
the index of its first turn, which counts the turns of an earlier import."""


class Transcript:
    """Parses the lines of a record in their order."""

    def __init__(
        self,
        target: CaptureTarget,
        now: int,
        kind: str = "",
        start_session: StartSession = lambda _, session: (session, 0),
    ) -> None:
        """Without a session in `target`, the record's own name is used."""
        self._target = target
        self._now = now
        self._start_session = start_session
        self._reader = READERS[kind]() if kind else None
        self._builder: TraceBuilder | None = None
        self.lines = 0
        self.unreadable: list[int] = []
        """Numbers of lines that are not JSON objects."""

    @property
    def kind(self) -> str:
        """Format of the record; empty until it is detected."""
        return self._reader.name if self._reader is not None else ""

    @property
    def session(self) -> str:
        """Session name to use, else the record's own, as far as it has been stated."""
        return self._target.session or (self._reader.session if self._reader is not None else "")

    def feed(self, line: bytes) -> Iterator[CapturedMessage]:
        """Parse one more line, and yield the messages that it completes."""
        self.lines += 1
        if self.lines == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            line_record = as_record(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line_record = as_record(None)
        if not line_record:
            self.unreadable.append(self.lines)
            return
        if self._reader is None:
            kind = next((kind for kind in READERS.values() if kind.recognizes(line_record)), None)
            self._reader = kind() if kind is not None else None
        reader = self._reader
        if reader is None:
            return
        for part, step in enumerate(reader.steps(line_record)):
            if self._builder is None and isinstance(step, AnswerEnd):
                continue  # it ends an answer that is not in this record
            builder = self._builder or self._start_builder(reader)
            yield from builder.add(step, f"{self.lines}.{part}")

    @property
    def has_content(self) -> bool:
        """Tell whether the record contains any step."""
        return self._builder is not None

    @property
    def is_finished(self) -> bool:
        """Tell whether its last turn looks finished."""
        whole = self._reader is not None and self._reader.has_whole_answers
        return whole or self._builder is None or self._builder.is_idle

    def close(self) -> Iterator[CapturedMessage]:
        """Yield the last turn, which no other turn has ended."""
        if self._builder is not None:
            yield from self._builder.close()

    def _start_builder(self, reader: Reader) -> TraceBuilder:
        session, first_turn = self._start_session(reader.session, self.session or _DEFAULT_SESSION)
        self._target = replace(
            self._target, session=session, origin=reader.name, own=reader.session
        )
        self._builder = TraceBuilder(self._target, self._now, first_turn)
        return self._builder
