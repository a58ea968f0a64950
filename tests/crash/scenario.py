"""Scenario for a hub that is killed again and again: tasks, letters, a handoff, a trace.

Every step has a time and a key of its own, so that it can be repeated after a crash and means the
same. A step of several requests is one batch; a step without any is a tick.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.handoff.package import add_hub_fields, seal_package
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    ProposeHandoff,
)
from dragoman.core.mail import AckMail, PostMail, ReadMail
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask, NoteTask
from dragoman.core.trace import RecordTrace, RecordTurn

START: Final = 1_770_670_500_000
"""2026-02-09T20:55:00Z."""
_SECOND: Final = 1_000
_HOUR: Final = 3_600_000

LEA = Actor("human", "lea")
ADA = Actor("agent", "ada")
BOB = Actor("agent", "bob")

ActorCommands = tuple[Actor, tuple[Command, ...]]


class Step(Struct, frozen=True):
    """Requests of a step, and their time."""

    at: int
    requests: tuple[ActorCommands, ...]


_EVENT: Final = "01890a5d-ac96-774b-bcce-0000000000{:02x}"
_CHECKS: Final = ("schema", "policy", "artifacts", "cycle", "package_hash")
_PACKAGE: Final[Mapping[str, object]] = {
    "task": {
        "task_id": "three",
        "title": "third",
        "objective": "People can log in",
        "success_criteria": ["all tests pass"],
        "priority": "normal",
    },
    "context": {"summary": "The token is read too late."},
    "work_state": {"status": "in_progress", "next_step": "write the test"},
    "artifacts": [],
    "policy": {"classification": "internal", "requires_human_approval": False},
    "verification": {"schema_version": "1.0.0"},
}
_OFFER: Final = ProposeHandoff("three", "bob", dict(_PACKAGE), id="h1", thread="th1")


def _package_hash() -> str:
    package = add_hub_fields(_OFFER, "h1", "th1", ADA.label, session="", chain=("ada",))
    return seal_package(package)[1]


def _single(actor: Actor, *commands: Command) -> tuple[ActorCommands, ...]:
    return ((actor, commands),)


_TICK: Final[tuple[ActorCommands, ...]] = ()

_SCHEDULE: Final[tuple[tuple[int, tuple[ActorCommands, ...]], ...]] = (
    (_SECOND, _single(LEA, CreateTask("first", id="one", ready=True))),
    (
        _SECOND,
        _single(
            LEA,
            CreateTask("second", id="two", ready=True, aliases=("bead:ol-2",)),
            LinkTask("two", kind="blocked-by", target="one"),
        ),
    ),
    (
        _SECOND,
        (
            (LEA, (CreateTask("third", id="three", ready=True),)),
            (LEA, (CreateTask("fourth", id="four", ready=True),)),
            (LEA, (PostMail(("ada",), "Hello", "Begin with one.", id="m1", ack_wanted=True),)),
        ),
    ),
    (_SECOND, _single(ADA, ClaimTask("one", agent="ada"))),
    (_SECOND, _single(ADA, RenewLease("one", fence=1))),
    (_SECOND, _single(ADA, NoteTask("one", "half way", fence=1))),
    (_SECOND, _single(ADA, ReserveFiles(("src/**",), ttl_ms=_HOUR))),
    (_SECOND, _single(ADA, ReadMail("m1"), AckMail("m1"))),
    (
        _SECOND,
        (
            (LEA, (RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d0"),)),
            (LEA, (RecordTrace(_EVENT.format(1), "s-1", "THOUGHT", {"n": 1}, "e1", task="one"),)),
            (LEA, (RecordTrace(_EVENT.format(2), "s-1", "THOUGHT", {"n": 2}, "e2", task="one"),)),
        ),
    ),
    (_SECOND, _single(ADA, ReportOutcome("one", outcome="done", fence=1, apply=True))),
    (_SECOND, _single(LEA, MoveTask("one", to="done"))),
    (_SECOND, _single(ADA, ReleaseReservations())),
    (_SECOND, _single(ADA, _OFFER)),
    (_SECOND, _single(BOB, AcceptHandoff("h1", _package_hash(), passed=_CHECKS))),
    (_SECOND, _single(BOB, ActivateHandoff("h1"))),
    (_SECOND, _single(BOB, ClaimTask("ol-2", agent="bob"))),
    # Bob is silent from here on: his tasks return to the queue.
    (_HOUR, _TICK),
    (_HOUR, _TICK),
    (_SECOND, _single(ADA, ClaimTask("two", agent="ada"))),
    (_SECOND, _single(BOB, ActivateHandoff("h1"))),
    (_SECOND, _single(BOB, CompleteHandoff("h1", "merged"))),
    (_SECOND, _single(ADA, CloseHandoff("h1", "thanks"))),
    (_SECOND, _single(ADA, ReportOutcome("two", outcome="done", fence=2, apply=True))),
)


def _steps() -> tuple[Step, ...]:
    now, steps = START, list[Step]()
    for after, requests in _SCHEDULE:
        now += after
        steps.append(Step(now, requests))
    return tuple(steps)


SCENARIO: Final = _steps()
