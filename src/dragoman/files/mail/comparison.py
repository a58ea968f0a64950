"""Comparing the files of letters with the ledger, thread by thread. Reads only."""

from collections.abc import Iterator

from dragoman.engine.ports import Row, Store
from dragoman.files.disk import Disk
from dragoman.files.layout import MAIL, letter_path, numbers_path
from dragoman.files.mail.letter_file import write_mail_file
from dragoman.files.mail.letter_files import letter_in, letters_at
from dragoman.files.mail.numbers import threads, write_numbers

Expected = tuple[str, bytes | None]
"""Path and expected content; None when there must be no file."""


def expected_mail(store: Store, disk: Disk, level: int) -> Iterator[Expected]:
    """Expected content of all letter files at a position of the ledger.

    Letters that have changed since then are left out.
    """
    known = set[str]()
    for thread, letters in threads(store):
        known.add(thread)
        if letters[-1][0] <= level:
            yield numbers_path(thread), write_numbers(position for position, _ in letters)
        yield from _of_thread(store, disk, thread, letters, level)
    for folder in disk.list(MAIL):
        if folder.kind == "folder" and folder.name not in known:
            yield from ((path, None) for path in letters_at(disk, folder.name))


def _of_thread(
    store: Store, disk: Disk, thread: str, letters: list[tuple[int, str]], level: int
) -> Iterator[Expected]:
    ours = set[str]()
    for number, (_, stream) in enumerate(letters, 1):
        row = store.stream(stream)
        mail = None if row is None else letter_in(store, row)
        if row is None or mail is None:
            continue
        path = letter_path(thread, number, mail.kind)
        ours.add(path)
        if not went_on(store, row, level):
            yield path, write_mail_file(mail, number)
    yield from ((path, None) for path in letters_at(disk, thread) if path not in ours)


def went_on(store: Store, row: Row, level: int) -> bool:
    """True when this stream has entries after a position."""
    last = store.history(row.name, row.version - 1, 1)
    return bool(last) and last[0].position > level
