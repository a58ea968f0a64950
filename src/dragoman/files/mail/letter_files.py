"""The letters of all threads, each a file that is written anew when somebody reads or acks it."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct

from dragoman.core.ids import mail_stream
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import Row, Store
from dragoman.engine.reads.ask import state_of
from dragoman.files.disk import Disk
from dragoman.files.guarding import Guard
from dragoman.files.layout import (
    MAIL,
    has_stamp,
    is_letter,
    letter_path,
    numbers_path,
    staged,
    stamp,
    thread_folder,
)
from dragoman.files.mail.letter_file import write_mail_file
from dragoman.files.mail.numbers import Numbers, threads, write_numbers
from dragoman.files.putting import put, stage

_AT_ONCE: Final = 64


class _Shown(Struct, frozen=True):
    """A letter whose file is current once its staged content is published."""

    stream: str
    path: str
    waits: bool


def letter_in(store: Store, row: Row) -> Mail | None:
    """Letter in a row; None when the row holds something else."""
    state = state_of(store, row)
    return state if isinstance(state, Mail) else None


def letters_at(disk: Disk, thread: str) -> Iterator[str]:
    """Paths of a thread's letter files."""
    folder = thread_folder(thread)
    return (f"{folder}/{look.name}" for look in disk.list(folder) if is_letter(look.name))


class MailFiles:
    """Projects letters to files."""

    def __init__(self, store: Store, disk: Disk, guard: Guard) -> None:
        self._store = store
        self._disk = disk
        self._guard = guard
        self._numbers = Numbers(store, disk)

    def bring(self, streams: Iterable[str]) -> set[str]:
        """Project those of the streams that are letters; returns their paths."""
        letters = iter(dict.fromkeys(s for s in streams if s.startswith(mail_stream(""))))
        level = set[str]()
        while some := list(islice(letters, _AT_ONCE)):
            # Contents are staged beside the files until all of them are durable, then published.
            prepared = [self._guarded_prepare(stream) for stream in some]
            for shown in filter(None, prepared):
                level.add(shown.path)
                if shown.waits:
                    self._take_place(shown)
        return level

    def rebuild(self) -> None:
        """Project all letters, and remove files that were written for another ledger."""
        known = set[str]()
        for thread, letters in threads(self._store):
            numbers = write_numbers(at for at, _ in letters)
            work = partial(put, self._disk, numbers_path(thread), numbers)
            self._guard.run(work, thread, "a thread")
            self._remove_strangers(thread, self.bring(stream for _, stream in letters))
            self._disk.settle()
            known.add(thread)
        for folder in self._disk.list(MAIL):
            if folder.kind == "folder" and folder.name not in known:
                self._remove_strangers(folder.name, ())
                self._disk.remove(numbers_path(folder.name))
                self._disk.remove_folder(thread_folder(folder.name))

    def _guarded_prepare(self, stream: str) -> _Shown | None:
        return self._guard.run(partial(self._prepare, stream), stream, "a letter")

    def _prepare(self, stream: str) -> _Shown | None:
        """Stage the content of a letter, if its file differs."""
        row, first = self._store.stream(stream), self._store.history(stream, 0, 1)
        mail = None if row is None else letter_in(self._store, row)
        if mail is None or not first:
            return None
        number = self._numbers.of(mail.thread, first[0].position)
        path = letter_path(mail.thread, number, mail.kind)
        data = write_mail_file(mail, number)
        if self._disk.read(path, len(data)) == data:
            self._disk.keep(path)
            return _Shown(stream, path, waits=False)
        stage(self._disk, path, data, stamp(path, len(data), mail.posted_at))
        return _Shown(stream, path, waits=True)

    def _take_place(self, shown: _Shown) -> None:
        work = partial(self._disk.replace, staged(shown.path), shown.path)
        self._guard.run(work, shown.stream, "a letter")

    def _remove_strangers(self, thread: str, ours: Collection[str]) -> None:
        """Remove unedited letter files that this ledger does not have."""
        for path in letters_at(self._disk, thread):
            look = self._disk.look(path)
            if path not in ours and look and has_stamp(path, look.size, look.mtime_ns):
                self._disk.remove(path)
