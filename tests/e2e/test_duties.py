"""Every duty in a hub that runs: what was left for it is done, though nobody calls `tick`."""

import json
import os
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from dragoman.bootstrap import open_look, open_place
from dragoman.core.commands import AddWorkItem, ClaimWorkItem
from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.engine.ports import Store
from dragoman.system.clock import SystemClock
from tests.e2e.program import NOON, Program
from tests.e2e.running import Running, hub, ready
from tests.engine.handoffs import accept, activate, make, offer, package
from tests.engine.lab import ALICE
from tests.notify.receiver import Receiver, receiving
from tests.protocols.aof.hub import PARENT, update
from tests.protocols.saop.hub import event, thought, turn
from tests.requirements import proves

AT_NOON = ("--now", NOON)
LONG_AGO = 1_000_000_000
PATIENCE = 60
BEATS = 4
"""A stream that has nothing to tell says so every 15 seconds; so often it is waited for."""

RESTED, SILENT, MOVED = (f"TASK-2026-02-09-{number:03}" for number in (51, 52, 53))

TOLD = {
    "recovery": ("task.requeued", f"task:{SILENT}"),
    "sla": ("mail.escalated", "mail:late"),
    "waves": ("wave.bead_released", "wave:w-1"),
    "entropy": ("entropy.escalated", "turns:task-abc-123"),
    "thoughts": ("trace.recorded", "trace:s-1"),
    "spawner": ("mail.answered", "mail:wanted"),
    "handing-on": ("workq.passed", "workq:wq-1"),
    "inbox": ("task.progressed", f"task:{PARENT}"),
    "files": ("task.transitioned", f"task:{MOVED}"),
}
"""Duty -> what the ledger tells of it, about what was left for it."""

BESIDE = {"promotion", "artifacts", "projection", "copies", "checkpoint", "notify", "search"}
"""Duties of which the ledger tells nothing."""


class Left:
    """A data directory with something to do for every duty; no command that leaves it does it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.data = program.data
        self._for_time()
        self._for_those_who_follow_turns()
        self._for_handing_on()
        self._for_files()

    def _for_time(self) -> None:
        do = self.program.prepare
        # First, because this tick would do the rest as well: the task rests from now on.
        do(
            "task",
            "create",
            "Rested",
            "--id",
            RESTED,
            "--ready",
            "--priority",
            "critical",
            *AT_NOON,
        )
        do("task", "claim", RESTED, "--agent", "ada", *AT_NOON)
        do("tick", "--now", "2026-02-09T12:10:00Z")
        do("task", "create", "Silent", "--id", SILENT, "--ready", *AT_NOON)
        do("task", "claim", SILENT, "--agent", "ada", *AT_NOON)
        lunch = ("--to", "bob", "--subject", "Lunch", "--body", "Now?", "--ack-within", "10m")
        do("mail", "send", "--id", "late", "--as", "ada", *lunch, *AT_NOON)
        do("wave", "start", "bead-a", "bead-b", "--parallel", "1", "--id", "w-1", *AT_NOON)
        do("task", "claim", "bead-a", "--agent", "ada", *AT_NOON)
        do("task", "move", "bead-a", "review", "--as", "ada", *AT_NOON)
        asked = ("--to", "spawner", "--subject", "SPAWN_REQUEST", "--body", "Issue: bead-z")
        do("mail", "send", "--id", "wanted", "--as", "olga", *asked)

    def _for_those_who_follow_turns(self) -> None:
        did = {"action": "edit", "observation": "Error: no such file"}
        for index in range(3):
            self._call("saop.turn", turn(index, content=did), "developer")
        an_hour_ago = ("--now", to_rfc3339(SystemClock().now() - 3_600_000))
        self._call("saop.event", event(1, thought("without an end")), "developer", *an_hour_ago)

    def _for_handing_on(self) -> None:
        """The hub died between `activate` and the moment at which items go along."""
        place = open_place(self.data, "", parse_rfc3339(NOON), create=True)
        with closing(place.hub) as at_noon:
            at_noon.do(ALICE, AddWorkItem("Login", id="wq-1"))
            at_noon.do(ALICE, ClaimWorkItem("wq-1"))
            content: dict[str, Any] = package()
            content["task"]["external_refs"] = [{"type": "workq_item", "value": "wq-1"}]
            make(at_noon)
            offer(at_noon, package=content)
            accept(at_noon)
            activate(at_noon)

    def _for_files(self) -> None:
        do = self.program.prepare
        do("task", "create", "Moved", "--id", MOVED)
        do("task", "create", "Told by file", "--id", PARENT, "--ready")
        do("task", "claim", PARENT, "--agent", "swe-backend")
        tasks, inbox = self.data / "tasks", self.data / "inbox" / "swe-backend"
        (tasks / "backlog" / f"{MOVED}.md").rename(tasks / "ready" / f"{MOVED}.md")
        inbox.mkdir(parents=True)
        (inbox / "1.json").write_text(json.dumps(update(progress="Half of it")))
        name = "ab" * 32
        self.leftover = self._old(self.data / "artifacts" / "incoming" / "x")
        self.copy = self._old(self.data / "artifacts" / "sha256" / name[:2] / name)

    def _call(self, operation: str, said: dict[str, Any], agent: str, *more: str) -> None:
        self.program.prepare("call", operation, json.dumps(said), "--as", agent, *more)

    def _old(self, path: Path) -> Path:
        path.parent.mkdir(parents=True)
        path.write_text("old")
        os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def tell(self, receiver: Receiver) -> None:
        """From now on somebody is told of tasks that are ready."""
        (self.data / "dragoman.toml").write_text(
            f'[notify]\nwebhook_url = "{receiver.url()}"\nallow_hosts = ["127.0.0.1"]\n'
            'webhook_secret = "not much of a secret"\nstatuses = ["ready"]\n'
        )


class Door:
    """The door of a hub that runs, for its owner."""

    def __init__(self, running: Running, data: Path) -> None:
        self._url = running.url
        self._headers = {
            "Authorization": f"Bearer {(data / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        }

    def post(self, path: str, **said: Any) -> Any:
        with self._ask(path, json.dumps(said).encode()) as answer:
            return json.loads(answer.read() or b"null")

    def follow(self, after: int, wanted: set[tuple[str, str]]) -> None:
        """Read the ledger from this position on until it has told all of this."""
        missing, beats = set(wanted), 0
        with self._ask(f"/v1/stream?after={after}") as stream:
            while missing:
                line = stream.readline()
                beats += line.startswith(b":")
                assert line, missing
                assert beats < BEATS, missing
                if line.startswith(b"data:"):
                    entry = json.loads(line.removeprefix(b"data:"))
                    missing.discard((entry.get("type"), entry.get("stream")))

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310  our own hub
            f"{self._url}{path}", body, self._headers
        )
        return urllib.request.urlopen(request, timeout=PATIENCE)  # noqa: S310  the same


def signed(data: Path) -> int:
    """How far the ledger was signed."""
    last = (data / "checkpoints.jsonl").read_text().splitlines()[-1]
    return json.loads(last)["size"]


def queued(store: Store) -> set[str]:
    """What is in the queue; a claim would put there whatever has rested."""
    return store.transact(lambda session: {key.name for key in session.ready("", None, 1_000)})


@proves("HUB-UP", "HUB-ALL-DUTIES")
def test_a_hub_does_what_was_left_for_every_duty(program: Program) -> None:
    left = Left(program)
    with receiving() as receiver, closing(open_look(left.data, "", None).store) as store:
        left.tell(receiver)
        indexed, head = store.indexed(), store.head()
        with hub(program) as running:
            door = Door(running, left.data)
            door.follow(head, set(TOLD.values()))
            assert receiver.is_done.wait(PATIENCE)
            shown = ready(running.url)["duties"]
            made = door.post("/v1/tasks", title="Last")["id"]
            assert running.stop().code == 0
        assert not left.leftover.exists()
        assert not left.copy.exists()
        assert store.indexed() > indexed
        assert f"task:{RESTED}" in queued(store)
        assert signed(left.data) == store.head()
    assert (left.data / "tasks" / "backlog" / f"{made}.md").exists()
    names = set(program.ask_here("tick")["duties"])
    assert set(shown) == names | {"dispatch"}
    assert names == {*TOLD, *BESIDE}, "each duty is shown at work above"
