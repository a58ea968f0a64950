"""python -m dragoman, and the `dragoman` command."""

from pathlib import Path

from dragoman.surfaces.cli.app import run
from dragoman.surfaces.cli.place import Place


def main() -> None:
    """Run the command line."""
    run(_open_place)


def _open_place(data: Path, store: str, now: int | None, *, create: bool) -> Place:
    # Databases and keys are loaded when a command needs them: `--help` and `--version` do not.
    from dragoman.bootstrap import open_place

    return open_place(data, store, now, create=create)


if __name__ == "__main__":
    main()
