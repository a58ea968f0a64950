"""One life of a hub: it opens what an earlier one has left, goes on with the story, and may die.

It says on a file of its own what it found, what it was answered and what it delivered: whatever
stands there was acknowledged, and must be true in the next life.
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

from dragoman.bootstrap.places import Engines, opened
from dragoman.bootstrap.stores import open_store
from dragoman.config import Settings
from dragoman.core.errors import Refusal
from dragoman.core.reading import Receipt
from dragoman.engine.handle import Engine, Failpoint
from dragoman.engine.hints import Heard, Hints
from dragoman.engine.reads.ask import entries
from dragoman.engine.request import Outcome, Request
from dragoman.engine.verifying.verify import check_ledger, check_views
from dragoman.notify.notice import News, Notice
from dragoman.services.notifier import Notifier
from dragoman.surfaces.cli.place import Place
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from dragoman.system.keys import load_or_create
from dragoman.system.outbox import OutboxFiles
from tests.crash.data_directories import valid_checkpoints
from tests.crash.kill_points import Kill, KillPoints
from tests.crash.scenario import SCENARIO, START

Build = Literal["ours", "hasty", "keyless"]
"""The hub as it is; one that answers before the commit; one that is asked without keys."""

_ID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Ids that the hub has made: another one in each life."""

_write = os.write
"""What is said is no part of what is tested."""


class Job(Struct, frozen=True, tag="live"):
    """What one life is to do."""

    data: str
    reports: str
    """Where it says what it found and was answered."""
    begin: int = 0
    """The first step that nobody has acknowledged."""
    kill: Kill = Kill()
    microseconds: int = 0
    """After so long the server kills it, wherever it is; 0: it does not."""
    seed: int = 0
    store: str = ""
    files: bool = True
    """Whether the files, checkpoints and notices follow."""
    verify: bool = False
    """Whether everything is checked before it goes on, and when it ends."""
    build: Build = "ours"


class LedgerState(Struct, frozen=True):
    """How far a ledger has come, and a digest of all that it says."""

    head: int
    digest: str


class Report(Struct, frozen=True, omit_defaults=True):
    """One line of what a life says."""

    kind: Literal["found", "answered", "again", "delivered", "dies", "wrong", "ended"]
    step: int = 0
    state: LedgerState | None = None
    answers: Sequence[str] = ()
    text: str = ""


class Reporter:
    """Says lines, each at once."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def __call__(self, reports: Report) -> None:
        """Say it."""
        _write(self._descriptor, msgspec.json.encode(reports) + b"\n")


class LedgerDigest:
    """Follows the ledger and keeps a digest of it, in which made-up ids count by their order."""

    def __init__(self, directory: Place) -> None:
        self._store = directory.hub.store
        self._at, self._digest = 0, sha256()
        self._ids: dict[bytes, bytes] = {}
        self.digests = [self._digest.hexdigest()]
        """Of the ledger as it was at each position."""

    def state(self) -> LedgerState:
        """Where the ledger stands now."""
        for entry in entries(self._store, self._at):
            self._digest.update(_ID.sub(self._number_id, entry.line) + b"\n")
            self._at = entry.position
            self.digests.append(self._digest.hexdigest())
        return LedgerState(self._at, self.digests[-1])

    def _number_id(self, found: re.Match[bytes]) -> bytes:
        return self._ids.setdefault(found[0], b"id-%d" % len(self._ids))


class RecordingTarget:
    """A target that is told everything, and says so."""

    name = "told"

    def __init__(self, report: Reporter) -> None:
        self._report = report

    def deliver(self, notice: Notice, now: int) -> str:
        """It has arrived."""
        del now
        self._report(Report("delivered", text=notice.id))
        return ""


class HubRun:
    """A hub between its start and its end."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.report = Reporter(job.reports)
        self.points = KillPoints(job.kill, lambda name: self.report(Report("dies", text=name)))
        self.current = job.begin
        """The step that is being asked."""
        self.clock = HandClock(START)

    def open(self) -> None:
        """Open what an earlier life has left."""
        data = Path(self.job.data)
        data.mkdir(exist_ok=True)
        key = load_or_create(data)
        store = open_store(self.job.store, data, new_ledger_id=lambda: "story")
        engines = _Engines(store, self.clock, key, reach=self.reach)
        self.directory = opened(data, Settings(), engines, create=True)
        self._notifier = Notifier(
            self.directory.hub,
            OutboxFiles(data),
            News(store, Settings().notify.statuses),
            (RecordingTarget(self.report),),
            lambda: 0.0,
        )
        if self.job.files:
            self._notifier.begin()
        self._digest = LedgerDigest(self.directory)

    def reach(self, failpoint: str) -> None:
        """The engine is here. (A `Failpoint`.)"""
        if self.job.build == "hasty" and failpoint == "written" and self.points.stage == "ask":
            self.report(Report("answered", self.current))
        self.points(f"engine {failpoint}")

    def run(self) -> None:
        """Say what is there, bring the files level, and go on to the end of the story."""
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
        """What a step asks for."""
        hub, has_keys = self.directory.hub, self.job.build != "keyless"
        return [
            hub.request(actor, *commands, key=f"{number}.{directory}" if has_keys else new_id())
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
        for name, done in self.directory.run(self.directory.duties):
            if not isinstance(done, int):
                raise done
            yield name

    def _repeat_step(self, number: int) -> None:
        """What was acknowledged in an earlier life is answered the same, and adds nothing."""
        before = self._digest.state()
        if SCENARIO[number].requests:
            answers = self._run_step(number, "ask again")
            self.report(Report("again", number, answers=answers))
            if self._digest.state() != before:
                self.report(Report("wrong", text=f"step {number}, asked again, has added entries"))

    def _catch_up(self, stage: str) -> None:
        """Bring level what lies outside of the store, as every command does at its end."""
        if not self.job.files:
            return
        for duty in (*self.directory.followers, self._notifier):
            self.points.stage = f"{stage} {duty.name}"
            duty.run_once(self.clock.now())
        for warning in self.directory.warnings:
            self.report(Report("wrong", text=warning))

    def _verify(self) -> None:
        self.points.stage = "verify"
        directory = self.directory
        for finding in check_ledger(
            directory.hub.store, valid_checkpoints(directory), _ignore_progress
        ):
            self.report(Report("wrong", text=f"ledger: {finding}"))
        for finding in check_views(directory.hub.store, _ignore_progress):
            self.report(Report("wrong", text=f"views: {finding}"))
        if self.job.files:
            for difference in directory.projector.compare(_ignore_progress):
                self.report(Report("wrong", text=f"files: {difference}"))


def run_hub(job: Job) -> None:
    """A life in which every point is announced."""
    life = HubRun(job)
    life.points.install()
    life.run()


class _Engines(Engines, frozen=True, kw_only=True):
    """Engines that announce where they are."""

    reach: Failpoint

    def make(self, data: Path, beaten: Heard, hints: Hints) -> Engine:
        """An engine with failpoints."""
        del data
        return Engine(
            self.store,
            self.clock,
            self.key.secret,
            failpoint=self.reach,
            on_leases=beaten.add,
            on_commit=hints.tell,
        )


def format_outcome(outcome: Outcome) -> str:
    """An answer as it can be compared with that of another life."""
    if isinstance(outcome, Refusal):
        return f"refused: {outcome.code}"
    return " ".join(_receipt(receipt) for receipt in outcome.receipts)


def _receipt(receipt: Receipt) -> str:
    return _ID.sub(b"id", msgspec.json.encode(receipt)).decode()


def _submit_batch(engine: Engine, requests: Sequence[Request]) -> list[Outcome]:
    """The answers to requests that travel in one batch, or to one alone."""
    if len(requests) == 1:
        return [engine.handle_now(requests[0])]

    async def ask() -> list[Outcome]:
        return await asyncio.gather(*(engine.handle(request) for request in requests))

    return asyncio.run(ask())


def _ignore_progress(_: int) -> None:
    """Nobody watches the progress."""
