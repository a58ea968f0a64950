"""Items of a work queue follow the work: to the recipient when it begins, back when it is rejected.

Until that is on record the handoff stands on a list, so that a crash in between loses nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final, Literal, cast

from msgspec import Struct

from dragoman.core.commands import AnyCommand, NoteHandoff, ReleaseWorkItem
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.core.states.handoff import WORKQ_NOTE, Handoff
from dragoman.core.states.handoff_items import items_of
from dragoman.engine.ports import Store
from dragoman.engine.workq import Moved, Workq, find_item

Outcome = Literal["transferred", "degraded", "not_applicable", "returned", "not_returned"]

_Items = Mapping[str, Mapping[str, str]]
"""Item -> `outcome` and `detail` of its transfer."""

_TROUBLE: Final = frozenset({"refused", "unavailable"})


class HandedOn(Struct, frozen=True):
    """Result of transferring all items of a handoff."""

    outcome: Outcome
    details: tuple[str, ...] = ()
    """Sentences about single items."""
    commands: tuple[AnyCommand, ...] = ()
    """Commands that record the transfer."""


def hand_on(handoff: Handoff, workq: Workq, owner: str) -> HandedOn:
    """Transfer the items to one side of the handoff, from the other; failures are noted."""
    items, is_back = items_of(handoff.package), owner == handoff.sender
    if not items:
        return HandedOn("not_applicable")
    former = handoff.recipient if is_back else handoff.sender
    wanted = (
        tuple(item for item in items if item not in _left_behind(handoff)) if is_back else items
    )
    moved = _all_moved(wanted, workq, former, owner)
    outcome = _outcome(moved, is_back=is_back)
    said: _Items = {
        item: {"outcome": one.outcome, "detail": one.detail} for item, one in moved.items()
    }
    orphaned: list[AnyCommand] = [
        ReleaseWorkItem(item, is_orphaned=True, sender=former)
        for item, one in moved.items()
        if one.outcome == "unavailable"
    ]
    noted = NoteHandoff(handoff.id, WORKQ_NOTE, outcome, {"items": dict(said)})
    return HandedOn(outcome, _told(said), (*orphaned, noted))


def workq_status(outcome: str) -> str:
    """The outcome in the protocol's words, which do not tell a transfer back from one there."""
    return {"returned": "transferred", "not_returned": "degraded"}.get(outcome, outcome)


def told_of_items(handoff: Handoff, but: Collection[str] = ()) -> tuple[str, ...]:
    """Sentences about items whose transfer failed, from the last note; except for these."""
    return _told({item: one for item, one in _noted(handoff).items() if item not in but})


def in_place(store: Store, handoff: Handoff) -> frozenset[str]:
    """The items that are where the work is by now, whoever has moved them, by our own queue."""
    owner = handoff.recipient if handoff.rejection is None else handoff.sender
    return frozenset(item for item in _noted(handoff) if _is_with(store, item, owner))


def seen_outside(workq: Workq, handoff: Handoff) -> Mapping[str, bool]:
    """True or false for each item that an external queue answers for: is it where the work is? A
    queue that does not answer is not asked again."""
    owner = handoff.recipient if handoff.rejection is None else handoff.sender
    seen = dict[str, bool]()
    for item, one in _noted(handoff).items():
        if one["outcome"] != "transferred":
            state = workq.item_status(item)
            if state is None and workq.item_exists(item) is None:
                break
            seen[item] = state is not None and state.owner == owner
    return seen


def _is_with(store: Store, item: str, owner: str) -> bool:
    found = find_item(store, item)
    return not isinstance(found, Refusal) and found.owner == owner


def _noted(handoff: Handoff) -> _Items:
    """The result of the last transfer of each item."""
    notes = [note for note in handoff.notes if note.kind == WORKQ_NOTE]
    items = notes[-1].data.get("items") if notes else None
    return cast(_Items, items) if isinstance(items, dict) else {}


def _left_behind(handoff: Handoff) -> frozenset[str]:
    """The items that were never transferred: there is nothing to give back."""
    noted = _noted(handoff).items()
    return frozenset(item for item, one in noted if one["outcome"] in ("refused", "missing"))


def _told(items: _Items) -> tuple[str, ...]:
    """Each item that was not transferred, and the reason."""
    return tuple(
        f"{item}: {one['outcome']}" + (f", {one['detail']}" if one["detail"] else "")
        for item, one in items.items()
        if one["outcome"] != "transferred"
    )


def _all_moved(
    items: tuple[str, ...], workq: Workq, former: str, owner: str
) -> Mapping[str, Moved]:
    """Transfer the items; a queue that once gives no answer is not tried again: every try may take
    seconds."""
    moved, silent = dict[str, Moved](), None
    for item in items:
        malformed = check_id(item, "item id")
        if malformed is not None:
            moved[item] = Moved("missing", malformed.detail)
        elif silent is not None:
            moved[item] = silent
        else:
            moved[item] = workq.transfer_ownership(item, former, owner)
            silent = moved[item] if moved[item].outcome == "unavailable" else None
    return moved


def _outcome(moved: Mapping[str, Moved], *, is_back: bool) -> Outcome:
    outcomes = {one.outcome for one in moved.values()}
    if outcomes & _TROUBLE:
        return "not_returned" if is_back else "degraded"
    if "transferred" not in outcomes:
        return "not_applicable"
    return "returned" if is_back else "transferred"
