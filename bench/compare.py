"""`uv run python -m bench.compare TREE`: processor time of this tree beside another checkout.

TREE is another checkout with its own `.venv`. Rounds of both trees are interleaved, and the
medians compared, because machines drift. Each figure is the processor time of a command, or of a
running hub per request; a ratio below 1 means that this tree is the cheaper one.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from socket import socket
from threading import Event
from time import monotonic

_HERE = Path(__file__).parents[1]
_REQUESTS = 400
_PAUSE = 0.5
_IDLE_MS = 20
"""A hub that uses less than this in a pause has nothing left to do."""
_ENVIRONMENT = {"PATH": os.defpath}
"""Environment of the measured programs; it lets them keep compiled modules."""
_TICKS = os.sysconf("SC_CLK_TCK")

Costs = dict[str, float]
"""Name of the measurement -> milliseconds of processor time."""


_TASK = "TASK-2026-02-09-001"
_UPDATE = {"taskId": _TASK, "agentId": "ada", "status": "in-progress", "progress": "half"}
_ENVELOPE = {
    "protocol": "aof",
    "version": 1,
    "type": "status.update",
    "taskId": _TASK,
    "fromAgent": "ada",
    "toAgent": "dispatcher",
    "sentAt": "2026-02-09T20:55:00.000Z",
    "payload": _UPDATE,
}
_COMMANDS = {
    "--version": ("--version",),
    "task create": ("task", "create", "One", "--id", _TASK, "--ready"),
    "task list": ("task", "list"),
    "task show": ("task", "show", _TASK),
    "task claim": ("task", "claim", _TASK, "--agent", "ada"),
    "task heartbeat": ("task", "heartbeat", _TASK, "--agent", "ada"),
    "task log": ("task", "log", _TASK, "half", "--as", "ada"),
    "call": ("call", "aof_task_update", json.dumps(_UPDATE), "--as", "ada"),
    "send": ("send", "{letter}", "--as", "ada"),
    "mail send": ("mail", "send", "--as", "bob", "--to", "ada", "--subject", "hi", "--body", "x"),
    "mail inbox": ("mail", "inbox", "--as", "ada"),
}
"""Commands in the order in which they are called: those that both trees have."""


def measure_commands(tree: Path, folder: Path) -> Costs:
    """Measure commands without a hub."""
    program = [str(tree / ".venv" / "bin" / "dragoman"), "--data", str(folder / "commands")]
    letter = folder / "letter.json"
    letter.write_text(json.dumps(_ENVELOPE))
    _run([*program, "init"])
    return {
        f"command: {name}": _run([*program, *(w.replace("{letter}", str(letter)) for w in words)])
        for name, words in _COMMANDS.items()
    }


def measure_requests(tree: Path, folder: Path) -> Costs:
    """Measure what a running hub uses for a request of each kind."""
    data = folder / "hub"
    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [str(tree / ".venv" / "bin" / "dragoman"), "--data", str(data), "up"]
    with (folder / "up.log").open("wb") as log:
        hub = subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=_ENVIRONMENT,
        )
        try:
            with closing(_Client(port, data, folder / "up.log")) as client:
                return _measure_hub(hub.pid, client)
        finally:
            hub.terminate()
            hub.wait(30)


def _measure_hub(pid: int, client: "_Client") -> Costs:
    costs: Costs = {}

    def measure(name: str, *paths_and_bodies: tuple[str, object]) -> None:
        before = _settled_cpu(pid)
        for path, body in paths_and_bodies:
            client.post(path, body)
        costs[name] = (_settled_cpu(pid) - before) / len(paths_and_bodies)

    for number in range(_REQUESTS):  # whatever is loaded late does not count
        client.post("/v1/tasks", {"id": f"warm-{number}", "title": "One"})
    ids = [f"bench-{number}" for number in range(_REQUESTS)]
    measure(
        "request: create a task",
        *(("/v1/tasks", {"id": id, "title": "One", "ready": True}) for id in ids),
    )
    measure("request: claim", *((f"/v1/tasks/{id}/claim", {"agent": "ada"}) for id in ids))
    measure("request: note", *((f"/v1/tasks/{id}/note", {"text": "half"}) for id in ids))
    measure(
        "request: letter",
        *(
            (
                "/v1/agentmail/mail.send",
                {
                    "to": ["ada"],
                    "subject": f"[{id}] PROGRESS",
                    "body_md": f"Bead: {id}\nStep: {number}\nStatus: going\n",
                },
            )
            for number, id in enumerate(ids)
        ),
    )
    return costs


class _Client:
    """A connection to a hub that was just started."""

    def __init__(self, port: int, data: Path, log: Path) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        end = monotonic() + 30
        while monotonic() < end:
            try:
                self._connection.request("GET", "/healthz")
                self._connection.getresponse().read()
                break
            except OSError:
                self._connection.close()
        else:
            raise SystemExit(f"the hub does not answer:\n{log.read_text()}")
        token = (data / "token").read_text().strip()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def post(self, path: str, body: object) -> None:
        """Send a request, which must be accepted."""
        self._connection.request("POST", path, json.dumps(body), self._headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise SystemExit(f"{path}: {response.status} {text.decode()}")


def _cpu(pid: int) -> float:
    """Milliseconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS


def _settled_cpu(pid: int) -> float:
    """Processor time of a process once its background work (files, search) is done."""
    cpu = -1.0
    while (now := _cpu(pid)) - cpu > _IDLE_MS:
        cpu = now
        Event().wait(_PAUSE)
    return now


def _run(command: list[str]) -> float:
    """Run a command; milliseconds of processor time that it used."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=_ENVIRONMENT
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


def compare(
    other: Path, rounds: int, *, commands_only: bool = False
) -> dict[str, tuple[float, float]]:
    """Median costs of this tree and of the other one."""
    measured: dict[Path, dict[str, list[float]]] = {
        tree: defaultdict(list) for tree in (_HERE, other)
    }
    for number in range(rounds + 1):  # the first one compiles, and does not count
        for tree in (_HERE, other) if number % 2 else (other, _HERE):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                costs = measure_commands(tree, folder)
                costs |= {} if commands_only else measure_requests(tree, folder)
            for what, cost in costs.items() if number else ():
                measured[tree][what].append(cost)
    mine, theirs = measured[_HERE], measured[other]
    return {what: (statistics.median(mine[what]), statistics.median(theirs[what])) for what in mine}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.compare", description=__doc__)
    parser.add_argument("tree", type=Path, help="another checkout, with its .venv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", action="store_true", help="commands only, without a hub")
    options = parser.parse_args()
    measured = compare(options.tree.resolve(), options.rounds, commands_only=options.commands)
    for what, (mine, theirs) in measured.items():
        print(f"{what:28} {mine:8.2f} ms   other {theirs:8.2f} ms   ratio {mine / theirs:5.2f}")


if __name__ == "__main__":
    main()
