"""What a watcher sees of a task: the last of everything, however much comes. It draws nothing."""

from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import Status
from dragoman.core.moments import nearest_moment
from dragoman.core.states.moves import MOVE_NAMES

_LINES: Final = 100
"""Number of terminal lines, tools and notices that are kept."""
_THOUGHT: Final = 4_000
"""Number of last characters kept of a thought that still grows."""
_TEXT: Final = 4_000
_CONFIDENCES: Final = 40


class Happening(Struct, frozen=True):
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
    def beside(self) -> int | None:
        """Attempt beside which a turn was recorded; None: the turn belongs to an attempt."""
        return self.body.get("beside", 0) if self.body["attempt"] < 0 else None


class Writers:
    """Authors of turns: as soon as there are several, each turn is labelled with its own.

    A turn outside of the attempts always is.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def whose(self, turn: Happening) -> str:
        """Agent and attempt of a turn; empty while all turns are of one attempt."""
        attempt: int = turn.body["attempt"]
        self._seen.add((turn.actor, attempt))
        if turn.beside is not None:
            return f"{turn.actor}, beside attempt {turn.beside}"
        return f"{turn.actor}, attempt {attempt}" if len(self._seen) > 1 else ""


class Tool(Struct, frozen=True):
    """A tool call."""

    call: str
    name: str
    began: int
    status: str = ""
    """Empty while it runs."""
    took_ms: int = 0


class Picture(Struct, frozen=True):
    """All that is drawn at one time."""

    task: str
    title: str
    status: Status
    agent: str = ""
    whose: str = ""
    """Agent and attempt of the turn, where there are several."""
    turn: int | None = None
    thought: str = ""
    action: str = ""
    observation: str = ""
    confidences: tuple[float, ...] = ()
    running: tuple[Tool, ...] = ()
    ended: tuple[Tool, ...] = ()
    terminal: tuple[str, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    """Transitions, anomalies and escalations: time and text."""
    count: int = 0
    at: str = ""


class Scene:
    """State of a watched task, updated in one thread while another draws it."""

    def __init__(self, task: str, title: str, status: Status) -> None:
        self._lock = Lock()
        self._still = Picture(task, title, status)
        self._thought = ""
        self._is_over = True
        self._running: dict[str, Tool] = {}
        self._ended = deque[Tool](maxlen=_LINES)
        self._terminal = deque[str](maxlen=_LINES)
        self._remarks = deque[tuple[str, str]](maxlen=_LINES)
        self._confidences = deque[float](maxlen=_CONFIDENCES)
        self._writers = Writers()

    def take(self, one: Happening) -> None:
        """Apply an event."""
        take = _TAKE.get(one.type, _TAKE_MOVE if one.type in MOVE_NAMES else None)
        with self._lock:
            self._still = replace(self._still, count=self._still.count + 1, at=one.at)
            if take is not None:
                take(self, one)

    def picture(self) -> Picture:
        """Snapshot to be drawn."""
        with self._lock:
            return replace(
                self._still,
                thought=self._thought or self._still.thought,
                confidences=tuple(self._confidences),
                running=tuple(self._running.values()),
                ended=tuple(self._ended),
                terminal=tuple(self._terminal),
                remarks=tuple(self._remarks),
            )

    def turned(self, one: Happening) -> None:
        content: Mapping[str, str] = one.body["envelope"]["content"]
        self._thought, self._is_over = "", True
        self._confidences.append(one.body["confidence"])
        self._still = replace(
            self._still,
            agent=one.body["agent"],
            whose=self._writers.whose(one),
            turn=one.body["turn_index"],
            thought=content["thought"][-_TEXT:],
            action=content["action"][:_TEXT],
            observation=content["observation"][-_TEXT:],
        )

    def traced(self, one: Happening) -> None:
        take = _TRACES.get(one.body["type"])
        if take is not None:
            take(self, one)

    def thought(self, one: Happening) -> None:
        """Append a chunk of a thought."""
        if self._is_over:
            self._thought = ""
        self._thought = (self._thought + one.payload["chunk"])[-_THOUGHT:]
        self._is_over = one.payload["is_final"]
        self._still = replace(self._still, agent=one.payload["agent_id"])

    def began(self, one: Happening) -> None:
        call, tool = one.payload["call_id"], one.payload["tool"]
        while len(self._running) >= _LINES:
            del self._running[next(iter(self._running))]
        self._running[call] = Tool(call, tool, nearest_moment(one.payload["timestamp"]))

    def ended(self, one: Happening) -> None:
        said = one.payload
        ended = self._running.pop(said["call_id"], None) or Tool(said["call_id"], said["tool"], 0)
        self._ended.append(
            replace(ended, status=said["status"], took_ms=round(said["duration_ms"]))
        )

    def printed(self, one: Happening) -> None:
        self._terminal.append(one.payload["line"])

    def moved(self, one: Happening) -> None:
        from_ = one.body.get("from", "in-progress")
        to: Status = "in-progress" if one.type == "task.claimed" else one.body.get("to", "ready")
        self._still = replace(self._still, status=to)
        self._remarks.append((one.at, f"{from_} → {to} by {one.actor}"))

    def remarked(self, one: Happening) -> None:
        self._remarks.append((one.at, f"{one.body['kind']}: {one.body.get('detail', 'settled')}"))


_Take = Callable[[Scene, Happening], None]
_TAKE_MOVE: Final[_Take] = Scene.moved
_TAKE: Final[dict[str, _Take]] = {
    "turn.recorded": Scene.turned,
    "trace.recorded": Scene.traced,
    "trace.anomaly": Scene.remarked,
    "entropy.escalated": Scene.remarked,
    "entropy.settled": Scene.remarked,
}
"""Event name -> its handler; other events change nothing."""

_TRACES: Final[dict[str, _Take]] = {
    "THOUGHT_STREAM": Scene.thought,
    "TOOL_LIFECYCLE_INVOKED": Scene.began,
    "TOOL_LIFECYCLE_COMPLETED": Scene.ended,
    "SANDBOX_PULSE": Scene.printed,
}
"""Type of a trace event -> its handler."""
