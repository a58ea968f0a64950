"""Fork server: a warm process that has imported everything, and one child per run.

It reads one job per line and writes how the child ended: 0, or minus the signal that killed it.
"""

import gc
import os
import select
import signal
import sys
from importlib import import_module
from tempfile import TemporaryDirectory

import msgspec

from tests.crash.dispatch_process import DispatchJob, run_dispatch
from tests.crash.hub_run import HubRun, Job, run_hub
from tests.crash.import_process import ImportJob, run_import
from tests.forked import fork

AnyJob = Job | ImportJob | DispatchJob

_jobs = msgspec.json.Decoder(AnyJob)


def main() -> None:
    """Serve until the input ends."""
    _warm_up()
    for line in sys.stdin.buffer:
        sys.stdout.write(f"{_run_child(_jobs.decode(line))}\n")
        sys.stdout.flush()


def _warm_up() -> None:
    """Run once, so that everything is loaded and need not be collected."""
    import_module("dragoman.store.postgres")
    with TemporaryDirectory() as folder:
        HubRun(Job(f"{folder}/data", f"{folder}/said", verify=True)).run()
    gc.collect()
    gc.freeze()
    gc.disable()


def _run_child(job: AnyJob) -> int:
    child = fork(lambda: _run(job))
    if job.microseconds:
        _kill_after(child, job.microseconds / 1_000_000)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _run(job: AnyJob) -> None:
    match job:
        case Job():
            run_hub(job)
        case ImportJob():
            run_import(job)
        case DispatchJob():
            run_dispatch(job)


def _kill_after(child: int, seconds: float) -> None:
    """Kill the child after a time, unless it has ended before."""
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], seconds)
    if not ended:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)


if __name__ == "__main__":
    main()
