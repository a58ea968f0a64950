"""Import: sends the turns and events of a session file to a hub."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from dragoman.client import AcceptedMessage, RejectedMessage, SyncHub
from dragoman.core.errors import Refused
from dragoman_traces.transcript import CapturedMessage, Transcript

_BATCH_SIZE: Final = 200
"""Number of messages that are sent together."""
_MAX_CONSECUTIVE_REFUSALS: Final = 3
"""After this many refusals in a row, the rest would be refused as well."""
_SENDER_REFUSALS: Final = frozenset(
    {"identity_mismatch", "not_authorized", "unauthorized_agent", "lease_lost"}
)
"""Refusals of the sender, not of the message: the rest would be refused as well."""
_BLOCK_BYTES: Final = 1 << 20
_MAX_DOCUMENT_BYTES: Final = 256 << 20


class FileShrunk(Exception):
    """The file has become shorter while it was read."""


class Importer:
    """Sends the messages of one task, and counts what becomes of them."""

    def __init__(self, hub: SyncHub, task: str, *, has_chosen_session: bool) -> None:
        """`has_chosen_session`: the session was named by the caller, and that name counts."""
        self._hub = hub
        self._task = task
        self._has_chosen_session = has_chosen_session
        self._earlier_turns: dict[int, dict[str, Any]] = {}
        """Turns recorded under other attempts or outside of any: they are not recorded again."""
        self._deferred: list[CapturedMessage] = []
        """Events before the first turn: recorded earlier they would belong to no task."""
        self._has_task = self._find_attempt() is not None
        self._consecutive_refusals = 0
        self.counts = {"turns": 0, "events": 0, "new": 0, "masked": 0}
        self.refused: list[dict[str, str]] = []

    @property
    def deferred(self) -> int:
        """Number of events that wait for the first turn, which creates the task."""
        return len(self._deferred)

    @property
    def _has_recorded(self) -> bool:
        return self.counts["turns"] + self.counts["events"] > 0

    def start_session(self, own: str, session: str) -> tuple[str, int]:
        """Session name and first turn: as imported earlier, else behind all recorded turns."""
        attempt = self._find_attempt()
        if attempt is None:
            return session, 0
        last, first = -1, None
        for turn in read_turns(self._hub, self._task):
            index = turn["turn_index"]
            last = index if turn["attempt"] == attempt else last
            if not self._is_same_session(turn["metadata"], own, session):
                continue
            first = first or turn
            if turn["attempt"] != attempt:
                self._earlier_turns[index] = turn
        if first is None:
            return session, last + 1
        return first["metadata"]["session_id"], first["turn_index"]

    def send(self, captured: Iterator[CapturedMessage], batch_size: int = _BATCH_SIZE) -> None:
        """Send messages in order, the first one alone; stop early when everything is refused."""
        while batch := list(islice(captured, batch_size if self._has_recorded else 1)):
            for kind, run in groupby(batch, key=lambda message: message.kind):
                if kind == "event":
                    self._send_events(list(run))
                else:
                    for message in run:
                        self._send_turn(message)
                if self._consecutive_refusals >= _MAX_CONSECUTIVE_REFUSALS:
                    return

    def _send_events(self, run: Sequence[CapturedMessage]) -> None:
        if not self._has_task:
            self._deferred += run
            return
        events = [{**one.message, "task_id": self._task} for one in run]
        for one, answer in zip(run, self._hub.send_all(events, dialect="saop"), strict=True):
            self._count("events", _describe_event(one), answer)

    def _send_turn(self, captured: CapturedMessage) -> None:
        index = captured.message["turn_index"]
        if index in self._earlier_turns:
            self.counts["turns"] += 1
            self.counts["masked"] += self._earlier_turns[index]["masked"]
            return
        (answer,) = self._hub.send_all([captured.message], dialect="saop")
        self._count("turns", f"turn {index}", answer)
        if not self._has_task and isinstance(answer, AcceptedMessage):
            self._has_task = True
            deferred, self._deferred = self._deferred, []
            for start in range(0, len(deferred), _BATCH_SIZE):
                self._send_events(deferred[start : start + _BATCH_SIZE])

    def _count(self, kind: str, label: str, answer: AcceptedMessage | RejectedMessage) -> None:
        if isinstance(answer, RejectedMessage):
            code, detail = answer.problem.code, answer.problem.detail
            self.refused.append({"what": label, "code": code, "detail": detail})
            is_sender = code in _SENDER_REFUSALS
            self._consecutive_refusals += _MAX_CONSECUTIVE_REFUSALS if is_sender else 1
            return
        self._consecutive_refusals = 0
        self.counts[kind] += 1
        self.counts["new"] += not answer.repeated
        self.counts["masked"] += answer.reply["masked"]

    def _find_attempt(self) -> int | None:
        """Attempt of the task now; None: the hub does not know the task."""
        try:
            return self._hub.task(self._task).attempt
        except Refused as refused:
            if refused.code == "task_not_found":
                return None
            raise

    def _is_same_session(self, metadata: dict[str, Any], own: str, session: str) -> bool:
        captured: Any = metadata.get("captured")
        if self._has_chosen_session or not own or not isinstance(captured, dict):
            return metadata.get("session_id") == session
        return captured == {**captured, "session": own}


def _describe_event(captured: CapturedMessage) -> str:
    payload: dict[str, Any] = captured.message["payload"]
    return " ".join(filter(None, (payload["type"], payload.get("tool", ""))))


def read_turns(hub: SyncHub, task: str) -> Iterator[dict[str, Any]]:
    """All turns of a task, in order."""
    page = hub.call("saop.turns", {"task_id": task})
    yield from page["turns"]
    while page["more"]:
        page = hub.call("saop.turns", {"task_id": task, "cursor": page["cursor"]})
        yield from page["turns"]


# --- files ------------------------------------------------------------------------------------


def captured_messages(
    transcript: Transcript, path: Path, wait: Callable[[], bool] | None, *, closes: bool
) -> Iterator[CapturedMessage]:
    """Messages of a file and, with `wait`, of what is appended until it returns False."""
    with path.open("rb") as file:
        for line in _read_lines(file, path, wait):
            if line is None:
                if transcript.is_finished:
                    yield from transcript.close()
                continue
            if transcript.lines == 0 and not line.rstrip().endswith(b"}"):
                file.seek(0)  # a document over many lines is parsed as one
                yield from transcript.feed(file.read(_MAX_DOCUMENT_BYTES))
                break
            yield from transcript.feed(line)
    if closes or transcript.is_finished:
        yield from transcript.close()


def _read_lines(
    file: BinaryIO, path: Path, wait: Callable[[], bool] | None
) -> Iterator[bytes | None]:
    """Lines of an open file; None: all present lines were read, and more are waited for.

    A line counts when it has ended, so that a line being written is not taken for a whole one.
    Without `wait` unterminated text at the end is a line too.
    """
    unfinished = b""
    while True:
        block = file.read(_BLOCK_BYTES)
        if block:
            *lines, unfinished = (unfinished + block).split(b"\n")
            yield from lines
        elif wait is None:
            if unfinished:
                yield unfinished
            return
        elif path.stat().st_size < file.tell():
            raise FileShrunk(f"{path} has become shorter while it was read: begin anew")
        else:
            yield None
            if not wait():
                return
