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
from dragoman.engine.plan import Answer, Turned
from dragoman.surfaces.cli.place import House, Place
from dragoman.system.clock import HandClock


class Stage(Struct, frozen=True):
    """A hub with a manual clock. Files are up to date after each call."""

    place: Place
    clock: HandClock

    def wait(self, seconds: int) -> None:
        """Advance the clock."""
        self.clock.advance(seconds * 1_000)

    def do(self, actor: Actor, command: AnyCommand) -> Receipt:
        """Submit a command."""
        receipt = self.place.hub.do(actor, command).receipts[0]
        self._settle()
        return receipt

    def send(
        self, sender: Actor, kind: str, task: str, payload: dict[str, Any], to: str = "dispatcher"
    ) -> Answer:
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
        answer = self.place.interpreter.send(msgspec.json.encode(envelope), speaker=sender)
        assert answer is not None, "an envelope is always somebody's"
        self._settle()
        return answer

    def call(self, caller: Actor, operation: str, arguments: dict[str, Any]) -> Answer:
        """Call an operation."""
        answer = self.place.interpreter.call(operation, arguments, caller)
        self._settle()
        return answer

    def tick(self) -> None:
        """Run every service once."""
        now = self.clock.now()
        for duty in self.place.duties:
            duty.run_once(now)
        self._settle()

    def write(self, path: str, text: str) -> None:
        """Write a file below the data directory, as an agent does."""
        (self.place.data / path).write_text(text, encoding="utf-8")

    def last_move(self, task: str) -> str:
        """Last transition of a task in the event files, with its reason."""
        lines = (
            msgspec.json.decode(line)
            for log in sorted((self.place.data / "events").iterdir())
            for line in log.read_bytes().splitlines()
        )
        moves = [
            line["payload"]
            for line in lines
            if line["type"] == "task.transitioned" and line["taskId"] == task
        ]
        return "{from} → {to}, {reason}".format(**moves[-1])

    def _settle(self) -> None:
        for _, error in self.place.settle():
            raise error


def outcome(answer: Answer) -> str:
    """Status of the task after a message, or the refusal code."""
    if isinstance(answer, Turned):
        return f"refused, {answer.code}"
    return f"{answer.receipts[0].status}"


@contextmanager
def stage(house: House, start: int, keep: Path | None) -> Generator[Stage]:
    """Open a hub whose clock begins at `start`, in a temporary folder unless one is named."""
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        clock = HandClock(start)
        place = house.open_stage(keep or Path(folder), clock)
        try:
            yield Stage(place, clock)
        finally:
            place.hub.close()
