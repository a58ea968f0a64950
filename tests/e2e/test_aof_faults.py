"""Hostile messages, references and texts, replays, races and crashes: clear refusals, no damage."""

import json
import os
import random
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import Actor
from dragoman.core.task_state import CreateTask
from dragoman.files.task_file import WORK_LOG, parse_task_file
from dragoman.files.work_log import LogEntry, format_entry
from tests.e2e.aof_hub import BACKEND, QA, AofHub
from tests.e2e.program import COMMAND, Program, wait_for_exit
from tests.e2e.test_faults import NOBODY_UID, run_as_nobody
from tests.protocols.aof.hub import (
    CHILD,
    PARENT,
    accepted,
    envelope,
    report,
    request,
    update,
)
from tests.requirements import proves
from tests.surfaces.cli.console import Console

Message = dict[str, Any]

HOSTILE = (
    "a\n---\nstatus: done\n---\n## Work Log\n\n- 2026-01-01T00:00:00.000Z Progress: fake | Notes: x"
    "\r\n\x1b[31m<script>\u202e\u2028 | Blockers: z; y &amp; \\n \\u{1b}\x00\x85 \U0001f600"
)
"""Ends the front matter, fakes an entry, a section and a field, controls a terminal."""


@pytest.fixture
def hub(tmp_path: Path) -> AofHub:
    """Give a hub where swe-backend holds the parent, and the child is ready."""
    hub = AofHub(tmp_path / "hub")
    hub.create_claimed(PARENT, BACKEND, session="s-1")
    hub.create_ready(CHILD)
    return hub


def snapshot(hub: AofHub) -> dict[str, bytes]:
    """Content of every file of tasks, runs and events, except heartbeats, which change."""
    return {
        str(path.relative_to(hub.data)): path.read_bytes()
        for part in ("tasks", "runs", "events")
        for path in (hub.data / part).rglob("*")
        if path.is_file() and path.name != "run_heartbeat.json"
    }


# Messages

VALID = json.dumps(update(progress="x"))


def with_field(text: str) -> str:
    return f'{VALID[:-1]}, "n": {text}}}'


BAD_JSON: dict[str, str | bytes] = {
    "deep": with_field("[" * 40 + "]" * 40),
    "very deep": with_field("[" * 100_000 + "]" * 100_000),
    "a key twice": VALID[:-1] + ', "type": "completion.report"}',
    "an inner key twice": VALID.replace('"agentId"', '"agentId": "eve", "agentId"'),
    "NaN": with_field("NaN"),
    "Infinity": with_field("-Infinity"),
    "out of range": with_field("1e999"),
    "beyond 2^53": with_field("9007199254740993"),
    "half a pair": VALID.replace('"x"', '"\\ud800"'),
    "not UTF-8": VALID.encode().replace(b'"x"', b'"\xff"'),
    "cut off": VALID[:-20],
    "two values": VALID + VALID,
}


@proves("JSON-STRICT", "AOF-REASONS", "CLI-SEND")
def test_untrusted_json_is_refused_and_recorded(hub: AofHub) -> None:
    for name, message in BAD_JSON.items():
        before = len(hub.events_of_type("protocol.message.rejected"))
        assert hub.refusal_code(message) == "invalid_json", name
        assert len(hub.events_of_type("protocol.message.rejected")) == before + 1, name
    too_long = json.dumps(update(progress="x" * 300_000))
    assert hub.refusal_code(too_long) == "message_too_large"
    assert "Work Log" not in hub.task_file(PARENT)
    hub.assert_verified()


@proves("AOF-ENVELOPE")
def test_mistyped_fields_are_refused_by_name(hub: AofHub) -> None:
    envelope_fields: tuple[tuple[str, object], ...] = (
        ("version", "1"),
        ("version", True),
        ("version", 2),
        ("type", 5),
        ("taskId", f"{PARENT}\n"),
        ("taskId", "TASK-2026-02-09-０５７"),
        ("taskId", "../../etc/passwd"),
        ("fromAgent", "../eve"),
        ("fromAgent", ""),
        ("toAgent", None),
        ("sentAt", "2026-02-30T21:00:00Z"),
        ("sentAt", "2026-02-09T21:00:00"),
        ("payload", []),
    )
    for field, value in envelope_fields:
        result = hub.try_send(update(progress="x") | {field: value})
        assert (result.code, result.json["code"]) == (1, "invalid_envelope"), (field, value)
        assert result.json["detail"].startswith(f"{field}: ")
    for field, value in (
        ("progress", 1),
        ("progress", "x" * 70_000),
        ("blockers", "x"),
        ("blockers", ["x"] * 5_000),
        ("blockers", [1]),
    ):
        result = hub.try_send(update(**{field: value}))
        assert (result.code, result.json["code"]) == (1, "invalid_envelope"), field
        assert result.json["detail"].startswith(f"payload.{field}")
    hub.assert_verified()


@proves("AOF-ENVELOPE")
def test_whole_number_may_be_written_with_a_point(hub: AofHub) -> None:
    message = json.dumps(report("partial")).replace('"version": 1', '"version": 1.0')

    hub.send(message.replace('"total": 3', '"total": 3.0').replace('"failed": 1', '"failed": 1.0'))

    tests = hub.run_artifact(PARENT, "run_result.json")["tests"]
    assert json.dumps(tests) == '{"total": 3, "passed": 2, "failed": 1}'
    half = report(tests={"total": 3, "passed": 1.5, "failed": 0})
    assert hub.refusal_code(half) == "invalid_envelope"


@proves("PATH-INSIDE", "AOF-WARNINGS", "AOF-ENVELOPE")
def test_reference_outside_the_folder_is_refused_in_every_field(hub: AofHub) -> None:
    refs = ("../x", "/etc/passwd", "a/../../x", "..", "C:\\x", "a\\..\\b", "a\0b", "", "a\nb")
    messages = [("payload.summaryRef", report(summaryRef=ref)) for ref in refs]
    messages += [
        ("payload.handoffRef", report(handoffRef="../x")),
        ("payload.deliverables[0]", report(deliverables=["/x"])),
        ("payload.contextRefs[0]", request(contextRefs=["../x"])),
        ("payload.expectedOutputs[0]", request(expectedOutputs=["a/../../x"])),
    ]
    for path, message in messages:
        result = hub.try_send(message)
        assert (result.code, result.json["code"]) == (1, "invalid_envelope"), message
        assert result.json["detail"].startswith(f"{path}: "), message
    # Unusual but inside: reported as missing, never an error.
    for ref in ("./x", "~/x", "%2e%2e/x", "...", "a/" * 100 + "a", "y" * 255):
        assert hub.send(report(summaryRef=ref))["warnings"], ref
    hub.assert_verified()


@proves("FILES-ROUND-TRIP", "CLI-SAFE-TEXT")
def test_text_cannot_forge_a_field_a_line_or_a_terminal_command(hub: AofHub) -> None:
    title = HOSTILE.replace("\n", " ").replace("\r", " ").replace("\x00", "")[:120]
    third = hub.console.make(title, "--body", HOSTILE.replace("\x00", ""))
    hub.send(update(progress=HOSTILE, notes=HOSTILE, blockers=[HOSTILE, "two"]))
    hub.send(request(acceptanceCriteria=[HOSTILE], constraints=[HOSTILE, "- x"]))
    hub.send(update(status="blocked", blockers=[HOSTILE]))

    page = hub.task_file(PARENT)
    assert page.count("\n## Work Log\n") == 1
    assert page.count("\n- 20") == 1
    file = parse_task_file(page.encode())
    (entry,) = file.hub_parts[WORK_LOG]
    written = format_entry(LogEntry(0, HOSTILE, HOSTILE, (HOSTILE, "two")))
    assert entry.split(" ", 2)[2] == written.split(" ", 2)[2]
    assert (file.status, file.title) == ("blocked", "A task")
    made = parse_task_file(hub.task_file(third).encode())
    assert (made.title, made.body) == (title, HOSTILE.replace("\x00", ""))
    handoff = json.loads((hub.task_folder(CHILD) / "inputs/handoff.json").read_text())
    assert handoff["constraints"] == [HOSTILE, "- x"]
    lines = (hub.task_folder(CHILD) / "inputs/handoff.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## Acceptance Criteria",
        "## Expected Outputs",
        "## Context References",
        "## Constraints",
    ]
    assert sum(line.startswith("- ") for line in lines) == 5
    moved = hub.events_of_type("task.transitioned")[-1]
    assert moved["payload"]["reason"] == HOSTILE
    shown = hub.console("task", "show", third).out + hub.console("task", "log", PARENT).out
    everything = page + hub.task_file(third) + "\n".join(lines) + shown
    assert not set("\x1b\u202e\u2028\x00\x85") & set(everything)
    hub.assert_verified()


# Replays


@proves("AOF-REPEAT", "IDEM-REPEAT")
def test_replayed_session_changes_nothing_in_any_order(hub: AofHub) -> None:
    session: list[Message] = [
        update(progress="One"),
        update(progress="Two", notes="Still") | {"sentAt": "2026-02-09T21:01:00Z"},
        request(),
        accepted(),
        update(status="in-progress", notes="Three") | {"sentAt": "2026-02-09T21:02:00Z"},
        report("partial"),
        report("done") | {"sentAt": "2026-02-09T21:03:00Z"},
    ]
    for message in session:
        hub.send(message)
    hub.console.ask("session-end", "--session", "s-1")
    hub.console.ask("task", "move", PARENT, "done")
    before, entries = snapshot(hub), hub.console("events", "--json").out
    rng = random.Random(7)

    for _ in range(3):
        rng.shuffle(session)
        for message in session:
            hub.send(message)

    assert snapshot(hub) == before
    assert hub.console("events", "--json").out == entries
    hub.assert_verified()


# Concurrency and volume


def create_tasks(data: Path, count: int) -> None:
    """Create many tasks of one day, without their files."""
    directory = open_directory(data, "", 1_770_638_400_000, create=True)
    actor = Actor("human", "hera", "test")
    for start in range(0, count, 100):
        made = (CreateTask(f"Task {start + n}", ready=True) for n in range(100))
        directory.hub.submit(actor, *made)
    directory.hub.close()


@proves("NAME-AOF-ID", "FILES-PROJECTION")
def test_1500_tasks_of_one_day_have_unique_ids(tmp_path: Path) -> None:
    hub = AofHub(tmp_path / "hub")
    create_tasks(hub.data, 1_500)
    hub.console.ask("tick", "--now", "2026-02-09T12:00:00Z")

    names = {path.stem for path in (hub.data / "tasks/ready").glob("*.md")}
    assert len(names) == 1_500
    short = {name for name in names if len(name) == len(PARENT)}
    assert short == {f"TASK-2026-02-09-{n:03}" for n in range(1, 1_000)}
    late = min(names - short)
    hub.claim(late, BACKEND, "--now", "2026-02-09T12:00:01Z")
    payload = report()["payload"]
    hub.send(
        envelope("completion.report", BACKEND, payload, taskId=late),
        "--now",
        "2026-02-09T12:00:02Z",
    )
    assert hub.run_artifact(late, "run_result.json")["taskId"] == late
    assert len(hub.event_lines()) == 1_504
    hub.assert_verified()


@proves("FILES-EDITS", "FILES-FOLDER")
@pytest.mark.parametrize("target", ["blocked", "backlog", "done"])
def test_concurrent_move_by_person_and_agent_is_consistent(hub: AofHub, target: str) -> None:
    page = (hub.data / f"tasks/ready/{CHILD}.md").read_text()
    work = hub.task_folder(CHILD) / "work"
    with (work / "log.txt").open("w") as log:
        log.write("one\n")
        log.flush()
        (hub.data / f"tasks/ready/{CHILD}.md").rename(hub.data / f"tasks/{target}/{CHILD}.md")
        hub.claim(CHILD, QA)
        log.write("two\n")
    hub.console.ask("tick")

    status = hub.status(CHILD)
    assert (hub.task_folder(CHILD) / "work/log.txt").read_text() == "one\ntwo\n"
    assert page.splitlines()[1] in hub.task_file(CHILD)
    assert status == "in-progress" or hub.console.ask("task", "show", CHILD)["lease"] is None
    hub.assert_verified()


@proves("FILES-PROJECTION", "CLI-SEND", "AOF-REPEAT")
def test_concurrent_senders_write_each_message_once(hub: AofHub, bytecode: Path) -> None:
    program = Program(hub.data, bytecode)
    messages = [update(progress=f"Part {n}") for n in range(3)]
    paths = [hub.message_file(message) for message in messages for _ in range(2)]

    ended = [wait_for_exit(p) for p in [program.start("send", path, "--json") for path in paths]]

    assert [done.code for done in ended] == [0] * 6
    assert sorted(done.json["repeated"] for done in ended) == [False] * 3 + [True] * 3
    assert len(hub.events_of_type("task.updated")) == 3
    assert hub.task_file(PARENT).count("\n- 20") == 3
    hub.assert_verified()


@proves("CLI-SEND", "CLI-CALL", "CLI-LINT")
def test_messages_and_arguments_come_from_standard_input(hub: AofHub, bytecode: Path) -> None:
    program = Program(hub.data, bytecode)
    progress = json.dumps({"taskId": PARENT, "progress": "By call"})

    sent = program.run("send", "--json", stdin="AOF/1 " + json.dumps(update(progress="By send")))
    called = program.run("call", "aof_task_update", "-", "--as", BACKEND, stdin=progress)
    checked = program.run("lint", "--dialect", "aof", "--jsonl", stdin=f"{VALID}\n{{}}\n")

    assert (sent.code, sent.json["type"]) == (0, "status.update")
    assert (called.code, called.json["status"]) == (0, "in-progress")
    assert checked.code == 1
    assert [json.loads(line)["ok"] for line in checked.out.splitlines()] == [True, False]
    assert "By send" in hub.task_file(PARENT)
    assert "By call" in hub.task_file(PARENT)


# Disks and crashes


@pytest.fixture
def owned_hub(bytecode: Path) -> Generator[tuple[AofHub, Program]]:
    """Give a hub owned by the user nobody if tests run as root, and its program."""
    with TemporaryDirectory(prefix="dragoman-test-") as folder:
        Path(folder).chmod(0o755)
        hub = AofHub(Path(folder) / "hub")
        hub.create_claimed(PARENT, BACKEND, session="s-1")
        if os.getuid() == 0:
            for path in (hub.data, *hub.data.rglob("*")):
                os.chown(path, NOBODY_UID, NOBODY_UID)
        yield hub, Program(hub.data, bytecode)


@proves("FILES-DISK", "CLI-SEND")
@pytest.mark.parametrize("part", ["tasks/in-progress", "events"])
def test_reply_stands_if_files_cannot_be_written(
    owned_hub: tuple[AofHub, Program], part: str
) -> None:
    hub, program = owned_hub
    read_only = [hub.data / part, *(p for p in (hub.data / part).rglob("*") if p.is_dir())]
    message_file = hub.message_file(report("partial"))
    Path(message_file).parent.chmod(0o755)
    for path in read_only:
        path.chmod(0o555)
    if part == "events":
        for path in (hub.data / part).iterdir():
            path.chmod(0o444)
    before = snapshot(hub)

    sent = run_as_nobody(program, "send", message_file, "--json")

    assert (sent.code, sent.json["ok"]) == (0, True)
    assert "`dragoman tick` brings the files" in sent.err
    assert part == "events" or "Permission denied" in sent.err
    after = snapshot(hub)
    assert all(after[path] == before[path] for path in before if path.startswith(part))
    for path in read_only:
        path.chmod(0o755)
    for path in (hub.data / "events").iterdir():
        path.chmod(0o644)
    ticked = run_as_nobody(program, "tick", "--json")
    assert (ticked.code, ticked.err) == (0, "")
    assert hub.run_artifact(PARENT, "run_result.json")["outcome"] == "partial"
    assert run_as_nobody(program, "verify", "--json").json["findings"] == []


@proves("FILES-DISK", "STORE-READ-ONLY", "CLI-EXIT")
def test_message_is_refused_on_a_full_disk(hub: AofHub) -> None:
    message_file = hub.message_file(report("partial"))
    before = snapshot(hub)
    send = (*COMMAND, "--data", str(hub.data), "send", message_file, "--json")

    # No file may grow, as on a full disk.
    done = subprocess.run(
        ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *send),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, json.loads(done.stdout)["code"]) == (1, "store_unavailable")
    assert "Traceback" not in done.stderr
    assert snapshot(hub) == before
    assert hub.send(report("partial"))["repeated"] is False
    hub.assert_verified()


@proves("FILES-CRASH", "CLI-FILES")
def test_killed_projection_is_completed_by_the_next_command(program: Program) -> None:
    create_tasks(program.data, 300)
    process = program.start("rebuild-files")
    ready = program.data / "tasks/ready"
    while not ready.is_dir() or len(list(ready.iterdir())) < 50:
        assert process.poll() is None, "it was killed too late"
    process.kill()
    process.communicate()
    assert len(list(ready.glob("*.md"))) < 300

    console = Console(program.data)
    console.ask("tick")

    assert len(list(ready.glob("*.md"))) == 300
    assert console.ask("verify")["findings"] == []
