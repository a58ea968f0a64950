"""What is looked up about a handoff before anybody can say why it does not go on."""

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.rules.handoff_chain import may_offer_back, owner_chain
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Task
from dragoman.engine.handing_on import items_in_place
from dragoman.engine.operation import HandoffFindings
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.engine.reads.handoffs import load_handoff
from dragoman.engine.reads.teamspaces import Team, find_coordinators


class HandoffContext(Struct, frozen=True):
    """Facts beside the handoff itself."""

    now: int
    task: Task | None = None
    lease: Lease | None = None
    recipient: AgentRecord | None = None
    sender_is_registered: bool = False
    """True if its sender is registered; where senders are not, every recipient's name is accepted.
    """
    items_in_place: frozenset[str] = frozenset()
    """Items of a work queue that are where the work is."""
    coordinators: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Problems of its next step that no entry records."""
    risks: tuple[str, ...] = ()
    """Problems of later steps."""
    return_offer: tuple[str, str] | None = None
    """The former owner to whom its owner may offer the work back, and the handoff to supersede."""


def gather_context(
    store: Store,
    handoff: Handoff,
    now: int,
    teams: Mapping[str, Team],
    findings: HandoffFindings,
) -> HandoffContext:
    """Collect the context of a handoff from the store, and the findings from outside of it."""
    view = find_task(store, handoff.task) if handoff.task else None
    found = None if view is None or isinstance(view, Refusal) else view
    return HandoffContext(
        now=now,
        task=found and found.task,
        lease=found and found.lease,
        recipient=find_agent(store, handoff.recipient) if handoff.recipient else None,
        sender_is_registered=find_agent(store, handoff.sender) is not None,
        items_in_place=_items_in_place(store, handoff, findings.items_in_place),
        coordinators=find_coordinators(store, teams.get(handoff.teamspace)),
        obstacles=findings.obstacles,
        risks=findings.risks,
        return_offer=found and _find_return_offer(store, handoff, found.task),
    )


def _items_in_place(store: Store, handoff: Handoff, answers: Mapping[str, bool]) -> frozenset[str]:
    """Items that are where the work is; our own queue counts only for items that the external one
    does not answer for."""
    moved = {item for item, is_there in answers.items() if is_there}
    return (items_in_place(store, handoff) - answers.keys()) | moved


def _find_return_offer(store: Store, handoff: Handoff, task: Task) -> tuple[str, str] | None:
    """The former owner to whom rejected work may be offered back, and the handoff to supersede."""
    find = partial(load_handoff, store)
    last: Handoff | None = handoff
    while last is not None and last.superseded_by:
        last = find(last.superseded_by)
    chain = owner_chain(task, task.assignee)
    for before in chain[-2:-1]:
        if last is not None and may_offer_back(chain, before, last, find):
            return before, last.id
    return None
