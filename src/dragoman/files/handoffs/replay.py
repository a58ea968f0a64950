"""Replay of audit lines: what became of every handoff, from `handoffs.jsonl` alone.

The file holds every change of state with what it was made of, so reading it from its beginning
gives each handoff's state, the owner of each task and the chain of its owners. Of several files,
the numbers of the lines say what came last. What was only said beside the packages (notes, more
time for a state) is not in the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.events import HandoffEvent, HandoffMoved
from dragoman.core.states.handoff import HANDOFF_TRANSITIONS, Handoff
from dragoman.core.states.handoff_fold import EVOLVE_HANDOFF
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import Wanted, find_handoff, page_of
from dragoman.files.handoffs.claims import Claims, same_words
from dragoman.files.handoffs.lines import ownership
from dragoman.files.handoffs.log import lines_in_ledger, number_of
from dragoman.files.problems import at_line
from dragoman.ledger.codec import CODEC


class Replayed(Struct):
    """Content of audit logs."""

    handoffs: dict[str, Handoff] = {}
    owners: dict[str, str] = {}
    """Task -> owner after the last line that sets one."""
    chains: dict[str, tuple[str, ...]] = {}
    """Task -> its owners, the first one first."""
    lines: int = 0
    torn: int = 0
    """Number of a torn line, which does not count; 0 when there is none."""
    said: dict[str, dict[int, tuple[int, bytes]]] = {}
    """Handoff -> event id of a line -> its line number and digest."""


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
    """Replay the lines of one or several files, one file after the other.

    BadFile names a bad line. A last line without its line feed is torn and does not count.
    """
    told, seen, number = Replayed(), _Seen(), 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            told.torn = number
            continue
        try:
            _take(told, seen, line, number)
        except (msgspec.MsgspecError, LedgerError, ValueError) as error:
            why = error.detail if isinstance(error, LedgerError) else f"{error}"
            raise at_line(number, why) from error
        told.lines += 1
    missing = seen.claims.missing()
    if missing and not told.torn:
        raise at_line(number, f"{missing} is missing after it")
    for id in sorted(told.handoffs, key=seen.begun.__getitem__):
        old = told.handoffs.get(told.handoffs[id].supersedes)
        if old is not None:
            told.handoffs[old.id] = replace(old, superseded_by=id)
    return told


class _Seen(Struct):
    """Progress of the replay, by event ids."""

    handoffs: dict[str, int] = {}
    """Handoff -> its last line."""
    begun: dict[str, int] = {}
    """Handoff -> its first line."""
    owners: dict[str, int] = {}
    """Task -> the last line that sets its owner."""
    claims: Claims = msgspec.field(default_factory=Claims)


def _take(told: Replayed, seen: _Seen, written: bytes, number: int) -> None:
    line = _lines.decode(written)
    last = seen.handoffs.get(line.handoff_id, -1)
    if last >= line.event_id:
        raise ValueError(f"{line.event_id} is not after {last}: it occurs twice")
    seen.handoffs[line.handoff_id] = line.event_id
    digest = sha256(same_words(written)).digest()
    told.said.setdefault(line.handoff_id, {})[line.event_id] = number, digest
    if line.entry is None:
        if line.owner or line.handoff_chain:
            raise ValueError("it names an owner, but has no event that sets one")
        seen.claims.further(written, line.handoff_id)
        return
    event: Any = CODEC.decode(line.entry.event, line.entry.v, line.entry.body)
    before = told.handoffs.get(line.handoff_id)
    after = _after(before, event, line.entry.at)
    _check(line, before, event, after)
    seen.claims.first(written, line.entry.position, line.entry.at, event, after)
    told.handoffs[line.handoff_id] = after
    seen.begun.setdefault(line.handoff_id, line.event_id)
    if line.handoff_chain and seen.owners.get(line.task_id, -1) < line.event_id:
        seen.owners[line.task_id] = line.event_id
        told.owners[line.task_id] = line.owner
        told.chains[line.task_id] = line.handoff_chain


def _after(before: Handoff | None, event: HandoffEvent, at: int) -> Handoff:
    evolve = EVOLVE_HANDOFF.get(type(event))
    if evolve is None:
        raise ValueError(f"{type(event).__name__} is no event of a handoff")
    if before is None and "package" not in event.__struct_fields__:
        raise ValueError("the handoff was not created before")
    return evolve(before, event, at)


def _check(line: _Line, before: Handoff | None, event: HandoffEvent, after: Handoff) -> None:
    """Check that a line is consistent: its transition is legal, and its package has its hash."""
    if after.id != line.handoff_id:
        raise ValueError(f"it is about {after.id}, not about {line.handoff_id}")
    if line.task_id != after.task:
        raise ValueError(f"{after.id} is about {after.task}, not about {line.task_id}")
    made = ownership(event, after)
    owner, chain = made.get("owner", ""), tuple(made.get("handoff_chain", ()))
    if (line.owner, line.handoff_chain) != (owner, chain):
        said = f"{line.owner or 'nobody'} ({' → '.join(line.handoff_chain)})"
        raise ValueError(f"it says that the owner is {said}, but its event does not")
    if isinstance(event, HandoffMoved):
        if before is None or before.status != event.from_:
            at = before.status if before else "nowhere"
            raise ValueError(f"{after.id} was {at}, not {event.from_}")
        if event.to not in HANDOFF_TRANSITIONS[event.from_]:
            raise ValueError(f"there is no transition from {event.from_} to {event.to}")
        if (line.from_status, line.to_status) != (event.from_, event.to):
            raise ValueError(f"{line.from_status} → {line.to_status} is not what its event says")
    if after.package_hash and before is None and hash_of(after.package) != after.package_hash:
        raise ValueError(f"the package of {after.id} does not match its hash")


def compare(told: Replayed, store: Store) -> Mapping[str, str]:
    """Differences between a replayed log and the ledger, by handoff or task; empty when they agree.

    Every handoff of the teamspaces that the lines are about has to be there; where there is no line
    at all, every handoff.
    """
    wrong = dict.fromkeys(_missing(told, store), "it is missing in the file")
    for id, handoff in told.handoffs.items():
        known = find_handoff(store, id)
        if isinstance(known, Refusal):
            wrong[id] = "it is not in the ledger"
            continue
        if known.superseded_by not in told.handoffs:
            # The handoff that supersedes it may be in another teamspace's file.
            known = replace(known, superseded_by=handoff.superseded_by)
        if essence(known) != essence(handoff):
            fields = _differing(essence(known), essence(handoff))
            wrong[id] = f"the ledger differs in its {', '.join(fields)}"
        elif why := _lines_that_differ(told.said[id], store, id):
            wrong[id] = why
    return wrong | dict(_owners_that_differ(told, store))


def _lines_that_differ(said: Mapping[int, tuple[int, bytes]], store: Store, id: str) -> str:
    """Find a line that differs from the ledger, or is missing; empty when there is none."""
    meant = {number_of(line): line for line in lines_in_ledger(store, id)}
    for number, line in meant.items():
        where, digest = said.get(number, (0, b""))
        if not where:
            return f"its line {number} is missing in the file"
        if digest != sha256(same_words(line)).digest():
            return f"line {where} of the file differs from the ledger"
    strange = (where for number, (where, _) in said.items() if number not in meant)
    return next((f"line {where} of the file is not in the ledger" for where in strange), "")


def _missing(told: Replayed, store: Store) -> Iterator[str]:
    for space in {handoff.teamspace for handoff in told.handoffs.values()} or {""}:
        known = _of_ledger(store, Wanted(teamspace=space))
        yield from (handoff.id for handoff in known if handoff.id not in told.handoffs)


def _of_ledger(store: Store, wanted: Wanted) -> Iterator[Handoff]:
    """Read all handoffs that match, newest first."""
    while True:
        page = page_of(store, wanted)
        if isinstance(page, Refusal):
            return
        yield from page.handoffs
        if page.next is None:
            return
        wanted = replace(wanted, before=page.next)


def _owners_that_differ(told: Replayed, store: Store) -> Iterator[tuple[str, str]]:
    """Find tasks whose chain differs; tasks handed on in another teamspace since are left out.

    The last owner of a chain is the one that handoffs have made. Assignments outside of handoffs
    are in no audit line.
    """
    for name, chain in told.chains.items():
        newest, found = _newest(store, name), find_task(store, name)
        if newest is None or newest.id not in told.handoffs or isinstance(found, Refusal):
            continue
        task = found.task
        if task.chain != chain:
            yield name, f"the ledger has the chain {' → '.join(task.chain)}"
        elif task.handoff is not None and task.handoff.only != told.owners[name]:
            yield name, f"the ledger has the owner {task.handoff.only}"


def gone_on(told: Replayed, store: Store) -> Iterator[str]:
    """Report tasks that were handed on in another teamspace since: their present owners are not in
    these lines."""
    for name in told.chains:
        newest = _newest(store, name)
        if newest is not None and newest.id not in told.handoffs:
            yield (
                f"{name} was handed on later by {newest.id} in the teamspace {newest.teamspace}: "
                "the owner and the chain shown here are older"
            )


def _newest(store: Store, task: str) -> Handoff | None:
    return next(_of_ledger(store, Wanted(task=task, limit=1)), None)


def essence(handoff: Handoff) -> Handoff:
    """The handoff without what the audit log leaves out: notes, and SLA extensions."""
    return replace(handoff, notes=(), workq="", extension=None, is_escalated=False, created_at=0)


def _differing(one: Handoff, other: Handoff) -> list[str]:
    fields = one.__struct_fields__
    return [name for name in fields if getattr(one, name) != getattr(other, name)]
