"""Run simulations by hand: `uv run python -m tests.simulation SEED [UNTIL]`."""

import argparse
import sys
from collections.abc import Sequence
from time import process_time

from tests.simulation.run import simulate


def main(first: int, until: int) -> None:
    """Run the seeds, one line for each; the first one that fails ends the run."""
    for seed in range(first, until):
        started_at = process_time()
        result = simulate(seed)
        took = process_time() - started_at
        root = result.root[:16]
        line = f"{seed} {result.days:.1f} days {result.entries} entries {took:.2f} s {root}"
        sys.stdout.write(f"{line}\n")
        if until == first + 1:
            for kind, count in sorted(result.done.items()):
                sys.stdout.write(f"  {count:6} {kind}\n")


def read_seeds(words: Sequence[str]) -> tuple[int, int]:
    """Parse the first seed and the end of the range."""
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", metavar="SEED", type=int, help="the first seed")
    parser.add_argument(
        "until",
        metavar="UNTIL",
        type=int,
        nargs="?",
        help="the seed before which it ends; else SEED runs alone, with what happened in it",
    )
    arguments = parser.parse_args(words)
    until = arguments.seed + 1 if arguments.until is None else arguments.until
    if until <= arguments.seed:
        parser.error(f"UNTIL is {until}: no seed from {arguments.seed} on is before it")
    return arguments.seed, until


if __name__ == "__main__":
    main(*read_seeds(sys.argv[1:]))
