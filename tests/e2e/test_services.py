"""Every service of a running hub does its pending work without `tick`."""

import json
import os
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from dragoman.bootstrap.stores import open_readonly
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.system.clock import SystemClock
from tests.e2e.hub_process import HubProcess, get_readiness, run_hub
from tests.e2e.program import NOON, Program
from tests.notify.receiver import Receiver, receiving
from tests.protocols.aof.hub import PARENT, update
from tests.protocols.saop.hub import event, thought, turn
from tests.requirements import proves

AT_NOON = ("--now", NOON)
LONG_AGO = 1_000_000_000
TIMEOUT_S = 60
MAX_KEEPALIVES = 4
"""An idle stream sends a keepalive every 15 seconds; the test fails after so many."""

RETRIED, EXPIRED, MOVED, QUIET, CHECKED = (
    f"TASK-2026-02-09-{number:03}" for number in (51, 52, 53, 54, 55)
)

EXPECTED_EVENTS = {
    "lease-expiry": ("task.requeued", f"task:{EXPIRED}"),
    "attempt-limits": ("attempt.quiet", f"task:{QUIET}"),
    "checks": ("task.checked", f"task:{CHECKED}"),
    "sla": ("mail.escalated", "mail:late"),
    "waves": ("wave.bead_released", "wave:w-1"),
    "entropy": ("entropy.escalated", "turns:task-abc-123"),
    "stale-streams": ("trace.recorded", "trace:s-1"),
    "spawner": ("mail.answered", "mail:wanted"),
    "inbox": ("task.progressed", f"task:{PARENT}"),
    "file-watch": ("task.transitioned", f"task:{MOVED}"),
}
"""Service -> event type and stream that prove its work."""

SERVICES_WITHOUT_EVENTS = {
    "retry-promotion",
    "artifacts",
    "projection",
    "checkpoint",
    "deliverer",
    "notifier",
    "owner-inbox",
    "search-index",
}
"""Services whose work leaves no entry in the ledger."""


class PendingWork:
    """Data directory with pending work for every service; no command that creates it does it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.data = program.data
        self._prepare_time_services()
        self._prepare_attempt_services()
        self._prepare_file_services()

    def _prepare_time_services(self) -> None:
        run = self.program.prepare
        # First, because this tick would do the other work as well: the task begins its cooldown.
        run(
            "task",
            "create",
            "Rested",
            "--id",
            RETRIED,
            "--ready",
            "--priority",
            "critical",
            *AT_NOON,
        )
        run("task", "claim", RETRIED, "--agent", "ada", *AT_NOON)
        run("tick", "--now", "2026-02-09T12:10:00Z")
        run("task", "create", "Silent", "--id", EXPIRED, "--ready", *AT_NOON)
        run("task", "claim", EXPIRED, "--agent", "ada", *AT_NOON)
        lunch = ("--to", "bob", "--subject", "Lunch", "--body", "Now?", "--ack-within", "10m")
        run("mail", "send", "--id", "late", "--as", "ada", *lunch, *AT_NOON)
        run("wave", "start", "bead-a", "bead-b", "--parallel", "1", "--id", "w-1", *AT_NOON)
        run("task", "claim", "bead-a", "--agent", "ada", *AT_NOON)
        run("task", "move", "bead-a", "review", "--as", "ada", *AT_NOON)
        request = ("--to", "spawner", "--subject", "SPAWN_REQUEST", "--body", "Issue: bead-z")
        run("mail", "send", "--id", "wanted", "--as", "olga", *request)

    def _prepare_attempt_services(self) -> None:
        content = {"action": "edit", "observation": "Error: no such file"}
        for index in range(3):
            self._call("saop.turn", turn(index, content=content), "developer")
        an_hour_ago = ("--now", to_rfc3339(SystemClock().now() - 3_600_000))
        run = self.program.prepare
        run("task", "create", "Checked", "--id", CHECKED, "--ready", "--check", "true")
        run("task", "claim", CHECKED, "--agent", "eve")
        run("task", "complete", CHECKED, "--agent", "eve")
        run("task", "create", "Quiet", "--id", QUIET, "--ready", *an_hour_ago)
        run("task", "claim", QUIET, "--agent", "eve", "--ttl", "2h", *an_hour_ago)
        self._call("saop.event", event(1, thought("without an end")), "developer", *an_hour_ago)

    def _prepare_file_services(self) -> None:
        run = self.program.prepare
        run("task", "create", "Moved", "--id", MOVED)
        run("task", "create", "Told by file", "--id", PARENT, "--ready")
        run("task", "claim", PARENT, "--agent", "swe-backend")
        tasks, inbox = self.data / "tasks", self.data / "inbox" / "swe-backend"
        (tasks / "backlog" / f"{MOVED}.md").rename(tasks / "ready" / f"{MOVED}.md")
        inbox.mkdir(parents=True)
        (inbox / "1.json").write_text(json.dumps(update(progress="Half of it")))
        self.leftover = self._write_old(self.data / "artifacts" / "incoming" / "x")

    def _call(self, operation: str, message: dict[str, Any], agent: str, *options: str) -> None:
        self.program.prepare("call", operation, json.dumps(message), "--as", agent, *options)

    def _write_old(self, path: Path) -> Path:
        path.parent.mkdir(parents=True)
        path.write_text("old")
        os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def enable_notify(self, receiver: Receiver) -> None:
        """Notify a webhook of ready tasks from now on."""
        (self.data / "dragoman.toml").write_text(
            f'[notify]\nwebhook_url = "{receiver.url()}"\nallow_hosts = ["127.0.0.1"]\n'
            'webhook_secret = "not much of a secret"\nstatuses = ["ready"]\n'
        )


class OwnerClient:
    """HTTP client of a running hub, as its owner."""

    def __init__(self, running: HubProcess, data: Path) -> None:
        self._url = running.url
        self._headers = {
            "Authorization": f"Bearer {(data / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        }

    def post(self, path: str, **body: Any) -> Any:
        with self._request(path, json.dumps(body).encode()) as answer:
            return json.loads(answer.read() or b"null")

    def follow(self, after: int, expected: set[tuple[str, str]]) -> None:
        """Read the stream after a position until all expected events came."""
        missing, keepalives = set(expected), 0
        with self._request(f"/v1/stream?after={after}") as stream:
            while missing:
                line = stream.readline()
                keepalives += line.startswith(b":")
                assert line, missing
                assert keepalives < MAX_KEEPALIVES, missing
                if line.startswith(b"data:"):
                    entry = json.loads(line.removeprefix(b"data:"))
                    missing.discard((entry.get("type"), entry.get("stream")))

    def _request(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310  our own hub
            f"{self._url}{path}", body, self._headers
        )
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310  the same


def signed_size(data: Path) -> int:
    """Number of signed entries."""
    last = (data / "checkpoints.jsonl").read_text().splitlines()[-1]
    return json.loads(last)["size"]


def ready_streams(store: Store) -> set[str]:
    """Streams in the ready queue; a claim would add those whose cooldown has ended."""
    return store.transact(lambda session: {key.name for key in session.ready_page("", None, 1_000)})


@proves("HUB-UP", "HUB-ALL-DUTIES")
def test_running_hub_does_the_pending_work_of_every_service(program: Program) -> None:
    pending = PendingWork(program)
    with receiving() as receiver, closing(open_readonly(pending.data, "", None).store) as store:
        pending.enable_notify(receiver)
        indexed, head = store.indexed_position(), store.head()
        with run_hub(program) as running:
            client = OwnerClient(running, pending.data)
            client.follow(head, set(EXPECTED_EVENTS.values()))
            assert receiver.is_done.wait(TIMEOUT_S)
            readiness = get_readiness(running.url)["services"]
            created = client.post("/v1/tasks", title="Last")["id"]
            assert running.stop().code == 0
        assert not pending.leftover.exists()
        assert store.indexed_position() > indexed
        assert f"task:{RETRIED}" in ready_streams(store)
        assert signed_size(pending.data) == store.head()
    assert (pending.data / "tasks" / "backlog" / f"{created}.md").exists()
    names = set(program.ask_here("tick")["services"])
    assert set(readiness) == names | {"dispatch"}
    assert names == {*EXPECTED_EVENTS, *SERVICES_WITHOUT_EVENTS}, "each duty is shown at work above"
