"""Verification finds every way of tampering with a ledger of some forty entries."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask
from dragoman.core.attempt_state import Lease
from dragoman.core.task_state import CreateTask, NoteTask, Task
from dragoman.engine import verify
from dragoman.engine.ports import StreamRow
from dragoman.engine.verify import (
    CheckpointRoots,
    Finding,
    check_ledger,
    check_stored_states,
    check_tail,
)
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.entry import GENESIS, Entry, line_prefix, link_hash
from dragoman.ledger.stream_state import FOLD_VERSION, IndexRow, decode_state, encode_state, replay
from tests.engine.lab import ALICE, HUMAN, Lab, OpenStore, checkpoint, findings
from tests.ledger.released import play
from tests.requirements import proves


class Ledger(OpenStore):
    """Tampered ledger, read by position and version as a database would."""

    def head(self) -> int:
        return max((entry.position for entry in self.tables.entries), default=0)

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        kept = sorted(self.tables.entries, key=lambda entry: entry.position)
        last = self.head() if until is None else until
        return [entry for entry in kept if after < entry.position <= last][:limit]

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        kept = sorted(self.entries(0, 10_000, until=until), key=lambda entry: entry.version)
        return [e for e in kept if e.stream == stream and e.version > after][:limit]

    def cut(self, entries: list[Entry]) -> "Ledger":
        """Replace the entries."""
        self.tables.entries = entries
        return self

    def row(self, stream: str, **fields: Any) -> "Ledger":
        """Change fields of a row."""
        number = self.tables.numbers[stream]
        self.tables.rows[number] = replace(self.tables.rows[number], **fields)
        return self


HONEST = OpenStore("honest")
play(HONEST)
ENTRIES = tuple(HONEST.entries(0, 1_000))
HEAD = len(ENTRIES)
SIGNED = checkpoint(HONEST)
EVERY_SIZE = [checkpoint(HONEST, size) for size in range(1, HEAD + 1)]


def copy_ledger(store: OpenStore = HONEST) -> Ledger:
    """Copy a ledger for tampering."""
    copy, other = store.copy(), Ledger(store.ledger_id())
    for name, table in vars(copy.tables).items():
        setattr(other.tables, name, table)
    return other


def no_progress(_: int) -> None:
    """Ignore progress."""


def first_finding(store: Ledger, *checkpoints: Checkpoint) -> Finding | None:
    """Return the first finding of the ledger check."""
    return next(check_ledger(store, checkpoints, no_progress), None)


def flip_bit(data: bytes, index: int) -> bytes:
    """Flip one bit of the byte at this index; the bit depends on the index."""
    return data[:index] + bytes([data[index] ^ (1 << index % 8)]) + data[index + 1 :]


def with_changed_entry(position: int, **fields: Any) -> Ledger:
    """Copy the ledger with other fields in one entry."""
    entries = list(ENTRIES)
    entries[position - 1] = replace(entries[position - 1], **fields)
    return copy_ledger().cut(entries)


def renumber(entries: list[Entry]) -> list[Entry]:
    """Give entries gapless positions."""
    return [replace(entry, position=n) for n, entry in enumerate(entries, 1)]


def next_of_stream(position: int) -> Entry | None:
    """Return the next entry of the same stream."""
    stream = ENTRIES[position - 1].stream
    return next((entry for entry in ENTRIES[position:] if entry.stream == stream), None)


def refit_rows(store: Ledger) -> Ledger:
    """Refit the stream rows to the remaining entries, as a thorough forger would."""
    for number, row in list(store.tables.rows.items()):
        kept = store.history(row.name, 0, 1_000)
        if not kept and row.version:
            del store.tables.rows[number], store.tables.numbers[row.name]
        elif kept:
            state = replay(entry.line for entry in kept)
            assert state is not None
            store.row(
                row.name,
                version=kept[-1].version,
                hash=kept[-1].hash,
                state=encode_state(state),
            )
    return store


POSITIONS = pytest.mark.parametrize("position", range(1, HEAD + 1))


@proves("VERIFY-HASHES", "VERIFY-VIEWS", "LEDGER-POSITION")
def test_honest_ledger_has_no_findings() -> None:
    assert HEAD > 40
    assert findings(HONEST) == []
    assert findings(HONEST, [SIGNED]) == []
    assert findings(HONEST, [*reversed(EVERY_SIZE), SIGNED]) == []
    assert findings(copy_ledger()) == []
    assert findings(OpenStore()) == []


@proves("VERIFY-HASHES")
@POSITIONS
def test_flipped_byte_of_a_line_is_found_at_its_position(position: int) -> None:
    entry = ENTRIES[position - 1]
    for index in range(len(entry.line)):
        found = first_finding(with_changed_entry(position, line=flip_bit(entry.line, index)))
        assert found is not None, index
        assert found.position == position, index


@proves("VERIFY-HASHES")
def test_check_continues_after_the_first_bad_entry() -> None:
    entries = list(ENTRIES)
    entries[4] = replace(entries[4], line=b"not a line")
    entries[30] = replace(entries[30], hash=bytes(32))
    found = list(check_ledger(copy_ledger().cut(entries), (), no_progress))
    assert found[0] == Finding(found[0].problem, 5, entries[4].stream)
    assert {5, 31} <= {one.position for one in found}


@proves("VERIFY-HASHES", "LEDGER-CHAIN")
@POSITIONS
def test_flipped_byte_of_a_hash_is_found_at_its_position(position: int) -> None:
    entry = ENTRIES[position - 1]
    for index in range(32):
        for store in (
            with_changed_entry(position, hash=flip_bit(entry.hash, index)),
            with_changed_entry(position, previous=flip_bit(entry.previous, index)),
        ):
            found = first_finding(store)
            assert found is not None
            assert found.position == position


@proves("VERIFY-HASHES")
@POSITIONS
def test_columns_beside_the_line_are_compared_with_it(position: int) -> None:
    entry = ENTRIES[position - 1]
    for fields in (
        {"stream": entry.stream + "x"},
        {"stream": "task:" + flip_bit(entry.stream.encode(), 5).decode("latin-1")},
        {"version": entry.version + 1},
        {"version": entry.version - 1},
        {"event": "task.noted" if entry.event != "task.noted" else "task.created"},
    ):
        found = first_finding(with_changed_entry(position, **fields))
        assert found is not None
        assert found.position == position
        assert "columns" in found.problem


@proves("VERIFY-HASHES")
@POSITIONS
def test_rehashed_line_is_found_at_the_next_entry_of_its_stream(
    position: int,
) -> None:
    entry = ENTRIES[position - 1]
    line = entry.line.replace(b'"cause":"0', b'"cause":"1')
    assert line != entry.line
    found = first_finding(
        with_changed_entry(position, line=line, hash=link_hash(entry.previous, line))
    )
    after = next_of_stream(position)
    assert found is not None
    if after is not None:
        assert found.position == after.position
        assert "previous hash" in found.problem
    else:
        assert found.stream == entry.stream, "the row of the stream knows its last hash"


@proves("VERIFY-REMOVED")
@POSITIONS
def test_removed_entry_is_found_at_its_position(position: int) -> None:
    entries = [entry for entry in ENTRIES if entry.position != position]
    found = first_finding(copy_ledger().cut(entries))
    assert found is not None
    assert found.position == position


@proves("VERIFY-REMOVED")
@POSITIONS
def test_removed_entry_is_found_after_renumbering(position: int) -> None:
    entries = [entry for entry in ENTRIES if entry.position != position]
    found = first_finding(copy_ledger().cut(renumber(entries)))
    after = next_of_stream(position)
    assert found is not None
    assert found.stream == ENTRIES[position - 1].stream
    assert found.position == (after.position - 1 if after else HEAD)


@proves("VERIFY-REMOVED", "VERIFY-CUT-TAIL")
@POSITIONS
def test_removal_is_always_found_with_a_checkpoint(
    position: int,
) -> None:
    """For the last entry of a stream, with a refitted row, only the signed root differs."""
    entries = [entry for entry in ENTRIES if entry.position != position]
    store = copy_ledger().cut(renumber(entries))
    if next_of_stream(position) is None:
        store = refit_rows(store)
        assert first_finding(store) is None, "documented: without a checkpoint this is not found"
    assert first_finding(store, SIGNED) is not None
    found = first_finding(store, *EVERY_SIZE)
    assert found is not None
    assert found.position <= position or next_of_stream(position) is not None


@proves("VERIFY-CUT-TAIL")
@POSITIONS
def test_truncated_tail_is_found_at_its_first_missing_entry(position: int) -> None:
    store = copy_ledger().cut(list(ENTRIES[: position - 1]))
    for found in (
        first_finding(store),
        first_finding(store, SIGNED),
        next(check_tail(store, SIGNED)),
    ):
        assert found is not None
        assert found.position == position
    assert "its tail was cut" in str(first_finding(store, SIGNED))


@proves("VERIFY-CUT-TAIL")
@POSITIONS
def test_restored_old_copy_is_found_by_the_checkpoint_alone(
    position: int,
) -> None:
    store = refit_rows(copy_ledger().cut(list(ENTRIES[: position - 1])))
    assert first_finding(store) is None, "documented: an honest old copy is honest"
    found = first_finding(store, SIGNED)
    assert found is not None
    assert found.position == position
    assert first_finding(store, *EVERY_SIZE[: position - 1]) is None


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("position", range(1, HEAD))
def test_swapped_neighbours_are_found(position: int) -> None:
    entries = list(ENTRIES)
    left, right = entries[position - 1 : position + 1]
    entries[position - 1 : position + 1] = [right, left]
    store = copy_ledger().cut(renumber(entries))
    if left.stream == right.stream:
        found = first_finding(store)
        assert found is not None
        assert found.position == position
    else:
        assert first_finding(store) is None, (
            "documented: the order of streams is fixed by checkpoints"
        )
        assert first_finding(store, SIGNED) == Finding(
            "the entries up to here are not those that the checkpoint signed: "
            "one was changed, swapped or replaced",
            HEAD,
        )
    exact = first_finding(store, *EVERY_SIZE)
    assert exact is not None
    assert exact.position == position


@proves("VERIFY-HASHES", "VERIFY-CUT-TAIL")
@POSITIONS
def test_rewritten_history_is_found_by_a_checkpoint(position: int) -> None:
    """The forger changes one entry, and refits every later hash and every row."""
    entries = list(ENTRIES)
    heads: dict[str, bytes] = {}
    for number, entry in enumerate(entries, 1):
        line = entry.line
        if number == position:
            line = line.replace(b'"cause":"0', b'"cause":"1')
        previous = heads.get(entry.stream, GENESIS)
        heads[entry.stream] = link_hash(previous, line)
        entries[number - 1] = replace(entry, line=line, previous=previous, hash=heads[entry.stream])
    store = refit_rows(copy_ledger().cut(entries))
    assert findings(store) == [], "documented: without a checkpoint this is not found"
    found = first_finding(store, SIGNED)
    assert found is not None
    assert found.position == HEAD
    exact = first_finding(store, *EVERY_SIZE)
    assert exact is not None
    assert exact.position == position


@proves("VERIFY-REMOVED")
@POSITIONS
def test_duplicated_or_inserted_entry_is_found(position: int) -> None:
    entries = list(ENTRIES)
    entries.insert(position, entries[position - 1])
    found = first_finding(copy_ledger().cut(renumber(entries)))
    assert found is not None
    assert found.position == position + 1


@proves("VERIFY-REMOVED")
def test_checkpoint_of_another_ledger_is_reported() -> None:
    foreign = replace(SIGNED, ledger="another")
    assert "of another ledger, another" in str(first_finding(copy_ledger(), foreign))
    assert "of another ledger, another" in str(next(check_tail(copy_ledger(), foreign)))


@proves("VERIFY-HASHES", "VERIFY-CUT-TAIL")
def test_tail_after_each_checkpoint_is_valid() -> None:
    for signed in EVERY_SIZE:
        assert list(check_tail(HONEST, signed)) == []


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@POSITIONS
def test_check_tail_examines_only_entries_after_the_checkpoint(position: int) -> None:
    entry = ENTRIES[position - 1]
    store = with_changed_entry(position, line=flip_bit(entry.line, len(entry.line) // 2))
    removed = copy_ledger().cut([kept for kept in ENTRIES if kept.position != position])
    for size in {1, position - 1} - {0, position}:
        found = next(check_tail(store, EVERY_SIZE[size - 1]))
        assert found.position == position
        gaps = list(check_tail(removed, EVERY_SIZE[size - 1]))
        assert position == HEAD or gaps[0].position == position
    assert list(check_tail(store, SIGNED)) == [], "what was signed is for verify, not for a start"


@proves("VERIFY-HASHES", "VERIFY-VIEWS")
def test_progress_is_reported_per_entry_and_per_stream() -> None:
    entries: list[int] = []
    streams: list[int] = []
    assert list(check_ledger(HONEST, (), entries.append)) == []
    assert list(check_stored_states(HONEST, streams.append)) == []
    assert (sum(entries), sum(streams)) == (HEAD, len(HONEST.tables.rows))


@proves("VERIFY-HASHES")
@pytest.mark.parametrize("size", [1, 2, 7])
def test_page_size_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_PAGE", size)
    assert findings(HONEST, EVERY_SIZE) == []


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@pytest.mark.parametrize("size", [1, 2, 16, 64])
@POSITIONS
def test_pages_of_any_size_have_the_same_findings(position: int, size: int) -> None:
    gone = [entry for entry in ENTRIES if entry.position != position]
    swapped = list(ENTRIES)
    swapped[position - 1 : position + 1] = reversed(swapped[position - 1 : position + 1])
    for store in (
        HONEST,
        with_changed_entry(position, line=b"not a line"),
        with_changed_entry(position, version=9),
        with_changed_entry(position, hash=bytes(32)),
        copy_ledger().cut(renumber(swapped)),
        copy_ledger().cut(gone),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verify, "_ENTRY_PAGE", size)
            paged = list(check_ledger(store, EVERY_SIZE, no_progress))
        assert set(paged) == set(check_ledger(store, EVERY_SIZE, no_progress))


@proves("VERIFY-REMOVED")
@POSITIONS
def test_checkpoints_before_a_gap_still_hold(position: int) -> None:
    gone = copy_ledger().cut([entry for entry in ENTRIES if entry.position != position])
    found = list(check_ledger(gone, EVERY_SIZE, no_progress))
    signed = {one.position for one in found if "the checkpoint signed" in one.problem}
    assert signed == set(range(position, HEAD + (position < HEAD)))


@proves("VERIFY-HASHES")
def test_line_is_judged_by_its_content_not_its_formatting() -> None:
    line = ENTRIES[-1].line.replace(b'{"stream":', b'{ "stream":', 1)
    store = with_changed_entry(HEAD, line=line, hash=link_hash(ENTRIES[-1].previous, line))
    assert [one for one in check_ledger(store, (), no_progress) if "disagree" in one.problem] == []


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize(
    "forged",
    [
        ENTRIES[-1].line[:-1] + b',"stream":"task:forged"}',
        ENTRIES[-1].line[:-1] + b',"version":99}',
        line_prefix(ENTRIES[-1].stream, ENTRIES[-1].version, ENTRIES[-1].event) + b"1,no JSON",
    ],
)
def test_line_with_a_valid_prefix_and_forged_rest_is_found(forged: bytes) -> None:
    last = ENTRIES[-1]
    fitting = link_hash(last.previous, forged)
    store = with_changed_entry(HEAD, line=forged, hash=fitting).row(last.stream, hash=fitting)
    assert HEAD in {one.position for one in check_stored_states(store, no_progress)}
    assert HEAD in {one.position for one in check_tail(store, EVERY_SIZE[HEAD - 3])}


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("size", [1, 5, 64])
def test_tree_grows_by_parts_of_any_size(size: int) -> None:
    def found(leaves: Sequence[bytes]) -> list[int]:
        roots = CheckpointRoots(HONEST.ledger_id(), EVERY_SIZE)
        parts = [leaves[at : at + size] for at in range(0, len(leaves), size)]
        ends = accumulate(map(len, parts))
        found = [roots.append(part, end) for part, end in zip(parts, ends, strict=True)]
        findings = [one for part in found for one in part]
        return [one.position for one in (*findings, *roots.finish(len(leaves)))]

    leaves = [entry.hash for entry in ENTRIES]
    assert found(leaves) == []
    assert found([*leaves[:7], bytes(32), *leaves[8:]]) == list(range(8, HEAD + 1))
    assert found(leaves[:7]) == [8]


STREAM = "task:once"


def state(store: OpenStore) -> Task:
    """Load the stored state of the task."""
    row = store.stream(STREAM)
    assert row is not None
    found = decode_state(STREAM, row.state)
    assert isinstance(found, Task)
    return found


TAMPERED_ROWS: dict[str, tuple[Callable[[Ledger], Any], str]] = {
    "another title": (
        lambda store: store.row(STREAM, state=encode_state(replace(state(store), title="x"))),
        "stored state differs",
    ),
    "another status": (
        lambda store: store.row(STREAM, state=encode_state(replace(state(store), status="done"))),
        "stored state differs",
    ),
    "no state": (lambda store: store.row(STREAM, state=b""), "stored state differs"),
    "invalid state": (lambda store: store.row(STREAM, state=b"{}"), "state differs"),
    "in a ready queue": (
        lambda store: store.row(STREAM, index=IndexRow("ready", "", 2, 1)),
        "indexes differ",
    ),
    "another owner": (
        lambda store: store.row(STREAM, index=IndexRow("blocked", owner="mallory")),
        "indexes differ",
    ),
    "not indexed": (lambda store: store.row(STREAM, index=IndexRow()), "indexes differ"),
    "foreign lease": (
        lambda store: store.row(STREAM, lease=Lease("mallory", 2, 1, 1, 1)),
        "lease does not belong",
    ),
    "record of an actor": (
        lambda store: store.row("actor:agent:alice", state=b'{"minute":1}'),
        "stored state differs",
    ),
}


@proves("VERIFY-VIEWS")
@pytest.mark.parametrize(("tamper", "problem"), TAMPERED_ROWS.values(), ids=TAMPERED_ROWS)
def test_tampered_row_is_found(tamper: Callable[[Ledger], Any], problem: str) -> None:
    store = copy_ledger()
    tamper(store)
    found = list(check_stored_states(store, no_progress))
    assert len(found) == 1
    assert problem in found[0].problem
    assert found[0].stream in (STREAM, "actor:agent:alice")
    assert found[0].position == 0
    assert first_finding(store) is None, "the ledger itself is sound"


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize(
    ("fields", "position"),
    [({"version": 3}, 0), ({"version": 99}, HEAD + 1), ({"hash": bytes(32)}, 0)],
)
def test_row_behind_or_ahead_of_its_entries_is_found(fields: dict[str, Any], position: int) -> None:
    (found,) = check_ledger(copy_ledger().row(STREAM, **fields), (), no_progress)
    assert (found.stream, found.position) == (STREAM, position)


@proves("VERIFY-VIEWS")
def test_missing_or_extra_row_is_found() -> None:
    store = copy_ledger()
    del store.tables.rows[store.tables.numbers.pop(STREAM)]
    assert Finding("the stream has entries but no row", stream=STREAM) in findings(store)
    extra = copy_ledger()
    row = extra.tables.rows[extra.tables.numbers[STREAM]]
    extra.tables.rows[999] = replace(row, number=999, name="task:ghost")
    assert {found.stream for found in findings(extra)} == {"task:ghost"}


@proves("VERIFY-VIEWS", "NAME-ALIAS")
@pytest.mark.parametrize("pair", sorted(HONEST.tables.aliases), ids=":".join)
def test_missing_or_redirected_alias_is_found(pair: tuple[str, str]) -> None:
    name, kind = pair
    removed, redirected = copy_ledger(), copy_ledger()
    owner = removed.tables.aliases.pop(pair)
    removed.tables.kinds_of_alias[name].remove(kind)
    problem = Finding(f"the alias {kind}:{name} is missing", stream=owner)
    assert problem in findings(removed)
    redirected.tables.aliases[pair] = "task:once" if owner != "task:once" else "task:build"
    assert problem in findings(redirected)


@proves("VERIFY-VIEWS", "NAME-ALIAS")
def test_alias_without_an_event_is_found() -> None:
    store = copy_ledger()
    store.tables.aliases["mine", "bead"] = STREAM
    store.tables.kinds_of_alias["mine"] = ["bead"]
    (found,) = findings(store)
    assert found == Finding("nothing in the ledger gave it the alias bead:mine", stream=STREAM)


@proves("VERIFY-VIEWS", "LEASE-FENCE")
@pytest.mark.parametrize(
    "fields",
    [None, {"fence": 2}, {"fence": 0}, {"holder": "mallory"}, {"session": "another"}],
)
def test_missing_or_foreign_lease_is_found(fields: dict[str, Any] | None) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice", "s1"))
    assert findings(lab.store) == []
    held = lab.lease("T")
    assert held is not None
    store = copy_ledger(lab.store)
    store.row("task:T", lease=None if fields is None else replace(held, **fields))
    assert findings(store) == [Finding("the lease does not belong to the attempt", stream="task:T")]


@proves("VERIFY-VIEWS", "LEASE-OFF-LEDGER")
def test_heartbeats_are_not_verified() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    held = lab.lease("T")
    assert held is not None
    store = copy_ledger(lab.store)
    store.row("task:T", lease=replace(held, last_heartbeat=1, expires_at=2, heartbeats=99))
    assert findings(store) == []


@proves("VERIFY-VIEWS", "RETRY-BACKOFF")
def test_delayed_task_may_be_queued_or_not_yet() -> None:
    """The promotion of a delayed task is not in the ledger; everything else about it is."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    store = copy_ledger(lab.store)
    resting = replace(lab.task("T"), not_before=lab.clock.now() + 1_000)
    born = lab.task("T").created_at
    for index_row, sound in (
        (IndexRow("ready", "", 2, born), True),
        (IndexRow("ready", None, 2, born, 0), False),
        (IndexRow("ready", None, 2, born, resting.not_before), False),
    ):
        store.row("task:T", index=index_row)
        assert (findings(store) == []) is sound


@proves("VERIFY-VIEWS", "STORE-REFOLD")
def test_state_of_an_old_fold_may_differ_but_not_be_missing_or_misplaced() -> None:
    older = copy_ledger().row(STREAM, fold_version=FOLD_VERSION - 1, state=b"as older rules had it")
    assert findings(older) == []
    for fields in ({"state": b""}, {"index": IndexRow()}):
        assert findings(copy_ledger().row(STREAM, fold_version=FOLD_VERSION - 1, **fields)) != []


class BusyStore(OpenStore):
    """Store with concurrent writes between the reads of a verification."""

    def __init__(self) -> None:
        super().__init__()
        self.pending_writes: list[Callable[[], object]] = []

    def rows(self, after: int, limit: int) -> list[StreamRow]:
        """Return a page of rows that is outdated when it arrives."""
        page = super().rows(after, limit)
        while self.pending_writes:
            self.pending_writes.pop(0)()
        return page


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize("part", ["views", "ledger"])
def test_concurrent_writes_raise_no_findings(part: str) -> None:
    store = BusyStore()
    lab = Lab(store)
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    store.pending_writes = [
        lambda: lab.do(HUMAN, NoteTask("T", "x")),
        lambda: lab.do(ALICE, ClaimTask("T", "alice")),
        lambda: lab.do(HUMAN, CreateTask("new", "N", aliases=("bead:n",))),
    ]
    found = (
        check_stored_states(store, no_progress)
        if part == "views"
        else check_ledger(store, (), no_progress)
    )
    assert list(found) == []
    assert lab.task("T").notes == 1


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@pytest.mark.parametrize("fields", [{"version": 9}, {"hash": bytes(32)}, {"version": 0}])
def test_row_that_claims_to_have_grown_is_found(fields: dict[str, Any]) -> None:
    class ForgedStore(BusyStore):
        def rows(self, after: int, limit: int) -> list[StreamRow]:
            return [replace(row, **fields) for row in super().rows(after, limit)]

    store = ForgedStore()
    lab = Lab(store)
    lab.do(HUMAN, CreateTask("t", "T"))
    store.pending_writes = [lambda: lab.do(HUMAN, NoteTask("T", "x"))]
    assert list(check_ledger(store, (), no_progress)) != []


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@POSITIONS
def test_views_are_checked_to_the_end_whatever_the_ledger_holds(position: int) -> None:
    broken = with_changed_entry(position, line=b"not a line")
    stream = ENTRIES[position - 1].stream
    found = list(check_stored_states(broken, no_progress))
    assert any(f.stream == stream and "cannot be replayed" in f.problem for f in found)
    removed = copy_ledger().cut([kept for kept in ENTRIES if kept.position != position])
    found = list(check_stored_states(removed, no_progress))
    if ENTRIES[position - 1].event == "task.created":
        assert any(f.stream == stream for f in found), "a stream without its beginning"


@proves("VERIFY-VIEWS")
def test_honest_ledger_with_a_note_stays_honest() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T"))
    signed = checkpoint(lab.store)
    lab.do(HUMAN, NoteTask("T", "x"))
    assert findings(lab.store, [signed]) == []
    assert list(check_tail(lab.store, signed)) == []


@proves("VERIFY-HASHES")
@POSITIONS
def test_unreadable_line_does_not_extend_its_stream(position: int) -> None:
    found = list(check_ledger(with_changed_entry(position, line=b"not a line"), (), no_progress))
    assert found[0].position == position
    last = max(e.position for e in ENTRIES if e.stream == ENTRIES[position - 1].stream)
    ends = [f for f in found if "its entries end at" in f.problem]
    assert bool(ends) == (position == last)
