"""A stage for the demo: a real hub on a real disk, under a clock that is moved by hand."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Receipt
from dragoman.engine.plan import Rejected, Reply
from dragoman.surfaces.cli.place import CliWiring, DataDirectory
from dragoman.system.clock import ManualClock


class DemoHub(Struct, frozen=True):
    """A hub with a manual clock. Files are up to date after each call."""

    directory: DataDirectory
    clock: ManualClock

    def advance(self, seconds: int) -> None:
        """Advance the clock."""
        self.clock.advance(seconds * 1_000)

    def submit(self, actor: Actor, command: AnyCommand) -> Receipt:
        """Submit a command."""
        receipt = self.directory.hub.submit(actor, command).receipts[0]
        self._catch_up()
        return receipt

    def send(
        self, sender: Actor, kind: str, task: str, payload: dict[str, Any], to: str = "dispatcher"
    ) -> Reply:
        """Send an AOF message as its sender."""
        envelope = {
            "protocol": "aof",
            "version": 1,
            "type": kind,
            "taskId": task,
            "fromAgent": sender.name,
            "toAgent": to,
            "sentAt": to_rfc3339(self.clock.now()),
            "payload": payload,
        }
        answer = self.directory.router.send(msgspec.json.encode(envelope), speaker=sender)
        assert answer is not None, "an envelope is always somebody's"
        self._catch_up()
        return answer

    def call_operation(self, caller: Actor, operation: str, arguments: dict[str, Any]) -> Reply:
        """Call an operation."""
        answer = self.directory.router.call(operation, arguments, caller)
        self._catch_up()
        return answer

    def tick(self) -> None:
        """Run every service once."""
        now = self.clock.now()
        for duty in self.directory.services:
            duty.run_once(now)
        self._catch_up()

    def write_file(self, path: str, text: str) -> None:
        """Write a file below the data directory, as an agent does."""
        (self.directory.path / path).write_text(text, encoding="utf-8")

    def last_transition(self, task: str) -> str:
        """Last transition of a task in the event files, with its reason."""
        lines = (
            msgspec.json.decode(line)
            for log in sorted((self.directory.path / "events").iterdir())
            for line in log.read_bytes().splitlines()
        )
        moves = [
            line["payload"]
            for line in lines
            if line["type"] == "task.transitioned" and line["taskId"] == task
        ]
        return "{from} → {to}, {reason}".format(**moves[-1])

    def _catch_up(self) -> None:
        for _, error in self.directory.catch_up():
            raise error


def describe_outcome(answer: Reply) -> str:
    """Status of the task after a message, or the refusal code."""
    if isinstance(answer, Rejected):
        return f"refused, {answer.code}"
    return f"{answer.receipts[0].status}"


@contextmanager
def open_demo_hub(wiring: CliWiring, start: int, keep: Path | None) -> Generator[DemoHub]:
    """Open a hub whose clock begins at `start`, in a temporary folder unless one is named."""
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        clock = ManualClock(start)
        directory = wiring.open_demo_directory(keep or Path(folder), clock)
        try:
            yield DemoHub(directory, clock)
        finally:
            directory.hub.close()
