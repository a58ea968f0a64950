"""Writes of a worker whose lease has ended, and a check for those that are accepted."""

from collections.abc import Mapping
from typing import Final

from dragoman.core.actor import Actor
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.task_state import (
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    UpdateTask,
)
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.services.timers import LeaseExpiry, RetryPromotion
from dragoman.system.clock import ManualClock

LEA: Final = Actor("human", "lea")
ADA: Final = Actor("agent", "ada")
TTL: Final = 60_000

WRITES: Final[Mapping[str, Command]] = {
    "heartbeat": RenewLease("t", fence=1),
    "note": NoteTask("t", "late", fence=1),
    "update": UpdateTask("t", progress="late", fence=1),
    "edit": EditTask("t", body="late", fence=1),
    "link": LinkTask("t", kind="blocked-by", target="other", fence=1),
    "alias": AliasTask("t", "bead:late", fence=1),
    "move": MoveTask("t", "blocked", fence=1),
    "checkpoint": CheckpointTask("t", "late", fence=1),
    "report": ReportOutcome("t", "done", fence=1, apply=True),
    "end": EndAttempt("t", fence=1),
    "release": ReleaseTask("t", fence=1),
}
"""All writes of a holder to its task, with the fence of the first attempt."""


def reclaim_task(hub: Hub, clock: ManualClock) -> None:
    """Make a task whose first holder was silent for twice its TTL, and which has another holder
    now.

    Both have the same name, as restarted workers have: only the fence differs.
    """
    hub.submit(LEA, CreateTask("Stopped", id="t", ready=True))
    hub.submit(LEA, CreateTask("Another", id="other"))
    hub.submit(ADA, ClaimTask("t", agent="ada", session="first", ttl_ms=TTL))
    clock.advance(2 * TTL)
    LeaseExpiry(hub, Backoff()).run_once(clock.now())
    clock.advance(TTL)
    RetryPromotion(hub).run_once(clock.now())
    hub.submit(ADA, ClaimTask("t", agent="ada", session="second", ttl_ms=TTL))


def accepted_stale_writes(hub: Hub) -> list[str]:
    """Writes of the first holder that are not refused as lease_lost, or that leave a trace."""
    before = _read_task(hub)
    accepted = list[str]()
    for name, command in WRITES.items():
        outcome = hub.engine.handle_now(hub.make_request(ADA, command))
        is_refused = isinstance(outcome, Refusal) and outcome.code == "lease_lost"
        if not is_refused or _read_task(hub) != before:
            accepted.append(name)
    return accepted


def _read_task(hub: Hub) -> TaskView:
    found = find_task(hub.store, "t")
    assert isinstance(found, TaskView)
    return found
