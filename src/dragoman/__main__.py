"""Entry point of `python -m dragoman` and of the `dragoman` command."""

import atexit
import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    interrupts_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts_python:
        # Ctrl-C while modules load ends the process at once, without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman.surfaces.cli.thin_client import run_in_hub

    code = run_in_hub(sys.argv[1:])
    if code is None:
        code = _run_here(interrupts_python=interrupts_python)
    _exit_at_once(code)


def _run_here(*, interrupts_python: bool) -> int:
    from dragoman.system.process_tuning import tune_gc

    tune_gc()
    from dragoman.bootstrap.cli_wiring import CLI_WIRING
    from dragoman.surfaces.cli.app import run

    if interrupts_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(CLI_WIRING)


def _exit_at_once(code: int) -> None:
    """Exit without taking the interpreter apart: that is a fifth of a short command's time."""
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed by the caller
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    main()
