"""python -m dragoman, and the `dragoman` command."""

import signal


def main() -> None:
    """Run the command line."""
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        # Ctrl-C while modules load ends the process at once, without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman.system.garbage import look_seldom

    look_seldom()
    from dragoman.bootstrap.house import HOUSE
    from dragoman.surfaces.cli.app import run

    if hears:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run(HOUSE)


if __name__ == "__main__":
    main()
