"""Streams: how long events take to reach all readers, beside a bare stream that commits them, too.

`uv run python -m bench.streams` measures rising rates, round after round, and prints every delay.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import uvloop

from bench.http_client import Readings, readings
from bench.http_process import Running, running
from bench.http_server import TOKEN

READERS = 100
RATE = 20_000
WANTED_SECONDS = 0.020
"""Within so long 99 of 100 events are to be with all readers, at that rate."""
_RATES = (1_000, 5_000, 10_000, RATE)


def bare(folder: Path, readers: int, rate: int, seconds: float) -> Readings:
    """Readings of a bare Starlette stream of as many lines, committed before."""
    return _read("bare-stream", folder, readers, rate, seconds)


def ours(folder: Path, readers: int, rate: int, seconds: float) -> Readings:
    """Readings of a hub that commits so many events a second."""
    return _read("busy", folder, readers, rate, seconds)


def _read(kind: str, folder: Path, readers: int, rate: int, seconds: float) -> Readings:
    async def read(server: Running) -> Readings:
        begin = asyncio.get_running_loop().create_future()
        begin.add_done_callback(lambda _: server.begin())
        return await readings(server.port, TOKEN, readers, seconds, begin)

    with running(kind, folder, str(rate)) as server:
        return uvloop.run(read(server))


def main() -> None:
    """Both in turn, so that a drifting machine meets both."""
    options = _options()
    print(f"{READERS} readers: events requested, sent to each, 99 of 100 within; a bare stream")
    for rate in _RATES:
        for _ in range(options.rounds if rate == RATE else 1):
            base, seen = (_in_fresh_folder(one, rate, options.seconds) for one in (bare, ours))
            print(
                f"{rate:8,}/s {seen.events_per_second:9,.0f}/s {seen.p99_ms:8.1f} ms"
                f" {base.p99_ms:8.1f} ms",
                flush=True,
            )


def _in_fresh_folder(
    measure: Callable[[Path, int, int, float], Readings], rate: int, seconds: float
) -> Readings:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        return measure(Path(folder), READERS, rate, seconds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.streams", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help=f"at {RATE:,} a second (default 10)")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each (default 5)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
