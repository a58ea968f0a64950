"""python -m dragoman, and the `dragoman` command."""

from dragoman.bootstrap import open_place
from dragoman.surfaces.cli.app import run


def main() -> None:
    """Run the command line."""
    run(open_place)


if __name__ == "__main__":
    main()
