"""A long ledger is checked by several processes: each opens the store and takes slices of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from dragoman.bootstrap.stores import open_store
from dragoman.engine.ports import Store
from dragoman.engine.verifying.slices import Slice, Slices, Span, check_slice

# Several times as fast as the pickles in which processes talk otherwise.
_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(Slice).decode
_MANY = 16
"""Of so many slices on, the start of processes is made up for."""


def slices_of(store: Store, url: str, data: Path, many: int = _MANY) -> Slices:
    """Checks slices of a store, which has this URL: if they are many, in processes too."""

    def check(spans: Sequence[Span]) -> Iterable[Slice]:
        others = min(os.cpu_count() or 1, len(spans)) - 1
        if len(spans) < many or others < 1:
            return map(partial(check_slice, store), spans)
        return _with_others(store, partial(_check, url, data), spans, others)

    return check


def _with_others(
    store: Store, check: "partial[bytes]", spans: Sequence[Span], others: int
) -> Iterator[Slice]:
    """All but the first slices are whose who comes first: the others have yet to start."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fork would share the connections of this process, which no database allows.
    pool = ProcessPoolExecutor(others, get_context("spawn"))
    try:
        theirs = [pool.submit(check, span) for span in spans]
        ours: dict[int, Slice] = {}
        for at, future in enumerate(theirs):
            while at not in ours and not future.done():
                free = (one for one in range(max(at, others), len(spans)) if one not in ours)
                mine = next((one for one in free if theirs[one].cancel()), None)
                if mine is None:
                    break
                ours[mine] = check_slice(store, spans[mine])
            yield ours.pop(at) if at in ours else _unpacked(future.result())
    finally:
        pool.shutdown(cancel_futures=True)


def _check(url: str, data: Path, span: Span) -> bytes:
    return _packed(check_slice(_opened(url, data), span))


@cache
def _opened(url: str, data: Path) -> Store:
    return open_store(url, data, create=False)
