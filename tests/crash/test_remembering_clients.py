"""Served hubs killed under clients that remember every answer; two of them on one PostgreSQL.

`DRAGOMAN_LONG_TESTS=1` kills 200 times on each database, and prints how much was acknowledged.
"""

import http.client
import json
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.conftest import LONG_RUN
from tests.e2e.hub_process import HubProcess
from tests.e2e.program import Program
from tests.requirements import proves

KILLS: Final = 200 if os.environ.get(LONG_RUN) else 3
CLIENTS: Final = 4
WRITES_PER_KILL: Final = 40
"""Acknowledged writes between two kills, at the least."""
SETTINGS: Final = "[http]\nrate_per_second = 0\n[tasks]\nreview_required = false\n"


class Hubs:
    """Hubs that are served beside one another, on one store; each is started again when killed."""

    def __init__(self, folders: list[Path], bytecode: Path) -> None:
        self._programs = [Program(folder, bytecode) for folder in folders]
        self._running = [_start(program) for program in self._programs]
        tokens = ((folder / "token").read_text().strip() for folder in folders)
        self.addresses = [
            (hub.url, token) for hub, token in zip(self._running, tokens, strict=True)
        ]
        """URL of each hub, and the owner's token there."""

    def kill(self, number: int) -> None:
        """Kill a hub without warning, and start it again."""
        self._running[number].process.send_signal(signal.SIGKILL)
        self._running[number].process.communicate()
        self._running[number] = _start(self._programs[number])
        self.addresses[number] = (self._running[number].url, self.addresses[number][1])

    def stop(self) -> None:
        """Stop all hubs."""
        for hub in self._running:
            hub.stop()

    def close(self) -> None:
        """Kill what still runs, after a failure."""
        for program in self._programs:
            program.close()


def _start(program: Program) -> HubProcess:
    process = program.start("up", "--port", "0", "--json")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return HubProcess(process, json.loads(line))


class Client:
    """A client that repeats a request under its key until it is answered, and remembers that."""

    def __init__(self, hubs: Hubs, name: str) -> None:
        self._hubs = hubs
        self._rng = Random(name)
        self.name = name
        self.answers: dict[str, dict[str, Any]] = {}
        """Key -> the answer that it was given."""
        self.repeats = 0
        """Requests that were sent again, because nothing was heard."""

    def write(self, number: int) -> None:
        """Make a task, or add a remark to an earlier one; until the hub says that it is done."""
        key = f"{self.name}-{number}"
        path, body = self.request(number)
        while key not in self.answers:
            answer = self.send(path, body, key)
            if answer is None:
                self.repeats += 1
                threading.Event().wait(0.02)
            else:
                self.answers[key] = answer

    def request(self, number: int) -> tuple[str, dict[str, Any]]:
        """The path and body of this write."""
        task = f"{self.name}-{number - number % 4}"
        if number % 4 == 0:
            return "/v1/tasks", {"id": task, "title": f"{self.name}-{number}"}
        return f"/v1/tasks/{task}/note", {"text": f"{self.name}-{number}"}

    def send(self, path: str, body: dict[str, Any], key: str) -> dict[str, Any] | None:
        """Send a request to one of the hubs; None: no answer came."""
        url, token = self._rng.choice(self._hubs.addresses)
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if response.status == 503:
            return None
        assert response.status in (200, 201), text
        return json.loads(text)


def run_under_kills(hubs: Hubs, kills: int) -> list[Client]:
    """Have clients write while hubs are killed, until so many have been."""
    clients = [Client(hubs, f"c{number}") for number in range(CLIENTS)]
    is_over = threading.Event()

    def write(client: Client) -> None:
        number = 0
        while not is_over.is_set():
            client.write(number)
            number += 1

    rng = Random(26)
    with ThreadPoolExecutor(CLIENTS) as threads:
        running = [threads.submit(write, client) for client in clients]
        try:
            for _ in range(kills):
                goal = sum(len(client.answers) for client in clients) + WRITES_PER_KILL
                while sum(len(client.answers) for client in clients) < goal:
                    for one in running:
                        assert not one.done(), one.result()
                    threading.Event().wait(0.001)
                hubs.kill(rng.randrange(len(hubs.addresses)))
        finally:
            is_over.set()
        for one in running:
            one.result()
    return clients


def check_all(hubs: Hubs, clients: list[Client], data: Path, bytecode: Path) -> None:
    """Check that each acknowledged write is there once, and that a repeat is answered the same."""
    for client in clients:
        for key, answer in client.answers.items():
            path, body = client.request(int(key.partition("-")[2]))
            assert client.send(path, body, key) == answer, key
    hubs.stop()
    program = Program(data, bytecode)
    listed = program.run("events", "--json")
    events = [json.loads(line) for line in listed.out.splitlines()]
    assert [event["position"] for event in events] == [*range(1, len(events) + 1)]
    done = Counter(
        event["body"].get("title") or event["body"].get("text")
        for event in events
        if event["type"] in ("task.created", "task.noted")
    )
    assert done == Counter(key for client in clients for key in client.answers)
    assert program.run("verify").code == 0
    acknowledged, repeats = done.total(), sum(client.repeats for client in clients)
    print(f"{KILLS} kills, {acknowledged} writes acknowledged, {repeats} sent again")  # noqa: T201  the figures of a long run


@pytest.fixture
def folders(request: pytest.FixtureRequest, tmp_path: Path, bytecode: Path) -> list[Path]:
    """Give data directories with one store: one for SQLite, two for PostgreSQL."""
    first = tmp_path / "first"
    first.mkdir(mode=0o700)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    store = f'\n[store]\nurl = "{url}"\n' if url else ""
    (first / "dragoman.toml").write_text(SETTINGS + store)
    Program(first, bytecode).run("init")
    if not url:
        return [first]
    second = tmp_path / "second"
    second.mkdir(mode=0o700)
    shutil.copy2(first / "dragoman.toml", second / "dragoman.toml")
    shutil.copytree(first / "keys", second / "keys")
    return [first, second]


@pytest.fixture
def hubs(folders: list[Path], bytecode: Path) -> Generator[Hubs]:
    """Give a served hub for each data directory."""
    with ExitStack() as stack:
        served = Hubs(folders, bytecode)
        stack.callback(served.close)
        yield served


@proves("CRASH-CLIENTS", "STORE-DURABLE", "IDEM-REPEAT")
@pytest.mark.parametrize("folders", ["sqlite", "postgres"], indirect=True)
def test_served_hubs_lose_and_double_nothing_when_killed(
    hubs: Hubs, folders: list[Path], bytecode: Path
) -> None:
    clients = run_under_kills(hubs, KILLS)
    check_all(hubs, clients, folders[0], bytecode)
