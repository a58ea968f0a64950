"""What is odd about an offer or a message, and no reason to refuse it: it is told in `warnings`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.deciding.handoffs.work import READY_ROLES_TEXT
from dragoman.core.errors import Refusal
from dragoman.core.ids import quote_name
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.protocols.acp.actions import Initiate

_DEADLINE_PASSED: Final = (
    "timeout_risk: the deadline {} has passed: it can be offered all the same, and a coordinator "
    "is told that it is late as soon as it is activated"
)
"""Late work may be handed over: the recipient decides whether that makes sense."""

_SLA_UNUSED: Final = (
    "sla.activated is not used: the deadline {} is the time that the work itself has; leave one of "
    "them away"
)


def deadline_warnings(arguments: Initiate, due_at: int | None, now: int) -> Iterator[str]:
    """Warnings about the deadline of the work."""
    if due_at is None:
        return
    if due_at <= now:
        yield _DEADLINE_PASSED.format(to_rfc3339(due_at))
    if "activated" in arguments.sla.by_stage:
        yield _SLA_UNUSED.format(to_rfc3339(due_at))


def task_warnings(name: str, store: Store) -> Iterator[str]:
    """Warning if the present status of the task keeps the work from beginning."""
    found = find_task(store, name)
    if not isinstance(found, Refusal) and found.task.status == "deadletter":
        yield (
            f"{found.task.id} is in the deadletter: nobody can begin before {READY_ROLES_TEXT} "
            "has made "
            "it ready"
        )


def recipient_warnings(recipient: str, sender: Actor, store: Store) -> Iterator[str]:
    """Warnings about a recipient for whom an offer may wait for ever; it is not refused, because
    names and roles may be registered later.
    """
    known = find_agent(store, recipient)
    if known is not None and known.role not in MAY_WRITE:
        yield f"{recipient} is registered as {known.role}, and can accept nothing"
    yield from unknown_name_warnings(recipient, sender, store)


def unknown_name_warnings(name: str, sender: Actor, store: Store) -> Iterator[str]:
    """Warning if nobody is registered under this name.

    Senders that are not registered themselves get none: among them any name is as good as another.
    """
    if find_agent(store, name) is None and find_agent(store, sender.name) is not None:
        quoted = quote_name(name)
        yield f"nobody is registered under the name {quoted}: it waits until somebody is"
