"""Messages of 600 bytes in another dialect, and their delivery with translation and without."""

from collections.abc import Callable, Mapping
from itertools import permutations
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import msgspec

from bench.callers import open_hub
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask, UpdateTask
from dragoman.engine.translation import TranslatedMessage, translate
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.services.deliverer import Deliverer
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id

_BYTES: Final = 600
_AT_ONCE: Final = 100

_TASK: Final = "TASK-2026-02-09-057"
_AT: Final = "2026-02-09T14:30:00.000Z"

DIALECTS: Final = {
    one.name: one
    for one in (aof.dialect(), agentmail.dialect(), saop.dialect(), acp.dialect(), ccos.dialect())
}

PAIRS: Final = tuple(permutations(DIALECTS, 2))


def _message(dialect: str, words: str) -> dict[str, Any]:
    """Progress on a task, in a dialect, with these words."""
    return {
        "aof": {
            "protocol": "aof",
            "version": 1,
            "type": "status.update",
            "taskId": _TASK,
            "fromAgent": "ada",
            "toAgent": "bob",
            "sentAt": _AT,
            "payload": {"taskId": _TASK, "agentId": "ada", "progress": words},
        },
        "agentmail": {
            "subject": f"[{_TASK}] PROGRESS",
            "body_md": f"Bead: {_TASK}\nStep: 2\nStatus: {words}\nContext Usage: 40%\n",
            "from": "ada",
            "to": ["bob"],
            "timestamp": _AT,
        },
        "saop": {
            "event_id": "00000000-0000-4000-8000-000000000001",
            "session_id": "s-1",
            "payload": {
                "type": "NOTICE",
                "task_id": _TASK,
                "kind": "progress",
                "text": words,
                "from_agent": "ada",
                "to_agent": "bob",
                "timestamp": _AT,
            },
        },
        "acp": {
            "type": "status.update",
            "from": "ada",
            "to": ["bob"],
            "task_id": _TASK,
            "payload": {"text": words},
        },
        "ccos": {"intent_id": _TASK, "agent_id": "ada", "progress": 40, "message": words},
    }[dialect]


def _encode(dialect: str) -> bytes:
    """A message of the size that is measured."""
    empty = len(msgspec.json.encode(_message(dialect, "")))
    return msgspec.json.encode(_message(dialect, _words(empty)))


def _words(other_bytes: int) -> str:
    return ("half of it is done, and the rest is clear " * 20)[: _BYTES - other_bytes]


MESSAGES: Final[Mapping[str, bytes]] = {name: _encode(name) for name in DIALECTS}


def recoded(source: str, seconds: float) -> float:
    """Messages a second that are decoded and encoded."""
    message = MESSAGES[source]
    return _per_second(lambda: msgspec.json.encode(msgspec.json.decode(message)), seconds)


def translated(source: str, target: str, seconds: float) -> float:
    """Messages a second that are translated and encoded."""
    message, own, other = MESSAGES[source], DIALECTS[source], DIALECTS[target]

    def run() -> bytes:
        made = translate(message, own, other)
        assert isinstance(made, TranslatedMessage), made
        return msgspec.json.encode(made.message)

    return _per_second(run, seconds)


def _per_second(run: Callable[[], object], seconds: float) -> float:
    start, done = perf_counter(), 0
    while (passed := perf_counter() - start) < seconds:
        for _ in range(_AT_ONCE):
            run()
        done += _AT_ONCE
    return done / passed


# --- delivery ---------------------------------------------------------------------------------

_OWNER: Final = Actor("human", "mia")
_BOSS: Final = Actor("agent", "bob")
_WORKER: Final = Actor("agent", "ada")


class _Cursor:
    """A position in memory."""

    def __init__(self) -> None:
        self._data = b""

    def load(self) -> bytes:
        return self._data

    def save(self, data: bytes) -> None:
        self._data = data


def posted(folder: Path, seconds: float) -> float:
    """Letters a second that are posted as they are, each with a file of its own."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        body = MESSAGES["acp"].decode()
        start, done = perf_counter(), 0
        while (passed := perf_counter() - start) < seconds:
            letter = PostMail(("bob",), "status.update", body, "status.update", f"m-{done}", _TASK)
            hub.submit(HUB_ACTOR, letter)
            (folder / f"{done}.json").write_bytes(MESSAGES["acp"])
            done += 1
        return done / passed


def delivered(folder: Path, seconds: float) -> float:
    """Updates of an agent a second that are delivered in the dialect of the one who waits."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        hub.submit(_OWNER, RegisterAgent("bob", "agent", ("acp",)))
        hub.submit(_BOSS, CreateTask("Login", "t-1", ready=True, assignee="ada"))
        hub.submit(_WORKER, ClaimTask("t-1", "ada"))

        def write_file(agent: str, name: str, data: bytes) -> None:
            (folder / f"{agent}-{name}").write_bytes(data)

        service = Deliverer(hub, tuple(DIALECTS.values()), _Cursor(), write_file)
        service.run_once(0)
        words, done, passed = _words(0), 0, 0.0
        while passed < seconds:
            for number in range(_AT_ONCE):
                hub.submit(_WORKER, UpdateTask("t-1", progress=f"{number} {words}"))
            start = perf_counter()
            done += service.run_once(0)
            passed += perf_counter() - start
        return done / passed
