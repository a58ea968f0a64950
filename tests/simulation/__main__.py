"""Run simulations by hand: `uv run python -m tests.simulation SEED [UNTIL]`."""

import argparse
import sys
from collections.abc import Sequence
from time import process_time

from tests.simulation.story import simulate


def main(first: int, until: int) -> None:
    """Each seed on a line; the first one that fails ends it."""
    for seed in range(first, until):
        begun = process_time()
        told = simulate(seed)
        took = process_time() - begun
        line = f"{seed} {told.days:.1f} days {told.entries} entries {took:.2f} s {told.root[:16]}"
        sys.stdout.write(f"{line}\n")
        if until == first + 1:
            for what, count in sorted(told.done.items()):
                sys.stdout.write(f"  {count:6} {what}\n")


def read_seeds(words: Sequence[str]) -> tuple[int, int]:
    """The first seed, and the one before which it ends."""
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", metavar="SEED", type=int, help="the first seed")
    parser.add_argument(
        "until",
        metavar="UNTIL",
        type=int,
        nargs="?",
        help="the seed before which it ends; else SEED runs alone, with what happened in it",
    )
    given = parser.parse_args(words)
    until = given.seed + 1 if given.until is None else given.until
    if until <= given.seed:
        parser.error(f"UNTIL is {until}: no seed from {given.seed} on is before it")
    return given.seed, until


if __name__ == "__main__":
    main(*read_seeds(sys.argv[1:]))
