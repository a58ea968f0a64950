"""Letters as Markdown files, numbered per thread, rewritten when somebody reads or acks one.

Letter files are never parsed, so markup in them is escaped for good. Beside the letters of a
thread lies a list of their ledger positions, each on a line of the same length: the n-th line
is the n-th letter's. So a number is found by bisection, and the next one is appended. The
ledger decides: a list that differs from it is rewritten.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from dragoman.core.ids import mail_stream
from dragoman.core.mail import Mail
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import ListQuery, Store, StreamRow
from dragoman.engine.queries.streams import stream_state
from dragoman.files.atomic_write import force_folder, stage, write_if_changed
from dragoman.files.error_isolation import ErrorIsolator
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
from dragoman.files.markdown import FENCE, Value, encode_references, escape_markup, format_fields
from dragoman.system.safe_fs import SafeDisk

# --- format -----------------------------------------------------------------------------------

_FENCE_LINE: Final = re.compile(r"^(?=(?:---|\.\.\.)[ \t]*$)", re.MULTILINE)
"""Line that a front matter parser would take for a fence."""


def format_letter(mail: Mail, number: int) -> bytes:
    """Format the n-th letter of its thread."""
    head = format_fields(_front_matter(mail, number))
    return f"{FENCE}\n{head}{FENCE}\n\n{_escape_body(mail)}\n".encode()


def _front_matter(mail: Mail, number: int) -> Mapping[str, Value | bool | int]:
    fields: dict[str, Any] = {
        "id": mail.id,
        "number": number,
        "thread": mail.thread,
        "type": mail.kind,
        "bead": mail.bead,
        "from": mail.sender,
        "to": mail.to,
        "cc": mail.cc,
        "copied": mail.auto_copied,
        "subject": mail.subject,
        "timestamp": to_rfc3339(mail.posted_at),
        "sentAt": "" if mail.sent_at is None else to_rfc3339(mail.sent_at),
        "importance": mail.importance,
        "replyTo": mail.reply_to,
        "attachments": mail.attachments,
        "ackRequired": mail.ack_wanted,
        "dueBy": "" if mail.due_by is None else to_rfc3339(mail.due_by),
        "readBy": mail.read_by,
        "ackedBy": mail.acked_by,
        "waitsFor": mail.awaited_acks,
        "answer": mail.answer,
        "overdue": mail.is_overdue or "",
    }
    return {key: value for key, value in fields.items() if value not in ("", ())}


def _escape_body(mail: Mail) -> str:
    text = encode_references(mail.body.replace("\r\n", "\n"))
    return _FENCE_LINE.sub(r"\\", escape_markup(text))


# --- numbers ----------------------------------------------------------------------------------

_PAGE: Final = 1_000

_DIGITS: Final = 16

_LINE_BYTES: Final = _DIGITS + 1

_LIST_PREFIX: Final = "thread:"


def read_threads(store: Store) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Every thread with position and stream of each of its letters, in order."""
    thread, letters = "", list[tuple[int, str]]()
    for name, position, stream in _read_places(store, (_LIST_PREFIX, 0)):
        if name != thread and letters:
            yield thread.removeprefix(_LIST_PREFIX), letters
            letters = []
        thread = name
        letters.append((position, stream))
    if letters:
        yield thread.removeprefix(_LIST_PREFIX), letters


def format_numbers(positions: Iterable[int]) -> bytes:
    """Format the list of these positions."""
    return b"".join(_format_line(position) for position in positions)


class LetterNumbers:
    """Finds and stores the numbers of letters."""

    def __init__(self, store: Store, disk: SafeDisk) -> None:
        self._store = store
        self._disk = disk

    def number_of(self, thread: str, position: int) -> int:
        """Number of the letter at a position, counted from 1."""
        path = numbers_path(thread)
        found = self._disk.stat(path)
        count = 0 if found is None else found.size // _LINE_BYTES
        at = self._bisect(path, count, position)
        if at < count and self._position_at(path, at) == position:
            return at + 1
        if at == count and self._follows_last(thread, self._position_at(path, count - 1), position):
            force_folder(self._disk, thread_folder_path(thread))
            self._disk.append(path, count * _LINE_BYTES, _format_line(position))
            return count + 1
        return self._rewrite(thread, position)

    def _bisect(self, path: str, count: int, position: int) -> int:
        """Number of lines of earlier letters."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._position_at(path, middle) < position:
                low = middle + 1
            else:
                high = middle
        return low

    def _position_at(self, path: str, index: int) -> int:
        """Position on a line; 0 before the first one, and for a line that is not valid."""
        line = self._disk.read_at(path, index * _LINE_BYTES, _LINE_BYTES) if index >= 0 else b""
        digits = line[:_DIGITS]
        return int(digits) if digits.isdigit() and line[_DIGITS:] == b"\n" else 0

    def _follows_last(self, thread: str, last: int, position: int) -> bool:
        """True when the letter at this position follows the last known one."""
        before = self._store.list_page(ListQuery(_LIST_PREFIX + thread, before=position, limit=1))
        return (before[0].position if before else 0) == last

    def _rewrite(self, thread: str, position: int) -> int:
        name = _LIST_PREFIX + thread
        positions = [at for found, at, _ in _read_places(self._store, (name, 0)) if found == name]
        write_if_changed(self._disk, numbers_path(thread), format_numbers(positions))
        return positions.index(position) + 1


def _read_places(store: Store, after: tuple[str, int]) -> Iterator[tuple[str, int, str]]:
    """Read the lists of threads, from a place on."""
    while page := store.list_items(after, _PAGE):
        for place in page:
            if not place[0].startswith(_LIST_PREFIX):
                return
            yield place
        after = page[-1][:2]


def _format_line(position: int) -> bytes:
    return b"%016d\n" % position


# --- projection -------------------------------------------------------------------------------

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


def list_letter_files(disk: SafeDisk, thread: str) -> Iterator[str]:
    """Paths of a thread's letter files."""
    folder = thread_folder_path(thread)
    return (f"{folder}/{look.name}" for look in disk.list(folder) if is_letter_file(look.name))


class MailProjector:
    """Projects letters to files."""

    def __init__(self, store: Store, disk: SafeDisk, isolator: ErrorIsolator) -> None:
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


# --- comparison -------------------------------------------------------------------------------

ExpectedFile = tuple[str, bytes | None]
"""Path and expected content; None when there must be no file."""


def expected_letters(store: Store, disk: SafeDisk, until: int) -> Iterator[ExpectedFile]:
    """Expected content of all letter files at a position of the ledger.

    Letters that have changed since then are left out.
    """
    known = set[str]()
    for thread, letters in read_threads(store):
        known.add(thread)
        if letters[-1][0] <= until:
            yield numbers_path(thread), format_numbers(position for position, _ in letters)
        yield from _expected_of_thread(store, disk, thread, letters, until)
    for folder in disk.list(MAIL):
        if folder.kind == "folder" and folder.name not in known:
            yield from ((path, None) for path in list_letter_files(disk, folder.name))


def _expected_of_thread(
    store: Store, disk: SafeDisk, thread: str, letters: list[tuple[int, str]], position: int
) -> Iterator[ExpectedFile]:
    expected = set[str]()
    for number, (_, stream) in enumerate(letters, 1):
        row = store.stream(stream)
        mail = None if row is None else mail_of_row(store, row)
        if row is None or mail is None:
            continue
        path = letter_path(thread, number, mail.kind)
        expected.add(path)
        if not has_changed_since(store, row, position):
            yield path, format_letter(mail, number)
    yield from ((path, None) for path in list_letter_files(disk, thread) if path not in expected)


def has_changed_since(store: Store, row: StreamRow, position: int) -> bool:
    """True when this stream has entries after a position."""
    last = store.history(row.name, row.version - 1, 1)
    return bool(last) and last[0].position > position
