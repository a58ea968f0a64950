"""A long ledger is checked by several processes: each opens the store and takes slices of it."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec
from msgspec import Struct

from dragoman.bootstrap.stores import open_store
from dragoman.engine.ports import Store
from dragoman.engine.verifying.slices import Slice, Slices, Span, check_slice
from dragoman.system.helper import Helper, serve

_MANY = 16
"""Number of slices from which starting processes pays off."""


class _Question(Struct, frozen=True):
    url: str
    data: str
    span: Span


_packed = msgspec.msgpack.Encoder().encode
_question = msgspec.msgpack.Decoder(_Question).decode
_answer = msgspec.msgpack.Decoder(Slice).decode

_Numbered = tuple[int, Span]
_Answered = tuple[_Numbered, bytes | None]
"""A slice and its result from a helper; None: it is still to be checked."""


def slices_of(store: Store, url: str, data: Path, many: int = _MANY) -> Slices:
    """Checker of a store's slices; many of them are checked in several processes."""

    def check(spans: Sequence[Span]) -> Iterable[Slice]:
        others = min(os.cpu_count() or 1, len(spans)) - 1
        if len(spans) < many or others < 1:
            return map(partial(check_slice, store), spans)
        return _with_others(store, partial(_Question, url, str(data)), spans, others)

    return check


def _with_others(
    store: Store, question: "partial[_Question]", spans: Sequence[Span], others: int
) -> Iterator[Slice]:
    """Check slices in this process and in helpers; each takes the next one when it is free."""
    todo, answers = deque[_Numbered](enumerate(spans)), SimpleQueue[_Answered]()

    def keep_busy(helper: Helper) -> None:
        for one in _taken(todo):
            answer = helper.ask(_packed(question(one[1])))
            answers.put((one, answer))
            if answer is None:
                return

    done: dict[int, Slice] = {}
    with _helpers(others, keep_busy):
        for at in range(len(spans)):
            while at not in done:
                own = next(_taken(todo), None) if answers.empty() else None
                (number, span), answer = (own, None) if own else answers.get()
                done[number] = check_slice(store, span) if answer is None else _answer(answer)
            yield done.pop(at)


def _taken(todo: deque[_Numbered]) -> Iterator[_Numbered]:
    """Take jobs until none is left."""
    with suppress(IndexError):
        while True:
            yield todo.popleft()


@contextmanager
def _helpers(many: int, keep_busy: Callable[[Helper], None]) -> Generator[None]:
    """Start helper processes, as many as possible; each is fed by a thread."""
    helpers: list[Helper] = []
    # Not forked: that would share the connections of this process, which no database allows. Where
    # none can be started, this process does all of it.
    with suppress(OSError):
        helpers += (Helper(_serve) for _ in range(many))
    threads = [Thread(target=keep_busy, args=(helper,), daemon=True) for helper in helpers]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        for helper, thread in zip(helpers, threads, strict=True):
            helper.end()
            thread.join()
            helper.close()


def _serve() -> None:
    serve(_checked)


def _checked(asked: bytes) -> bytes:
    question = _question(asked)
    return _packed(check_slice(_opened(question.url, question.data), question.span))


@cache
def _opened(url: str, data: str) -> Store:
    return open_store(url, Path(data), create=False)
