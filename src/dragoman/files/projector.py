"""The projector: follows the ledger from a cursor and brings the files level with it.

It works from the present state and may be run again at any point, so a crash between any two
operations leaves nothing that the next run does not put right. The cursor moves only when
everything before it is durable. One process projects at a time; the others wait and find it done.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.errors import DragomanError, LedgerError, Refusal
from dragoman.core.events import Status
from dragoman.core.ids import is_aof_id, task_stream
from dragoman.engine.hub import Hub
from dragoman.engine.ports import BoardQuery, Row
from dragoman.engine.reads.ask import find_stream
from dragoman.files.bookmark import Bookmark, Mark
from dragoman.files.comparison import Difference, Sources, compare
from dragoman.files.disk import Disk, Look
from dragoman.files.event_log import RenderLines, event_log
from dragoman.files.guarding import Guard, Warn
from dragoman.files.handoffs.log import handoff_log
from dragoman.files.layout import (
    CURSOR,
    EVENTS,
    INBOX,
    LOCK,
    REASON,
    RUNS,
    STATUSES,
    TASKS,
    has_stamp,
    is_staged_task,
    task_of_discarded,
    task_of_file,
)
from dragoman.files.mail.letter_files import MailFiles
from dragoman.files.putting import discard, put, set_aside
from dragoman.files.tasks.leftovers import bring_back
from dragoman.files.tasks.streams import TaskStreams
from dragoman.files.tasks.task_file import is_untouched
from dragoman.files.tasks.task_files import MOST_BYTES, TaskFiles
from dragoman.ledger.entry import Entry

PERSON: Final = Actor("file", "files", via="files")
TRUSTED: Final = Actor("trusted-file", "files", via="files")
"""Actor of edited or moved task files; trusted if `files.trust_moves` is set."""

_PAGE: Final = 1_000
_FOLDERS: Final = (RUNS, EVENTS, INBOX, *(f"{TASKS}/{status}" for status in STATUSES))

_PLACES: Final = {**dict.fromkeys((TASKS, *_FOLDERS), "folder"), CURSOR: "file"}
"""Path -> expected kind."""

Progress = Callable[[int], None]
_Survey = Mapping[Status, Sequence[Look]]
"""Files in the folder of each status."""


class Behind(Struct, frozen=True):
    """Position that the files show, when later entries cannot be written."""

    position: int
    head: int
    why: str


class Projector:
    """Projects the ledger to files beneath a data directory."""

    def __init__(
        self,
        hub: Hub,
        disk: Disk,
        render: RenderLines,
        warn: Warn,
        *,
        trust_moves: bool = False,
    ) -> None:
        self._hub = hub
        self._store = hub.store
        self._disk = disk
        self._bookmark = Bookmark(hub.store, disk)
        self._streams = TaskStreams(hub.store)
        actor = TRUSTED if trust_moves else PERSON
        self._warn = warn
        self._guard = Guard(warn)
        self._files = TaskFiles(hub, disk, self._streams, actor, self._guard)
        self._mail = MailFiles(hub.store, disk, self._guard)
        self._logs = (
            event_log(disk, render, self._streams.aof_id_of, self._bookmark.last_shown, warn),
            handoff_log(hub.store, disk, warn),
        )
        self.behind: Behind | None = None
        """Entries that the last comparison could not project; None when there are none."""

    def level(self, beaten: Iterable[str] = ()) -> int:
        """Project new entries; returns their number.

        `renewed` are the streams whose leases were renewed: heartbeats leave no entry.
        """
        with self._disk.lock(LOCK):
            done = self._follow()
            self._files.beat(beaten)
            self._disk.settle()
        return done

    def sweep(self) -> int:
        """Scan for edited, moved and late files; returns how many edits were answered."""
        with self._disk.lock(LOCK):
            self._make_folders()
            self._follow()
            self._complete_logs()
            survey = self._survey()
            behind = self._forget_behind()
            answered = self._look_at([*self._bring_back(survey), *self._suspects(survey)])
            answered += self._files.bring(self._lost(survey))
            answered += self._bring([s for s in behind if s not in self._guard.behind])
            self._look_at_runs()
            self._save_behind()
            self._follow()
            self._disk.settle()
        return answered

    def trouble(self) -> str:
        """Summary of failures with single tasks or letters; empty when there are none."""
        return self._guard.trouble()

    def look_at_runs(self) -> None:
        """Check the run files of all tasks in progress."""
        with self._disk.lock(LOCK):
            self._look_at_runs()
            self._disk.settle()

    def rebuild(self, progress: Progress) -> int:
        """Rewrite every file that is missing or differs; returns the number of tasks."""
        with self._disk.lock(LOCK):
            self._bring_back(self._survey())
            return self._rebuild(progress)

    def lag(self) -> tuple[int, Sequence[str]]:
        """Number of entries not projected yet, and streams whose files could not be written."""
        mark = self._bookmark.read() or Mark()
        return max(0, self._store.head() - mark.position), tuple(mark.behind)

    def has_begun(self) -> bool:
        """True when the files were ever written completely: a restore may have been stopped."""
        return self._bookmark.read() is not None

    def taken_places(self) -> Iterator[str]:
        """Paths with another kind of file than expected; the next scan moves it aside."""
        for place, kind in _PLACES.items():
            found = self._disk.look(place)
            if found is not None and found.kind != kind:
                yield place

    def leftovers(self) -> Iterator[str]:
        """Files whose removal was interrupted by a crash: the next scan repairs that."""
        for status, look, _ in _discarded(self._survey()):
            yield f"{TASKS}/{status}/{look.name}"

    def changed_logs(self) -> Iterator[str]:
        """Line files that are not as they were left: lines may be missing."""
        for log in self._logs:
            yield from log.changed()

    def compare(self, progress: Progress) -> Iterator[Difference]:
        """Yield every file that is missing, changed or surplus.

        Committed entries are projected first, and later ones wait for the lock: neither is a
        difference. Nor are entries that cannot be projected now; `stale` reports them.
        """
        refused = self._catch_up()
        with self._disk.still(LOCK):
            mark, head = self._bookmark.of_this_ledger(), self._store.head()
            level = mark.position if mark else head
            self.behind = Behind(level, head, refused) if refused and level < head else None
            sources = Sources(self._store, self._disk, self._streams, self._logs)
            yield from compare(sources, level, progress)

    def _catch_up(self) -> str:
        """Project committed entries; returns the problem when that is not possible."""
        try:
            with self._disk.lock(LOCK):
                if self._bookmark.of_this_ledger() is not None:
                    self._follow()
        except OSError as error:
            return error.strerror or f"{error}"
        except DragomanError as error:  # an edit in a file is submitted to the hub
            return error.detail
        return ""

    def _look_at_runs(self) -> None:
        self._files.beat(row.name for row in self._board("in-progress"))

    # Following the ledger

    def _follow(self) -> int:
        mark = self._bookmark.read() or Mark(self._store.ledger_id())
        if not self._bookmark.fits(mark):
            # Another ledger, or an older copy of this one: the files show events that never
            # happened here.
            return self._rebuild(lambda _: None)
        # Up to the present head only, or other writers would keep this going for ever.
        done, head = 0, self._store.head()
        self._guard.behind = {**mark.behind, **self._guard.behind}
        for page in self._pages(head, mark.position):
            self._take(page)
            self._bookmark.put(page[-1].position, self._guard.behind)
            done += len(page)
        return done

    def _forget_behind(self) -> list[str]:
        """Clear the list of failed streams; those that fail again are added again."""
        behind = list(self._guard.behind)
        self._guard.behind.clear()
        return behind

    def _save_behind(self) -> None:
        mark = self._bookmark.read()
        if mark is not None and mark.behind != self._guard.behind:
            self._bookmark.put(mark.position, self._guard.behind)

    def _complete_logs(self) -> None:
        """Restore missing lines of line files, up to the cursor."""
        mark = self._bookmark.of_this_ledger()
        if mark is not None:
            for log in self._logs:
                log.complete(partial(self._pages, mark.position))

    def _take(self, page: list[Entry]) -> None:
        self._make_folders()
        earlier = partial(self._pages, page[0].position - 1)
        for log in self._logs:
            log.add(page, earlier)
        self._bring([e.stream for e in page])

    def _bring(self, streams: Sequence[str]) -> int:
        """Project these streams; returns how many edits were answered."""
        answered = self._files.bring(s for s in streams if s.startswith(task_stream("")))
        self._mail.bring(streams)
        return answered

    def _rebuild(self, progress: Progress) -> int:
        head, tasks, after = self._store.head(), 0, 0
        self._forget_behind()
        self._make_folders()
        for log in self._logs:
            log.rewrite(self._pages(head, 0))
        while rows := self._store.rows(after, _PAGE):
            streams = [row.name for row in rows if row.name.startswith(task_stream(""))]
            self._files.bring(streams)
            tasks += len(streams)
            after = rows[-1].number
            progress(len(streams))
            self._disk.settle()
        self._remove_strangers()
        self._mail.rebuild()
        self._bookmark.put(head, self._guard.behind)
        return tasks

    def _remove_strangers(self) -> None:
        """Remove unedited task files of another ledger: none is an edit."""
        for status in STATUSES:
            for look in self._disk.list(f"{TASKS}/{status}"):
                task_id, path = task_of_file(look.name), f"{TASKS}/{status}/{look.name}"
                if task_id is None or not isinstance(find_stream(self._store, task_id), Refusal):
                    continue
                data = self._disk.read(path, MOST_BYTES)
                if data is not None and is_untouched(data):
                    discard(self._disk, path, look)

    def _make_folders(self) -> None:
        for place in self.taken_places():
            aside = set_aside(self._disk, place, f"{place}-found")
            self._warn(
                f"{place} was no {_PLACES[place]}: it is kept as {aside}, and a {_PLACES[place]} "
                "is made in its place"
            )
        for folder in _FOLDERS:
            self._disk.make_folder(folder)

    def _pages(self, head: int, after: int) -> Iterator[list[Entry]]:
        while page := self._store.entries(after, _PAGE, until=head):
            yield page
            after = page[-1].position

    # Finding changes of others

    def _survey(self) -> _Survey:
        return {status: self._disk.list(f"{TASKS}/{status}") for status in STATUSES}

    def _bring_back(self, survey: _Survey) -> list[str]:
        """Recover files whose removal was interrupted; returns the ids of their tasks."""
        found = [*_discarded(survey)]
        for status, look, task_id in found:
            bring_back(self._disk, f"{TASKS}/{status}", look.name, task_id)
        return [task_id for _, _, task_id in found]

    def _suspects(self, survey: _Survey) -> Iterator[str]:
        """Ids of tasks whose file was touched, or whose folder stands apart from their file."""
        for status, found in survey.items():
            folder = f"{TASKS}/{status}"
            files = {task_of_file(look.name): look for look in found if task_of_file(look.name)}
            for task_id, look in files.items():
                if task_id and not _is_ours(folder, look):
                    yield task_id
            for look in found:
                if is_aof_id(look.name) and look.name not in files:
                    yield look.name
                elif is_staged_task(look.name) and look.kind != "folder":
                    self._disk.remove(f"{folder}/{look.name}")

    def _lost(self, survey: _Survey) -> Iterator[str]:
        """Streams of tasks whose file is missing.

        Unedited files are counted first: names are compared only if there are fewer files than
        tasks.
        """
        counts = self._store.counts()
        for status, found in survey.items():
            ours = sum(_is_ours(f"{TASKS}/{status}", look) for look in found)
            if ours >= counts.get(status, 0):
                continue
            names = {look.name for look in found}
            for row in self._board(status):
                task_id = row.name.removeprefix(task_stream(""))
                if f"{task_id}.md" not in names and not self._has_file(row, names):
                    yield row.name

    def _has_file(self, row: Row, names: Collection[str]) -> bool:
        """True when a task that may have another AOF id has its file among these."""
        try:
            shown = self._streams.picture_of(row)
        except LedgerError:
            return False  # reported when its files are projected
        return shown is None or f"{shown.task.aof_id}.md" in names

    def _look_at(self, task_ids: Iterable[str]) -> int:
        """Submit the edits in the files of these tasks."""
        found = {task_id: find_stream(self._store, task_id) for task_id in task_ids}
        known = [stream for stream in found.values() if not isinstance(stream, Refusal)]
        strange = [task_id for task_id, stream in found.items() if isinstance(stream, Refusal)]
        return self._files.bring(known) + sum(map(self._unknown, strange))

    def _unknown(self, task_id: str) -> int:
        """Leave a file without a task as it is, and write a note beside it."""
        noted = 0
        for status in STATUSES:
            path = f"{TASKS}/{status}/{task_id}.md"
            if self._disk.look(path) and self._disk.look(path + REASON) is None:
                text = (
                    f"There is no task {task_id}. The file was left as it is.\n"
                    "A task is made with `dragoman task create`; then its file appears here.\n"
                )
                put(self._disk, path + REASON, text.encode())
                noted += 1
        return noted

    def _board(self, status: Status) -> Iterator[Row]:
        before = None
        while rows := self._store.board(BoardQuery(status, before=before, limit=_PAGE)):
            yield from rows
            before = rows[-1].number


def _discarded(survey: _Survey) -> Iterator[tuple[Status, Look, str]]:
    """Task files whose removal was interrupted, each with its status and the task's id."""
    for status, looks in survey.items():
        for look in looks:
            task_id = task_of_discarded(look.name) if look.kind == "file" else None
            if task_id is not None:
                yield status, look, task_id


def _is_ours(folder: str, look: Look) -> bool:
    return look.kind == "file" and has_stamp(f"{folder}/{look.name}", look.size, look.mtime_ns)
