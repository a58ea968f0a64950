"""One run of a hub: opens the data of an earlier run, continues the scenario, and may be killed.

It reports to a file of its own what it found, was answered and delivered: everything reported was
acknowledged, and must be true in the next run.
"""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dragoman.bootstrap.data_directory import EngineParts, open_on_store
from dragoman.bootstrap.stores import open_store
from dragoman.config import Settings
from dragoman.core.errors import Refusal
from dragoman.core.read import Receipt
from dragoman.engine.group_commit import Engine, Failpoint
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.request import Outcome, Request
from dragoman.engine.subscribe import CommitHints, DirtyStreams
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.notify.notification import Notification, NotificationBuilder
from dragoman.services.notifier import Notifier
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.system.clock import ManualClock, new_id
from dragoman.system.keys import load_or_create_keys
from dragoman.system.state_files import OutboxFiles
from tests.crash.data_directories import valid_checkpoints
from tests.crash.kill_points import Kill, KillPoints
from tests.crash.scenario import SCENARIO, START

Build = Literal["ours", "hasty", "keyless"]
"""The hub as it is; one that answers before the commit; one that gets requests without keys."""

_ID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Ids made by the hub: different in each run."""

_write = os.write
"""The original call: reports are not kill points."""


class Job(Struct, frozen=True, tag="live"):
    """Job of one run."""

    data: str
    reports: str
    """File of the reports."""
    begin: int = 0
    """First step that is not acknowledged."""
    kill: Kill = Kill()
    microseconds: int = 0
    """Time after which the server kills the run, wherever it is; 0: never."""
    seed: int = 0
    store: str = ""
    files: bool = True
    """Files, checkpoints and notifications are kept up to date."""
    verify: bool = False
    """Everything is verified before the run continues, and when it ends."""
    build: Build = "ours"


class LedgerState(Struct, frozen=True):
    """Head of a ledger, and a digest of its entries."""

    head: int
    digest: str


class Report(Struct, frozen=True, omit_defaults=True):
    """One line of the reports."""

    kind: Literal["found", "answered", "again", "delivered", "dies", "wrong", "ended"]
    step: int = 0
    state: LedgerState | None = None
    answers: Sequence[str] = ()
    text: str = ""


class Reporter:
    """Writes reports, each at once."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def __call__(self, reports: Report) -> None:
        """Write a report."""
        _write(self._descriptor, msgspec.json.encode(reports) + b"\n")


class LedgerDigest:
    """Follows the ledger and keeps a digest of it, in which generated ids count by their order."""

    def __init__(self, directory: DataDirectory) -> None:
        self._store = directory.hub.store
        self._at, self._digest = 0, sha256()
        self._ids: dict[bytes, bytes] = {}
        self.digests = [self._digest.hexdigest()]
        """Digest of the ledger at each position."""

    def state(self) -> LedgerState:
        """Head and digest of the ledger now."""
        for entry in all_entries(self._store, self._at):
            self._digest.update(_ID.sub(self._number_id, entry.line) + b"\n")
            self._at = entry.position
            self.digests.append(self._digest.hexdigest())
        return LedgerState(self._at, self.digests[-1])

    def _number_id(self, found: re.Match[bytes]) -> bytes:
        return self._ids.setdefault(found[0], b"id-%d" % len(self._ids))


class RecordingTarget:
    """Delivery target that reports every notification."""

    name = "told"

    def __init__(self, report: Reporter) -> None:
        self._report = report

    def deliver(self, notification: Notification, now: int) -> str:
        """Report the notification."""
        del now
        self._report(Report("delivered", text=notification.id))
        return ""


class HubRun:
    """Hub between its start and its end."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.report = Reporter(job.reports)
        self.points = KillPoints(job.kill, lambda name: self.report(Report("dies", text=name)))
        self.current = job.begin
        """Step in progress."""
        self.clock = ManualClock(START)

    def open(self) -> None:
        """Open the data of an earlier run."""
        data = Path(self.job.data)
        data.mkdir(exist_ok=True)
        key = load_or_create_keys(data)
        store = open_store(self.job.store, data, new_ledger_id=lambda: "story")
        engines = _Engines(store, self.clock, key, reach=self.reach)
        self.directory = open_on_store(data, Settings(), engines, create=True)
        self._notifier = Notifier(
            self.directory.hub,
            OutboxFiles(data),
            NotificationBuilder(store, Settings().notify.statuses),
            (RecordingTarget(self.report),),
            lambda: 0.0,
        )
        if self.job.files:
            self._notifier.register_targets()
        self._digest = LedgerDigest(self.directory)

    def reach(self, failpoint: str) -> None:
        """Announce a failpoint of the engine. (A `Failpoint`.)"""
        if self.job.build == "hasty" and failpoint == "written" and self.points.stage == "ask":
            self.report(Report("answered", self.current))
        self.points(f"engine {failpoint}")

    def run(self) -> None:
        """Report the state, bring the files up to date, and go on to the end of the scenario."""
        self.open()
        self.points.stage = "look"
        self.report(Report("found", self.job.begin, self._digest.state()))
        self._catch_up("recover")
        if self.job.verify:
            self._verify()
        rng = Random(self.job.seed)
        if self.job.begin:
            self._repeat_step(rng.randrange(self.job.begin))
        for step in range(self.job.begin, len(SCENARIO)):
            self.current = step
            answers = self._run_step(step)
            self.points.stage = "answer"
            self.report(Report("answered", step, self._digest.state(), answers))
            self._catch_up("follow")
        if self.job.verify:
            self._verify()
        self.points.stage = "close"
        self.directory.hub.close()
        self.report(Report("ended", answers=self._digest.digests))

    def _requests(self, number: int) -> list[Request]:
        """Requests of a step."""
        hub, has_keys = self.directory.hub, self.job.build != "keyless"
        return [
            hub.make_request(
                actor, *commands, key=f"{number}.{directory}" if has_keys else new_id()
            )
            for directory, (actor, commands) in enumerate(SCENARIO[number].requests)
        ]

    def _run_step(self, number: int, stage: str = "ask") -> list[str]:
        self.points.stage = stage
        self.clock.advance(SCENARIO[number].at - self.clock.now())
        requests = self._requests(number)
        if not requests:
            self.points.stage = "tick"
            return [f"{done}" for done in self._tick()]
        return [
            format_outcome(outcome)
            for outcome in _submit_batch(self.directory.hub.engine, requests)
        ]

    def _tick(self) -> Iterator[str]:
        for name, done in self.directory.run_services(self.directory.services):
            if not isinstance(done, int):
                raise done
            yield name

    def _repeat_step(self, number: int) -> None:
        """Repeat a step acknowledged in an earlier run: same answers, no new entries."""
        before = self._digest.state()
        if SCENARIO[number].requests:
            answers = self._run_step(number, "ask again")
            self.report(Report("again", number, answers=answers))
            if self._digest.state() != before:
                self.report(Report("wrong", text=f"step {number}, asked again, has added entries"))

    def _catch_up(self, stage: str) -> None:
        """Update files, checkpoints and notifications, as every command does at its end."""
        if not self.job.files:
            return
        for service in (*self.directory.catch_up_services, self._notifier):
            self.points.stage = f"{stage} {service.name}"
            service.run_once(self.clock.now())
        for warning in self.directory.warnings:
            self.report(Report("wrong", text=warning))

    def _verify(self) -> None:
        self.points.stage = "verify"
        directory = self.directory
        for finding in check_ledger(
            directory.hub.store, valid_checkpoints(directory), _ignore_progress
        ):
            self.report(Report("wrong", text=f"ledger: {finding}"))
        for finding in check_stored_states(directory.hub.store, _ignore_progress):
            self.report(Report("wrong", text=f"views: {finding}"))
        if self.job.files:
            for difference in directory.projector.compare(_ignore_progress):
                self.report(Report("wrong", text=f"files: {difference}"))


def run_hub(job: Job) -> None:
    """Run in which every kill point is announced."""
    life = HubRun(job)
    life.points.install()
    life.run()


class _Engines(EngineParts, frozen=True, kw_only=True):
    """Engine factory with failpoints."""

    reach: Failpoint

    def build(self, data: Path, renewed_leases: DirtyStreams, hints: CommitHints) -> Engine:
        """Make an engine with failpoints."""
        del data
        return Engine(
            self.store,
            self.clock,
            self.key.secret,
            failpoint=self.reach,
            on_leases=renewed_leases.add,
            on_commit=hints.notify,
        )


def format_outcome(outcome: Outcome) -> str:
    """Format an answer so that it can be compared with that of another run."""
    if isinstance(outcome, Refusal):
        return f"refused: {outcome.code}"
    return " ".join(_receipt(receipt) for receipt in outcome.receipts)


def _receipt(receipt: Receipt) -> str:
    return _ID.sub(b"id", msgspec.json.encode(receipt)).decode()


def _submit_batch(engine: Engine, requests: Sequence[Request]) -> list[Outcome]:
    """Submit requests in one batch, or one alone."""
    if len(requests) == 1:
        return [engine.handle_now(requests[0])]

    async def ask() -> list[Outcome]:
        return await asyncio.gather(*(engine.handle(request) for request in requests))

    return asyncio.run(ask())


def _ignore_progress(_: int) -> None:
    """Ignore the progress."""
