"""Audit log of handoffs: each event once, whatever happens, and all of it can be replayed."""

import json
import os
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.handoff.state import (
    ApproveHandoff,
    CloseHandoff,
    ExtendHandoff,
    NoteHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
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
    assert lab.differences() == []


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
    stray.unlink()
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
