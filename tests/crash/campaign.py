"""Kill campaign: runs of one hub after another, each killed, and the oracle that checks the result.

Nothing acknowledged is lost, nothing is doubled, nothing is half done: the ledger that is found is,
byte for byte, what an undisturbed hub had written after the last acknowledged step, or after the
one in progress. Repeated requests get the same answers, the ledger and its views verify, the files
agree with the store, and every notification is delivered in order.
"""

import shutil
import subprocess
import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.crash.dispatch_process import DispatchJob
from tests.crash.hub_run import Build, Job, Report
from tests.crash.import_process import ImportJob
from tests.crash.kill_points import Kill
from tests.crash.scenario import SCENARIO

ROOT = Path(__file__).parents[2]
KILLED = -9
MEMORY = Path("/dev/shm")  # noqa: S108  what is made there has a name of its own
"""Folder in memory: a kill leaves the page cache alone, so no disk is needed. Power cuts are
another test."""

_MAX_KILLS = 1_000

_reports = msgspec.json.Decoder(Report)


class OracleViolation(AssertionError):
    """Violation found by the oracle."""


class Baseline(Struct, frozen=True):
    """Results of an undisturbed run, with which a disturbed one is compared."""

    heads: tuple[int, ...]
    """Head of the ledger before each step, and at the end."""
    digests: tuple[str, ...]
    """Digest of the ledger up to each position."""
    answers: tuple[Sequence[str], ...]
    notifications: tuple[str, ...]


class ForkServer:
    """Client of the fork server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def run(self, job: Job | ImportJob | DispatchJob) -> int:
        """Let a child do the job; returns its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def run_fork_server() -> Generator[ForkServer]:
    """Start a fork server and end it afterwards."""
    command = [sys.executable, "-m", "tests.crash.fork_server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield ForkServer(process)
        assert process.stdin is not None
        process.stdin.close()


class KillPlan(Struct, frozen=True):
    """Time and manner of the end of one run."""

    kill: Kill = Kill()
    microseconds: int = 0
    verify: bool = False


class HubUnderTest:
    """Data directory, and what its runs have reported so far."""

    def __init__(
        self,
        server: ForkServer,
        folder: Path,
        *,
        baseline: Baseline | None = None,
        store: str = "",
        build: Build = "ours",
        seed: int = 0,
    ) -> None:
        """Without a `baseline` nothing is compared: this run records one."""
        self._server = server
        self._baseline = baseline
        self._path = folder / "said"
        self._job = Job(
            str(folder / "data"), str(self._path), store=store, files=not store, build=build
        )
        self._lines_read = 0
        self.data = folder / "data"
        self.seed = seed
        self.acknowledged = 0
        """Number of acknowledged steps."""
        self.kills: list[str] = []
        """Point at which each run ended."""
        self.reports: list[Report] = []

    @property
    def has_ended(self) -> bool:
        """The scenario was completed."""
        return any(report.kind == "ended" for report in self.reports)

    def run(self, plan: KillPlan) -> bool:
        """Start one more run; true: it was killed."""
        if len(self.kills) > _MAX_KILLS:
            raise self._violation("it dies and dies, and its story does not come to an end")
        job = replace(
            self._job,
            begin=self.acknowledged,
            kill=plan.kill,
            microseconds=plan.microseconds,
            verify=plan.verify,
            seed=self.seed + len(self.kills),
        )
        ended = self._server.run(job)
        reports = self._read_reports()
        killed_at_point = next((report.text for report in reports if report.kind == "dies"), "")
        if ended == KILLED:
            self.kills.append(killed_at_point or f"after {plan.microseconds} microseconds")
        elif ended:
            raise self._violation(f"the process ended with {ended}: see its standard error")
        for report in reports:
            self._check(report)
        return ended == KILLED

    def finish(self) -> None:
        """Run to the end undisturbed, check everything, and compare the notifications."""
        self.run(KillPlan(verify=True))
        if not self.has_ended:
            raise self._violation("the story did not come to its end")
        if (
            self._baseline is not None
            and self._job.files
            and self.notifications() != self._baseline.notifications
        ):
            raise self._violation(
                f"delivered: {self.notifications()}, not {self._baseline.notifications}"
            )

    def remove(self) -> None:
        """Remove the data directory."""
        shutil.rmtree(self.data.parent)

    def notifications(self) -> tuple[str, ...]:
        """Delivered notifications, in order; the last one may come again after a crash."""
        return tuple(
            text for text, _ in groupby(s.text for s in self.reports if s.kind == "delivered")
        )

    def _read_reports(self) -> list[Report]:
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        reports = [_reports.decode(line) for line in lines[self._lines_read :]]
        self._lines_read = len(lines)
        self.reports += reports
        return reports

    def _check(self, report: Report) -> None:
        if report.kind == "wrong":
            raise self._violation(report.text)
        if report.kind == "answered":
            self.acknowledged = report.step + 1
        if self._baseline is None:
            return
        if report.kind == "found":
            self._check_found(report, self._baseline)
        if report.kind in ("answered", "again"):
            self._check_answers(report, self._baseline)

    def _check_found(self, report: Report, baseline: Baseline) -> None:
        """Require all acknowledged steps, and all or nothing of the one in progress; a tick is
        many."""
        before, after = (
            baseline.heads[report.step],
            baseline.heads[min(report.step + 1, len(SCENARIO))],
        )
        is_tick = report.step < len(SCENARIO) and not SCENARIO[report.step].requests
        self._check_state(
            report, baseline, range(before, after + 1) if is_tick else (before, after)
        )

    def _check_answers(self, report: Report, baseline: Baseline) -> None:
        if report.answers and report.answers != baseline.answers[report.step]:
            expected = baseline.answers[report.step]
            raise self._violation(
                f"step {report.step} {report.kind}: {report.answers}, not {expected}"
            )
        if report.kind == "answered":
            self._check_state(report, baseline, (baseline.heads[report.step + 1],))

    def _check_state(self, report: Report, baseline: Baseline, expected: Collection[int]) -> None:
        """Compare head and digest; a build that answers too early reports no state."""
        if report.state is None:
            return
        if report.state.head not in expected:
            raise self._violation(
                f"{self.acknowledged} steps were acknowledged, so there must be {expected} "
                f"entries, but there are {report.state.head} ({report.kind})"
            )
        if report.state.digest != baseline.digests[report.state.head]:
            raise self._violation(
                f"the first {report.state.head} entries are others ({report.kind})"
            )

    def _violation(self, text: str) -> OracleViolation:
        return OracleViolation(f"{text}\nseed {self.seed}, killed at: {self.kills}")


class Campaign:
    """Hubs on one fork server, all compared with an undisturbed one."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self._count = 0
        self._baseline: Baseline | None = None
        self._baseline = _record_baseline(self.hub())

    def hub(self, *, seed: int = 0, store: str = "", build: Build = "ours") -> HubUnderTest:
        """Make a new data directory."""
        self._count += 1
        folder = self._folder / f"{self._count}"
        folder.mkdir()
        return HubUnderTest(
            self.server, folder, baseline=self._baseline, store=store, build=build, seed=seed
        )


def _record_baseline(hub: HubUnderTest) -> Baseline:
    hub.finish()
    answered = [report for report in hub.reports if report.kind == "answered"]
    return Baseline(
        heads=(0, *(report.state.head for report in answered if report.state)),
        digests=tuple(hub.reports[-1].answers),
        answers=tuple(report.answers for report in answered),
        notifications=hub.notifications(),
    )
