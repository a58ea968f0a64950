"""A child of this process that does one thing, and never goes on with the tests."""

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable

_TIMEOUT_SECONDS = 300
"""Longer than anything here takes on a slow machine; a child that hangs would hold up the tests."""


def fork(work: Callable[[], object]) -> int:
    """Its number. It ends with 0 when it is done, and shows what it raised or where it hangs."""
    child = os.fork()
    if child == 0:
        _run_in_child(work)
    return child


def _run_in_child(work: Callable[[], object]) -> None:
    """Do it in the child; never returns."""
    # Not `dump_traceback_later`: the thread with which the parent watches itself is not here.
    faulthandler.register(signal.SIGALRM, sys.__stderr__ or 2, chain=True)
    signal.alarm(_TIMEOUT_SECONDS)
    try:
        work()
    except BaseException:  # noqa: BLE001  whatever it was, the parent's code must not go on here
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    os._exit(0)
