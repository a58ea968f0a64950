"""Projection with foreign and forged files, unreadable streams, and concurrent writers."""

import errno
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.attempt import RenewLease
from dragoman.core.limits import MAX_TEXT
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.files.layout import mtime_stamp
from dragoman.files.task_file import WORK_LOG, parse_task_file
from dragoman.files.task_work_folder import has_task_file
from dragoman.system.safe_fs import FileStat, SafeDisk
from tests.engine.lab import ALICE, HUMAN
from tests.files.lab import FilesLab, read_tree
from tests.requirements import proves


@proves("FILES-CRASH")
@pytest.mark.parametrize(
    "forged", [b'{"eventId":999999999}', b'{"eventId":-7}', b'{"eventId":"x"}']
)
def test_forged_event_id_does_not_stop_event_log(tmp_path: Path, forged: bytes) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    day = next(tmp_path.glob("events/*.jsonl"))
    before = day.read_bytes()
    day.write_bytes(before + forged + b"\n")
    for _ in range(3):
        lab.do(HUMAN, NoteTask(task, "x"))
        lab.catch_up()
    (tmp_path / "projection.json").unlink()
    lab.catch_up()
    lines = day.read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == before.count(b"\n") + 1 + 3 * 2
    assert lab.differences() == [(f"events/{day.name}", "changed")]


@proves("FILES-EDITS")
@pytest.mark.parametrize("with_folder", [True, False])
def test_foreign_file_does_not_hide_missing_task_file(tmp_path: Path, with_folder: bool) -> None:
    lab = FilesLab(tmp_path)
    task, named = lab.create(), lab.create("Named", id="own-name")
    (tmp_path / "tasks" / "ready" / "TASK-2020-01-01-001.md").write_text("stray")
    for gone in (task, named):
        lab.path("ready", gone).unlink()
        if with_folder:
            for part in ("inputs", "work", "outputs", ""):
                (tmp_path / "tasks" / "ready" / gone / part).rmdir()
    lab.scan()
    assert lab.path("ready", task).exists()
    assert lab.path("ready", named).exists()


@proves("FILES-EDITS")
def test_only_temporary_files_of_tasks_are_removed(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    ready = tmp_path / "tasks" / "ready"
    (ready / ".notes.md.next").write_text("mine")
    (ready / f".{task}.md.next").write_text("torn")
    lab.scan()
    assert (ready / ".notes.md.next").read_text() == "mine"
    assert not (ready / f".{task}.md.next").exists()


@proves("FILES-PROJECTION")
def test_unreadable_stream_does_not_block_others(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    bad = lab.create("Bad")
    lab.do(HUMAN, NoteTask(bad, "x"))
    lab.do(HUMAN, CreateTask("Other", ready=True))
    tables = lab.store.tables
    number = tables.numbers[f"task:{bad}"]
    tables.rows[number] = replace(tables.rows[number], state=b"nonsense")
    lab.path("ready", bad).unlink()
    lab.catch_up()
    lab.scan()
    assert any("Other" in path.read_text() for path in tmp_path.glob("tasks/ready/*.md"))
    assert lab.warnings
    assert all(
        f"task:{bad}" in warning and "dragoman verify" in warning for warning in lab.warnings
    )


@proves("FILES-PROJECTION")
def test_unreadable_entry_is_reported_and_event_log_continues(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, CreateTask("Bad", ready=True))
    lab.do(HUMAN, CreateTask("Good", ready=True))
    entries = lab.store.tables.entries
    entries[0] = replace(entries[0], line=b"nonsense")
    lab.catch_up()
    assert next(tmp_path.glob("events/*.jsonl")).read_text().count("eventId") == 2
    assert any("entry 1 has no line" in warning for warning in lab.warnings)


@proves("FILES-EDITS")
def test_edit_during_sync_is_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create("Old title")
    lab.do(HUMAN, NoteTask(task, "hello"))
    sync, typed = os.fsync, list[str]()

    def edit_during_sync(descriptor: int) -> None:
        is_pending = (tmp_path / "tasks" / "ready" / f".{task}.md.next").exists()
        if is_pending and not typed:
            lab.edit("ready", task, "Old title", "Typed by a person")
            typed.append(task)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", edit_during_sync)
    lab.catch_up()
    assert typed == [task]
    assert lab.task(task).title == "Typed by a person"
    assert lab.differences() == []


@proves("FILES-TASK-FILE", "FILES-EDITS")
def test_long_work_log_is_truncated_and_file_stays_editable(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    for number in range(230):
        lab.do(HUMAN, NoteTask(task, f"note {number}"))
    lab.catch_up()
    path = lab.path("ready", task)
    assert f"*30 earlier entries: `dragoman task log {task}`*" in path.read_text()
    file = parse_task_file(path.read_bytes())
    hidden, *shown = file.hub_parts[WORK_LOG]
    assert ("*30 earlier" in hidden, len(shown)) == (True, 200)
    assert shown[-1].endswith(" Notes: note 229")
    lab.edit("ready", task, "Fix it", "Fix that")
    assert lab.scan() == 1
    assert lab.task(task).title == "Fix that"
    lab.edit("ready", task, "*30 earlier", "*31 earlier")
    assert lab.scan() == 1
    assert "the work log is no field of a task, or is written by" in "".join(
        text.read_text() for text in tmp_path.glob("tasks/ready/*.reason.txt")
    )
    assert lab.differences() == []


@proves("FILES-TASK-FILE")
def test_long_notes_keep_file_below_read_limit(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    for _ in range(3):
        lab.do(HUMAN, NoteTask(task, "x" + "\U000e0041" * (MAX_TEXT - 1)))
        lab.catch_up()
    file = parse_task_file(lab.path("ready", task).read_bytes())
    hidden, *shown = file.hub_parts[WORK_LOG]
    assert ("*2 earlier" in hidden, len(shown)) == (True, 1)
    assert lab.scan() == 0
    assert not list(tmp_path.glob("tasks/ready/*.rejected*"))


@proves("FILES-EDITS")
def test_stamped_file_is_never_refused_for_its_size(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    path = lab.path("ready", task)
    path.write_bytes(b"x" * ((16 << 20) + 1))
    at = mtime_stamp(f"tasks/ready/{task}.md", path.stat().st_size, 1_000_000)
    os.utime(path, ns=(at, at))
    lab.do(HUMAN, NoteTask(task, "more"))
    lab.catch_up()
    assert not list(tmp_path.glob("tasks/ready/*.rejected*"))
    assert lab.differences() == []


@proves("FILES-COMPARE")
def test_concurrent_writer_causes_no_difference(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    tasks = [lab.create(f"Task {number}") for number in range(3)]
    lab.claim(tasks[0])

    class WritingDisk(SafeDisk):
        """Disk on which tasks change, and new ones are made, while files are compared."""

        new = 3

        def list(self, folder: str) -> list[FileStat]:
            """Write, then list a folder."""
            self.write_concurrently()
            return super().list(folder)

        def read(self, path: str, max_bytes: int) -> bytes | None:
            """Write, then read."""
            self.write_concurrently()
            return super().read(path, max_bytes)

        def write_concurrently(self) -> None:
            """Commit without projecting."""
            lab.clock.advance(1)
            lab.do(ALICE, RenewLease(tasks[0]))
            lab.do(HUMAN, NoteTask(tasks[1], "meanwhile"))
            if self.new:
                self.new -= 1
                lab.do(HUMAN, CreateTask("New", ready=True))

    lab.do(HUMAN, NoteTask(tasks[2], "committed, but not written yet"))
    found = lab.projector(WritingDisk(tmp_path)).compare(lambda _: None)
    assert list(found) == []
    (tmp_path / "runs" / tasks[0] / "run_heartbeat.json").write_text("{}")
    assert lab.differences() == [(f"runs/{tasks[0]}/run_heartbeat.json", "changed")]


class ReadOnlyDisk(SafeDisk):
    """Disk on which nothing can be written any more."""

    def append(self, path: str, offset: int, data: bytes, mtime_ns: int | None = None) -> None:
        """Fail."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


@proves("VERIFY-BEHIND")
def test_files_are_not_compared_where_commits_cannot_be_written_to_them(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create("One")
    projector = lab.projector(ReadOnlyDisk(tmp_path))
    assert list(projector.compare(lambda _: None)) == []
    lab.do(HUMAN, CreateTask("Later", ready=True))

    with pytest.raises(OSError, match="Read-only file system"):
        list(projector.compare(lambda _: None))

    assert lab.differences() == []


@proves("FILES-COMPARE")
def test_files_of_another_ledger_are_reported_and_left_alone(tmp_path: Path) -> None:
    other = FilesLab(tmp_path)
    other.create("Of another ledger")
    foreign = other.create("Of another ledger, too")
    other.clock.advance(86_400_000)
    other.create("The day after")
    lab = FilesLab(tmp_path)
    lab.create("Mine")
    typed = tmp_path / "tasks" / "ready" / "TASK-2020-01-01-001.md"
    typed.write_text("typed by hand")
    (tmp_path / "events" / "1999-01-01.jsonl").write_text("typed by hand\n")
    lab.projector().rebuild(lambda _: None)
    assert lab.path("ready", foreign).exists()
    assert typed.exists()
    assert sorted(lab.differences()) == [
        ("events/1999-01-01.jsonl", "surplus"),
        ("events/2026-02-10.jsonl", "surplus"),
        ("tasks/ready/TASK-2020-01-01-001.md", "surplus"),
        ("tasks/ready/TASK-2026-02-09-002.md", "surplus"),
        ("tasks/ready/TASK-2026-02-10-001.md", "surplus"),
    ]
    assert "tasks/ready/TASK-2026-02-09-001.md" in read_tree(tmp_path)


@proves("FILES-DISK")
@pytest.mark.parametrize("ref", [".", "./", "outputs", "outputs/", "outputs/.", "output/"])
def test_folder_is_not_a_summary_file(tmp_path: Path, ref: str) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    assert not has_task_file(lab.store, SafeDisk(tmp_path), task, ref)


@proves("FILES-DISK")
def test_inaccessible_summary_counts_as_missing(tmp_path: Path) -> None:
    class DeniedDisk(SafeDisk):
        """Disk that denies all access."""

        def stat(self, path: str) -> None:
            """Fail."""
            raise PermissionError(13, "Permission denied", path)

    lab = FilesLab(tmp_path)
    task = lab.create()
    assert not has_task_file(lab.store, DeniedDisk(tmp_path), task, "outputs/summary.md")
