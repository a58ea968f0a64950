"""Checks a long ledger in several processes: each opens the store and takes slices of it."""

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
from dragoman.engine.ledger_slices import CheckedSlice, SliceChecker, SliceSpan, check_slice
from dragoman.engine.ports import Store
from dragoman.system.helper_process import HelperProcess, serve_requests

_MIN_SLICES = 16
"""Number of slices from which starting processes pays off."""


class _SliceJob(Struct, frozen=True):
    url: str
    data: str
    span: SliceSpan


_encode = msgspec.msgpack.Encoder().encode
_decode_job = msgspec.msgpack.Decoder(_SliceJob).decode
_decode_result = msgspec.msgpack.Decoder(CheckedSlice).decode

_NumberedSpan = tuple[int, SliceSpan]
_JobResult = tuple[_NumberedSpan, bytes | None]
"""A slice and its result from a helper; None: it is still to be checked."""


def slice_checker(
    store: Store, url: str, data: Path, min_slices: int = _MIN_SLICES
) -> SliceChecker:
    """Checker of a store's slices; many of them are checked in several processes."""

    def check(spans: Sequence[SliceSpan]) -> Iterable[CheckedSlice]:
        others = min(os.cpu_count() or 1, len(spans)) - 1
        if len(spans) < min_slices or others < 1:
            return map(partial(check_slice, store), spans)
        return _check_in_processes(store, partial(_SliceJob, url, str(data)), spans, others)

    return check


def _check_in_processes(
    store: Store, make_job: "partial[_SliceJob]", spans: Sequence[SliceSpan], helper_count: int
) -> Iterator[CheckedSlice]:
    """Check slices in this process and in helpers; each takes the next one when it is free."""
    pending, results = deque[_NumberedSpan](enumerate(spans)), SimpleQueue[_JobResult]()

    def feed(helper: HelperProcess) -> None:
        for one in _take_jobs(pending):
            answer = helper.request(_encode(make_job(one[1])))
            results.put((one, answer))
            if answer is None:
                return

    finished: dict[int, CheckedSlice] = {}
    with _helper_processes(helper_count, feed):
        for at in range(len(spans)):
            while at not in finished:
                own_job = next(_take_jobs(pending), None) if results.empty() else None
                (number, span), answer = (own_job, None) if own_job else results.get()
                finished[number] = (
                    check_slice(store, span) if answer is None else _decode_result(answer)
                )
            yield finished.pop(at)


def _take_jobs(pending: deque[_NumberedSpan]) -> Iterator[_NumberedSpan]:
    """Take jobs until none is left."""
    with suppress(IndexError):
        while True:
            yield pending.popleft()


@contextmanager
def _helper_processes(count: int, feed: Callable[[HelperProcess], None]) -> Generator[None]:
    """Start helper processes, as many as possible; each is fed by a thread."""
    helpers: list[HelperProcess] = []
    # Not forked: that would share the connections of this process, which no database allows. Where
    # none can be started, this process does all of it.
    with suppress(OSError):
        helpers += (HelperProcess(_serve_jobs) for _ in range(count))
    threads = [Thread(target=feed, args=(helper,), daemon=True) for helper in helpers]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        for helper, thread in zip(helpers, threads, strict=True):
            helper.kill()
            thread.join()
            helper.close()


def _serve_jobs() -> None:
    serve_requests(_run_job)


def _run_job(data: bytes) -> bytes:
    job = _decode_job(data)
    return _encode(check_slice(_open_cached(job.url, job.data), job.span))


@cache
def _open_cached(url: str, data: str) -> Store:
    return open_store(url, Path(data), create=False)
