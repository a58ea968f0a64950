"""Projector: follows the ledger from a cursor and writes the files that show it.

It works from the present state and may be run again at any point, so a crash between any two
operations leaves nothing that the next run does not repair. The cursor moves only when
everything before it is durable. One process projects at a time; the others wait and find it
done.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Status
from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.ids import intent_stream, is_aof_id, task_stream
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.queries.tasks import find_task_stream, task_rows
from dragoman.files.atomic_write import (
    move_aside,
    write_if_changed,
)
from dragoman.files.errors import ErrorIsolator, Warn
from dragoman.files.handoff_log import open_handoff_log
from dragoman.files.layout import (
    CURSOR_FILE,
    EVENTS,
    INBOX,
    PROJECTION_LOCK,
    REASON_SUFFIX,
    RUNS,
    STATUSES,
    TASKS,
    event_log_path,
    has_mtime_stamp,
    is_staged_task,
    task_id_of_file,
    task_path,
)
from dragoman.files.line_log import LineLog, LogFiles, RenderedLines, number_decoder
from dragoman.files.mail_files import (
    MailProjector,
    find_foreign_letters,
    has_changed_since,
    render_letter,
)
from dragoman.files.task_file import format_task_file
from dragoman.files.task_projector import MAX_FILE_BYTES, TaskProjector
from dragoman.files.task_snapshot import TaskSnapshot, TaskSnapshots, heartbeat_path, result_path
from dragoman.ledger.entry import Entry, read_line
from dragoman.system.safe_fs import FileStat, SafeDisk

_COMPARISON_PAGE: Final = 1_000

_ANYWHERE: Final = ""


class Difference(Struct, frozen=True):
    """A file that differs from the ledger."""

    path: str
    problem: Literal["missing", "changed", "surplus"]


class ComparisonSources(Struct, frozen=True):
    """The ledger and the files to compare."""

    store: Store
    disk: SafeDisk
    snapshots: TaskSnapshots
    logs: tuple[LineLog, ...]


class _Heartbeat(Struct, rename="camel"):
    task_id: str
    agent_id: str
    last_heartbeat: str
    beat_count: int


_heartbeat_decoder: Final = msgspec.json.Decoder(_Heartbeat)


def compare_files(
    sources: ComparisonSources, position: int, progress: Callable[[int], None]
) -> Iterator[Difference]:
    """Yield every difference: by task and letter, then by day of the event log.

    The files show the ledger up to `position`, and nobody writes them meanwhile: a task that has
    changed since then is not compared.
    """
    expected_paths: dict[str, str] = {}
    after = 0
    while rows := sources.store.rows(after, _COMPARISON_PAGE):
        for row in rows:
            snapshot = sources.snapshots.of_row(row)
            if snapshot is None:
                yield from _compare_letter(sources, row, position)
                continue
            found = [*_compare_task(sources.disk, snapshot, row.lease)]
            is_later = bool(found) and _has_changed_later(sources.store, row, snapshot, position)
            home = task_path(snapshot.task.status, snapshot.task.aof_id)
            expected_paths[snapshot.task.aof_id] = _ANYWHERE if is_later else home
            if not is_later:
                yield from found
        after = rows[-1].number
        progress(len(rows))
    yield from _find_surplus(sources.disk, expected_paths)
    for path in find_foreign_letters(sources.store, sources.disk):
        yield Difference(path, "surplus")
    for log in sources.logs:
        yield from _compare_log(sources, log, position)


def _has_changed_later(store: Store, row: StreamRow, snapshot: TaskSnapshot, position: int) -> bool:
    """True when the task or its intent has entries after a position."""
    intent = store.stream(snapshot.intent) if snapshot.intent else None
    return has_changed_since(store, row, position) or (
        intent is not None and has_changed_since(store, intent, position)
    )


def _compare_task(
    disk: SafeDisk, snapshot: TaskSnapshot, lease: Lease | None
) -> Iterator[Difference]:
    task_id = snapshot.task.aof_id
    yield from _compare_file(
        disk, task_path(snapshot.task.status, task_id), format_task_file(snapshot.file)
    )
    for path, data in snapshot.current.items():
        if path != heartbeat_path(task_id) or not _is_older_heartbeat(disk, path, task_id, lease):
            yield from _compare_file(disk, path, data)
    for path in snapshot.write_once:
        if path not in snapshot.current and disk.stat(path) is None:
            yield Difference(path, "missing")
    result = result_path(task_id)
    if result not in snapshot.current and disk.stat(result) is not None:
        yield Difference(result, "surplus")


def _is_older_heartbeat(disk: SafeDisk, path: str, task_id: str, lease: Lease | None) -> bool:
    """True for an earlier heartbeat of this lease: a later one leaves no entry in the ledger."""
    try:
        heartbeat = _heartbeat_decoder.decode(disk.read(path, MAX_FILE_BYTES) or b"")
        at = parse_rfc3339(heartbeat.last_heartbeat)
    except (msgspec.MsgspecError, ValueError):
        return False
    return (
        lease is not None
        and (heartbeat.task_id, heartbeat.agent_id) == (task_id, lease.holder)
        and heartbeat.beat_count < lease.heartbeats
        and at <= lease.last_heartbeat
    )


def _compare_file(disk: SafeDisk, path: str, expected: bytes) -> Iterator[Difference]:
    data = disk.read(path, MAX_FILE_BYTES)
    if data is None:
        yield Difference(path, "missing" if disk.stat(path) is None else "changed")
    elif data != expected:
        yield Difference(path, "changed")


def _find_surplus(disk: SafeDisk, expected_paths: dict[str, str]) -> Iterator[Difference]:
    """Task files in a folder that is not their task's; files with other names are ignored."""
    for status in STATUSES:
        for info in disk.list(f"{TASKS}/{status}"):
            path, task_id = f"{TASKS}/{status}/{info.name}", task_id_of_file(info.name)
            if task_id is not None and expected_paths.get(task_id) not in (path, _ANYWHERE):
                yield Difference(path, "surplus")


def _compare_letter(
    sources: ComparisonSources, row: StreamRow, position: int
) -> Iterator[Difference]:
    shown = render_letter(sources.store, row)
    if shown is not None and not has_changed_since(sources.store, row, position):
        yield from _compare_file(sources.disk, *shown[1:])


def _compare_log(sources: ComparisonSources, log: LineLog, position: int) -> Iterator[Difference]:
    known: dict[str, _ComparedFile] = {}
    after = 0
    while page := sources.store.entries(after, _COMPARISON_PAGE, until=position):
        for path, lines in log.render_by_path(page).items():
            file = known.setdefault(path, _ComparedFile(sources.disk, path))
            file.compare_next(b"".join(line + b"\n" for line in lines))
        after = page[-1].position
    for path, file in known.items():
        if problem := file.problem():
            yield Difference(path, problem)
    for path in log.existing():
        if path not in known:
            yield Difference(path, "surplus")


class _ComparedFile:
    """Line file that is compared chunk by chunk with its expected content."""

    def __init__(self, disk: SafeDisk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._offset = 0
        self._is_same = True

    def compare_next(self, expected: bytes) -> None:
        """Compare the next chunk."""
        if self._is_same:
            self._is_same = self._disk.read_at(self._path, self._offset, len(expected)) == expected
            self._offset += len(expected)

    def problem(self) -> Literal["missing", "changed"] | None:
        found = self._disk.stat(self._path)
        if found is None:
            return "missing"
        return None if self._is_same and found.size == self._offset else "changed"


# --- cursor -----------------------------------------------------------------------------------


class CursorRecord(Struct, frozen=True, omit_defaults=True):
    """Content of the cursor file: a position in a ledger."""

    ledger: str = ""
    position: int = 0
    failed: dict[str, str] = {}
    """Streams before the position whose files could not be written and are retried -> problem."""


_cursor_decoder: Final = msgspec.json.Decoder(CursorRecord)


class ProjectionCursor:
    """Position in the ledger up to which the files are written, saved in `projection.json`."""

    def __init__(self, store: Store, disk: SafeDisk) -> None:
        self._store = store
        self._disk = disk

    def load(self) -> CursorRecord | None:
        """Load the cursor, of whichever ledger; None when it is missing or cannot be decoded."""
        data = self._disk.read(CURSOR_FILE, MAX_FILE_BYTES)
        try:
            return _cursor_decoder.decode(data) if data else None
        except msgspec.MsgspecError:
            return None

    def load_if_matching(self) -> CursorRecord | None:
        """Load the cursor, if it belongs to this ledger."""
        record = self.load()
        return record if record is not None and self.matches(record) else None

    def matches(self, record: CursorRecord) -> bool:
        """True when it belongs to this ledger, and not to a longer copy of it."""
        return record.ledger == self._store.ledger_id() and record.position <= self._store.head()

    def save(self, position: int, failed: dict[str, str]) -> None:
        """Save the cursor after making everything before its position durable."""
        self._disk.sync()
        record = CursorRecord(self._store.ledger_id(), position, failed)
        write_if_changed(self._disk, CURSOR_FILE, msgspec.json.encode(record) + b"\n")
        self._disk.sync()

    def last_projected(self) -> Entry | None:
        """Last entry that the files show."""
        record = self.load_if_matching()
        if record is None or not record.position:
            return None
        (entry,) = self._store.entries(record.position - 1, 1) or (None,)
        return entry


# --- event log --------------------------------------------------------------------------------

RenderLines = Callable[[Entry, Callable[[str], str], Callable[[Entry], str]], list[bytes]]
"""Renders an entry as lines, each with an `eventId` that rises; gets functions that find AOF ids,
and the task of an entry."""

_event_id_of: Final = number_decoder("eventId")

_DAY_FILE: Final = event_log_path(r"\d{4}-\d\d-\d\d")


def open_event_log(
    disk: SafeDisk,
    render: RenderLines,
    snapshots: TaskSnapshots,
    last_projected: Callable[[], Entry | None],
    warn: Warn,
) -> LineLog:
    """Open the log of all events; `last_projected` returns the newest entry that the files show."""

    def render_entry(entry: Entry) -> RenderedLines:
        lines = render(entry, snapshots.aof_id_of, snapshots.task_of)
        return event_log_path(to_rfc3339(read_line(entry.line).at)[:10]), lines

    def list_existing() -> list[str]:
        names = (look.name for look in disk.list(EVENTS))
        return [f"{EVENTS}/{name}" for name in names if name.endswith(".jsonl")]

    def newest_paths() -> list[str]:
        """File of the newest line."""
        try:
            written = [render_entry(entry)] if (entry := last_projected()) else []
        except LedgerError:
            return []
        return [path for path, lines in written if lines]

    def first_position(path: str) -> int | None:
        # Clocks go back: only the whole ledger can say which entries belong to a day whose file is
        # gone, or replaced by something else.
        if disk.stat(path) is None:
            return 1 if path in newest_paths() else None
        return 1 if re.fullmatch(_DAY_FILE, path) else None

    def list_growing() -> list[str]:
        # Only the last day grows: damage to the others is reported by `verify`.
        return sorted({*list_existing()[-1:], *newest_paths()})

    return LineLog(
        disk,
        render_entry,
        _event_id_of,
        LogFiles(list_existing, list_growing, first_position),
        warn,
    )


# --- projector --------------------------------------------------------------------------------

FILE_EDITOR: Final = Actor("file", "files", via="files")

TRUSTED_FILE_EDITOR: Final = Actor("trusted-file", "files", via="files")
"""Actor of edited or moved task files; trusted if `files.trust_moves` is set."""

_PAGE: Final = 1_000

_FOLDERS: Final = (RUNS, EVENTS, INBOX, *(f"{TASKS}/{status}" for status in STATUSES))

_EXPECTED_KINDS: Final = {**dict.fromkeys((TASKS, *_FOLDERS), "folder"), CURSOR_FILE: "file"}
"""Path -> expected kind."""

Progress = Callable[[int], None]

_StatusFiles = Mapping[Status, Sequence[FileStat]]
"""Files in the folder of each status."""


class Projector:
    """Projects the ledger to files beneath a data directory."""

    def __init__(
        self,
        hub: Hub,
        disk: SafeDisk,
        render: RenderLines,
        warn: Warn,
        *,
        trust_moves: bool = False,
    ) -> None:
        self._hub = hub
        self._store = hub.store
        self._disk = disk
        self._cursor = ProjectionCursor(hub.store, disk)
        self._snapshots = TaskSnapshots(hub.store)
        actor = TRUSTED_FILE_EDITOR if trust_moves else FILE_EDITOR
        self._warn = warn
        self._isolator = ErrorIsolator(warn)
        self._tasks = TaskProjector(hub, disk, self._snapshots, actor, self._isolator)
        self._mail = MailProjector(hub.store, disk, self._isolator)
        self._logs = (
            open_event_log(disk, render, self._snapshots, self._cursor.last_projected, warn),
            open_handoff_log(hub.store, disk, warn),
        )

    def catch_up(self, renewed: Iterable[str] = ()) -> int:
        """Project new entries; returns their number.

        `renewed` are the streams whose leases were renewed: heartbeats leave no entry.
        """
        with self._disk.lock(PROJECTION_LOCK):
            done = self._project_new_entries()
            self._tasks.project_heartbeats(renewed)
            self._disk.sync()
        return done

    def scan(self) -> int:
        """Scan for edited, moved and late files; returns how many edits were answered."""
        with self._disk.lock(PROJECTION_LOCK):
            self._make_folders()
            self._project_new_entries()
            self._backfill_logs()
            files = self._list_status_folders()
            failed = self._take_failed()
            answered = self._process_edits(self._find_touched(files))
            answered += self._tasks.project(self._find_missing(files))
            answered += self._project_streams([s for s in failed if s not in self._isolator.failed])
            self._check_runs()
            self._save_failed()
            self._project_new_entries()
            self._disk.sync()
        return answered

    def failure_summary(self) -> str:
        """Summary of failures with single tasks or letters; empty when there are none."""
        return self._isolator.failure_summary()

    def check_runs(self) -> None:
        """Check the run files of all tasks in progress."""
        with self._disk.lock(PROJECTION_LOCK):
            self._check_runs()
            self._disk.sync()

    def rebuild(self, progress: Progress) -> int:
        """Rewrite every file that is missing or differs; returns the number of tasks."""
        with self._disk.lock(PROJECTION_LOCK):
            return self._rebuild(progress)

    def lag(self) -> tuple[int, Sequence[str]]:
        """Number of entries not projected yet, and streams whose files could not be written."""
        cursor = self._cursor.load() or CursorRecord()
        return max(0, self._store.head() - cursor.position), tuple(cursor.failed)

    def list_blocked_paths(self) -> Iterator[str]:
        """Paths with another kind of file than expected; the next scan moves it aside."""
        for path, kind in _EXPECTED_KINDS.items():
            found = self._disk.stat(path)
            if found is not None and found.kind != kind:
                yield path

    def list_changed_logs(self) -> Iterator[str]:
        """Line files that are not as they were left: lines may be missing."""
        for log in self._logs:
            yield from log.changed()

    def compare(self, progress: Progress) -> Iterator[Difference]:
        """Yield every file that is missing, changed or surplus.

        Committed entries are projected first, and later ones wait for the lock: neither is a
        difference. OSError when entries cannot be projected now.
        """
        with self._disk.lock(PROJECTION_LOCK):
            if self._cursor.load_if_matching() is not None:
                self._project_new_entries()
            cursor = self._cursor.load_if_matching()
            position = cursor.position if cursor else self._store.head()
            sources = ComparisonSources(self._store, self._disk, self._snapshots, self._logs)
            yield from compare_files(sources, position, progress)

    def _check_runs(self) -> None:
        self._tasks.project_heartbeats(row.name for row in task_rows(self._store, "in-progress"))

    # Following the ledger

    def _project_new_entries(self) -> int:
        cursor = self._cursor.load() or CursorRecord(self._store.ledger_id())
        if not self._cursor.matches(cursor):
            # Another ledger, or an older copy of this one: the files show events that never
            # happened here.
            return self._rebuild(lambda _: None)
        # Up to the present head only, or other writers would keep this going for ever.
        done, head = 0, self._store.head()
        self._isolator.failed = {**cursor.failed, **self._isolator.failed}
        for page in self._read_pages(head, cursor.position):
            self._project_page(page)
            self._cursor.save(page[-1].position, self._isolator.failed)
            done += len(page)
        return done

    def _take_failed(self) -> list[str]:
        """Clear the list of failed streams; those that fail again are added again."""
        failed = list(self._isolator.failed)
        self._isolator.failed.clear()
        return failed

    def _save_failed(self) -> None:
        cursor = self._cursor.load()
        if cursor is not None and cursor.failed != self._isolator.failed:
            self._cursor.save(cursor.position, self._isolator.failed)

    def _backfill_logs(self) -> None:
        """Restore missing lines of line files, up to the cursor."""
        cursor = self._cursor.load_if_matching()
        if cursor is not None:
            for log in self._logs:
                log.backfill(partial(self._read_pages, cursor.position))

    def _project_page(self, page: list[Entry]) -> None:
        self._make_folders()
        earlier = partial(self._read_pages, page[0].position - 1)
        for log in self._logs:
            log.append_entries(page, earlier)
        self._project_streams([e.stream for e in page])

    def _project_streams(self, streams: Sequence[str]) -> int:
        """Project these streams; returns how many edits were answered."""
        tasks = filter(None, map(self._task_shown_by, dict.fromkeys(streams)))
        answered = self._tasks.project(tasks)
        self._mail.project(streams)
        return answered

    def _task_shown_by(self, stream: str) -> str:
        """Stream of the task whose files show this stream: itself, or the task of an intent; empty
        when there is none."""
        if not stream.startswith(intent_stream("")):
            return stream if stream.startswith(task_stream("")) else ""
        intent = find_intent(self._store, stream.removeprefix(intent_stream("")))
        return "" if isinstance(intent, Refusal) else task_stream(intent.task)

    def _rebuild(self, progress: Progress) -> int:
        head, tasks, after = self._store.head(), 0, 0
        self._take_failed()
        self._make_folders()
        for log in self._logs:
            log.rewrite(self._read_pages(head, 0))
        while rows := self._store.rows(after, _PAGE):
            streams = [row.name for row in rows if row.name.startswith(task_stream(""))]
            self._tasks.project(streams)
            self._mail.project(row.name for row in rows)
            tasks += len(streams)
            after = rows[-1].number
            progress(len(streams))
            self._disk.sync()
        self._cursor.save(head, self._isolator.failed)
        return tasks

    def _make_folders(self) -> None:
        for path in self.list_blocked_paths():
            moved_to = move_aside(self._disk, path, f"{path}-found")
            self._warn(
                f"{path} was no {_EXPECTED_KINDS[path]}: it is kept as {moved_to}, and a "
                f"{_EXPECTED_KINDS[path]} "
                "is made in its place"
            )
        for folder in _FOLDERS:
            self._disk.make_folder(folder)

    def _read_pages(self, head: int, after: int) -> Iterator[list[Entry]]:
        while page := self._store.entries(after, _PAGE, until=head):
            yield page
            after = page[-1].position

    # Finding changes of others

    def _list_status_folders(self) -> _StatusFiles:
        return {status: self._disk.list(f"{TASKS}/{status}") for status in STATUSES}

    def _find_touched(self, listing: _StatusFiles) -> Iterator[str]:
        """Ids of tasks whose file was touched, or whose folder stands apart from their file."""
        for status, found in listing.items():
            folder = f"{TASKS}/{status}"
            files = {
                task_id_of_file(info.name): info for info in found if task_id_of_file(info.name)
            }
            for task_id, look in files.items():
                if task_id and not _is_unedited_file(folder, look):
                    yield task_id
            for look in found:
                if is_aof_id(look.name) and look.name not in files:
                    yield look.name
                elif is_staged_task(look.name) and look.kind != "folder":
                    self._disk.remove(f"{folder}/{look.name}")

    def _find_missing(self, files: _StatusFiles) -> Iterator[str]:
        """Streams of tasks whose file is missing.

        Unedited files are counted first: names are compared only if there are fewer files than
        tasks.
        """
        counts = self._store.status_counts()
        for status, found in files.items():
            unedited = sum(_is_unedited_file(f"{TASKS}/{status}", look) for look in found)
            if unedited >= counts.get(status, 0):
                continue
            names = {look.name for look in found}
            for row in task_rows(self._store, status):
                task_id = row.name.removeprefix(task_stream(""))
                if f"{task_id}.md" not in names and not self._has_file(row, names):
                    yield row.name

    def _has_file(self, row: StreamRow, names: Collection[str]) -> bool:
        """True when a task that may have another AOF id has its file among these."""
        try:
            snapshot = self._snapshots.of_row(row)
        except LedgerError:
            return False  # reported when its files are projected
        return snapshot is None or f"{snapshot.task.aof_id}.md" in names

    def _process_edits(self, task_ids: Iterable[str]) -> int:
        """Submit the edits in the files of these tasks."""
        found = {task_id: find_task_stream(self._store, task_id) for task_id in task_ids}
        known = [stream for stream in found.values() if not isinstance(stream, Refusal)]
        unknown = [task_id for task_id, stream in found.items() if isinstance(stream, Refusal)]
        return self._tasks.project(known) + sum(map(self._note_unknown_task, unknown))

    def _note_unknown_task(self, task_id: str) -> int:
        """Leave a file without a task as it is, and write a note beside it."""
        noted = 0
        for status in STATUSES:
            path = f"{TASKS}/{status}/{task_id}.md"
            if self._disk.stat(path) and self._disk.stat(path + REASON_SUFFIX) is None:
                text = (
                    f"There is no task {task_id}. The file was left as it is.\n"
                    "A task is made with `dragoman task create`; then its file appears here.\n"
                )
                write_if_changed(self._disk, path + REASON_SUFFIX, text.encode())
                noted += 1
        return noted


def _is_unedited_file(folder: str, info: FileStat) -> bool:
    return info.kind == "file" and has_mtime_stamp(
        f"{folder}/{info.name}", info.size, info.mtime_ns
    )
