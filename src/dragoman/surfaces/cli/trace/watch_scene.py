"""What a watcher sees of a task: the last of everything, however much comes. It draws nothing."""

from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import Status
from dragoman.core.moments import parse_nearest_rfc3339
from dragoman.core.states.moves import STATUS_CHANGE_NAMES

_MAX_LINES: Final = 100
"""Number of terminal lines, tools and notices that are kept."""
_MAX_THOUGHT: Final = 4_000
"""Number of last characters kept of a thought that still grows."""
_MAX_TEXT: Final = 4_000
_MAX_CONFIDENCES: Final = 40


class WatchedEvent(Struct, frozen=True):
    """A ledger entry as a stream or the store returns it."""

    position: int
    at: str
    type: str
    stream: str
    actor: str
    body: Mapping[str, Any]

    @property
    def payload(self) -> Mapping[str, Any]:
        """Payload of a trace event."""
        return self.body["envelope"]["payload"]

    @property
    def beside_attempt(self) -> int | None:
        """Attempt beside which a turn was recorded; None: the turn belongs to an attempt."""
        return self.body.get("beside", 0) if self.body["attempt"] < 0 else None


class TurnAuthors:
    """Authors of turns: as soon as there are several, each turn is labelled with its own.

    A turn outside of the attempts always is.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def label(self, turn: WatchedEvent) -> str:
        """Agent and attempt of a turn; empty while all turns are of one attempt."""
        attempt: int = turn.body["attempt"]
        self._seen.add((turn.actor, attempt))
        if turn.beside_attempt is not None:
            return f"{turn.actor}, beside attempt {turn.beside_attempt}"
        return f"{turn.actor}, attempt {attempt}" if len(self._seen) > 1 else ""


class ToolCall(Struct, frozen=True):
    """A tool call."""

    call_id: str
    name: str
    started_at: int
    status: str = ""
    """Empty while it runs."""
    took_ms: int = 0


class WatchFrame(Struct, frozen=True):
    """All that is drawn at one time."""

    task: str
    title: str
    status: Status
    agent: str = ""
    turn_author: str = ""
    """Agent and attempt of the turn, where there are several."""
    turn: int | None = None
    thought: str = ""
    action: str = ""
    observation: str = ""
    confidences: tuple[float, ...] = ()
    running: tuple[ToolCall, ...] = ()
    ended: tuple[ToolCall, ...] = ()
    terminal: tuple[str, ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    """Transitions, anomalies and escalations: time and text."""
    count: int = 0
    at: str = ""


class WatchState:
    """State of a watched task, updated in one thread while another draws it."""

    def __init__(self, task: str, title: str, status: Status) -> None:
        self._lock = Lock()
        self._frame = WatchFrame(task, title, status)
        self._thought = ""
        self._thought_is_over = True
        self._running: dict[str, ToolCall] = {}
        self._ended = deque[ToolCall](maxlen=_MAX_LINES)
        self._terminal = deque[str](maxlen=_MAX_LINES)
        self._notices = deque[tuple[str, str]](maxlen=_MAX_LINES)
        self._confidences = deque[float](maxlen=_MAX_CONFIDENCES)
        self._authors = TurnAuthors()

    def apply(self, event: WatchedEvent) -> None:
        """Apply an event."""
        handler = _HANDLERS.get(
            event.type, _TRANSITION_HANDLER if event.type in STATUS_CHANGE_NAMES else None
        )
        with self._lock:
            self._frame = replace(self._frame, count=self._frame.count + 1, at=event.at)
            if handler is not None:
                handler(self, event)

    def frame(self) -> WatchFrame:
        """Snapshot to be drawn."""
        with self._lock:
            return replace(
                self._frame,
                thought=self._thought or self._frame.thought,
                confidences=tuple(self._confidences),
                running=tuple(self._running.values()),
                ended=tuple(self._ended),
                terminal=tuple(self._terminal),
                notices=tuple(self._notices),
            )

    def on_turn(self, event: WatchedEvent) -> None:
        content: Mapping[str, str] = event.body["envelope"]["content"]
        self._thought, self._thought_is_over = "", True
        self._confidences.append(event.body["confidence"])
        self._frame = replace(
            self._frame,
            agent=event.body["agent"],
            turn_author=self._authors.label(event),
            turn=event.body["turn_index"],
            thought=content["thought"][-_MAX_TEXT:],
            action=content["action"][:_MAX_TEXT],
            observation=content["observation"][-_MAX_TEXT:],
        )

    def on_trace_event(self, event: WatchedEvent) -> None:
        handler = _TRACE_HANDLERS.get(event.body["type"])
        if handler is not None:
            handler(self, event)

    def on_thought(self, event: WatchedEvent) -> None:
        """Append a chunk of a thought."""
        if self._thought_is_over:
            self._thought = ""
        self._thought = (self._thought + event.payload["chunk"])[-_MAX_THOUGHT:]
        self._thought_is_over = event.payload["is_final"]
        self._frame = replace(self._frame, agent=event.payload["agent_id"])

    def on_tool_start(self, event: WatchedEvent) -> None:
        call, tool = event.payload["call_id"], event.payload["tool"]
        while len(self._running) >= _MAX_LINES:
            del self._running[next(iter(self._running))]
        self._running[call] = ToolCall(
            call, tool, parse_nearest_rfc3339(event.payload["timestamp"])
        )

    def on_tool_end(self, event: WatchedEvent) -> None:
        payload = event.payload
        ended = self._running.pop(payload["call_id"], None) or ToolCall(
            payload["call_id"], payload["tool"], 0
        )
        self._ended.append(
            replace(ended, status=payload["status"], took_ms=round(payload["duration_ms"]))
        )

    def on_terminal_line(self, event: WatchedEvent) -> None:
        self._terminal.append(event.payload["line"])

    def on_transition(self, event: WatchedEvent) -> None:
        from_ = event.body.get("from", "in-progress")
        to: Status = (
            "in-progress" if event.type == "task.claimed" else event.body.get("to", "ready")
        )
        self._frame = replace(self._frame, status=to)
        self._notices.append((event.at, f"{from_} → {to} by {event.actor}"))

    def on_anomaly(self, event: WatchedEvent) -> None:
        self._notices.append(
            (event.at, f"{event.body['kind']}: {event.body.get('detail', 'settled')}")
        )


_Handler = Callable[[WatchState, WatchedEvent], None]
_TRANSITION_HANDLER: Final[_Handler] = WatchState.on_transition
_HANDLERS: Final[dict[str, _Handler]] = {
    "turn.recorded": WatchState.on_turn,
    "trace.recorded": WatchState.on_trace_event,
    "trace.anomaly": WatchState.on_anomaly,
    "entropy.escalated": WatchState.on_anomaly,
    "entropy.settled": WatchState.on_anomaly,
}
"""Event name -> its handler; other events change nothing."""

_TRACE_HANDLERS: Final[dict[str, _Handler]] = {
    "THOUGHT_STREAM": WatchState.on_thought,
    "TOOL_LIFECYCLE_INVOKED": WatchState.on_tool_start,
    "TOOL_LIFECYCLE_COMPLETED": WatchState.on_tool_end,
    "SANDBOX_PULSE": WatchState.on_terminal_line,
}
"""Type of a trace event -> its handler."""
