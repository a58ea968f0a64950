"""Check of handoffs: one against everything kept of it, or all against the replayed audit log.

The audit log holds every transition with the event behind it, so replaying it gives each
handoff's state, the owner of each task and the chain of its owners. Of several files, the event
ids of the lines say what came last. Notes and SLA extensions are not in the log.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.event_table import AnyEvent
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.state import (
    HANDOFF_FOLDS,
    HANDOFF_TRANSITIONS,
    Handoff,
    HandoffEvent,
    HandoffTransitioned,
)
from dragoman.core.ids import handoff_stream
from dragoman.engine.ports import Store
from dragoman.engine.queries.handoffs import HandoffFilter, find_handoff, handoff_page
from dragoman.engine.queries.streams import stream_entries
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.verify import has_handoff_row
from dragoman.files.errors import line_error
from dragoman.files.handoff_log import (
    EventContext,
    event_id_of,
    lines_from_ledger,
    ownership_keys,
    render_keys,
)
from dragoman.files.layout import artifact_path, handoff_log_path
from dragoman.files.line_log import LINES_PER_ENTRY
from dragoman.ledger.entry import CODEC, GENESIS, link_hash
from dragoman.ledger.indexes import handoff_row
from dragoman.ledger.stream_state import replay
from dragoman.system.safe_fs import SafeDisk

# --- checks of one handoff --------------------------------------------------------------------

_CHUNK_BYTES = 1 << 20


class HandoffCheck(Struct, frozen=True):
    """Result of one check."""

    check: str
    ok: bool
    detail: str


def check_handoff(store: Store, disk: SafeDisk, handoff: Handoff) -> Iterator[HandoffCheck]:
    """Run every check of a handoff."""
    yield _check_entries(store, handoff)
    yield _check_state(store, handoff)
    if handoff.package_hash:
        yield _check_row(store, handoff)
        yield _check_package(handoff)
        yield _check_audit_lines(store, disk, handoff)
    for artifact, expected in handoff.artifacts.items():
        yield _check_artifact(disk, artifact, expected, is_rejected=handoff.rejection is not None)


def _check_entries(store: Store, handoff: Handoff) -> HandoffCheck:
    """Check the hash chain of its entries."""
    last, count = GENESIS, 0
    for count, entry in enumerate(stream_entries(store, handoff_stream(handoff.id)), 1):
        last = link_hash(last, entry.line)
        if entry.hash != last or entry.version != count:
            detail = f"entry {entry.version} at position {entry.position} was changed"
            return HandoffCheck("entries", False, detail)
    return HandoffCheck("entries", True, f"{count}, linked by their hashes")


def _check_state(store: Store, handoff: Handoff) -> HandoffCheck:
    replayed = replay(entry.line for entry in stream_entries(store, handoff_stream(handoff.id)))
    if replayed == handoff:
        return HandoffCheck("state", True, f"{handoff.status}, as its entries give it")
    return HandoffCheck("state", False, "its entries give another state: run `dragoman verify`")


def _check_row(store: Store, handoff: Handoff) -> HandoffCheck:
    """Check its row in the protocol's table, which others may read as well."""
    record = handoff_row(handoff)
    if record is not None and has_handoff_row(store, record):
        return HandoffCheck("row", True, "its row in the table handoffs matches")
    detail = "its row in the table handoffs is missing or was changed: run `dragoman verify`"
    return HandoffCheck("row", False, detail)


def _check_package(handoff: Handoff) -> HandoffCheck:
    found = compute_package_hash(handoff.package)
    if found == handoff.package_hash:
        return HandoffCheck("package_hash", True, found)
    detail = f"the package has the hash {found}, not {handoff.package_hash}"
    return HandoffCheck("package_hash", False, detail)


def _check_audit_lines(store: Store, disk: SafeDisk, handoff: Handoff) -> HandoffCheck:
    """Check that its audit lines are those that its entries give."""
    path = handoff_log_path(handoff.teamspace)
    expected = [*lines_from_ledger(store, handoff.id)]
    needle = b'"handoff_id":"%b"' % handoff.id.encode()
    found = [line for line in _read_lines(disk, path) if needle in line]
    if found == expected:
        return HandoffCheck("audit", True, f"{len(found)} lines in {path}")
    detail = f"{path} differs from the ledger: run `dragoman rebuild-files`"
    return HandoffCheck("audit", False, detail)


def _read_lines(disk: SafeDisk, path: str) -> Iterator[bytes]:
    """Read the lines of a file of any length."""
    start, remaining = 0, b""
    while chunk := disk.read_at(path, start, _CHUNK_BYTES):
        start += len(chunk)
        *lines, remaining = (remaining + chunk).split(b"\n")
        yield from lines


def _check_artifact(
    disk: SafeDisk, artifact: str, expected: str, *, is_rejected: bool
) -> HandoffCheck:
    """Check the verified copy of an artifact; that of a rejected handoff may be gone."""
    path, digest, start = artifact_path(expected), sha256(), 0
    if is_rejected and disk.stat(path) is None:
        return HandoffCheck("artifact", True, f"{artifact} is not kept: the handoff was rejected")
    while chunk := disk.read_at(path, start, _CHUNK_BYTES):
        start += len(chunk)
        digest.update(chunk)
    if disk.stat(path) is not None and digest.hexdigest() == expected:
        return HandoffCheck("artifact", True, f"{artifact} is kept as {path}")
    detail = f"{artifact}: the copy that was verified is gone or was changed: {path}"
    return HandoffCheck("artifact", False, detail)


# --- keys of a line ---------------------------------------------------------------------------

_LineKeys = Mapping[str, Any]

_ENTRY_KEY: Final = "entry"

_decode: Final = msgspec.json.Decoder().decode

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class LineChecker:
    """Checks the lines of a file in order; ValueError names the wrong keys of a line."""

    def __init__(self) -> None:
        self._expected: dict[str, list[_LineKeys]] = {}
        """Handoff -> lines of its last event that are still to come."""

    def check_first(
        self, line: bytes, position: int, at: int, event: AnyEvent, after: Handoff
    ) -> None:
        """Check the line that carries an event."""
        found = _decode(line)
        if expected := self._expected.pop(after.id, None):
            raise ValueError(
                f"{expected[0]['event']} ({expected[0]['event_id']}) is missing before it"
            )
        actor = str(found.get("asked_by") or found.get("actor", ""))
        rendered = render_keys(event, at, EventContext(actor, after))
        if not rendered:
            raise ValueError("its event gives no line")
        numbered = [
            {**keys, "event_id": position * LINES_PER_ENTRY + number}
            for number, keys in enumerate(rendered)
        ]
        _compare_keys({key: found[key] for key in found if key != _ENTRY_KEY}, numbered[0])
        if numbered[1:]:
            self._expected[after.id] = [*numbered[1:]]

    def check_further(self, line: bytes, handoff: str) -> None:
        """Check a further line of the last event."""
        expected = self._expected.get(handoff)
        if not expected:
            raise ValueError("no event before it gives such a line")
        _compare_keys(_decode(line), expected.pop(0))
        if not expected:
            del self._expected[handoff]

    def missing_line(self) -> str:
        """Line that is still missing at the end of the file; empty when it is complete."""
        return next((f"{due[0]['event']} of {id}" for id, due in self._expected.items()), "")


def _compare_keys(found: _LineKeys, expected: _LineKeys) -> None:
    normalized: _LineKeys = _decode(_encode(expected))
    wrong = sorted(key for key in {*found, *normalized} if found.get(key) != normalized.get(key))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: not what its event says")


def normalize_line(line: bytes) -> bytes:
    """Normalize a line, so that it does not depend on the JSON encoder."""
    return _encode(_decode(line))


# --- replay -----------------------------------------------------------------------------------


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
