"""A long ledger is checked by several processes: each opens the store and takes slices of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

from dragoman.bootstrap.stores import open_store
from dragoman.engine.ports import Store
from dragoman.engine.verify_slice import Slice, Slices, Span, check_slice

_MANY = 4
"""Of so many slices on, the start of processes is made up for."""


def slices_of(store: Store, url: str, data: Path, many: int = _MANY) -> Slices:
    """Checks slices of a store, which has this URL: here if they are few, else in processes."""

    def check(spans: Sequence[Span]) -> Iterable[Slice]:
        processors = os.cpu_count() or 1
        if len(spans) < many or processors == 1:
            return map(partial(check_slice, store), spans)
        return _in_processes(partial(_check, url, data), spans, min(processors, len(spans)))

    return check


def _in_processes(
    check: "partial[Slice]", spans: Sequence[Span], processes: int
) -> Iterator[Slice]:
    # A fork would share the connections of this process, which no database allows.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(check, spans)


def _check(url: str, data: Path, span: Span) -> Slice:
    return check_slice(_opened(url, data), span)


@cache
def _opened(url: str, data: Path) -> Store:
    return open_store(url, data, create=False)
