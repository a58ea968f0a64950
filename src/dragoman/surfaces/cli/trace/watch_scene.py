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
"""So many lines of the terminal, tools and remarks are remembered."""
_THOUGHT: Final = 4_000
"""So many of the last characters of a thought that is still coming."""
_TEXT: Final = 4_000
_CONFIDENCES: Final = 40


class Happening(Struct, frozen=True):
    """An entry of the ledger, as a stream or the store gives it."""

    position: int
    at: str
    type: str
    stream: str
    actor: str
    body: Mapping[str, Any]

    @property
    def payload(self) -> Mapping[str, Any]:
        """What an event of a trace says."""
        return self.body["envelope"]["payload"]

    @property
    def beside(self) -> int | None:
        """Beside which attempt a turn stands; None: it is of one."""
        return self.body.get("beside", 0) if self.body["attempt"] < 0 else None


class Writers:
    """Who shows turns: as soon as there are several, each turn says whose it is.

    One beside the attempts always does.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def whose(self, turn: Happening) -> str:
        """The agent and the attempt of a turn; empty as long as all are of the same attempt."""
        attempt: int = turn.body["attempt"]
        self._seen.add((turn.actor, attempt))
        if turn.beside is not None:
            return f"{turn.actor}, beside attempt {turn.beside}"
        return f"{turn.actor}, attempt {attempt}" if len(self._seen) > 1 else ""


class Tool(Struct, frozen=True):
    """A call of a tool."""

    call: str
    name: str
    began: int
    status: str = ""
    """Empty: it runs."""
    took_ms: int = 0


class Picture(Struct, frozen=True):
    """All that there is to be drawn."""

    task: str
    title: str
    status: Status
    agent: str = ""
    whose: str = ""
    """Of which agent and attempt the turn is, where several show theirs."""
    turn: int | None = None
    thought: str = ""
    action: str = ""
    observation: str = ""
    confidences: tuple[float, ...] = ()
    running: tuple[Tool, ...] = ()
    ended: tuple[Tool, ...] = ()
    terminal: tuple[str, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    """Moves, anomalies and escalations: when, and what."""
    count: int = 0
    at: str = ""


class Scene:
    """Takes what happens in one thread, while another draws."""

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
        """Something has happened."""
        take = _TAKE.get(one.type, _TAKE_MOVE if one.type in MOVE_NAMES else None)
        with self._lock:
            self._still = replace(self._still, count=self._still.count + 1, at=one.at)
            if take is not None:
                take(self, one)

    def picture(self) -> Picture:
        """How it stands."""
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
        """A turn is over."""
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
        """An event of a trace."""
        take = _TRACES.get(one.body["type"])
        if take is not None:
            take(self, one)

    def thought(self, one: Happening) -> None:
        """A part of a thought."""
        if self._is_over:
            self._thought = ""
        self._thought = (self._thought + one.payload["chunk"])[-_THOUGHT:]
        self._is_over = one.payload["is_final"]
        self._still = replace(self._still, agent=one.payload["agent_id"])

    def began(self, one: Happening) -> None:
        """A tool was called."""
        call, tool = one.payload["call_id"], one.payload["tool"]
        while len(self._running) >= _LINES:
            del self._running[next(iter(self._running))]
        self._running[call] = Tool(call, tool, nearest_moment(one.payload["timestamp"]))

    def ended(self, one: Happening) -> None:
        """A tool gave its answer."""
        said = one.payload
        ended = self._running.pop(said["call_id"], None) or Tool(said["call_id"], said["tool"], 0)
        self._ended.append(
            replace(ended, status=said["status"], took_ms=round(said["duration_ms"]))
        )

    def printed(self, one: Happening) -> None:
        """A line of the terminal."""
        self._terminal.append(one.payload["line"])

    def moved(self, one: Happening) -> None:
        """The task has moved."""
        from_ = one.body.get("from", "in-progress")
        to: Status = "in-progress" if one.type == "task.claimed" else one.body.get("to", "ready")
        self._still = replace(self._still, status=to)
        self._remarks.append((one.at, f"{from_} → {to} by {one.actor}"))

    def remarked(self, one: Happening) -> None:
        """Something that somebody should look at."""
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
"""Name of an event -> what it changes; of one that is not here nothing is shown."""

_TRACES: Final[dict[str, _Take]] = {
    "THOUGHT_STREAM": Scene.thought,
    "TOOL_LIFECYCLE_INVOKED": Scene.began,
    "TOOL_LIFECYCLE_COMPLETED": Scene.ended,
    "SANDBOX_PULSE": Scene.printed,
}
"""Type of an event of a trace -> what it changes."""
