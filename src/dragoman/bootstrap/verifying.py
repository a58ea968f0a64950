"""A long ledger is checked by several processes: each opens the store and takes slices of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from dragoman.bootstrap.stores import open_store
from dragoman.engine.ports import Store
from dragoman.engine.verify_slice import Slice, Slices, Span, check_slice

# Several times as fast as the pickles in which processes talk otherwise.
_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(Slice).decode
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
    check: "partial[bytes]", spans: Sequence[Span], processes: int
) -> Iterator[Slice]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fork would share the connections of this process, which no database allows.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from map(_unpacked, pool.map(check, spans))


def _check(url: str, data: Path, span: Span) -> bytes:
    return _packed(check_slice(_opened(url, data), span))


@cache
def _opened(url: str, data: Path) -> Store:
    return open_store(url, data, create=False)
