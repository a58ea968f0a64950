"""Fork a child that runs one function and never returns into the tests."""

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable

_TIMEOUT_SECONDS = 300
"""Longer than anything here takes on a slow machine; a hanging child would block the tests."""


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a child and return its pid.

    The child exits with 0, or prints its exception or the stack where it hangs.

    """
    child = os.fork()
    if child == 0:
        _run_in_child(work)
    return child


def _run_in_child(work: Callable[[], object]) -> None:
    """Run `work` in the child; never returns."""
    # Not `dump_traceback_later`: the watchdog thread of the parent does not exist in the child.
    faulthandler.register(signal.SIGALRM, sys.__stderr__ or 2, chain=True)
    signal.alarm(_TIMEOUT_SECONDS)
    try:
        work()
    except BaseException:  # noqa: BLE001  whatever it was, the parent's code must not go on here
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    os._exit(0)
