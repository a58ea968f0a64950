"""Entry point of `python -m dragoman` and of the `dragoman` command."""

import signal


def main() -> None:
    """Run the command line."""
    interrupts_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts_python:
        # Ctrl-C while modules load ends the process at once, without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman.system.process_tuning import tune_gc

    tune_gc()
    from dragoman.bootstrap.cli_wiring import CLI_WIRING
    from dragoman.surfaces.cli.app import run

    if interrupts_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run(CLI_WIRING)


if __name__ == "__main__":
    main()
