"""The letters of all threads, each a file that is written anew when somebody reads or acks it."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct

from dragoman.core.ids import mail_stream
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.reads.ask import stream_state
from dragoman.files.disk import Disk
from dragoman.files.guarding import ErrorIsolator
from dragoman.files.layout import (
    MAIL,
    has_mtime_stamp,
    is_letter_file,
    letter_path,
    mtime_stamp,
    numbers_path,
    staged_path,
    thread_folder_path,
)
from dragoman.files.mail.letter_file import format_letter
from dragoman.files.mail.numbers import LetterNumbers, format_numbers, read_threads
from dragoman.files.putting import stage, write_if_changed

_BATCH: Final = 64


class _PreparedLetter(Struct, frozen=True):
    """A letter whose file is current once its staged content is published."""

    stream: str
    path: str
    is_staged: bool


def mail_of_row(store: Store, row: StreamRow) -> Mail | None:
    """Letter in a row; None when the row holds something else."""
    state = stream_state(store, row)
    return state if isinstance(state, Mail) else None


def list_letter_files(disk: Disk, thread: str) -> Iterator[str]:
    """Paths of a thread's letter files."""
    folder = thread_folder_path(thread)
    return (f"{folder}/{look.name}" for look in disk.list(folder) if is_letter_file(look.name))


class MailProjector:
    """Projects letters to files."""

    def __init__(self, store: Store, disk: Disk, isolator: ErrorIsolator) -> None:
        self._store = store
        self._disk = disk
        self._isolator = isolator
        self._numbers = LetterNumbers(store, disk)

    def project(self, streams: Iterable[str]) -> set[str]:
        """Project those of the streams that are letters; returns their paths."""
        letters = iter(dict.fromkeys(s for s in streams if s.startswith(mail_stream(""))))
        projected = set[str]()
        while batch := list(islice(letters, _BATCH)):
            # Contents are staged beside the files until all of them are durable, then published.
            prepared = [self._isolated_prepare(stream) for stream in batch]
            for letter in filter(None, prepared):
                projected.add(letter.path)
                if letter.is_staged:
                    self._publish(letter)
        return projected

    def rebuild(self) -> None:
        """Project all letters, and remove files that were written for another ledger."""
        known = set[str]()
        for thread, letters in read_threads(self._store):
            numbers = format_numbers(at for at, _ in letters)
            work = partial(write_if_changed, self._disk, numbers_path(thread), numbers)
            self._isolator.run(work, thread, "a thread")
            self._remove_foreign_letters(thread, self.project(stream for _, stream in letters))
            self._disk.sync()
            known.add(thread)
        for folder in self._disk.list(MAIL):
            if folder.kind == "folder" and folder.name not in known:
                self._remove_foreign_letters(folder.name, ())
                self._disk.remove(numbers_path(folder.name))
                self._disk.remove_folder(thread_folder_path(folder.name))

    def _isolated_prepare(self, stream: str) -> _PreparedLetter | None:
        return self._isolator.run(partial(self._prepare, stream), stream, "a letter")

    def _prepare(self, stream: str) -> _PreparedLetter | None:
        """Stage the content of a letter, if its file differs."""
        row, first = self._store.stream(stream), self._store.history(stream, 0, 1)
        mail = None if row is None else mail_of_row(self._store, row)
        if mail is None or not first:
            return None
        number = self._numbers.number_of(mail.thread, first[0].position)
        path = letter_path(mail.thread, number, mail.kind)
        data = format_letter(mail, number)
        if self._disk.read(path, len(data)) == data:
            self._disk.sync_later(path)
            return _PreparedLetter(stream, path, is_staged=False)
        stage(self._disk, path, data, mtime_stamp(path, len(data), mail.posted_at))
        return _PreparedLetter(stream, path, is_staged=True)

    def _publish(self, letter: _PreparedLetter) -> None:
        work = partial(self._disk.replace, staged_path(letter.path), letter.path)
        self._isolator.run(work, letter.stream, "a letter")

    def _remove_foreign_letters(self, thread: str, known: Collection[str]) -> None:
        """Remove unedited letter files that this ledger does not have."""
        for path in list_letter_files(self._disk, thread):
            info = self._disk.stat(path)
            if path not in known and info and has_mtime_stamp(path, info.size, info.mtime_ns):
                self._disk.remove(path)
