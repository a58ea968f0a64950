"""Comparing the files of letters with the ledger, thread by thread. Reads only."""

from collections.abc import Iterator

from dragoman.engine.ports import Store, StreamRow
from dragoman.files.disk import Disk
from dragoman.files.layout import MAIL, letter_path, numbers_path
from dragoman.files.mail.letter_file import format_letter
from dragoman.files.mail.letter_files import list_letter_files, mail_of_row
from dragoman.files.mail.numbers import format_numbers, read_threads

ExpectedFile = tuple[str, bytes | None]
"""Path and expected content; None when there must be no file."""


def expected_letters(store: Store, disk: Disk, until: int) -> Iterator[ExpectedFile]:
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
    store: Store, disk: Disk, thread: str, letters: list[tuple[int, str]], position: int
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
