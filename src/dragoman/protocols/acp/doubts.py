"""What is odd about an offer or a message, and no reason to refuse it: it is told in `warnings`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.deciding.handoffs.work import MAKE_READY
from dragoman.core.errors import Refusal
from dragoman.core.ids import quoted_name
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.protocols.acp.actions import Initiate

_LATE: Final = (
    "timeout_risk: the deadline {} has passed: it can be offered all the same, and a coordinator "
    "is told that it is late as soon as it is activated"
)
"""Work that is late may be handed over; whether that makes sense is for its recipient to say."""

_UNUSED: Final = (
    "sla.activated is not used: the deadline {} is the time that the work itself has; leave one of "
    "them away"
)


def doubts_about_times(given: Initiate, due_at: int | None, now: int) -> Iterator[str]:
    """What is odd about when the work has to be done."""
    if due_at is None:
        return
    if due_at <= now:
        yield _LATE.format(to_rfc3339(due_at))
    if "activated" in given.sla.by_stage:
        yield _UNUSED.format(to_rfc3339(due_at))


def doubts_about_task(name: str, store: Store) -> Iterator[str]:
    """What keeps the work of an offer from beginning, as its task stands now."""
    found = find_task(store, name)
    if not isinstance(found, Refusal) and found.task.status == "deadletter":
        yield (
            f"{found.task.id} is in the deadletter: nobody can begin before {MAKE_READY} has made "
            "it ready"
        )


def doubts_about(recipient: str, sender: Actor, store: Store) -> Iterator[str]:
    """Why an offer may wait for ever; no reason to refuse it, for names and roles may come."""
    known = find_agent(store, recipient)
    if known is not None and known.role not in MAY_WRITE:
        yield f"{recipient} is registered as {known.role}, and can accept nothing"
    yield from doubts_about_name(recipient, sender, store)


def doubts_about_name(name: str, sender: Actor, store: Store) -> Iterator[str]:
    """Whether there is somebody of this name.

    Among people who are not registered themselves, every name is as good as another.
    """
    if find_agent(store, name) is None and find_agent(store, sender.name) is not None:
        told = quoted_name(name)
        yield f"nobody is registered under the name {told}: it waits until somebody is"
