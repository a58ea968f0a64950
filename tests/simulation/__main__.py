"""Run simulations by hand: `uv run python -m tests.simulation SEED [UNTIL]`."""

import sys
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


if __name__ == "__main__":
    seeds = [int(word) for word in sys.argv[1:]]
    main(seeds[0], seeds[1] if len(seeds) > 1 else seeds[0] + 1)
