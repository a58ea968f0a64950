"""Hostile messages, refs and texts, replays, races and crashes: refused clearly, and no damage."""

import json
import os
import random
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dragoman.bootstrap import open_place
from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask
from dragoman.files.tasks.task_file import read_task_file
from tests.e2e.aof_office import BACKEND, QA, Office
from tests.e2e.program import COMMAND, Program, end_of
from tests.e2e.test_faults import NOBODY, as_nobody
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
"""Ends the front matter, fakes an entry, a section and a field, steers a terminal."""


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Give an office where swe-backend holds the parent, and the child is ready."""
    office = Office(tmp_path / "hub")
    office.held(PARENT, BACKEND, session="s-1")
    office.ready(CHILD)
    return office


def tree(office: Office) -> dict[str, bytes]:
    """Every file of tasks, runs and events; heartbeats beat, so they are left out."""
    return {
        str(path.relative_to(office.data)): path.read_bytes()
        for part in ("tasks", "runs", "events")
        for path in (office.data / part).rglob("*")
        if path.is_file() and path.name != "run_heartbeat.json"
    }


# Messages

GOOD = json.dumps(update(progress="x"))


def with_field(text: str) -> str:
    return f'{GOOD[:-1]}, "n": {text}}}'


BAD_JSON: dict[str, str | bytes] = {
    "deep": with_field("[" * 40 + "]" * 40),
    "very deep": with_field("[" * 100_000 + "]" * 100_000),
    "a key twice": GOOD[:-1] + ', "type": "completion.report"}',
    "an inner key twice": GOOD.replace('"agentId"', '"agentId": "eve", "agentId"'),
    "NaN": with_field("NaN"),
    "Infinity": with_field("-Infinity"),
    "out of range": with_field("1e999"),
    "beyond 2^53": with_field("9007199254740993"),
    "half a pair": GOOD.replace('"x"', '"\\ud800"'),
    "not UTF-8": GOOD.encode().replace(b'"x"', b'"\xff"'),
    "cut off": GOOD[:-20],
    "two values": GOOD + GOOD,
}


@proves("JSON-STRICT", "AOF-REASONS", "CLI-SEND")
def test_json_that_cannot_be_trusted_is_refused_and_on_record(office: Office) -> None:
    for name, message in BAD_JSON.items():
        before = len(office.events("protocol.message.rejected"))
        assert office.refused(message) == "invalid_json", name
        assert len(office.events("protocol.message.rejected")) == before + 1, name
    too_long = json.dumps(update(progress="x" * 300_000))
    assert office.refused(too_long) == "message_too_large"
    assert "Work Log" not in office.page(PARENT)
    office.verified()


@proves("AOF-ENVELOPE")
def test_fields_of_the_wrong_kind_are_refused_by_name(office: Office) -> None:
    of_envelope: tuple[tuple[str, object], ...] = (
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
    for field, value in of_envelope:
        said = office.say(update(progress="x") | {field: value})
        assert (said.code, said.json["code"]) == (1, "invalid_envelope"), (field, value)
        assert said.json["detail"].startswith(f"{field}: ")
    for field, value in (
        ("progress", 1),
        ("progress", "x" * 70_000),
        ("blockers", "x"),
        ("blockers", ["x"] * 5_000),
        ("blockers", [1]),
    ):
        said = office.say(update(**{field: value}))
        assert (said.code, said.json["code"]) == (1, "invalid_envelope"), field
        assert said.json["detail"].startswith(f"payload.{field}")
    office.verified()


@proves("AOF-ENVELOPE")
def test_a_whole_number_may_be_written_with_a_point(office: Office) -> None:
    message = json.dumps(report("partial")).replace('"version": 1', '"version": 1.0')

    office.send(
        message.replace('"total": 3', '"total": 3.0').replace('"failed": 1', '"failed": 1.0')
    )

    tests = office.run(PARENT, "run_result.json")["tests"]
    assert json.dumps(tests) == '{"total": 3, "passed": 2, "failed": 1}'
    half = report(tests={"total": 3, "passed": 1.5, "failed": 0})
    assert office.refused(half) == "invalid_envelope"


@proves("PATH-INSIDE", "AOF-WARNINGS", "AOF-ENVELOPE")
def test_a_reference_that_leads_outside_is_refused_in_every_field(office: Office) -> None:
    refs = ("../x", "/etc/passwd", "a/../../x", "..", "C:\\x", "a\\..\\b", "a\0b", "", "a\nb")
    messages = [("payload.summaryRef", report(summaryRef=ref)) for ref in refs]
    messages += [
        ("payload.handoffRef", report(handoffRef="../x")),
        ("payload.deliverables[0]", report(deliverables=["/x"])),
        ("payload.contextRefs[0]", request(contextRefs=["../x"])),
        ("payload.expectedOutputs[0]", request(expectedOutputs=["a/../../x"])),
    ]
    for path, message in messages:
        said = office.say(message)
        assert (said.code, said.json["code"]) == (1, "invalid_envelope"), message
        assert said.json["detail"].startswith(f"{path}: "), message
    # Odd, and yet inside: said to be missing, never an error.
    for ref in ("./x", "~/x", "%2e%2e/x", "...", "a/" * 100 + "a", "y" * 255):
        assert office.send(report(summaryRef=ref))["warnings"], ref
    office.verified()


@proves("FILES-ROUND-TRIP", "CLI-SAFE-TEXT")
def test_no_text_can_make_a_field_a_line_or_a_command_of_a_terminal(office: Office) -> None:
    title = HOSTILE.replace("\n", " ").replace("\r", " ").replace("\x00", "")[:120]
    third = office.console.make(title, "--body", HOSTILE.replace("\x00", ""))
    office.send(update(progress=HOSTILE, notes=HOSTILE, blockers=[HOSTILE, "two"]))
    office.send(request(acceptanceCriteria=[HOSTILE], constraints=[HOSTILE, "- x"]))
    office.send(update(status="blocked", blockers=[HOSTILE]))

    page = office.page(PARENT)
    assert page.count("\n## Work Log\n") == 1
    assert page.count("\n- 20") == 1
    file = read_task_file(page.encode())
    (entry,) = file.log
    assert (entry.progress, entry.notes) == (HOSTILE, HOSTILE)
    assert (file.status, file.title) == ("blocked", "A task")
    made = read_task_file(office.page(third).encode())
    assert (made.title, made.body) == (title, HOSTILE.replace("\x00", ""))
    handoff = json.loads((office.folder(CHILD) / "inputs/handoff.json").read_text())
    assert handoff["constraints"] == [HOSTILE, "- x"]
    lines = (office.folder(CHILD) / "inputs/handoff.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## Acceptance Criteria",
        "## Expected Outputs",
        "## Context References",
        "## Constraints",
    ]
    assert sum(line.startswith("- ") for line in lines) == 5
    moved = office.events("task.transitioned")[-1]
    assert moved["payload"]["reason"] == HOSTILE
    shown = office.console("task", "show", third).out + office.console("task", "log", PARENT).out
    everything = page + office.page(third) + "\n".join(lines) + shown
    assert not set("\x1b\u202e\u2028\x00\x85") & set(everything)
    office.verified()


# Replays


@proves("AOF-REPEAT", "IDEM-REPEAT")
def test_a_session_replayed_in_any_order_changes_nothing(office: Office) -> None:
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
        office.send(message)
    office.console.ask("session-end", "--session", "s-1")
    office.console.ask("task", "move", PARENT, "done")
    before, entries = tree(office), office.console("events", "--json").out
    dice = random.Random(7)

    for _ in range(3):
        dice.shuffle(session)
        for message in session:
            office.send(message)

    assert tree(office) == before
    assert office.console("events", "--json").out == entries
    office.verified()


# Many, and at once


def fill(data: Path, count: int) -> None:
    """So many tasks of one day, made as quickly as the hub can; their files come later."""
    place = open_place(data, "", 1_770_638_400_000, create=True)
    actor = Actor("human", "hera", "test")
    for start in range(0, count, 100):
        made = (CreateTask(f"Task {start + n}", ready=True) for n in range(100))
        place.hub.do(actor, *made)
    place.hub.close()


@proves("NAME-AOF-ID", "FILES-PROJECTION")
def test_a_day_of_1500_tasks(tmp_path: Path) -> None:
    office = Office(tmp_path / "hub")
    fill(office.data, 1_500)
    office.console.ask("tick", "--now", "2026-02-09T12:00:00Z")

    names = {path.stem for path in (office.data / "tasks/ready").glob("*.md")}
    assert len(names) == 1_500
    short = {name for name in names if len(name) == len(PARENT)}
    assert short == {f"TASK-2026-02-09-{n:03}" for n in range(1, 1_000)}
    late = min(names - short)
    office.claim(late, BACKEND, "--now", "2026-02-09T12:00:01Z")
    payload = report()["payload"]
    office.send(
        envelope("completion.report", BACKEND, payload, taskId=late),
        "--now",
        "2026-02-09T12:00:02Z",
    )
    assert office.run(late, "run_result.json")["taskId"] == late
    assert len(office.lines()) == 1_504
    office.verified()


@proves("FILES-EDITS", "FILES-FOLDER")
@pytest.mark.parametrize("where", ["blocked", "backlog", "done"])
def test_a_person_and_an_agent_move_the_same_task_at_once(office: Office, where: str) -> None:
    page = (office.data / f"tasks/ready/{CHILD}.md").read_text()
    work = office.folder(CHILD) / "work"
    with (work / "log.txt").open("w") as log:
        log.write("one\n")
        log.flush()
        (office.data / f"tasks/ready/{CHILD}.md").rename(office.data / f"tasks/{where}/{CHILD}.md")
        office.claim(CHILD, QA)
        log.write("two\n")
    office.console.ask("tick")

    status = office.status(CHILD)
    assert (office.folder(CHILD) / "work/log.txt").read_text() == "one\ntwo\n"
    assert page.splitlines()[1] in office.page(CHILD)
    assert status == "in-progress" or office.console.ask("task", "show", CHILD)["lease"] is None
    office.verified()


@proves("FILES-PROJECTION", "CLI-SEND", "AOF-REPEAT")
def test_many_processes_send_at_once(office: Office, bytecode: Path) -> None:
    program = Program(office.data, bytecode)
    messages = [update(progress=f"Part {n}") for n in range(3)]
    letters = [office.letter(message) for message in messages for _ in range(2)]

    ended = [end_of(p) for p in [program.start("send", letter, "--json") for letter in letters]]

    assert [done.code for done in ended] == [0] * 6
    assert sorted(done.json["repeated"] for done in ended) == [False] * 3 + [True] * 3
    assert len(office.events("task.updated")) == 3
    assert office.page(PARENT).count("\n- 20") == 3
    office.verified()


@proves("CLI-SEND", "CLI-CALL", "CLI-LINT")
def test_messages_and_arguments_come_from_standard_input(office: Office, bytecode: Path) -> None:
    program = Program(office.data, bytecode)
    progress = json.dumps({"taskId": PARENT, "progress": "By call"})

    sent = program.run("send", "--json", stdin="AOF/1 " + json.dumps(update(progress="By send")))
    called = program.run("call", "aof_task_update", "-", "--as", BACKEND, stdin=progress)
    checked = program.run("lint", "--dialect", "aof", "--jsonl", stdin=f"{GOOD}\n{{}}\n")

    assert (sent.code, sent.json["type"]) == (0, "status.update")
    assert (called.code, called.json["status"]) == (0, "in-progress")
    assert checked.code == 1
    assert [json.loads(line)["ok"] for line in checked.out.splitlines()] == [True, False]
    assert "By send" in office.page(PARENT)
    assert "By call" in office.page(PARENT)


# Disks and crashes


@pytest.fixture
def owned(bytecode: Path) -> Generator[tuple[Office, Program]]:
    """Give an office that belongs to nobody where tests run as root, and its program."""
    with TemporaryDirectory(prefix="dragoman-test-") as folder:
        Path(folder).chmod(0o755)
        office = Office(Path(folder) / "hub")
        office.held(PARENT, BACKEND, session="s-1")
        if os.getuid() == 0:
            for path in (office.data, *office.data.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        yield office, Program(office.data, bytecode)


@proves("FILES-DISK", "CLI-SEND")
@pytest.mark.parametrize("part", ["tasks/in-progress", "events"])
def test_an_answer_stands_though_its_files_cannot_be_written(
    owned: tuple[Office, Program], part: str
) -> None:
    office, program = owned
    closed = [office.data / part, *(p for p in (office.data / part).rglob("*") if p.is_dir())]
    letter = office.letter(report("partial"))
    Path(letter).parent.chmod(0o755)
    for path in closed:
        path.chmod(0o555)
    if part == "events":
        for path in (office.data / part).iterdir():
            path.chmod(0o444)
    before = tree(office)

    sent = as_nobody(program, "send", letter, "--json")

    assert (sent.code, sent.json["ok"]) == (0, True)
    assert "`dragoman tick` brings the files level" in sent.err
    assert part == "events" or "Permission denied" in sent.err
    after = tree(office)
    assert all(after[path] == before[path] for path in before if path.startswith(part))
    for path in closed:
        path.chmod(0o755)
    for path in (office.data / "events").iterdir():
        path.chmod(0o644)
    ticked = as_nobody(program, "tick", "--json")
    assert (ticked.code, ticked.err) == (0, "")
    assert office.run(PARENT, "run_result.json")["outcome"] == "partial"
    assert as_nobody(program, "verify", "--json").json["findings"] == []


@proves("FILES-DISK", "STORE-READ-ONLY", "CLI-EXIT")
def test_where_nothing_more_can_be_written_a_message_is_refused_clearly(office: Office) -> None:
    letter = office.letter(report("partial"))
    before = tree(office)
    send = (*COMMAND, "--data", str(office.data), "send", letter, "--json")

    # No file may grow: what a full disk is to a program.
    done = subprocess.run(
        ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *send),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, json.loads(done.stdout)["code"]) == (1, "store_unavailable")
    assert "Traceback" not in done.stderr
    assert tree(office) == before
    assert office.send(report("partial"))["repeated"] is False
    office.verified()


@proves("FILES-CRASH", "CLI-FILES")
def test_a_projection_that_is_killed_is_made_good_by_the_next_command(program: Program) -> None:
    fill(program.data, 300)
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
