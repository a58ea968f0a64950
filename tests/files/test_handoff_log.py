"""The audit log of handoffs: each event once, whatever happens, and all of it can be replayed."""

import json
import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.commands import (
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CreateTask,
    DraftHandoff,
    EditTask,
    EndAttempt,
    ExtendHandoff,
    MoveTask,
    NoteHandoff,
    ReassignHandoff,
    RejectHandoff,
    ReportOutcome,
    RewindTask,
    WithdrawHandoff,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_fold import EVOLVE_HANDOFF
from dragoman.engine.ports import Session, Store
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.request import Request
from dragoman.engine.unit import Cache, Unit
from dragoman.engine.verifying.verify import check_ledger, check_views
from dragoman.files.handoffs.audit import check_handoff
from dragoman.files.handoffs.lines import lines_of
from dragoman.files.handoffs.replay import Replayed, compare, essence, replay
from dragoman.files.layout import artifact_path
from dragoman.files.problems import BadFile
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line
from dragoman.store.sqlite import SqliteStore
from dragoman.system.beneath import Beneath
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
from tests.files.lab import Died, FilesLab, MortalDisk, tree
from tests.files.test_power_cut import Platter
from tests.requirements import proves

pytestmark = proves("ACP-AUDIT")

LOG = "teamspaces/default/handoffs/handoffs.jsonl"
SEVEN = {
    "handoff_created",
    "handoff_transition",
    "handoff_rejected",
    "handoff_verification",
    "handoff_escalation",
    "handoff_completed",
    "handoff_closed",
}


def lines(lab: FilesLab, path: str = LOG) -> list[dict[str, Any]]:
    """The lines of a log."""
    text = (lab.data / path).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def told(lab: FilesLab, *keys: str) -> list[tuple[Any, ...]]:
    """The type of each line, and some of its keys."""
    return [(line["event"].removeprefix("handoff_"), *map(line.get, keys)) for line in lines(lab)]


def everything(lab: FilesLab) -> None:
    """Handoffs in all kinds of ways: finished, given back, denied, late, passed on, reassigned."""
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
    lab.do(HUMAN, ApproveHandoff("h5", is_yes=False, note="not outside"))
    make(lab, "t6")
    lab.do(ALICE, DraftHandoff({"context": {}}, id="h6"))
    offer(lab, "h6", "t6", teamspace="red")
    accept(lab, "h6", failed=(("missing_artifact", "log is not there"),))
    make(lab, "t7")
    offer(lab, "h7", "t7")
    lab.do(COORDINATOR, ReassignHandoff("h7", "dan", "bob is ill"))
    make(lab, "t8")
    offer(lab, "h8", "t8")
    lab.do(ALICE, WithdrawHandoff("h8"))
    lab.do(ALICE, CloseHandoff("h8"))


def test_a_whole_life_is_written_line_by_line(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    assert told(lab, "from_status", "to_status", "actor") == [
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
    first, *_ = rows = lines(lab)
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
def test_what_was_reported_is_its_recipients_word_whoever_ends_the_session(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(BOB, ReportOutcome("t1", "done", "merged as 4f2a"))
    lab.do(HUMAN, EndAttempt("t1"))
    lab.level()
    moved, said = lines(lab)[-2:]
    assert (moved["to_status"], moved["actor"]) == ("completed", "agent:bob")
    assert (said["actor"], said["completion_notes"]) == ("agent:bob", "merged as 4f2a")
    assert compare(replayed(lab, LOG), lab.store) == {}


@proves("ACP-PASSED-BACK", "ACP-AUDIT-REPLAY")
def test_a_replay_follows_work_that_was_passed_on_in_vain(tmp_path: Path) -> None:
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
    lab.level()
    told = replayed(lab, LOG)
    assert (told.owners["t1"], told.chains["t1"]) == ("alice", ("alice",))
    assert compare(told, lab.store) == {}


def test_a_rejection_says_why_and_who_and_the_work_goes_back(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(BOB, RejectHandoff("h1", "timeout_risk", "Friday is too soon", "a week more"))
    lab.level()
    *_, said, moved = lines(lab)
    assert (said["event"], said["reason"], said["detail"], said["actor"]) == (
        "handoff_rejected",
        "timeout_risk",
        "Friday is too soon",
        "agent:bob",
    )
    assert said["suggested_fix"] == "a week more"
    assert (moved["from_status"], moved["to_status"]) == ("activated", "rejected")
    assert (moved["owner"], moved["handoff_chain"]) == ("alice", ["alice"])


def test_what_the_gate_turns_down_is_turned_down_by_the_system(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    accept(lab, failed=(("hash_mismatch", "log is another file"),))
    lab.level()
    checked, said, moved = lines(lab)[-3:]
    assert checked["failed"] == ["hash_mismatch: log is another file"]
    assert (said["reason"], said["actor"]) == ("hash_mismatch", "system")
    assert (moved["to_status"], moved["actor"]) == ("rejected", "system")


def test_lateness_and_a_person_s_word_have_lines(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab, package=package(policy={"classification": "internal", "human_gate": "required"}))
    late(lab, after=6 * 60_000)
    lab.do(HUMAN, ApproveHandoff("h1", note="fine"))
    lab.level()
    late_line, approved = lines(lab)[-2:]
    assert late_line["event"] == "handoff_escalation"
    assert (late_line["trigger"], late_line["escalated_to"]) == ("timeout", "coordinator")
    assert (late_line["sla_configured"], late_line["sla_elapsed"]) == ("5m", "6m")
    assert late_line["stage"] == "proposed→validating"
    assert late_line["actor"] == "system"
    assert (approved["event"], approved["passed"]) == ("handoff_verification", ["human_approval"])
    assert (approved["actor"], approved["note"]) == ("human:hera", "fine")


def test_there_are_seven_types_of_line_and_each_teamspace_has_a_file(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    red = lines(lab, "teamspaces/red/handoffs/handoffs.jsonl")
    assert {line["event"] for line in lines(lab)} | {line["event"] for line in red} == SEVEN
    assert {line["handoff_id"] for line in red} == {"h6"}
    assert red[0]["event"] == "handoff_created", "a draft is nobody's business"
    assert lab.differences() == []


def test_nothing_that_was_said_breaks_a_line_or_hides_in_it(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    hostile = '\x1b[2J\u202eevil\u2028\n{"event":"handoff_closed"}\n\x85'
    offer(lab, package=package(context={"summary": hostile}))
    lab.do(BOB, RejectHandoff("h1", "other", hostile))
    lab.level()
    text = (tmp_path / LOG).read_text(encoding="utf-8")
    assert all(HARMFUL.search(line) is None for line in text.split("\n"))
    assert len(text.splitlines()) == text.count("\n") == 4
    assert lines(lab)[2]["detail"] == hostile


@proves("FILES-CRASH")
def test_a_crash_between_any_two_operations_is_made_good(tmp_path: Path) -> None:
    clean = FilesLab(tmp_path / "clean")
    clean.data.mkdir()
    life(clean)
    clean.level()
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"crash{operations}")
        lab.data.mkdir()
        life(lab)
        try:
            lab.projector(MortalDisk(Beneath(lab.data), operations)).level()
            is_over = True
        except Died:
            lab.level()
        assert tree(lab.data) == tree(clean.data), f"after {operations} operations"
        operations += 1


@proves("FILES-CRASH")
@pytest.mark.parametrize("torn", [1, 40, -1])
def test_a_torn_line_is_written_again(tmp_path: Path, torn: int) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.level()
    whole = (tmp_path / LOG).read_bytes()
    cursor = (tmp_path / "projection.json").read_bytes()
    accept(lab)
    lab.level()
    after = (tmp_path / LOG).read_bytes()
    fresh = after[len(whole) :]
    (tmp_path / LOG).write_bytes(whole + fresh[:torn])
    (tmp_path / "projection.json").write_bytes(cursor)
    lab.level()
    assert (tmp_path / LOG).read_bytes() == after


def cut_to(log: Path, kept: int) -> None:
    """Somebody or something cuts a file short; a negative number counts from its end."""
    whole = log.read_bytes()
    log.write_bytes(whole[:kept])


WITHOUT_THE_LAST = (-1, -40)
"""Bytes that remain: all but the line feed, all but a part of the last line."""


@proves("FILES-CUT")
@pytest.mark.parametrize("kept", [*WITHOUT_THE_LAST, 0, 40], ids=str)
@pytest.mark.parametrize("how", ["next", "sweep"])
def test_what_was_cut_off_is_completed_before_anything_follows(
    tmp_path: Path, kept: int, how: str
) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    log, day = tmp_path / LOG, max((tmp_path / "events").iterdir())
    whole = log.read_bytes(), day.read_bytes()
    for path in (log, day):
        cut_to(path, kept)
    assert sorted(lab.projector().changed_logs()) == [f"events/{day.name}", LOG]
    if how == "sweep":
        lab.sweep()
        assert (log.read_bytes(), day.read_bytes()) == whole
    make(lab, "t20")
    offer(lab, "h20", "t20")
    lab.level()
    assert log.read_bytes().startswith(whole[0])
    assert lab.differences() == []
    assert [*lab.projector().changed_logs()] == []


RED = "teamspaces/red/handoffs/handoffs.jsonl"


@proves("FILES-CUT")
@pytest.mark.parametrize("how", ["next", "sweep"])
@pytest.mark.parametrize("path", [LOG, RED])
def test_a_log_that_was_removed_is_made_whole_again(tmp_path: Path, path: str, how: str) -> None:
    lab = FilesLab(tmp_path)
    make(lab, "t0")
    everything(lab)
    lab.level()
    log = tmp_path / path
    whole = log.read_bytes()
    log.unlink()
    assert [*lab.projector().changed_logs()] == [path]
    if how == "sweep":
        lab.sweep()
        assert log.read_bytes() == whole
    offer(lab, "h20", "t0", teamspace=path.split("/")[1])
    lab.level()
    assert log.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().changed_logs()] == []


@proves("FILES-CUT", "FILES-PLACES")
@pytest.mark.parametrize("how", ["next", "sweep"])
@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_so_is_one_in_whose_place_something_else_stands(
    tmp_path: Path, what: str, how: str
) -> None:
    lab = FilesLab(tmp_path)
    make(lab, "t0")
    everything(lab)
    lab.level()
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
    assert [*lab.projector().changed_logs()] == [LOG]
    if how == "sweep":
        lab.sweep()
        assert log.read_bytes() == whole
    offer(lab, "h20", "t0")
    lab.level()
    assert not log.is_symlink()
    assert log.read_bytes().startswith(whole)
    told = f"{LOG} was no file: it is kept as {LOG}-found, and a file is made in its place"
    assert lab.warnings == [told]
    assert os.path.lexists(f"{log}-found")
    assert lab.differences() == []
    assert [*lab.projector().changed_logs()] == []


@proves("FILES-CUT")
def test_and_so_with_its_folder_when_there_is_something_to_add(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    whole = (tmp_path / RED).read_bytes()
    rmtree(tmp_path / "teamspaces")
    make(lab, "t20")
    offer(lab, "h20", "t20", teamspace="red")
    lab.level()
    assert (tmp_path / RED).read_bytes().startswith(whole)
    lab.sweep()
    assert lab.differences() == []


@proves("FILES-CUT")
def test_whole_lines_that_were_cut_off_are_completed(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    log = tmp_path / LOG
    whole = log.read_bytes()
    for count in range(len(whole.splitlines())):
        log.write_bytes(b"".join(whole.splitlines(keepends=True)[:count]))
        lab.sweep()
        assert log.read_bytes() == whole, f"of {count} lines"


@proves("FILES-CUT")
@pytest.mark.parametrize("text", [b"hello\n", b"no line at all", b""])
def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path: Path, text: bytes) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    stray = tmp_path / "teamspaces/blue/handoffs/handoffs.jsonl"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(text)
    lab.sweep()
    assert stray.read_bytes() == text
    assert [*lab.projector().changed_logs()] == []


@proves("FILES-CRASH")
def test_a_power_cut_is_made_good(tmp_path: Path) -> None:
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"data{operations}")
        lab.data.mkdir()
        make(lab)
        offer(lab)
        lab.level()
        accept(lab)
        after = tmp_path / f"after{operations}"
        with Platter(lab.data) as platter:
            try:
                lab.projector(MortalDisk(Beneath(lab.data), operations)).level()
                is_over = True
            except Died:
                operations += 1
            platter.cut(after)
        lab.projector(data=after).level()
        lab.level()
        assert tree(after) == tree(lab.data), f"after {operations} operations"


@proves("FILES-COMPARE")
def test_verify_names_a_log_that_is_not_as_the_ledger_says(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    expected = tree(tmp_path)
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
    assert tree(tmp_path) == expected


def test_a_line_that_somebody_added_does_not_silence_the_log(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.level()
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes() + b'{"event_id":99999999}\nnot ours\n')
    accept(lab)
    lab.level()
    assert [line["event"] for line in lines_that_are_ours(log)][-1] == "handoff_transition"
    lab.projector().rebuild(lambda _: None)
    assert lab.differences() == []


def lines_that_are_ours(log: Path) -> list[dict[str, Any]]:
    """All lines that are about a handoff."""
    kept = [line for line in log.read_text().splitlines() if '"handoff_id"' in line]
    return [json.loads(line) for line in kept]


@proves("FILES-BENEATH")
@pytest.mark.parametrize("place", ["teamspaces/default", "teamspaces/default/handoffs"])
def test_a_link_on_the_way_is_set_aside_and_not_followed(tmp_path: Path, place: str) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    outside.mkdir()
    (data / place).parent.mkdir(parents=True)
    (data / place).symlink_to(outside)
    lab = FilesLab(data)
    life(lab)
    lab.level()
    assert list(outside.iterdir()) == []
    assert (data / LOG).is_file()
    assert lab.differences() == []


def test_many_handoffs_are_followed_without_remembering_all_of_them(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    for number in range(260):
        make(lab, f"t{number}")
        offer(lab, f"h{number}", f"t{number}")
    lab.do(BOB, RejectHandoff("h0", "other", "no time"))
    lab.level()
    assert lines(lab)[-1]["handoff_id"] == "h0"
    assert lab.differences() == []


def replayed(lab: FilesLab, *paths: str) -> Replayed:
    """What the files tell by themselves."""
    return replay(b"".join((lab.data / path).read_bytes() for path in paths).splitlines(True))


@proves("ACP-AUDIT-REPLAY")
def test_a_replay_gives_the_same_state_owner_and_chain(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    everything(lab)
    lab.level()
    told = replayed(lab, LOG, "teamspaces/red/handoffs/handoffs.jsonl")
    known = {row["handoff_id"] for row in lines(lab)} | {"h6"}
    assert set(told.handoffs) == known
    for id, handoff in told.handoffs.items():
        assert essence(handoff) == essence(state(lab, id)), id
        assert (handoff.status, handoff.chain) == (state(lab, id).status, state(lab, id).chain)
    for task in ("t1", "t2", "t5", "t6", "t7", "t8"):
        assert told.owners[task] == lab.task(task).assignee, task
        assert told.chains[task] == lab.task(task).chain, task
    assert compare(told, lab.store) == {}


def write_again(line: dict[str, Any], session: Session) -> None:
    """Write what a line of an audit log was made of."""
    origin, stream = line["entry"], handoff_stream(line["handoff_id"])
    event = CODEC.decode(origin["event"], origin["v"], json.dumps(origin["body"]).encode())
    unit = Unit(session, Cache(), origin["at"])
    unit.begin(Request(HUMAN, (CloseHandoff(line["handoff_id"]),), str(line["event_id"])))
    unit.load_streams([stream])
    unit.record(stream, event)
    session.write(unit.changes())


def told_again(store: Store) -> Replayed:
    """What the audit log of a store would tell, from its first entry on."""
    states: dict[str, Handoff] = {}
    lines: list[bytes] = []
    for entry in store.entries(0, 1_000):
        line = read_line(entry.line)
        event: Any = CODEC.decode(line.event, line.v, line.body)
        states[entry.stream] = EVOLVE_HANDOFF[type(event)](states.get(entry.stream), event, line.at)
        lines += lines_of(entry, states[entry.stream])
    return replay(line + b"\n" for line in lines)


@proves("ACP-AUDIT-REPLAY")
def test_in_an_empty_store_the_lines_come_to_the_same_states_owners_and_chains(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab").mkdir()
    lab = FilesLab(tmp_path / "lab")
    everything(lab)
    lab.level()
    both = sorted(lines(lab) + lines(lab, RED), key=lambda line: line["event_id"])
    store = SqliteStore.open(tmp_path / "empty.db", lambda: "empty")
    for line in both:
        if "entry" in line:
            store.transact(partial(write_again, line))
    assert [*check_ledger(store, [], lambda _: None), *check_views(store, lambda _: None)] == []
    assert store.handoffs("", 100) == lab.store.handoffs("", 100)
    before, again = replayed(lab, LOG, RED), told_again(store)
    assert (again.owners, again.chains) == (before.owners, before.chains)
    for id, handoff in before.handoffs.items():
        found = find_handoff(store, id)
        assert isinstance(found, Handoff)
        # Which one took its place is told by that one, and not in the lines of its own.
        found = replace(found, superseded_by=handoff.superseded_by)
        assert essence(found) == essence(handoff), id
    store.close()


@proves("ACP-AUDIT-REPLAY", "ACP-CHAIN")
def test_a_replay_gives_the_owner_of_work_that_came_back_by_hand(tmp_path: Path) -> None:
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
    lab.level()
    told = replayed(lab, LOG)
    assert told.owners == {"t1": "alice", "t3": "bob"}
    assert told.chains == {"t1": ("alice",), "t3": ("alice", "bob")}
    for task in told.owners:
        found = lab.task(task)
        assert (found.assignee, found.chain) == (told.owners[task], told.chains[task])
    assert compare(told, lab.store) == {}


@proves("ACP-AUDIT-REPLAY", "ACP-CHAIN", "REWIND-HANDOFF")
@pytest.mark.parametrize("owner", ["alice", "", "carol"])
def test_and_of_work_that_a_rewind_has_taken_from_its_recipient(tmp_path: Path, owner: str) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, CreateTask("Fix it", id="t1", ready=True, assignee=owner))
    lab.do(HUMAN, EditTask("t1", assignee="alice"))
    offer(lab)
    accept(lab)
    activate(lab)
    lab.do(HUMAN, RewindTask("t1", 1))
    lab.level()
    told, found = replayed(lab, LOG), lab.task("t1")
    moved = next(line for line in lines(lab) if line.get("to_status") == "rejected")
    assert (moved["owner"], tuple(moved["handoff_chain"])) == (owner, found.chain)
    assert (told.owners["t1"], told.chains["t1"]) == (found.assignee, found.chain)
    assert "bob" not in found.chain
    assert compare(told, lab.store) == {}


@proves("ACP-AUDIT-REPLAY")
@pytest.mark.parametrize("files", [(LOG, RED), (RED, LOG)])
def test_the_order_of_the_files_does_not_matter(tmp_path: Path, files: tuple[str, str]) -> None:
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
    lab.level()
    told = replayed(lab, *files)
    assert (told.owners, told.chains) == ({"t1": "bob"}, {"t1": ("alice", "bob")})
    assert (told.handoffs["h1"].superseded_by, told.handoffs["h2"].superseded_by) == ("h2", "h3")
    assert compare(told, lab.store) == {}
    for alone in files:
        assert compare(replayed(lab, alone), lab.store) == {}


@proves("ACP-AUDIT-REPLAY")
def test_what_is_missing_in_a_file_is_named(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    make(lab, "t2")
    offer(lab, "h2", "t2")
    lab.level()
    gone = "the file does not have it"
    assert compare(replay([]), lab.store) == {"h1": gone, "h2": gone}
    rest = [line for line in (tmp_path / LOG).read_bytes().splitlines(True) if b'"h2"' not in line]
    assert compare(replay(rest), lab.store) == {"h2": gone}
    assert compare(replay([]), FilesLab(tmp_path / "empty").store) == {}


@proves("ACP-AUDIT-REPLAY")
def test_an_owner_or_a_chain_that_the_ledger_does_not_have_is_named(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    lab.level()
    told = replayed(lab, LOG)
    told.chains["t1"] = ("mallory",)
    assert compare(told, lab.store) == {"t1": "the ledger has the chain alice"}
    told = replayed(lab, LOG)
    told.owners["t1"] = "mallory"
    assert compare(told, lab.store) == {"t1": "the ledger has it as alice's"}


@proves("ACP-AUDIT-REPLAY")
def test_a_file_of_another_ledger_is_told_apart(tmp_path: Path) -> None:
    lab, other = FilesLab(tmp_path / "one"), FilesLab(tmp_path / "other")
    for one in (lab, other):
        one.data.mkdir()
        make(one)
        offer(one)
    accept(other)
    other.do(BOB, ActivateHandoff("h1"))
    make(other, "t2")
    offer(other, "h2", "t2")
    other.level()
    wrong = compare(replayed(other, LOG), lab.store)
    assert wrong["h2"] == "the ledger does not know it"
    assert "status" in wrong["h1"]


@proves("ACP-AUDIT-REPLAY")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"to_status":"validating"', b'"to_status":"accepted"', "line 3: it says proposed"),
        (b'"to":"validating"', b'"to":"closed"', "line 3: there is no way from proposed to closed"),
        (b"too late", b"too soon", "line 1: the package of h1 is not the one"),
        (b'"v":1', b'"v":99', "line 1"),
        (b'"event":"handoff.moved"', b'"event":"task.noted"', "line 3"),
        (b'"handoff_id":"h1","task_id":"t1","timestamp"', b'"handoff_id":"h9","timestamp"', "h1"),
        (b'"task_id":"t1","timestamp"', b'"task_id":"t9","timestamp"', "h1 is about t1"),
        (b'"owner":"bob"', b'"owner":"mallory"', "the work is mallory (alice"),
        (b'"handoff_chain":["alice"],"owner"', b'"handoff_chain":["eve"],"owner"', "alice (eve)"),
        (b'"owner":"alice"', b'"owner":""', "the work is nobody (alice)"),
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
def test_a_line_that_cannot_be_true_is_named(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    data = (tmp_path / LOG).read_bytes()
    assert old in data
    with pytest.raises(BadFile) as wrong:
        replay(data.replace(old, new, 1).splitlines(True))
    assert why in wrong.value.detail


@proves("ACP-AUDIT-REPLAY")
def test_lines_out_of_order_or_cut_off_are_noticed(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    for spoilt, why in (
        ([*all_lines, all_lines[-1]], "it stands twice"),
        (all_lines[2:], "it was not created before"),
        ([*all_lines[:2], *all_lines[4:]], "h1 was proposed, not validating"),
    ):
        with pytest.raises(BadFile) as wrong:
            replay(spoilt)
        assert why.replace("it was not created", "was not created") in wrong.value.detail
    torn = replay([*all_lines[:3], all_lines[3][:-1]])
    assert (torn.lines, torn.handoffs["h1"].status) == (3, "validating")
    assert (torn.torn, replay(all_lines).torn) == (4, 0)


@proves("ACP-AUDIT-WORDS")
def test_a_line_that_is_left_out_is_missed(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    for gone, why in (
        (1, "line 2: handoff_transition (31) is missing before it"),
        (7, "line 8: handoff_completed (161) is missing before it"),
        (9, "line 9: handoff_closed of h1 is missing after it"),
        (0, "line 1: no event before it gives such a line"),
    ):
        with pytest.raises(BadFile) as wrong:
            replay([*all_lines[:gone], *all_lines[gone + 1 :]])
        assert wrong.value.detail == why


@proves("ACP-AUDIT-WORDS")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            b'"actor":"agent:alice"',
            b'"actor":"human:alice"',
            "line 1 of the file is not as the ledger has it",
        ),
        (b'"hash":"2c', b'"hash":"2d', "line 9 of the file is not as the ledger has it"),
        (b"thanks", b"no thanks", "the ledger says otherwise of its steps"),
        (b" ", b" ", ""),
    ],
    ids=str,
)
def test_a_line_that_only_the_ledger_can_tell_from_the_true_one_is_named(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    data = (tmp_path / LOG).read_bytes()
    assert old in data
    told = replay(
        data.replace(old, new)
        .replace(b'{"event":"handoff_', b'{ "event":"handoff_')
        .splitlines(True)
    )
    assert compare(told, lab.store) == ({"h1": why} if why else {})


@proves("ACP-AUDIT-WORDS")
def test_what_the_gate_said_is_neither_left_out_nor_invented(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    life(lab)
    lab.level()
    all_lines = (tmp_path / LOG).read_bytes().splitlines(True)
    invented = all_lines[3].replace(b'"event_id":70', b'"event_id":90')
    invented = invented.replace(b'"position":7', b'"position":9')
    told = replay([*all_lines[:5], invented, *all_lines[5:]])
    assert compare(told, lab.store) == {"h1": "line 6 of the file is not in the ledger"}
    gated = FilesLab(tmp_path / "gated")
    gated.data.mkdir()
    make(gated)
    policy = {"classification": "internal", "human_gate": "required"}
    offer(gated, package=package("t1", policy=policy))
    accept(gated)
    gated.do(HUMAN, ApproveHandoff("h1", is_yes=True))
    accept(gated)
    gated.level()
    twice = (gated.data / LOG).read_bytes().splitlines(True)
    assert compare(replay(twice), gated.store) == {}
    at = next(n for n, line in enumerate(twice) if b'"handoff_verification"' in line)
    [(id, why)] = compare(replay([*twice[:at], *twice[at + 1 :]]), gated.store).items()
    assert (id, why.startswith("the file does not have its line ")) == ("h1", True)


def checks(lab: FilesLab, id: str = "h1") -> dict[str, bool]:
    """Which checks of a handoff hold."""
    found = check_handoff(lab.store, Beneath(lab.data), state(lab, id))
    return {check.check: check.ok for check in found}


@proves("ACP-CLI")
def test_one_handoff_is_looked_at_from_all_sides(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    make(lab)
    offer(lab)
    digest = sha256(b"what happened").hexdigest()
    accept(lab, artifacts={"log": digest})
    copy = tmp_path / artifact_path(digest)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"what happened")
    lab.level()
    names = ("entries", "state", "row", "package_hash", "audit", "artifact")
    assert checks(lab) == dict.fromkeys(names, True)
    copy.write_bytes(b"something else")
    assert checks(lab) == dict.fromkeys(names, True) | {"artifact": False}
    copy.unlink()
    (tmp_path / LOG).write_bytes(b"")
    assert checks(lab) == dict.fromkeys(names, True) | {"artifact": False, "audit": False}
    lab.do(ALICE, DraftHandoff({"context": {}}, id="d1"))
    assert checks(lab, "d1") == {"entries": True, "state": True}
