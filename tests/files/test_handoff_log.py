"""Audit log of handoffs: each event once, whatever happens, and all of it can be replayed."""

import json
import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.handoff.state import (
    HANDOFF_FOLDS,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    ExtendHandoff,
    Handoff,
    NoteHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, RewindTask
from dragoman.engine.batch_reads import StreamCache
from dragoman.engine.ports import Store, Transaction
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.files.errors import BadFile
from dragoman.files.handoff_log import render_lines
from dragoman.files.handoff_verification import (
    ReplayedLog,
    check_handoff,
    comparable_part,
    compare_with_ledger,
    replay_lines,
)
from dragoman.files.layout import artifact_path
from dragoman.ledger.entry import CODEC, read_line
from dragoman.store.sqlite import SqliteStore
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.safe_text import HARMFUL
from tests.engine.handoffs import (
    COORDINATOR,
    accept,
    activate,
    late,
    life,
    make,
    offer,
    package,
    state,
)
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN
from tests.files.lab import CrashingDisk, FilesLab, Killed, read_tree
from tests.files.test_power_cut import SyncedFolder
from tests.requirements import proves

pytestmark = proves("ACP-AUDIT")

LOG = "teamspaces/default/handoffs/handoffs.jsonl"
LINE_TYPES = {
    "handoff_created",
    "handoff_transition",
    "handoff_rejected",
    "handoff_verification",
    "handoff_escalation",
    "handoff_completed",
    "handoff_closed",
}


def read_lines(lab: FilesLab, path: str = LOG) -> list[dict[str, Any]]:
    """Lines of a log."""
    text = (lab.data / path).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def summarize_lines(lab: FilesLab, *keys: str) -> list[tuple[Any, ...]]:
    """Type of each line, and some of its keys."""
    return [
        (line["event"].removeprefix("handoff_"), *map(line.get, keys)) for line in read_lines(lab)
    ]


def run_all_kinds_of_handoffs(lab: FilesLab) -> None:
    """Run handoffs of all kinds: completed, rejected, denied, late, passed on, reassigned."""
    life(lab, "h1", "t1")
    make(lab, "t2")
    offer(lab, "h2", "t2")
    accept(lab, "h2")
    activate(lab, "h2")
    late(lab, "h2")
    lab.do(COORDINATOR, ExtendHandoff("h2", 60_000))
    lab.do(BOB, NoteHandoff("h2", "note", "slow"))
    offer(lab, "h3", "t2", to="carol", by=BOB, supersedes="h2")
    accept(lab, "h3", CAROL)
    activate(lab, "h3", CAROL)
    lab.do(CAROL, RejectHandoff("h3", "capability_mismatch", "not my language", "ask dan"))
    offer(lab, "h4", "t2", to="dan", by=BOB, supersedes="h3")
    make(lab, "t5")
    gated = package("t5", policy={"classification": "internal", "human_gate": "required"})
    offer(lab, "h5", "t5", package=gated)
    accept(lab, "h5")
    lab.do(HUMAN, ApproveHandoff("h5", approved=False, note="not outside"))
    make(lab, "t6")
    offer(lab, "h6", "t6", teamspace="red")
    accept(lab, "h6", failed=(("missing_artifact", "log is not there"),))
    make(lab, "t7")
    offer(lab, "h7", "t7")
    lab.do(COORDINATOR, ReassignHandoff("h7", "dan", "bob is ill"))
    make(lab, "t8")
    offer(lab, "h8", "t8")
    lab.do(ALICE, WithdrawHandoff("h8"))
    lab.do(ALICE, CloseHandoff("h8"))


def test_complete_handoff_is_logged_line_by_line(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    assert summarize_lines(lab, "from_status", "to_status", "actor") == [
        ("created", None, None, "agent:alice"),
        ("transition", "draft", "proposed", "agent:alice"),
        ("transition", "proposed", "validating", "agent:bob"),
        ("verification", None, None, "system"),
        ("transition", "validating", "accepted", "agent:bob"),
        ("transition", "accepted", "activated", "agent:bob"),
        ("transition", "activated", "completed", "agent:bob"),
        ("completed", None, None, "agent:bob"),
        ("transition", "completed", "closed", "agent:alice"),
        ("closed", None, None, "agent:alice"),
    ]
    first, *_ = rows = read_lines(lab)
    assert (first["handoff_id"], first["task_id"]) == ("h1", "t1")
    assert (first["from"], first["to"], first["owner"]) == ("alice", "bob", "alice")
    assert first["timestamp"] == "2026-02-09T14:30:00.000Z"
    assert rows[3]["passed"] == ["schema", "policy", "artifacts", "cycle", "package_hash"]
    assert rows[3]["failed"] == []
    assert (rows[5]["owner"], rows[5]["handoff_chain"]) == ("bob", ["alice", "bob"])
    assert rows[7]["completion_notes"] == "merged"
    assert rows[9]["closure_notes"] == "thanks"
    assert [row["event_id"] for row in rows] == sorted({row["event_id"] for row in rows})
    assert lab.differences() == []
    assert lab.warnings == []


@proves("ACP-WHOSE-WORD")
def test_completion_is_attributed_to_recipient_not_session_ender(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(BOB, ReportOutcome("t1", "done", "merged as 4f2a"))
    lab.do(HUMAN, EndAttempt("t1"))
    lab.catch_up()
    moved, completed = read_lines(lab)[-2:]
    assert (moved["to_status"], moved["actor"]) == ("completed", "agent:bob")
    assert (completed["actor"], completed["completion_notes"]) == ("agent:bob", "merged as 4f2a")
    assert compare_with_ledger(replay_files(lab, LOG), lab.store) == {}


@proves("ACP-PASSED-BACK", "ACP-AUDIT-REPLAY")
def test_replay_follows_rejected_onward_handoff(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    offer(lab, "h2", to="carol", by=BOB, supersedes="h1")
    lab.do(CAROL, RejectHandoff("h2", "other", "busy"))
    offer(lab, "h3", to="alice", by=BOB, supersedes="h2")
    accept(lab, "h3", ALICE)
    activate(lab, "h3", ALICE)
    lab.catch_up()
    replayed = replay_files(lab, LOG)
    assert (replayed.owners["t1"], replayed.chains["t1"]) == ("alice", ("alice",))
    assert compare_with_ledger(replayed, lab.store) == {}


def test_rejection_logs_reason_actor_and_returned_ownership(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(BOB, RejectHandoff("h1", "timeout_risk", "Friday is too soon", "a week more"))
    lab.catch_up()
    *_, rejected, moved = read_lines(lab)
    assert (rejected["event"], rejected["reason"], rejected["detail"], rejected["actor"]) == (
        "handoff_rejected",
        "timeout_risk",
        "Friday is too soon",
        "agent:bob",
    )
    assert rejected["suggested_fix"] == "a week more"
    assert (moved["from_status"], moved["to_status"]) == ("activated", "rejected")
    assert (moved["owner"], moved["handoff_chain"]) == ("alice", ["alice"])


def test_gate_rejection_is_attributed_to_system(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab, failed=(("hash_mismatch", "log is another file"),))
    lab.catch_up()
    checked, rejected, moved = read_lines(lab)[-3:]
    assert checked["failed"] == ["hash_mismatch: log is another file"]
    assert (rejected["reason"], rejected["actor"]) == ("hash_mismatch", "system")
    assert (moved["to_status"], moved["actor"]) == ("rejected", "system")


def test_escalation_and_human_approval_are_logged(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab, package=package(policy={"classification": "internal", "human_gate": "required"}))
    late(lab, after=6 * 60_000)
    lab.do(HUMAN, ApproveHandoff("h1", note="fine"))
    lab.catch_up()
    late_line, approved = read_lines(lab)[-2:]
    assert late_line["event"] == "handoff_escalation"
    assert (late_line["trigger"], late_line["escalated_to"]) == ("timeout", "coordinator")
    assert (late_line["sla_configured"], late_line["sla_elapsed"]) == ("5m", "6m")
    assert late_line["stage"] == "proposed→validating"
    assert late_line["actor"] == "system"
    assert (approved["event"], approved["passed"]) == ("handoff_verification", ["human_approval"])
    assert (approved["actor"], approved["note"]) == ("human:hera", "fine")


def test_seven_line_types_in_one_file_per_teamspace(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    red = read_lines(lab, "teamspaces/red/handoffs/handoffs.jsonl")
    assert {line["event"] for line in read_lines(lab)} | {
        line["event"] for line in red
    } == LINE_TYPES
    assert {line["handoff_id"] for line in red} == {"h6"}
    assert red[0]["event"] == "handoff_created"
    assert lab.differences() == []


def test_hostile_text_is_escaped_in_its_line(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    hostile = '\x1b[2J\u202eevil\u2028\n{"event":"handoff_closed"}\n\x85'
    offer(lab, package=package(context={"summary": hostile}))
    lab.do(BOB, RejectHandoff("h1", "other", hostile))
    lab.catch_up()
    text = (tmp_path / LOG).read_text(encoding="utf-8")
    assert all(HARMFUL.search(line) is None for line in text.split("\n"))
    assert len(text.splitlines()) == text.count("\n") == 4
    assert read_lines(lab)[2]["detail"] == hostile


@proves("FILES-CRASH")
def test_crash_between_operations_is_repaired(tmp_path: Path) -> None:
    clean = FilesLab(tmp_path / "clean")
    clean.data.mkdir()
    life(clean)
    clean.catch_up()
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"crash{operations}")
        lab.data.mkdir()
        life(lab)
        try:
            lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
            is_over = True
        except Killed:
            lab.catch_up()
        assert read_tree(lab.data) == read_tree(clean.data), f"after {operations} operations"
        operations += 1


@proves("FILES-CRASH")
@pytest.mark.parametrize("torn", [1, 40, -1])
def test_torn_line_is_rewritten(tmp_path: Path, torn: int) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.catch_up()
    whole = (tmp_path / LOG).read_bytes()
    cursor = (tmp_path / "projection.json").read_bytes()
    accept(lab)
    lab.catch_up()
    after = (tmp_path / LOG).read_bytes()
    fresh = after[len(whole) :]
    (tmp_path / LOG).write_bytes(whole + fresh[:torn])
    (tmp_path / "projection.json").write_bytes(cursor)
    lab.catch_up()
    assert (tmp_path / LOG).read_bytes() == after


def truncate_file(log: Path, kept: int) -> None:
    """Truncate a file; a negative number counts from its end."""
    whole = log.read_bytes()
    log.write_bytes(whole[:kept])


TRUNCATED_LAST_LINE = (-1, -40)
"""Remaining bytes: all but the line feed, all but a part of the last line."""


@proves("FILES-CUT")
@pytest.mark.parametrize("kept", [*TRUNCATED_LAST_LINE, 0, 40], ids=str)
@pytest.mark.parametrize("how", ["next", "sweep"])
def test_truncated_log_is_completed_before_appending(tmp_path: Path, kept: int, how: str) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    log, day = tmp_path / LOG, max((tmp_path / "events").iterdir())
    whole = log.read_bytes(), day.read_bytes()
    for path in (log, day):
        truncate_file(path, kept)
    assert sorted(lab.projector().list_changed_logs()) == [f"events/{day.name}", LOG]
    if how == "sweep":
        lab.scan()
        assert (log.read_bytes(), day.read_bytes()) == whole
    make(lab, "t20")
    offer(lab, "h20", "t20")
    lab.catch_up()
    assert log.read_bytes().startswith(whole[0])
    assert lab.differences() == []
    assert [*lab.projector().list_changed_logs()] == []


RED_LOG = "teamspaces/red/handoffs/handoffs.jsonl"


@proves("FILES-CUT")
@pytest.mark.parametrize("how", ["next", "sweep"])
@pytest.mark.parametrize("path", [LOG, RED_LOG])
def test_removed_log_is_rewritten(tmp_path: Path, path: str, how: str) -> None:
    lab = FilesLab(tmp_path)
    make(lab, "t0")
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    log = tmp_path / path
    whole = log.read_bytes()
    log.unlink()
    assert [*lab.projector().list_changed_logs()] == [path]
    if how == "sweep":
        lab.scan()
        assert log.read_bytes() == whole
    offer(lab, "h20", "t0", teamspace=path.split("/")[1])
    lab.catch_up()
    assert log.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().list_changed_logs()] == []


@proves("FILES-CUT", "FILES-PLACES")
@pytest.mark.parametrize("how", ["next", "sweep"])
@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_irregular_file_in_place_of_log_is_replaced(tmp_path: Path, what: str, how: str) -> None:
    lab = FilesLab(tmp_path)
    make(lab, "t0")
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    log = tmp_path / LOG
    whole = log.read_bytes()
    log.rename(f"{log}.bak")
    match what:
        case "folder":
            log.mkdir()
        case "pipe":
            os.mkfifo(log)
        case _:
            log.symlink_to(f"{log}.bak")
    assert [*lab.projector().list_changed_logs()] == [LOG]
    if how == "sweep":
        lab.scan()
        assert log.read_bytes() == whole
    offer(lab, "h20", "t0")
    lab.catch_up()
    assert not log.is_symlink()
    assert log.read_bytes().startswith(whole)
    warning = f"{LOG} was no file: it is kept as {LOG}-found, and a file is made in its place"
    assert lab.warnings == [warning]
    assert os.path.lexists(f"{log}-found")
    assert lab.differences() == []
    assert [*lab.projector().list_changed_logs()] == []


@proves("FILES-CUT")
def test_removed_log_folder_is_restored_on_append(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    whole = (tmp_path / RED_LOG).read_bytes()
    rmtree(tmp_path / "teamspaces")
    make(lab, "t20")
    offer(lab, "h20", "t20", teamspace="red")
    lab.catch_up()
    assert (tmp_path / RED_LOG).read_bytes().startswith(whole)
    lab.scan()
    assert lab.differences() == []


@proves("FILES-CUT")
def test_removed_whole_lines_are_completed(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    log = tmp_path / LOG
    whole = log.read_bytes()
    for count in range(len(whole.splitlines())):
        log.write_bytes(b"".join(whole.splitlines(keepends=True)[:count]))
        lab.scan()
        assert log.read_bytes() == whole, f"of {count} lines"


@proves("FILES-CUT")
@pytest.mark.parametrize("text", [b"hello\n", b"no line at all", b""])
def test_foreign_file_is_left_alone(tmp_path: Path, text: bytes) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    stray = tmp_path / "teamspaces/blue/handoffs/handoffs.jsonl"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(text)
    lab.scan()
    assert stray.read_bytes() == text
    assert [*lab.projector().list_changed_logs()] == []


@proves("FILES-CRASH")
def test_power_cut_is_repaired(tmp_path: Path) -> None:
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"data{operations}")
        lab.data.mkdir()
        make(lab)
        offer(lab)
        lab.catch_up()
        accept(lab)
        after = tmp_path / f"after{operations}"
        with SyncedFolder(lab.data) as synced:
            try:
                lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
                is_over = True
            except Killed:
                operations += 1
            synced.cut(after)
        lab.projector(data=after).catch_up()
        lab.catch_up()
        assert read_tree(after) == read_tree(lab.data), f"after {operations} operations"


@proves("FILES-COMPARE")
def test_verify_reports_log_differences(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    expected = read_tree(tmp_path)
    log, red = tmp_path / LOG, tmp_path / "teamspaces/red/handoffs/handoffs.jsonl"
    log.write_bytes(log.read_bytes().replace(b"agent:bob", b"agent:eve", 1))
    red.unlink()
    stray = tmp_path / "teamspaces/blue/handoffs/handoffs.jsonl"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(log.read_bytes())
    assert sorted(lab.differences()) == [
        ("teamspaces/blue/handoffs/handoffs.jsonl", "surplus"),
        (LOG, "changed"),
        ("teamspaces/red/handoffs/handoffs.jsonl", "missing"),
    ]
    lab.projector().rebuild(lambda _: None)
    assert read_tree(tmp_path) == expected


def test_foreign_line_does_not_stop_the_log(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.catch_up()
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes() + b'{"event_id":99999999}\nnot ours\n')
    accept(lab)
    lab.catch_up()
    assert [line["event"] for line in read_handoff_lines(log)][-1] == "handoff_transition"
    lab.projector().rebuild(lambda _: None)
    assert lab.differences() == []


def read_handoff_lines(log: Path) -> list[dict[str, Any]]:
    """Lines that are about a handoff."""
    kept = [line for line in log.read_text().splitlines() if '"handoff_id"' in line]
    return [json.loads(line) for line in kept]


@proves("FILES-BENEATH")
@pytest.mark.parametrize("folder", ["teamspaces/default", "teamspaces/default/handoffs"])
def test_symlinked_folder_is_set_aside_and_not_followed(tmp_path: Path, folder: str) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    outside.mkdir()
    (data / folder).parent.mkdir(parents=True)
    (data / folder).symlink_to(outside)
    lab = FilesLab(data)
    life(lab)
    lab.catch_up()
    assert list(outside.iterdir()) == []
    assert (data / LOG).is_file()
    assert lab.differences() == []


def test_many_handoffs_exceed_the_cache(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    for number in range(260):
        make(lab, f"t{number}")
        offer(lab, f"h{number}", f"t{number}")
    lab.do(BOB, RejectHandoff("h0", "other", "no time"))
    lab.catch_up()
    assert read_lines(lab)[-1]["handoff_id"] == "h0"
    assert lab.differences() == []


def replay_files(lab: FilesLab, *paths: str) -> ReplayedLog:
    """Replay the files alone."""
    return replay_lines(b"".join((lab.data / path).read_bytes() for path in paths).splitlines(True))


@proves("ACP-AUDIT-REPLAY")
def test_replay_reproduces_state_owner_and_chain(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    replayed = replay_files(lab, LOG, "teamspaces/red/handoffs/handoffs.jsonl")
    known = {row["handoff_id"] for row in read_lines(lab)} | {"h6"}
    assert set(replayed.handoffs) == known
    for id, handoff in replayed.handoffs.items():
        assert comparable_part(handoff) == comparable_part(state(lab, id)), id
        assert (handoff.status, handoff.chain) == (state(lab, id).status, state(lab, id).chain)
    for task in ("t1", "t2", "t5", "t6", "t7", "t8"):
        assert replayed.owners[task] == lab.task(task).assignee, task
        assert replayed.chains[task] == lab.task(task).chain, task
    assert compare_with_ledger(replayed, lab.store) == {}


def record_from_line(line: dict[str, Any], session: Transaction) -> None:
    """Record the event from which a line of an audit log was made."""
    origin, stream = line["entry"], handoff_stream(line["handoff_id"])
    event = CODEC.decode(origin["event"], origin["v"], json.dumps(origin["body"]).encode())
    unit = Unit(session, StreamCache(), origin["at"])
    unit.begin_request(Request(HUMAN, (CloseHandoff(line["handoff_id"]),), str(line["event_id"])))
    unit.load_streams([stream])
    unit.record(stream, event)
    session.write(unit.changes())


def replay_store(store: Store) -> ReplayedLog:
    """Replay the audit log that a store would give, from its first entry on."""
    states: dict[str, Handoff] = {}
    lines: list[bytes] = []
    for entry in store.entries(0, 1_000):
        line = read_line(entry.line)
        event: Any = CODEC.decode(line.event, line.v, line.body)
        states[entry.stream] = HANDOFF_FOLDS[type(event)](states.get(entry.stream), event, line.at)
        lines += render_lines(entry, states[entry.stream])
    return replay_lines(line + b"\n" for line in lines)


@proves("ACP-AUDIT-REPLAY")
def test_replay_into_empty_store_reproduces_states_owners_and_chains(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab").mkdir()
    lab = FilesLab(tmp_path / "lab")
    run_all_kinds_of_handoffs(lab)
    lab.catch_up()
    both = sorted(read_lines(lab) + read_lines(lab, RED_LOG), key=lambda line: line["event_id"])
    store = SqliteStore.open(tmp_path / "empty.db", lambda: "empty")
    for line in both:
        if "entry" in line:
            store.transact(partial(record_from_line, line))
    assert [
        *check_ledger(store, [], lambda _: None),
        *check_stored_states(store, lambda _: None),
    ] == []
    assert store.handoffs("", 100) == lab.store.handoffs("", 100)
    before, replayed = replay_files(lab, LOG, RED_LOG), replay_store(store)
    assert (replayed.owners, replayed.chains) == (before.owners, before.chains)
    for id, handoff in before.handoffs.items():
        found = find_handoff(store, id)
        assert isinstance(found, Handoff)
        # The successor of a handoff is named by its own lines, not by those of the handoff.
        found = replace(found, superseded_by=handoff.superseded_by)
        assert comparable_part(found) == comparable_part(handoff), id
    store.close()


@proves("ACP-AUDIT-REPLAY", "ACP-CHAIN")
def test_replay_reproduces_owner_after_manual_reassignment(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.do(HUMAN, EditTask("t1", assignee="alice"))
    offer(lab, "h2", to="carol")
    accept(lab, "h2", CAROL)
    activate(lab, "h2", CAROL)
    lab.do(CAROL, RejectHandoff("h2", "other", "no"))
    make(lab, "t3")
    offer(lab, "h3", "t3")
    accept(lab, "h3")
    activate(lab, "h3")
    lab.do(HUMAN, MoveTask("t3", "cancelled"))
    lab.catch_up()
    replayed = replay_files(lab, LOG)
    assert replayed.owners == {"t1": "alice", "t3": "bob"}
    assert replayed.chains == {"t1": ("alice",), "t3": ("alice", "bob")}
    for task in replayed.owners:
        found = lab.task(task)
        assert (found.assignee, found.chain) == (replayed.owners[task], replayed.chains[task])
    assert compare_with_ledger(replayed, lab.store) == {}


@proves("ACP-AUDIT-REPLAY", "ACP-CHAIN", "REWIND-HANDOFF")
@pytest.mark.parametrize("owner", ["alice", "", "carol"])
def test_replay_reproduces_owner_after_rewind(tmp_path: Path, owner: str) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, CreateTask("Fix it", id="t1", ready=True, assignee=owner))
    lab.do(HUMAN, EditTask("t1", assignee="alice"))
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(HUMAN, RewindTask("t1", 1))
    lab.catch_up()
    replayed, found = replay_files(lab, LOG), lab.task("t1")
    moved = next(line for line in read_lines(lab) if line.get("to_status") == "rejected")
    assert (moved["owner"], tuple(moved["handoff_chain"])) == (owner, found.chain)
    assert (replayed.owners["t1"], replayed.chains["t1"]) == (found.assignee, found.chain)
    assert "bob" not in found.chain
    assert compare_with_ledger(replayed, lab.store) == {}


@proves("ACP-AUDIT-REPLAY")
@pytest.mark.parametrize("files", [(LOG, RED_LOG), (RED_LOG, LOG)])
def test_replay_is_independent_of_file_order(tmp_path: Path, files: tuple[str, str]) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    offer(lab, "h2", to="carol", by=BOB, supersedes="h1", teamspace="red")
    accept(lab, "h2", CAROL)
    activate(lab, "h2", CAROL)
    lab.do(CAROL, RejectHandoff("h2", "other", "no"))
    offer(lab, "h3", to="dan", by=BOB, supersedes="h2")
    lab.catch_up()
    replayed = replay_files(lab, *files)
    assert (replayed.owners, replayed.chains) == ({"t1": "bob"}, {"t1": ("alice", "bob")})
    assert (replayed.handoffs["h1"].superseded_by, replayed.handoffs["h2"].superseded_by) == (
        "h2",
        "h3",
    )
    assert compare_with_ledger(replayed, lab.store) == {}
    for alone in files:
        assert compare_with_ledger(replay_files(lab, alone), lab.store) == {}


@proves("ACP-AUDIT-REPLAY")
def test_compare_names_missing_handoffs(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    make(lab, "t2")
    offer(lab, "h2", "t2")
    lab.catch_up()
    gone = "it is missing in the file"
    assert compare_with_ledger(replay_lines([]), lab.store) == {"h1": gone, "h2": gone}
    rest = [line for line in (tmp_path / LOG).read_bytes().splitlines(True) if b'"h2"' not in line]
    assert compare_with_ledger(replay_lines(rest), lab.store) == {"h2": gone}
    assert compare_with_ledger(replay_lines([]), FilesLab(tmp_path / "empty").store) == {}


@proves("ACP-AUDIT-REPLAY")
def test_compare_names_wrong_owner_or_chain(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.catch_up()
    replayed = replay_files(lab, LOG)
    replayed.chains["t1"] = ("mallory",)
    assert compare_with_ledger(replayed, lab.store) == {"t1": "the ledger has the chain alice"}
    replayed = replay_files(lab, LOG)
    replayed.owners["t1"] = "mallory"
    assert compare_with_ledger(replayed, lab.store) == {"t1": "the ledger has the owner alice"}


@proves("ACP-AUDIT-REPLAY")
def test_compare_detects_file_of_another_ledger(tmp_path: Path) -> None:
    lab, other = FilesLab(tmp_path / "one"), FilesLab(tmp_path / "other")
    for one in (lab, other):
        one.data.mkdir()
        make(one)
        offer(one)
    accept(other)
    other.do(BOB, ActivateHandoff("h1"))
    make(other, "t2")
    offer(other, "h2", "t2")
    other.catch_up()
    wrong = compare_with_ledger(replay_files(other, LOG), lab.store)
    assert wrong["h2"] == "it is not in the ledger"
    assert "status" in wrong["h1"]


@proves("ACP-AUDIT-REPLAY")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            b'"to_status":"validating"',
            b'"to_status":"accepted"',
            "line 3: proposed → accepted is",
        ),
        (
            b'"to":"validating"',
            b'"to":"closed"',
            "line 3: there is no transition from proposed to",
        ),
        (b"too late", b"too soon", "line 1: the package of h1 does not match"),
        (b'"v":1', b'"v":99', "line 1"),
        (b'"event":"handoff.transitioned"', b'"event":"task.noted"', "line 3"),
        (b'"handoff_id":"h1","task_id":"t1","timestamp"', b'"handoff_id":"h9","timestamp"', "h1"),
        (b'"task_id":"t1","timestamp"', b'"task_id":"t9","timestamp"', "h1 is about t1"),
        (b'"owner":"bob"', b'"owner":"mallory"', "the owner is mallory (alice"),
        (b'"handoff_chain":["alice"],"owner"', b'"handoff_chain":["eve"],"owner"', "alice (eve)"),
        (b'"owner":"alice"', b'"owner":""', "the owner is nobody (alice)"),
        (
            b'"from_status":"draft"',
            b'"owner":"mallory","from_status":"draft"',
            "line 2: it names an owner",
        ),
        (b'"to":"bob","actor"', b'"to":"eve","actor"', "line 1: to: not what its event says"),
        (b'"reason":"requested","th', b'"reason":"x","th', "line 1: reason: not what its event"),
        (b'"passed":["schema",', b'"passed":[', "line 4: passed"),
        (b'"completion_notes":"', b'"completion_notes":"not ', "completion_notes: not what"),
        (b'"actor":"agent:bob","com', b'"actor":"agent:eve","com', "actor: not what"),
        (b'"event":"handoff_completed"', b'"event":"handoff_closed"', "event: not what"),
        (b'"version":1,', b'"position":9,"version":1,', "line 1: event_id: not what"),
        (
            b'"event":"handoff.verified","v":1,"at":1770647400000,"body":{"passed"',
            b'"event":"handoff.noted","v":1,"at":1770647400000,"body":{"kind":"note","by":"b","x"',
            "line 4: its event gives no line",
        ),
        (b'"event_id"', b'"event-id"', "line 1"),
        (b"{", b"[", "line 1"),
    ],
    ids=str,
)
def test_replay_names_inconsistent_line(tmp_path: Path, old: bytes, new: bytes, why: str) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    data = (tmp_path / LOG).read_bytes()
    assert old in data
    with pytest.raises(BadFile) as wrong:
        replay_lines(data.replace(old, new, 1).splitlines(True))
    assert why in wrong.value.detail


@proves("ACP-AUDIT-REPLAY")
def test_replay_detects_reordered_or_torn_lines(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    for spoilt, why in (
        ([*all_lines, all_lines[-1]], "it occurs twice"),
        (all_lines[2:], "it was not created before"),
        ([*all_lines[:2], *all_lines[4:]], "h1 was proposed, not validating"),
    ):
        with pytest.raises(BadFile) as wrong:
            replay_lines(spoilt)
        assert why.replace("it was not created", "was not created") in wrong.value.detail
    torn = replay_lines([*all_lines[:3], all_lines[3][:-1]])
    assert (torn.lines, torn.handoffs["h1"].status) == (3, "validating")
    assert (torn.torn, replay_lines(all_lines).torn) == (4, 0)


@proves("ACP-AUDIT-WORDS")
def test_replay_names_omitted_line(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    for gone, why in (
        (1, "line 2: handoff_transition (31) is missing before it"),
        (7, "line 8: handoff_completed (161) is missing before it"),
        (9, "line 9: handoff_closed of h1 is missing after it"),
        (0, "line 1: no event before it gives such a line"),
    ):
        with pytest.raises(BadFile) as wrong:
            replay_lines([*all_lines[:gone], *all_lines[gone + 1 :]])
        assert wrong.value.detail == why


@proves("ACP-AUDIT-WORDS")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            b'"actor":"agent:alice"',
            b'"actor":"human:alice"',
            "line 1 of the file differs from the ledger",
        ),
        (b'"hash":"11', b'"hash":"10', "line 9 of the file differs from the ledger"),
        (b"thanks", b"no thanks", "the ledger differs in its steps"),
        (b" ", b" ", ""),
    ],
    ids=str,
)
def test_compare_names_line_that_differs_from_ledger(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    data = (tmp_path / LOG).read_bytes()
    assert old in data
    replayed = replay_lines(
        data.replace(old, new)
        .replace(b'{"event":"handoff_', b'{ "event":"handoff_')
        .splitlines(True)
    )
    assert compare_with_ledger(replayed, lab.store) == ({"h1": why} if why else {})


@proves("ACP-AUDIT-WORDS")
def test_compare_detects_omitted_or_invented_verification(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.catch_up()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    invented = all_lines[3].replace(b'"event_id":70', b'"event_id":90')
    invented = invented.replace(b'"position":7', b'"position":9')
    replayed = replay_lines([*all_lines[:5], invented, *all_lines[5:]])
    assert compare_with_ledger(replayed, lab.store) == {
        "h1": "line 6 of the file is not in the ledger"
    }
    gated = FilesLab(tmp_path / "gated")
    gated.data.mkdir()
    make(gated)
    policy = {"classification": "internal", "human_gate": "required"}
    offer(gated, package=package("t1", policy=policy))
    accept(gated)
    gated.do(HUMAN, ApproveHandoff("h1", approved=True))
    accept(gated)
    gated.catch_up()
    twice = (gated.data / LOG).read_bytes().splitlines(True)
    assert compare_with_ledger(replay_lines(twice), gated.store) == {}
    at = next(n for n, line in enumerate(twice) if b'"handoff_verification"' in line)
    [(id, why)] = compare_with_ledger(
        replay_lines([*twice[:at], *twice[at + 1 :]]), gated.store
    ).items()
    assert (id, why.startswith("its line ")) == ("h1", True)


def run_checks(lab: FilesLab, id: str = "h1") -> dict[str, bool]:
    """Results of the checks of a handoff."""
    found = check_handoff(lab.store, SafeDisk(lab.data), state(lab, id))
    return {check.check: check.ok for check in found}


@proves("ACP-CLI")
def test_handoff_checks_report_each_damage(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    digest = sha256(b"what happened").hexdigest()
    accept(lab, artifacts={"log": digest})
    copy = tmp_path / artifact_path(digest)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"what happened")
    lab.catch_up()
    names = ("entries", "state", "row", "package_hash", "audit", "artifact")
    assert run_checks(lab) == dict.fromkeys(names, True)
    copy.write_bytes(b"something else")
    assert run_checks(lab) == dict.fromkeys(names, True) | {"artifact": False}
    copy.unlink()
    (tmp_path / LOG).write_bytes(b"")
    assert run_checks(lab) == dict.fromkeys(names, True) | {"artifact": False, "audit": False}
