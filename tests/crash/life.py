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
from tests.crash.hubs import signed
from tests.crash.points import Kill, Points
from tests.crash.story import START, STORY

Build = Literal["ours", "hasty", "keyless"]
"""The hub as it is; one that answers before the commit; one that is asked without keys."""

_ID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Ids that the hub has made: another one in each life."""

_write = os.write
"""What is said is no part of what is tested."""


class Job(Struct, frozen=True, tag="live"):
    """What one life is to do."""

    data: str
    said: str
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


class Stand(Struct, frozen=True):
    """How far a ledger has come, and a digest of all that it says."""

    head: int
    digest: str


class Said(Struct, frozen=True, omit_defaults=True):
    """One line of what a life says."""

    what: Literal["found", "answered", "again", "delivered", "dies", "wrong", "ended"]
    step: int = 0
    stand: Stand | None = None
    answers: Sequence[str] = ()
    text: str = ""


class Voice:
    """Says lines, each at once."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def __call__(self, said: Said) -> None:
        """Say it."""
        _write(self._descriptor, msgspec.json.encode(said) + b"\n")


class Reader:
    """Follows the ledger and keeps a digest of it, in which made-up ids count by their order."""

    def __init__(self, place: Place) -> None:
        self._store = place.hub.store
        self._at, self._digest = 0, sha256()
        self._ids: dict[bytes, bytes] = {}
        self.digests = [self._digest.hexdigest()]
        """Of the ledger as it was at each position."""

    def stand(self) -> Stand:
        """Where the ledger stands now."""
        for entry in entries(self._store, self._at):
            self._digest.update(_ID.sub(self._known, entry.line) + b"\n")
            self._at = entry.position
            self.digests.append(self._digest.hexdigest())
        return Stand(self._at, self.digests[-1])

    def _known(self, found: re.Match[bytes]) -> bytes:
        return self._ids.setdefault(found[0], b"id-%d" % len(self._ids))


class Told:
    """A target that is told everything, and says so."""

    name = "told"

    def __init__(self, say: Voice) -> None:
        self._say = say

    def deliver(self, notice: Notice, now: int) -> str:
        """It has arrived."""
        del now
        self._say(Said("delivered", text=notice.id))
        return ""


class Life:
    """A hub between its start and its end."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.say = Voice(job.said)
        self.points = Points(job.kill, lambda name: self.say(Said("dies", text=name)))
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
        self.place = opened(data, Settings(), engines, create=True)
        self._notifier = Notifier(
            self.place.hub,
            OutboxFiles(data),
            News(store, Settings().notify.statuses),
            (Told(self.say),),
            lambda: 0.0,
        )
        if self.job.files:
            self._notifier.begin()
        self._reader = Reader(self.place)

    def reach(self, failpoint: str) -> None:
        """The engine is here. (A `Failpoint`.)"""
        if self.job.build == "hasty" and failpoint == "written" and self.points.stage == "ask":
            self.say(Said("answered", self.current))
        self.points(f"engine {failpoint}")

    def run(self) -> None:
        """Say what is there, bring the files level, and go on to the end of the story."""
        self.open()
        self.points.stage = "look"
        self.say(Said("found", self.job.begin, self._reader.stand()))
        self._follow("recover")
        if self.job.verify:
            self._verify()
        chance = Random(self.job.seed)
        if self.job.begin:
            self._ask_again(chance.randrange(self.job.begin))
        for step in range(self.job.begin, len(STORY)):
            self.current = step
            answers = self._ask(step)
            self.points.stage = "answer"
            self.say(Said("answered", step, self._reader.stand(), answers))
            self._follow("follow")
        if self.job.verify:
            self._verify()
        self.points.stage = "close"
        self.place.hub.close()
        self.say(Said("ended", answers=self._reader.digests))

    def _requests(self, number: int) -> list[Request]:
        """What a step asks for."""
        hub, keyed = self.place.hub, self.job.build != "keyless"
        return [
            hub.request(actor, *commands, key=f"{number}.{place}" if keyed else new_id())
            for place, (actor, commands) in enumerate(STORY[number].requests)
        ]

    def _ask(self, number: int, stage: str = "ask") -> list[str]:
        self.points.stage = stage
        self.clock.advance(STORY[number].at - self.clock.now())
        requests = self._requests(number)
        if not requests:
            self.points.stage = "tick"
            return [f"{done}" for done in self._tick()]
        return [shown(outcome) for outcome in _together(self.place.hub.engine, requests)]

    def _tick(self) -> Iterator[str]:
        for name, done in self.place.run(self.place.duties):
            if not isinstance(done, int):
                raise done
            yield name

    def _ask_again(self, number: int) -> None:
        """What was acknowledged in an earlier life is answered the same, and adds nothing."""
        before = self._reader.stand()
        if STORY[number].requests:
            answers = self._ask(number, "ask again")
            self.say(Said("again", number, answers=answers))
            if self._reader.stand() != before:
                self.say(Said("wrong", text=f"step {number}, asked again, has added entries"))

    def _follow(self, stage: str) -> None:
        """Bring level what lies outside of the store, as every command does at its end."""
        if not self.job.files:
            return
        for duty in (*self.place.followers, self._notifier):
            self.points.stage = f"{stage} {duty.name}"
            duty.run_once(self.clock.now())
        for warning in self.place.warnings:
            self.say(Said("wrong", text=warning))

    def _verify(self) -> None:
        self.points.stage = "verify"
        place = self.place
        for finding in check_ledger(place.hub.store, signed(place), _quietly):
            self.say(Said("wrong", text=f"ledger: {finding}"))
        for finding in check_views(place.hub.store, _quietly):
            self.say(Said("wrong", text=f"views: {finding}"))
        if self.job.files:
            for difference in place.projector.compare(_quietly):
                self.say(Said("wrong", text=f"files: {difference}"))


def live(job: Job) -> None:
    """A life in which every point is announced."""
    life = Life(job)
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


def shown(outcome: Outcome) -> str:
    """An answer as it can be compared with that of another life."""
    if isinstance(outcome, Refusal):
        return f"refused: {outcome.code}"
    return " ".join(_receipt(receipt) for receipt in outcome.receipts)


def _receipt(receipt: Receipt) -> str:
    return _ID.sub(b"id", msgspec.json.encode(receipt)).decode()


def _together(engine: Engine, requests: Sequence[Request]) -> list[Outcome]:
    """The answers to requests that travel in one batch, or to one alone."""
    if len(requests) == 1:
        return [engine.handle_now(requests[0])]

    async def ask() -> list[Outcome]:
        return await asyncio.gather(*(engine.handle(request) for request in requests))

    return asyncio.run(ask())


def _quietly(_: int) -> None:
    """Nobody watches the progress."""
