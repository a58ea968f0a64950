"""Replay of audit lines: what became of every handoff, from `handoffs.jsonl` alone.

The file holds every change of state with what it was made of, so reading it from its beginning
gives each handoff's state, the owner of each task and the chain of its owners. What was only said
beside the packages (notes, more time for a state) is not in the file.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.events import HandoffEvent, HandoffMoved
from dragoman.core.handoff import EVOLVE_HANDOFF, HANDOFF_TRANSITIONS, Handoff
from dragoman.core.handoff_package import hash_of
from dragoman.engine.handoffs import find_handoff
from dragoman.engine.ports import Store
from dragoman.files.problems import at_line
from dragoman.ledger.codec import CODEC


class Replayed(Struct):
    """Everything that a file of audit lines tells."""

    handoffs: dict[str, Handoff] = {}
    owners: dict[str, str] = {}
    """Task -> whose it was after the last line about that."""
    chains: dict[str, tuple[str, ...]] = {}
    """Task -> its owners, the first one first."""
    lines: int = 0


class _Origin(Struct):
    position: int
    version: int
    event: str
    v: int
    at: int
    body: msgspec.Raw


class _Line(Struct):
    event: str
    event_id: int
    handoff_id: str
    task_id: str = ""
    owner: str = ""
    handoff_chain: tuple[str, ...] = ()
    from_status: str = ""
    to_status: str = ""
    entry: _Origin | None = None


_lines: Final = msgspec.json.Decoder(_Line)


def replay(lines: Iterable[bytes]) -> Replayed:
    """What the lines of one or several files tell, in their order; BadFile names a bad one.

    A last line without its line feed was torn off while it was written, and does not count.
    """
    told, seen = Replayed(), dict[str, int]()
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            continue
        try:
            _take(told, seen, _lines.decode(line))
        except (msgspec.MsgspecError, LedgerError, ValueError) as error:
            why = error.detail if isinstance(error, LedgerError) else f"{error}"
            raise at_line(number, why) from error
        told.lines += 1
    return told


def _take(told: Replayed, seen: dict[str, int], line: _Line) -> None:
    if seen.get(line.handoff_id, -1) >= line.event_id:
        raise ValueError(f"{line.event_id} is not after {seen[line.handoff_id]}: it stands twice")
    seen[line.handoff_id] = line.event_id
    if line.owner:
        told.owners[line.task_id] = line.owner
        told.chains[line.task_id] = line.handoff_chain
    if line.entry is None:
        return
    event: Any = CODEC.decode(line.entry.event, line.entry.v, line.entry.body)
    before = told.handoffs.get(line.handoff_id)
    after = _after(before, event, line.entry.at)
    _check(line, before, event, after)
    told.handoffs[line.handoff_id] = after
    old = told.handoffs.get(after.supersedes)
    if old is not None and not old.superseded_by:
        told.handoffs[old.id] = replace(old, superseded_by=after.id)


def _after(before: Handoff | None, event: HandoffEvent, at: int) -> Handoff:
    evolve = EVOLVE_HANDOFF.get(type(event))
    if evolve is None:
        raise ValueError(f"{type(event).__name__} is no event of a handoff")
    if before is None and "package" not in event.__struct_fields__:
        raise ValueError("the handoff was not created before")
    return evolve(before, event, at)


def _check(line: _Line, before: Handoff | None, event: HandoffEvent, after: Handoff) -> None:
    """Whether the line can be true: its way is one of the table, its package has its hash."""
    if after.id != line.handoff_id:
        raise ValueError(f"it is about {after.id}, not about {line.handoff_id}")
    if isinstance(event, HandoffMoved):
        if before is None or before.status != event.from_:
            at = before.status if before else "nowhere"
            raise ValueError(f"{after.id} was {at}, not {event.from_}")
        if event.to not in HANDOFF_TRANSITIONS[event.from_]:
            raise ValueError(f"there is no way from {event.from_} to {event.to}")
        if (line.from_status, line.to_status) != (event.from_, event.to):
            raise ValueError(f"it says {line.from_status} → {line.to_status}, which is not so")
    if after.package_hash and before is None and hash_of(after.package) != after.package_hash:
        raise ValueError(f"the package of {after.id} is not the one that its hash stands for")


def compare(told: Replayed, store: Store) -> Mapping[str, str]:
    """Handoff -> how what was replayed differs from the ledger; empty: it does not."""
    wrong: dict[str, str] = {}
    for id, handoff in told.handoffs.items():
        known = find_handoff(store, id)
        if isinstance(known, Refusal):
            wrong[id] = "the ledger does not know it"
        elif essence(known) != essence(handoff):
            fields = _differing(essence(known), essence(handoff))
            wrong[id] = f"the ledger has another {', '.join(fields)}"
    return wrong


def essence(handoff: Handoff) -> Handoff:
    """The handoff without what the audit lines do not tell: notes, and more time for a state."""
    return replace(handoff, notes=(), workq="", extension=None, is_escalated=False, created_at=0)


def _differing(one: Handoff, other: Handoff) -> list[str]:
    fields = one.__struct_fields__
    return [name for name in fields if getattr(one, name) != getattr(other, name)]
