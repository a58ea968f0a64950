"""The files of one task, brought level with the ledger; what people changed is heard first."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, RejectMessage
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import Status
from dragoman.core.moments import parse_rfc3339
from dragoman.engine.hub import Hub
from dragoman.files.disk import Disk, Look
from dragoman.files.guarding import Guard
from dragoman.files.layout import (
    MOVING,
    REASON,
    STATUSES,
    TASKS,
    has_stamp,
    run_folder,
    staged,
    stamp,
    task_path,
)
from dragoman.files.problems import BadFile
from dragoman.files.putting import (
    discard,
    free_name,
    have_folder,
    put,
    stage,
    stage_among_others,
    stage_if_new,
)
from dragoman.files.tasks.companion import settle_folder
from dragoman.files.tasks.edits import wishes
from dragoman.files.tasks.pictures import Picture, heartbeat_path, result_path
from dragoman.files.tasks.run_results import RunResults
from dragoman.files.tasks.streams import TaskStreams
from dragoman.files.tasks.task_file import is_untouched, read_task_file, write_task_file
from dragoman.text.safe_text import safe_text

MOST_BYTES: Final = 16 << 20
"""A longer task file was not written here, and is not read."""

_DIALECT: Final = "aof"
"""Dialect of the task files."""

_TRIES: Final = 8
_AT_ONCE: Final = 64
_HURRIED: Final = (
    "the files of a task ({stream}) were changed or removed by somebody else each time that they "
    "were written; `dragoman tick` tries again"
)

T = TypeVar("T")
R = TypeVar("R")

_Answer = Literal["", "taken", "refused"]
"""Result of an edit; empty when there was none."""

Places = dict[Status, Look]
"""Files of a task by status; more than one when it was copied."""


class _Plan(Struct):
    """Pending projection of one task."""

    stream: str
    shown: Picture
    places: Places
    heard: int
    is_home_staged: bool = False
    is_disturbed: bool = False
    """True when a file vanished during writing: an agent may remove files of its folder at any
    moment."""
    staged: list[str] = []
    """Other files whose next content is staged."""


class _Beat(Struct, rename="camel"):
    last_heartbeat: str


_beat: Final = msgspec.json.Decoder(_Beat)


class TaskFiles:
    """Projects tasks to files, after submitting what people have edited in them."""

    def __init__(
        self, hub: Hub, disk: Disk, streams: TaskStreams, actor: Actor, guard: Guard
    ) -> None:
        self._hub = hub
        self._disk = disk
        self._guard = guard
        self._streams = streams
        self._actor = actor
        self._results = RunResults(disk, self._tell)
        self._taken: dict[str, Look] = {}
        """Path -> file whose edit is recorded, but which is not rewritten yet. The recorded text
        may differ from the typed one (a secret is redacted), so only this tells that the edit was
        answered."""

    def bring(self, streams: Iterable[str]) -> int:
        """Project tasks to files; returns how many edits were answered."""
        heard, waiting = 0, dict.fromkeys(streams, _TRIES)
        while waiting:
            some = list(islice(waiting, _AT_ONCE))
            # Contents are staged beside the files until all of them are durable, then published.
            plans = [plan for stream in some if (plan := self._guarded(self._prepare, stream))]
            heard += sum(plan.heard for plan in plans)
            unfinished = {
                plan.stream for plan in plans if self._guarded(self._finish, plan) is False
            }
            for stream in some:
                left = waiting.pop(stream) - 1
                if left and stream in unfinished:
                    waiting[stream] = left
                elif stream in unfinished:
                    self._guard.fell_behind(stream, _HURRIED.format(stream=stream))
        return heard

    def _guarded(self, work: Callable[[T], R], what: T) -> R | None:
        return self._guard.run(lambda: work(what), _name(what), "a task")

    def beat(self, streams: Iterable[str]) -> None:
        """Project heartbeats and results only, and reject results that nobody has reported."""
        for stream in streams:
            self._guarded(self._beat, stream)

    def _beat(self, stream: str) -> None:
        shown = self._streams.picture(stream)
        if shown is not None:
            self._results.mind(shown)
            self._archive_heartbeat(shown)
            for path in (heartbeat_path(shown.task.aof_id), result_path(shown.task.aof_id)):
                if path in shown.current:
                    put(self._disk, path, shown.current[path])

    def _places(self, shown: Picture) -> Places:
        places: Places = {}
        for status in STATUSES:
            look = self._disk.look(self._path(shown, status))
            if look is not None:
                places[status] = look
        return places

    def _path(self, shown: Picture, status: Status) -> str:
        return task_path(status, shown.task.aof_id)

    # Edits

    def _hear_all(self, shown: Picture, places: Places) -> int:
        """Submit the edits in the files of a task; returns how many were answered."""
        heard = 0
        for status, look in places.items():
            answer = self._hear(shown, status, look, places)
            heard += bool(answer)
            if answer == "taken":
                break  # the edits of the other files are compared with the task's new state
        return heard

    def _hear(self, shown: Picture, folder: Status, look: Look, places: Places) -> _Answer:
        """Submit the edit in the file of this folder, if there is one that was not answered yet."""
        path = self._path(shown, folder)
        if self._taken.get(path) == look:
            return ""
        data = self._disk.read(path, MOST_BYTES) if look.kind == "file" else None
        if data is None and has_stamp(path, look.size, look.mtime_ns):
            return ""  # written here and unedited, however long it is
        if data is None:
            return self._refuse(shown, path, look, None, "it is not a readable regular file")
        try:
            commands = self._wishes(shown, folder, data, places)
        except BadFile as bad:
            return self._refuse(shown, path, look, data, bad.detail)
        if not commands:
            return ""
        refusal = self._ask(commands)
        if refusal is None:
            self._taken[path] = look
            return "taken"
        return self._refuse(shown, path, look, data, f"{refusal.code}: {refusal.detail}")

    def _wishes(
        self, shown: Picture, folder: Status, data: bytes, places: Places
    ) -> tuple[AnyCommand, ...]:
        is_ours, path = is_untouched(data), self._path(shown, folder)
        # An interrupted projection has moved it here: the next content is still staged beside it.
        if is_ours and (folder == shown.task.status or self._disk.look(staged(path)) is not None):
            return ()
        file = read_task_file(data)
        if is_ours and file.status == folder:
            return ()
        stream = f"task:{shown.task.id}"
        base = self._streams.as_it_was(stream, file.version)
        return wishes(file, folder, base, shown.file, places.keys() - {folder})

    def _ask(self, commands: tuple[AnyCommand, ...]) -> Refusal | None:
        try:
            self._hub.do(self._actor, *commands)
        except Refused as refused:
            return refused.refusal
        return None

    def _tell(self, task_id: str, said: str) -> None:
        """Record that a file was rejected as a message."""
        self._ask((RejectMessage("invalid_envelope", said, task_id, _DIALECT),))

    def _refuse(
        self, shown: Picture, path: str, look: Look, data: bytes | None, why: str
    ) -> _Answer:
        """Write the reason beside the task's file, and keep the edited file under another name."""
        task_id, folder = shown.task.aof_id, f"{TASKS}/{shown.task.status}"
        kept = free_name(self._disk, f"{folder}/{task_id}.rejected.md", REASON)
        is_ours = data is not None and is_untouched(data)
        put(self._disk, kept + REASON, reason_text(path, why, "" if is_ours else kept))
        if not is_ours:
            self._disk.move(path, kept)
        elif not discard(self._disk, path, look):
            # Somebody has saved it meanwhile: this new edit comes next.
            self._disk.remove(kept + REASON)
            return ""
        return "refused"

    # Projection

    def _prepare(self, stream: str) -> _Plan | None:
        """Submit edits, and stage every content that differs."""
        shown = self._streams.picture(stream)
        if shown is None:
            return None
        places = self._places(shown)
        heard = self._hear_all(shown, places)
        plan = _Plan(stream, shown, places, heard)
        # An answer may have changed the ledger or the files, so everything is read again.
        if not heard:
            try:
                self._stage(plan)
            except FileNotFoundError:
                plan.is_disturbed = True
        return plan

    def _stage(self, plan: _Plan) -> None:
        shown = plan.shown
        task, home = shown.task, self._path(shown, shown.task.status)
        data = write_task_file(shown.file)
        with self._disk.hold(MOVING):
            # The status of now: an agent that was started meanwhile works in its folder.
            status = self._streams.status_of(plan.stream) or task.status
            settle_folder(self._disk, task.aof_id, status)
        self._results.mind(shown)
        self._archive_heartbeat(shown)
        if self._is_level(home, data, plan.places, task.status):
            self._disk.keep(home)
        else:
            stage(self._disk, home, data, stamp(home, len(data), task.updated_at))
            plan.is_home_staged = True
        for path, content in shown.current.items():
            if path.startswith(f"{TASKS}/"):
                is_new = stage_among_others(self._disk, path, content, task.updated_at)
            else:
                is_new = stage_if_new(self._disk, path, content)
            if is_new:
                plan.staged.append(path)
        for path, content in shown.once.items():
            if path not in shown.current and self._disk.look(path) is None:
                stage(self._disk, path, content)
                plan.staged.append(path)

    def _finish(self, plan: _Plan) -> bool:
        """Publish the staged files; False when the task has to be projected again."""
        if plan.heard or plan.is_disturbed or self._were_touched(plan):
            return False
        if not self._gather(plan):
            return False
        if plan.is_home_staged:
            status = plan.shown.task.status
            home = self._path(plan.shown, status)
            if not self._disk.swap(staged(home), home, plan.places.get(status)):
                return False
        try:
            for path in plan.staged:
                self._disk.replace(staged(path), path)
        except FileNotFoundError:
            return False
        for status in plan.places:
            self._taken.pop(self._path(plan.shown, status), None)
        return True

    def _were_touched(self, plan: _Plan) -> bool:
        """True when somebody has changed the task's file since it was read."""
        status = plan.shown.task.status
        return any(
            self._disk.look(self._path(plan.shown, place)) != plan.places.get(place)
            for place in (status, *plan.places)
        )

    def _is_level(self, home: str, data: bytes, places: Places, status: Status) -> bool:
        look = places.get(status)
        return (
            look is not None
            and len(places) == 1
            and has_stamp(home, look.size, look.mtime_ns)
            and self._disk.read(home, len(data)) == data
        )

    def _gather(self, plan: _Plan) -> bool:
        """Leave the task's file in one folder only, without it ever missing; False when somebody
        changed it meanwhile."""
        home = plan.shown.task.status
        for status, look in list(plan.places.items()):
            if status == home:
                continue
            old = self._path(plan.shown, status)
            if self._disk.move(old, self._path(plan.shown, home)):
                plan.places[home] = look
            elif not discard(self._disk, old, look):
                return False
        return True

    def _archive_heartbeat(self, shown: Picture) -> None:
        """Move the heartbeat file of the previous attempt to that attempt's files."""
        if len(shown.story.attempts) < 2:
            return
        before, last = shown.story.attempts[-2:]
        path = heartbeat_path(shown.task.aof_id)
        data = self._disk.read(path, MOST_BYTES)
        if data is None or _beat_of(data) >= last.started_at:
            return
        kept = f"{run_folder(shown.task.aof_id, before.number)}/run_heartbeat.json"
        have_folder(self._disk, run_folder(shown.task.aof_id, before.number))
        self._disk.replace(path, kept)


def _name(what: object) -> str:
    """Stream that a piece of work is about."""
    return what.stream if isinstance(what, _Plan) else f"{what}"


def reason_text(path: str, why: str, kept: str) -> bytes:
    """Format the note about a rejected file; `kept_path` is set if it was edited."""
    lines = [f"The file at {path} was not applied.", "", f"Reason: {why}", ""]
    if kept:
        lines.append(f"The file as it was found is kept in {kept}.")
    else:
        lines.append("Its content was not edited, so it was put back where it was.")
    return (safe_text("\n".join(lines)) + "\n").encode()


def _beat_of(data: bytes) -> int:
    """Time of a heartbeat file; one that cannot be decoded is older than everything."""
    try:
        return parse_rfc3339(_beat.decode(data).last_heartbeat)
    except (msgspec.MsgspecError, ValueError):
        return -1
