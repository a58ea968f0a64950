"""Whom work is offered to: the no to outsiders of a teamspace, and doubts that it can be taken."""

from collections.abc import Iterator

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.ids import quoted_name
from dragoman.engine.operation import Fault
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.engine.reads.teamspaces import belongs
from dragoman.protocols.acp.settings import Choices


def outsider(teamspace: str, who: Actor | str, choices: Choices) -> Fault | None:
    """Why this one has nothing to do in a teamspace; None when it has."""
    if belongs(choices.teamspaces, teamspace, who):
        return None
    name = who if isinstance(who, str) else who.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")


def doubts_about_task(name: str, store: Store) -> Iterator[str]:
    """What keeps the work of an offer from beginning, as its task stands now."""
    found = find_task(store, name)
    if not isinstance(found, Refusal) and found.task.status == "deadletter":
        yield (
            f"{found.task.id} is in the deadletter: nobody can begin before a person or an "
            "orchestrator has made it ready"
        )


def doubts_about(recipient: str, sender: Actor, store: Store) -> Iterator[str]:
    """Why an offer may wait for ever; no reason to refuse it, for names and roles may come.

    Among people who are not registered themselves, every name is as good as another.
    """
    known = find_agent(store, recipient)
    if known is not None and known.role not in MAY_WRITE:
        yield f"{recipient} is registered as {known.role}, and can accept nothing"
    elif known is None and find_agent(store, sender.name) is not None:
        name = quoted_name(recipient)
        yield f"nobody is registered under the name {name}: it waits until somebody is"
