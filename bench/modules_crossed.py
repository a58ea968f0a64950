"""`uv run python -m bench.modules_crossed`: the modules whose functions one operation runs.

A completion report is followed from the socket of a running hub to the write of the store, and a
letter from the command line to its end. Imports do not count, and neither do first times: each runs
once before it is counted.
"""

import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dragoman
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.store.sqlite import SqliteStore
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import HubServer, serving

_SOURCES = str(Path(dragoman.__file__).parent)


class Trace:
    """The modules of the package whose functions were called, in all threads started from now on,
    up to a function with the given name."""

    def __init__(self, last_function: str = "") -> None:
        self._last = last_function
        self.modules: dict[str, None] = {}
        self._is_over = False
        threading.setprofile(self._count)
        sys.setprofile(self._count)

    def restart(self) -> None:
        """Forget what was called."""
        self.modules.clear()
        self._is_over = False

    def stop(self) -> list[str]:
        """Stop counting; the modules in the order of their first call."""
        sys.setprofile(None)
        threading.setprofile(None)
        return list(self.modules)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or self._is_over or not code.co_filename.startswith(_SOURCES):
            return
        if code.co_name != "<module>":
            self.modules[code.co_filename[len(_SOURCES) + 1 :]] = None
        self._is_over = code.co_qualname == self._last


def report_modules(folder: Path) -> list[str]:
    """Count the modules between the socket and the write of a completion report."""
    store = SqliteStore.open(folder / "dragoman.db", lambda: "modules")
    server = HubServer(store)
    server.add_agent("ada", "agent")
    ids = [f"TASK-2026-02-09-{number:03d}" for number in (1, 2)]
    for id in ids:
        server.submit(CreateTask("Mend the roof", id=id, ready=True))
        server.submit(ClaimTask(id, "ada"))
    trace = Trace("SqliteTransaction.write")
    with serving(server):
        for id in ids:
            trace.restart()
            answer = server.request("POST", "/v1/messages", json.loads(_report(id)), by="ada")
            assert answer.status == 200, answer.body
    return trace.stop()


def _report(task: str) -> str:
    envelope: dict[str, Any] = {
        "protocol": "aof",
        "version": 1,
        "type": "completion.report",
        "taskId": task,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T20:55:00.000Z",
        "payload": {
            "outcome": "done",
            "summaryRef": "outputs/summary.md",
            "deliverables": [],
            "tests": {"total": 1, "passed": 1, "failed": 0},
            "blockers": [],
            "notes": "dry",
        },
    }
    return json.dumps(envelope)


def letter_modules(folder: Path) -> list[str]:
    """Count the modules that the command of a letter runs."""
    send = ("mail", "send", "--as", "bob", "--to", "ada", "--subject", "hi", "--body", "x")
    console = Console(folder / "hub")
    for args in (("init",), send):
        assert console(*args).code == 0
    trace = Trace()
    console(*send)
    return trace.stop()


_MEASURES: dict[str, Callable[[Path], list[str]]] = {
    "a completion report, from the socket to the write": report_modules,
    "dragoman mail send": letter_modules,
}


def main() -> None:
    """Print the number of modules and, with --names, which ones."""
    for what, measure in _MEASURES.items():
        with tempfile.TemporaryDirectory() as folder:
            modules = measure(Path(folder))
        print(f"{len(modules):4} modules: {what}")
        if "--names" in sys.argv:
            print("".join(f"       {name}\n" for name in modules), end="")


if __name__ == "__main__":
    main()
