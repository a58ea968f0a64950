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
from dragoman.core.events import HandoffEvent, HandoffTransitioned
from dragoman.core.states.handoff import HANDOFF_TRANSITIONS, Handoff
from dragoman.core.states.handoff_fold import HANDOFF_FOLDS
from dragoman.core.states.handoff_package import compute_package_hash
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import HandoffFilter, find_handoff, handoff_page
from dragoman.files.handoffs.claims import LineChecker, normalize_line
from dragoman.files.handoffs.lines import ownership_keys
from dragoman.files.handoffs.log import event_id_of, lines_from_ledger
from dragoman.files.problems import line_error
from dragoman.ledger.codec import CODEC


class ReplayedLog(Struct):
    """Content of audit logs."""

    handoffs: dict[str, Handoff] = {}
    owners: dict[str, str] = {}
    """Task -> owner after the last line that sets one."""
    chains: dict[str, tuple[str, ...]] = {}
    """Task -> its owners, the first one first."""
    lines: int = 0
    torn: int = 0
    """Number of a torn line, which does not count; 0 when there is none."""
    digests: dict[str, dict[int, tuple[int, bytes]]] = {}
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


_line_decoder: Final = msgspec.json.Decoder(_Line)


def replay_lines(lines: Iterable[bytes]) -> ReplayedLog:
    """Replay the lines of one or several files, one file after the other.

    BadFile names a bad line. A last line without its line feed is torn and does not count.
    """
    result, state, number = ReplayedLog(), _ReplayState(), 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            result.torn = number
            continue
        try:
            _apply_line(result, state, line, number)
        except (msgspec.MsgspecError, LedgerError, ValueError) as error:
            reason = error.detail if isinstance(error, LedgerError) else f"{error}"
            raise line_error(number, reason) from error
        result.lines += 1
    missing = state.checker.missing_line()
    if missing and not result.torn:
        raise line_error(number, f"{missing} is missing after it")
    for id in sorted(result.handoffs, key=state.begun.__getitem__):
        old = result.handoffs.get(result.handoffs[id].supersedes)
        if old is not None:
            result.handoffs[old.id] = replace(old, superseded_by=id)
    return result


class _ReplayState(Struct):
    """Progress of the replay, by event ids."""

    handoffs: dict[str, int] = {}
    """Handoff -> its last line."""
    begun: dict[str, int] = {}
    """Handoff -> its first line."""
    owners: dict[str, int] = {}
    """Task -> the last line that sets its owner."""
    checker: LineChecker = msgspec.field(default_factory=LineChecker)


def _apply_line(result: ReplayedLog, state: _ReplayState, raw: bytes, number: int) -> None:
    line = _line_decoder.decode(raw)
    last = state.handoffs.get(line.handoff_id, -1)
    if last >= line.event_id:
        raise ValueError(f"{line.event_id} is not after {last}: it occurs twice")
    state.handoffs[line.handoff_id] = line.event_id
    digest = sha256(normalize_line(raw)).digest()
    result.digests.setdefault(line.handoff_id, {})[line.event_id] = number, digest
    if line.entry is None:
        if line.owner or line.handoff_chain:
            raise ValueError("it names an owner, but has no event that sets one")
        state.checker.check_further(raw, line.handoff_id)
        return
    event: Any = CODEC.decode(line.entry.event, line.entry.v, line.entry.body)
    before = result.handoffs.get(line.handoff_id)
    after = _fold_event(before, event, line.entry.at)
    _check_line(line, before, event, after)
    state.checker.check_first(raw, line.entry.position, line.entry.at, event, after)
    result.handoffs[line.handoff_id] = after
    state.begun.setdefault(line.handoff_id, line.event_id)
    if line.handoff_chain and state.owners.get(line.task_id, -1) < line.event_id:
        state.owners[line.task_id] = line.event_id
        result.owners[line.task_id] = line.owner
        result.chains[line.task_id] = line.handoff_chain


def _fold_event(before: Handoff | None, event: HandoffEvent, at: int) -> Handoff:
    fold = HANDOFF_FOLDS.get(type(event))
    if fold is None:
        raise ValueError(f"{type(event).__name__} is no event of a handoff")
    if before is None and "package" not in event.__struct_fields__:
        raise ValueError("the handoff was not created before")
    return fold(before, event, at)


def _check_line(line: _Line, before: Handoff | None, event: HandoffEvent, after: Handoff) -> None:
    """Check that a line is consistent: its transition is legal, and its package has its hash."""
    if after.id != line.handoff_id:
        raise ValueError(f"it is about {after.id}, not about {line.handoff_id}")
    if line.task_id != after.task:
        raise ValueError(f"{after.id} is about {after.task}, not about {line.task_id}")
    expected = ownership_keys(event, after)
    owner, chain = expected.get("owner", ""), tuple(expected.get("handoff_chain", ()))
    if (line.owner, line.handoff_chain) != (owner, chain):
        claimed = f"{line.owner or 'nobody'} ({' → '.join(line.handoff_chain)})"
        raise ValueError(f"it says that the owner is {claimed}, but its event does not")
    if isinstance(event, HandoffTransitioned):
        if before is None or before.status != event.from_:
            status = before.status if before else "nowhere"
            raise ValueError(f"{after.id} was {status}, not {event.from_}")
        if event.to not in HANDOFF_TRANSITIONS[event.from_]:
            raise ValueError(f"there is no transition from {event.from_} to {event.to}")
        if (line.from_status, line.to_status) != (event.from_, event.to):
            raise ValueError(f"{line.from_status} → {line.to_status} is not what its event says")
    if (
        after.package_hash
        and before is None
        and compute_package_hash(after.package) != after.package_hash
    ):
        raise ValueError(f"the package of {after.id} does not match its hash")


def compare_with_ledger(replayed: ReplayedLog, store: Store) -> Mapping[str, str]:
    """Differences between a replayed log and the ledger, by handoff or task; empty when they agree.

    Every handoff of the teamspaces that the lines are about has to be there; where there is no line
    at all, every handoff.
    """
    differences = dict.fromkeys(_missing_handoffs(replayed, store), "it is missing in the file")
    for id, handoff in replayed.handoffs.items():
        known = find_handoff(store, id)
        if isinstance(known, Refusal):
            differences[id] = "it is not in the ledger"
            continue
        if known.superseded_by not in replayed.handoffs:
            # The handoff that supersedes it may be in another teamspace's file.
            known = replace(known, superseded_by=handoff.superseded_by)
        if comparable_part(known) != comparable_part(handoff):
            fields = _differing_fields(comparable_part(known), comparable_part(handoff))
            differences[id] = f"the ledger differs in its {', '.join(fields)}"
        elif difference := _find_differing_line(replayed.digests[id], store, id):
            differences[id] = difference
    return differences | dict(_find_differing_owners(replayed, store))


def _find_differing_line(digests: Mapping[int, tuple[int, bytes]], store: Store, id: str) -> str:
    """Find a line that differs from the ledger, or is missing; empty when there is none."""
    expected = {event_id_of(line): line for line in lines_from_ledger(store, id)}
    for number, line in expected.items():
        where, digest = digests.get(number, (0, b""))
        if not where:
            return f"its line {number} is missing in the file"
        if digest != sha256(normalize_line(line)).digest():
            return f"line {where} of the file differs from the ledger"
    unknown = (where for number, (where, _) in digests.items() if number not in expected)
    return next((f"line {where} of the file is not in the ledger" for where in unknown), "")


def _missing_handoffs(replayed: ReplayedLog, store: Store) -> Iterator[str]:
    for space in {handoff.teamspace for handoff in replayed.handoffs.values()} or {""}:
        known = _read_handoffs(store, HandoffFilter(teamspace=space))
        yield from (handoff.id for handoff in known if handoff.id not in replayed.handoffs)


def _read_handoffs(store: Store, query: HandoffFilter) -> Iterator[Handoff]:
    """Read all handoffs that match, newest first."""
    while True:
        page = handoff_page(store, query)
        if isinstance(page, Refusal):
            return
        yield from page.handoffs
        if page.next is None:
            return
        query = replace(query, before=page.next)


def _find_differing_owners(replayed: ReplayedLog, store: Store) -> Iterator[tuple[str, str]]:
    """Find tasks whose chain differs; tasks handed on in another teamspace since are left out.

    The last owner of a chain is the one that handoffs have made. Assignments outside of handoffs
    are in no audit line.
    """
    for name, chain in replayed.chains.items():
        newest, found = _newest_handoff(store, name), find_task(store, name)
        if newest is None or newest.id not in replayed.handoffs or isinstance(found, Refusal):
            continue
        task = found.task
        if task.chain != chain:
            yield name, f"the ledger has the chain {' → '.join(task.chain)}"
        elif task.handoff is not None and task.handoff.claimant != replayed.owners[name]:
            yield name, f"the ledger has the owner {task.handoff.claimant}"


def handed_on_elsewhere(replayed: ReplayedLog, store: Store) -> Iterator[str]:
    """Report tasks that were handed on in another teamspace since: their present owners are not in
    these lines."""
    for name in replayed.chains:
        newest = _newest_handoff(store, name)
        if newest is not None and newest.id not in replayed.handoffs:
            yield (
                f"{name} was handed on later by {newest.id} in the teamspace {newest.teamspace}: "
                "the owner and the chain shown here are older"
            )


def _newest_handoff(store: Store, task: str) -> Handoff | None:
    return next(_read_handoffs(store, HandoffFilter(task=task, limit=1)), None)


def comparable_part(handoff: Handoff) -> Handoff:
    """The handoff without what the audit log leaves out: notes, and SLA extensions."""
    return replace(handoff, notes=(), workq="", extension=None, is_escalated=False, created_at=0)


def _differing_fields(one: Handoff, other: Handoff) -> list[str]:
    fields = one.__struct_fields__
    return [name for name in fields if getattr(one, name) != getattr(other, name)]
