"""`tick`: runs every service once; a second run finds nothing to do."""

import json
from errno import ENOSPC
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.bootstrap.data_directory import open_directory
from dragoman.services.scheduler import ServiceGroup
from dragoman.surfaces.cli.data_directory import DataDirectory
from tests.protocols.aof.hub import PARENT, update
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

SERVICES = (
    "lease-expiry",
    "attempt-limits",
    "sla",
    "waves",
    "entropy",
    "stale-streams",
    "spawner",
    "retry-promotion",
    "deliverer",
    "inbox",
    "file-watch",
    "artifacts",
    "projection",
    "checks",
    "checkpoint",
    "notifier",
    "owner-inbox",
    "search-index",
)

LATER = "2026-02-09T12:10:00Z"

pytestmark = proves("CLI-TICK")


@proves("LEASE-RECOVERY", "RETRY-BACKOFF")
def test_tick_recovers_promotes_and_signs(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)

    early = dragoman.ask("tick", "--now", "2026-02-09T12:04:59Z")
    assert early["services"] == dict.fromkeys(SERVICES, 0)
    assert dragoman.ask("tick", "--now", LATER)["services"]["lease-expiry"] == 1
    assert dragoman.ask("task", "show", "T-1")["status"] == "ready"
    assert dragoman.ask("tick", "--now", "2026-02-09T12:10:05Z")["services"]["retry-promotion"] == 1


def test_second_tick_at_the_same_time_changes_nothing(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("tick", "--now", LATER)
    before = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()

    again = dragoman.ask("tick", "--now", LATER)

    assert set(again["services"].values()) == {0}
    after = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()
    assert after == before


def test_tick_prints_the_count_of_every_service(dragoman: Console) -> None:
    lines = dragoman("tick").out.splitlines()

    assert [line.split()[:2] for line in lines] == [[service, "0"] for service in SERVICES]
    assert all(len(line.split()) > 2 for line in lines), "and what is counted"


@proves("LEDGER-CHECKPOINT")
def test_every_write_command_leaves_a_checkpoint_of_the_whole_ledger(
    dragoman: Console,
) -> None:
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-9", "--agent", "ada", code=1)

    head = len(dragoman("events", "--json").objects)
    assert head == 2, "a refusal is an entry too"
    assert dragoman.ask("verify")["checkpoints"] == 2
    last = (dragoman.data / "checkpoints.jsonl").read_text().splitlines()[-1]
    assert f'"size":{head}' in last


class FailingService:
    """Service for which the disk is full."""

    name = "first"

    def run_once(self, now: int) -> int:
        """Fail."""
        raise OSError(ENOSPC, "No space left on device")


def open_with_failing_service(
    data: Path, store: str, now: int | None, *, create: bool, **_: bool
) -> DataDirectory:
    """Open a data directory whose first service fails."""
    directory = open_directory(data, store, now, create=create)
    parts = directory.parts
    groups = (ServiceGroup("first", (FailingService(),)), *parts.service_groups)
    return replace(directory, build_parts=lambda: replace(parts, service_groups=groups))


@proves("CLI-EXIT")
def test_failing_service_is_reported_and_stops_no_other(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    failing = Console(dragoman.data, open_with_failing_service)

    reply = failing.ask("tick", "--now", LATER, code=1)

    assert (reply["ok"], set(reply["services"])) == (False, set(SERVICES))
    assert reply["services"]["lease-expiry"] == 1
    assert reply["failed"]["first"]["code"] == "store_unavailable"
    assert dragoman.ask("task", "show", "T-1")["status"] == "ready"
    result = failing("tick")
    assert result.code == 1
    assert "first failed: store_unavailable: No space left on device" in result.err


@proves("FILES-INBOX", "ROLE-TABLE")
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("folder", ["inbox", "inbox/boss"])
def test_inbox_messages_have_at_most_the_agent_role(
    dragoman: Console, folder: str, trusted: bool
) -> None:
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend")
    dragoman.ask("task", "move", PARENT, "review", "--as", "swe-backend")
    approval = update(agentId="boss", status="done") | {"fromAgent": "boss"}
    if trusted:
        (dragoman.data / "dragoman.toml").write_text("[files]\ntrust_moves = true\n")
    slot = dragoman.data / folder
    slot.mkdir(exist_ok=True)
    (slot / "1.json").write_text(json.dumps(approval))

    dragoman.ask("tick")

    assert dragoman.ask("task", "show", PARENT)["status"] == ("done" if trusted else "review")
    if not trusted:
        reason = (slot / "rejected/1.json.reason.txt").read_text()
        assert reason.startswith("unauthorized_agent: orchestrator:boss cannot send through the")
        last = dragoman("events", "--json").objects[-1]
        assert (last["actor"], last["body"]["code"]) == ("orchestrator:boss", "not_authorized")


def service_line(service: str, output: str) -> str:
    """The line of `tick` about one service."""
    return next(line for line in output.splitlines() if line.startswith(service))


def test_counts_are_explained(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "T-2", "--ready", "--now", NOON)
    for task in ("T-1", "T-2"):
        dragoman.ask("task", "claim", task, "--agent", "ada", "--now", NOON)

    line = service_line("lease-expiry", dragoman("tick", "--now", LATER).out)

    assert line == "lease-expiry          2  leases ended, by a report or by taking the task back"
    assert dragoman("tick", "--now", LATER).out.startswith("lease-expiry          0  leases ended")


@proves("FILES-INBOX")
def test_broken_json_in_the_inbox_is_reported_with_its_place(dragoman: Console) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    (dragoman.data / "inbox" / "1.json").write_bytes(b'{"subject": ')

    dragoman("tick")

    reason = (dragoman.data / "inbox/rejected/1.json.reason.txt").read_text()
    assert reason.startswith("invalid_json: this is not JSON: it ends before it is complete")


@proves("FILES-INBOX")
def test_rejected_inbox_files_are_counted_separately(dragoman: Console) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    for name in ("1.json", "2.json"):
        (dragoman.data / "inbox" / name).write_text("AOF/1 {")

    assert service_line("inbox", dragoman("tick").out) == (
        "inbox                 2  messages of the inbox answered; "
        "rejected, with the reason beside it: 2"
    )
    assert dragoman.ask("tick")["remarks"] == {}


@proves("NOTIFY-AT-LEAST-ONCE", "CLI-DOCTOR")
def test_failing_notification_target_is_reported_by_tick_and_doctor(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    (dragoman.data / "dragoman.toml").write_text('[notify]\ncommand = ["/bin/false"]\n')
    dragoman.ask("tick", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "blocked", "--now", NOON)

    remark = dragoman.ask("tick", "--now", NOON)["remarks"]["notifier"]
    assert remark.startswith("command: ")
    assert remark.endswith("(tried 1 of 10 times, again after 2026-02-09T12:00:05.000Z)")
    assert service_line("notifier", dragoman("tick", "--now", NOON).out).endswith(remark)
    (found,) = [
        check
        for check in dragoman.ask("doctor", "--now", NOON)["checks"]
        if check["name"] == "notify"
    ]
    assert (found["state"], found["found"]) == ("warning", remark)
    for day in range(10, 20):
        dragoman.ask("tick", "--now", f"2026-02-{day}T12:00:00Z")
    assert "command: 1 notification was given up" in dragoman("doctor").out
    assert dragoman.ask("tick")["remarks"] == {}


@proves("CLOCK-SET-TOLD")
def test_entries_of_a_tick_with_now_option_record_it(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("tick", "--now", LATER)

    entries = dragoman("events", "--json").objects

    assert "system:hub" in {entry["actor"] for entry in entries}
    assert all(entry["via"].endswith("--now") for entry in entries)


@proves("DELIVERY-DIALECT")
def test_tick_delivers_into_the_folder_of_an_agent(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("agent", "add", "ada", "--speaks", "aof")
    letter = {"subject": "[T-1] HELP_RESPONSE", "body_md": "Bead: T-1\nTake it.", "to": ["ada"]}
    dragoman.ask("call", "mail.send", json.dumps(letter), "--as", "mia")

    assert dragoman.ask("tick")["services"]["deliverer"] == 1
    assert dragoman.ask("tick")["services"]["deliverer"] == 0
    (file,) = (dragoman.data / "deliveries" / "ada").iterdir()
    message = json.loads(file.read_text(encoding="utf-8"))
    assert (message["type"], message["fromAgent"]) == ("status.update", "mia")
    assert dragoman("verify").code == 0
