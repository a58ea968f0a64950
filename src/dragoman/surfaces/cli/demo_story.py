"""The demo's story: real commands to a real hub. What is told is what the hub has answered."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    MoveTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.errors import Refused
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Receipt
from dragoman.surfaces.cli.demo_stage import Stage
from dragoman.surfaces.cli.tasks import look_at
from dragoman.surfaces.cli.verify import counts, examine, no_bars

_ID = "release-notes"
_MIA = Actor("human", "mia", "demo")
_ADA = Actor("agent", "ada", "demo")
_BEN = Actor("agent", "ben", "demo")


class Step(Struct, frozen=True):
    """A moment of the story: who did what, and why it matters."""

    at: int
    who: str
    what: str
    why: str = ""


Act = Callable[[Stage], Iterator[Step]]


def play(stage: Stage) -> Iterator[Step]:
    """The whole story, step by step."""
    for act in _ACTS:
        yield from act(stage)


def _begin(stage: Stage) -> Iterator[Step]:
    made = _do(stage, _MIA, CreateTask("Write the notes for 1.0", _ID, ready=True))
    yield _step(stage, "mia", f"creates the task {made.task}: {made.status} for anyone to take")
    held = _do(stage, _ADA, ClaimTask("", "ada"), after=5)
    yield _step(
        stage,
        "ada",
        f"claims the next task: attempt {held.attempt}, fence {held.fence}, "
        f"lease until {_clock(held.expires_at)}",
        "A claim is a lease: ada must show signs of life, or lose it.",
    )
    yield _step(
        stage,
        "ben",
        f"wants it too: refused, {_refused(stage, _BEN, ClaimTask(_ID, 'ben'), after=1)}",
        "However many ask at once, exactly one gets it.",
    )


def _crash(stage: Stage) -> Iterator[Step]:
    held = _do(stage, _ADA, RenewLease(_ID, 1), after=174)
    yield _step(stage, "ada", f"sends a heartbeat: lease until {_clock(held.expires_at)}")
    stage.clock.advance(30_000)
    yield _step(
        stage,
        "ada",
        "crashes: not a word from it any more",
        "Nobody has to notice: the lease will end by itself.",
    )
    stage.clock.advance(held.expires_at - stage.clock.now())
    yield _step(stage, "hub", "the lease has ended without another heartbeat")


def _recover(stage: Stage) -> Iterator[Step]:
    stage.clock.advance(5_000)
    for duty in stage.place.duties:
        duty.run_once(stage.clock.now())
    task = look_at(stage.place, _ID).task
    yield _step(
        stage,
        "hub",
        f"ticks: the task is {task.status} again, after a rest until {_clock(task.not_before)}",
        f"This was `dragoman tick`. After {task.max_attempts} failures a person must look.",
    )
    held = _do(stage, _BEN, ClaimTask("", "ben"), after=2)
    yield _step(
        stage,
        "ben",
        f"claims the next task: attempt {held.attempt}, fence {held.fence}",
        "The fence rises with each claim: old and new can be told apart.",
    )


def _come_back(stage: Stage) -> Iterator[Step]:
    late = ReportOutcome(_ID, "done", "all written", fence=1, apply=True)
    yield _step(
        stage,
        "ada",
        f"comes back to life and reports done: refused, {_refused(stage, _ADA, late, after=43)}",
        "Work from the past cannot overwrite the present.",
    )


def _finish(stage: Stage) -> Iterator[Step]:
    report = ReportOutcome(_ID, "done", "notes for 1.0", fence=2, apply=True)
    reported = _do(stage, _BEN, report, after=60)
    yield _step(
        stage,
        "ben",
        f"reports done: the task is in {reported.status}",
        "Nobody approves their own work: a person looks at it first.",
    )
    moved = _do(stage, _MIA, MoveTask(_ID, "done", "reads well"), after=120)
    yield _step(stage, "mia", f'reviews it: {moved.status}, "reads well"')


def _prove(stage: Stage) -> Iterator[Step]:
    stage.clock.advance(1_000)
    stage.place.settle()
    verdict = examine(stage.place, no_bars, hashes_only=False)
    outcome = "all good" if not verdict.found else f"{verdict.found} findings"
    yield _step(
        stage,
        "hub",
        f"proves its ledger: {counts(verdict)}: {outcome}",
        "Entries are chained and signed: a change or a gap would show.",
    )


_ACTS: tuple[Act, ...] = (_begin, _crash, _recover, _come_back, _finish, _prove)


def _do(stage: Stage, actor: Actor, command: AnyCommand, *, after: int = 0) -> Receipt:
    """Give a command some seconds later."""
    stage.clock.advance(after * 1_000)
    return stage.place.hub.do(actor, command).receipts[0]


def _refused(stage: Stage, actor: Actor, command: AnyCommand, *, after: int) -> str:
    try:
        _do(stage, actor, command, after=after)
    except Refused as refused:
        return refused.code
    return "accepted"


def _step(stage: Stage, who: str, what: str, why: str = "") -> Step:
    return Step(stage.clock.now(), who, what, why)


def _clock(moment: int) -> str:
    return to_rfc3339(moment)[11:19]
