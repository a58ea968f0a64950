"""`uv run python -m bench`: measures everything in one run; a table, or `--json` for scripts."""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import lifecycle

_CALLERS = 64


def main() -> None:
    """Measure in rounds, so that a drifting disk meets both sides, and print medians."""
    options = _options()
    rows = [
        _Row(
            f"lifecycle, {_CALLERS} callers",
            lambda folder, s: lifecycle.raw_with_callers(folder, _CALLERS, s),
            lambda folder, s: lifecycle.engine_with_callers(_store(folder), _CALLERS, s),
        ),
        _Row(
            "lifecycle, one caller, handle_now",
            lifecycle.raw_alone,
            lambda folder, s: lifecycle.engine_alone(_store(folder), s),
        ),
        _Row(
            "lifecycle, one caller, handle",
            lifecycle.raw_alone,
            lambda folder, s: lifecycle.engine_with_callers(_store(folder), 1, s),
        ),
    ]
    results = [row.measure(options.rounds, options.seconds) for row in rows]
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        _print_table(results)


def _store(folder: Path) -> lifecycle.Store:
    return lifecycle.sqlite_store(folder / "dragoman.db")


Measure = Callable[[Path, float], float]
Result = dict[str, str | float]


class _Row:
    def __init__(self, name: str, raw: Measure, ours: Measure) -> None:
        self._name, self._raw, self._ours = name, raw, ours

    def measure(self, rounds: int, seconds: float) -> Result:
        raw, ours, ratios = list[float](), list[float](), list[float]()
        for _ in range(rounds):
            raw.append(_in_fresh_folder(self._raw, seconds))
            ours.append(_in_fresh_folder(self._ours, seconds))
            ratios.append(ours[-1] / raw[-1])
        return {
            "name": self._name,
            "raw_per_second": statistics.median(raw),
            "dragoman_per_second": statistics.median(ours),
            "ratio": statistics.median(ratios),
        }


def _in_fresh_folder(measure: Measure, seconds: float) -> float:
    # Beside the sources and not in /tmp, which may be memory and would make fsync free.
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        return measure(Path(folder), seconds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each pair (default 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _print_table(results: list[Result]) -> None:
    print(f"{'durable, SQLite FULL, per second':40} {'raw':>10} {'dragoman':>10} {'ratio':>7}")
    for row in results:
        print(
            f"{row['name']:40} {row['raw_per_second']:10.0f} "
            f"{row['dragoman_per_second']:10.0f} {row['ratio']:7.0%}"
        )


if __name__ == "__main__":
    main()
