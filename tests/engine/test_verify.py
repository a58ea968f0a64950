"""Verify finds every way of tampering with a ledger of some forty entries, and nothing else."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.commands import ClaimTask, CreateTask, NoteTask
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Task
from dragoman.engine.ports import Row
from dragoman.engine.verifying import verify
from dragoman.engine.verifying.slices import Slice, Span, check_slice, spans
from dragoman.engine.verifying.verify import Finding, Roots, check_ledger, check_tail, check_views
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.entry import Entry, head_of_line
from dragoman.ledger.views import FOLD, Shelf, decode_state, encode_state, refold
from tests.engine.lab import ALICE, HUMAN, Lab, OpenStore, checkpoint, findings
from tests.ledger.released import play
from tests.requirements import proves


class Ledger(OpenStore):
    """A ledger that was tampered with; it is read by position and version, as a database would."""

    def head(self) -> int:
        """The last position."""
        return max((entry.position for entry in self.tables.entries), default=0)

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        kept = sorted(self.tables.entries, key=lambda entry: entry.position)
        last = self.head() if until is None else until
        return [entry for entry in kept if after < entry.position <= last][:limit]

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        """The entries of one stream by version."""
        kept = sorted(self.entries(0, 10_000, until=until), key=lambda entry: entry.version)
        return [e for e in kept if e.stream == stream and e.version > after][:limit]

    def cut(self, entries: list[Entry]) -> "Ledger":
        """The same store with these entries instead."""
        self.tables.entries = entries
        return self

    def row(self, stream: str, **fields: Any) -> "Ledger":
        """The same store with a changed row."""
        number = self.tables.numbers[stream]
        self.tables.rows[number] = replace(self.tables.rows[number], **fields)
        return self


HONEST = OpenStore("honest")
play(HONEST)
ENTRIES = tuple(HONEST.entries(0, 1_000))
HEAD = len(ENTRIES)
SIGNED = checkpoint(HONEST)
EVERY_SIZE = [checkpoint(HONEST, size) for size in range(1, HEAD + 1)]


def ledger(store: OpenStore = HONEST) -> Ledger:
    """A copy to tamper with."""
    copy, other = store.copy(), Ledger(store.ledger_id())
    for name, table in vars(copy.tables).items():
        setattr(other.tables, name, table)
    return other


def silent(_: int) -> None:
    """Nobody watches."""


def first(store: Ledger, *checkpoints: Checkpoint) -> Finding | None:
    """The first thing that the check of the ledger finds."""
    return next(check_ledger(store, checkpoints, silent), None)


def flipped(data: bytes, place: int) -> bytes:
    """The same bytes with one bit turned; which bit differs from place to place."""
    return data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]


def changed(position: int, **fields: Any) -> Ledger:
    """The ledger with other fields in one entry."""
    entries = list(ENTRIES)
    entries[position - 1] = replace(entries[position - 1], **fields)
    return ledger().cut(entries)


def renumbered(entries: list[Entry]) -> list[Entry]:
    """The same entries under gapless positions."""
    return [replace(entry, position=n) for n, entry in enumerate(entries, 1)]


def next_of_stream(position: int) -> Entry | None:
    """The entry that follows this one in its stream."""
    stream = ENTRIES[position - 1].stream
    return next((entry for entry in ENTRIES[position:] if entry.stream == stream), None)


def levelled(store: Ledger) -> Ledger:
    """The stream rows made to fit what entries there are, as a thorough forger would do."""
    for number, row in list(store.tables.rows.items()):
        kept = store.history(row.name, 0, 1_000)
        if not kept and row.version:
            del store.tables.rows[number], store.tables.numbers[row.name]
        elif kept:
            state = refold(entry.line for entry in kept)
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
def test_nothing_is_found_in_an_honest_ledger() -> None:
    assert HEAD > 40
    assert findings(HONEST) == []
    assert findings(HONEST, [SIGNED]) == []
    assert findings(HONEST, [*reversed(EVERY_SIZE), SIGNED]) == []
    assert findings(ledger()) == []
    assert findings(OpenStore()) == []


@proves("VERIFY-HASHES")
@POSITIONS
def test_every_flipped_byte_of_a_line_is_found_where_it_is(position: int) -> None:
    entry = ENTRIES[position - 1]
    for place in range(len(entry.line)):
        found = first(changed(position, line=flipped(entry.line, place)))
        assert found is not None, place
        assert found.position == position, place


@proves("VERIFY-HASHES")
def test_the_check_goes_on_behind_the_first_bad_entry() -> None:
    entries = list(ENTRIES)
    entries[4] = replace(entries[4], line=b"not a line")
    entries[30] = replace(entries[30], hash=bytes(32))
    found = list(check_ledger(ledger().cut(entries), (), silent))
    assert found[0] == Finding(found[0].problem, 5, entries[4].stream)
    assert {5, 31} <= {one.position for one in found}


@proves("VERIFY-HASHES", "LEDGER-CHAIN")
@POSITIONS
def test_every_flipped_byte_of_a_hash_is_found_where_it_is(position: int) -> None:
    entry = ENTRIES[position - 1]
    for place in range(32):
        for store in (
            changed(position, hash=flipped(entry.hash, place)),
            changed(position, previous=flipped(entry.previous, place)),
        ):
            found = first(store)
            assert found is not None
            assert found.position == position


@proves("VERIFY-HASHES")
@POSITIONS
def test_every_copy_beside_the_line_is_compared_with_it(position: int) -> None:
    entry = ENTRIES[position - 1]
    for fields in (
        {"stream": entry.stream + "x"},
        {"stream": "task:" + flipped(entry.stream.encode(), 5).decode("latin-1")},
        {"version": entry.version + 1},
        {"version": entry.version - 1},
        {"event": "task.noted" if entry.event != "task.noted" else "task.created"},
    ):
        found = first(changed(position, **fields))
        assert found is not None
        assert found.position == position
        assert "columns" in found.problem


@proves("VERIFY-HASHES")
@POSITIONS
def test_a_line_whose_hash_was_made_to_fit_is_found_at_the_next_of_its_stream(
    position: int,
) -> None:
    entry = ENTRIES[position - 1]
    line = entry.line.replace(b'"cause":"0', b'"cause":"1')
    assert line != entry.line
    found = first(changed(position, line=line, hash=link_hash(entry.previous, line)))
    after = next_of_stream(position)
    assert found is not None
    if after is not None:
        assert found.position == after.position
        assert "previous hash" in found.problem
    else:
        assert found.stream == entry.stream, "the row of the stream knows its last hash"


@proves("VERIFY-REMOVED")
@POSITIONS
def test_a_removed_entry_is_found_where_it_was(position: int) -> None:
    entries = [entry for entry in ENTRIES if entry.position != position]
    found = first(ledger().cut(entries))
    assert found is not None
    assert found.position == position


@proves("VERIFY-REMOVED")
@POSITIONS
def test_a_removed_entry_is_found_when_the_positions_were_closed_up_too(position: int) -> None:
    entries = [entry for entry in ENTRIES if entry.position != position]
    found = first(ledger().cut(renumbered(entries)))
    after = next_of_stream(position)
    assert found is not None
    assert found.stream == ENTRIES[position - 1].stream
    assert found.position == (after.position - 1 if after else HEAD)


@proves("VERIFY-REMOVED", "VERIFY-CUT-TAIL")
@POSITIONS
def test_with_a_checkpoint_nothing_can_be_removed_however_well_it_is_covered_up(
    position: int,
) -> None:
    """The last entry of a stream, its row and all positions: only the signed root knows."""
    entries = [entry for entry in ENTRIES if entry.position != position]
    store = ledger().cut(renumbered(entries))
    if next_of_stream(position) is None:
        store = levelled(store)
        assert first(store) is None, "documented: without a checkpoint this is not found"
    assert first(store, SIGNED) is not None
    found = first(store, *EVERY_SIZE)
    assert found is not None
    assert found.position <= position or next_of_stream(position) is not None


@proves("VERIFY-CUT-TAIL")
@POSITIONS
def test_a_cut_tail_of_any_length_is_found_at_its_first_missing_entry(position: int) -> None:
    store = ledger().cut(list(ENTRIES[: position - 1]))
    for found in (first(store), first(store, SIGNED), next(check_tail(store, SIGNED))):
        assert found is not None
        assert found.position == position
    assert "its tail was cut" in str(first(store, SIGNED))


@proves("VERIFY-CUT-TAIL")
@POSITIONS
def test_a_store_set_back_to_an_earlier_day_is_found_by_the_checkpoint_alone(
    position: int,
) -> None:
    store = levelled(ledger().cut(list(ENTRIES[: position - 1])))
    assert first(store) is None, "documented: an honest old copy is honest"
    found = first(store, SIGNED)
    assert found is not None
    assert found.position == position
    assert first(store, *EVERY_SIZE[: position - 1]) is None


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("position", range(1, HEAD))
def test_two_swapped_neighbours_are_found(position: int) -> None:
    entries = list(ENTRIES)
    left, right = entries[position - 1 : position + 1]
    entries[position - 1 : position + 1] = [right, left]
    store = ledger().cut(renumbered(entries))
    if left.stream == right.stream:
        found = first(store)
        assert found is not None
        assert found.position == position
    else:
        assert first(store) is None, "documented: the order of streams is fixed by checkpoints"
        assert first(store, SIGNED) == Finding(
            "the entries up to here are not those that the checkpoint signed: "
            "one was changed, swapped or replaced",
            HEAD,
        )
    exact = first(store, *EVERY_SIZE)
    assert exact is not None
    assert exact.position == position


@proves("VERIFY-HASHES", "VERIFY-CUT-TAIL")
@POSITIONS
def test_a_history_rewritten_from_some_entry_on_is_found_by_a_checkpoint(position: int) -> None:
    """The forger changes one entry and makes every later hash, and every view, fit."""
    entries = list(ENTRIES)
    heads: dict[str, bytes] = {}
    for number, entry in enumerate(entries, 1):
        line = entry.line
        if number == position:
            line = line.replace(b'"cause":"0', b'"cause":"1')
        previous = heads.get(entry.stream, GENESIS)
        heads[entry.stream] = link_hash(previous, line)
        entries[number - 1] = replace(entry, line=line, previous=previous, hash=heads[entry.stream])
    store = levelled(ledger().cut(entries))
    assert findings(store) == [], "documented: without a checkpoint this is not found"
    found = first(store, SIGNED)
    assert found is not None
    assert found.position == HEAD
    exact = first(store, *EVERY_SIZE)
    assert exact is not None
    assert exact.position == position


@proves("VERIFY-REMOVED")
@POSITIONS
def test_an_entry_that_was_doubled_or_slipped_in_is_found(position: int) -> None:
    entries = list(ENTRIES)
    entries.insert(position, entries[position - 1])
    found = first(ledger().cut(renumbered(entries)))
    assert found is not None
    assert found.position == position + 1


@proves("VERIFY-REMOVED")
def test_a_checkpoint_of_another_ledger_is_told() -> None:
    foreign = replace(SIGNED, ledger="another")
    assert "of another ledger, another" in str(first(ledger(), foreign))
    assert "of another ledger, another" in str(next(check_tail(ledger(), foreign)))


@proves("VERIFY-HASHES", "VERIFY-CUT-TAIL")
def test_the_tail_after_each_checkpoint_is_sound() -> None:
    for signed in EVERY_SIZE:
        assert list(check_tail(HONEST, signed)) == []


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@POSITIONS
def test_what_a_start_looks_at_is_the_tail(position: int) -> None:
    entry = ENTRIES[position - 1]
    store = changed(position, line=flipped(entry.line, len(entry.line) // 2))
    removed = ledger().cut([kept for kept in ENTRIES if kept.position != position])
    for size in {1, position - 1} - {0, position}:
        found = next(check_tail(store, EVERY_SIZE[size - 1]))
        assert found.position == position
        gaps = list(check_tail(removed, EVERY_SIZE[size - 1]))
        assert position == HEAD or gaps[0].position == position
    assert list(check_tail(store, SIGNED)) == [], "what was signed is for verify, not for a start"


@proves("VERIFY-HASHES", "VERIFY-VIEWS")
def test_progress_is_told_entry_by_entry_and_stream_by_stream() -> None:
    entries: list[int] = []
    streams: list[int] = []
    assert list(check_ledger(HONEST, (), entries.append)) == []
    assert list(check_views(HONEST, streams.append)) == []
    assert (sum(entries), sum(streams)) == (HEAD, len(HONEST.tables.rows))


@proves("VERIFY-HASHES")
@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_size_of_a_page_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_PAGE", size)
    assert findings(HONEST, EVERY_SIZE) == []


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@pytest.mark.parametrize("size", [1, 2, 16, 64])
@POSITIONS
def test_slices_of_any_size_find_the_same(position: int, size: int) -> None:
    gone = [entry for entry in ENTRIES if entry.position != position]
    swapped = list(ENTRIES)
    swapped[position - 1 : position + 1] = reversed(swapped[position - 1 : position + 1])
    for store in (
        HONEST,
        changed(position, line=b"not a line"),
        changed(position, version=9),
        changed(position, hash=bytes(32)),
        ledger().cut(renumbered(swapped)),
        ledger().cut(gone),
    ):
        sliced = check_ledger(store, EVERY_SIZE, silent, size=size)
        assert set(sliced) == set(check_ledger(store, EVERY_SIZE, silent))


@proves("VERIFY-REMOVED")
@POSITIONS
def test_what_was_signed_before_a_hole_still_holds(position: int) -> None:
    gone = ledger().cut([entry for entry in ENTRIES if entry.position != position])
    found = list(check_ledger(gone, EVERY_SIZE, silent))
    signed = {one.position for one in found if "the checkpoint signed" in one.problem}
    assert signed == set(range(position, HEAD + (position < HEAD)))


@proves("VERIFY-HASHES")
def test_a_line_is_what_it_says_and_not_how_it_is_written() -> None:
    line = ENTRIES[-1].line.replace(b'{"stream":', b'{ "stream":', 1)
    store = changed(HEAD, line=line, hash=link_hash(ENTRIES[-1].previous, line))
    assert [one for one in check_ledger(store, (), silent) if "disagree" in one.problem] == []


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize(
    "forged",
    [
        ENTRIES[-1].line[:-1] + b',"stream":"task:forged"}',
        ENTRIES[-1].line[:-1] + b',"version":99}',
        head_of_line(ENTRIES[-1].stream, ENTRIES[-1].version, ENTRIES[-1].event) + b"1,no JSON",
    ],
)
def test_a_line_that_begins_well_and_goes_on_otherwise_is_found(forged: bytes) -> None:
    last = ENTRIES[-1]
    fitting = link_hash(last.previous, forged)
    store = changed(HEAD, line=forged, hash=fitting).row(last.stream, hash=fitting)
    assert HEAD in {one.position for one in check_views(store, silent)}
    assert HEAD in {one.position for one in check_tail(store, EVERY_SIZE[HEAD - 3])}


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("size", [1, 5, 64])
def test_the_tree_grows_by_leaves_as_it_grows_by_slices(size: int) -> None:
    def found(leaves: Sequence[bytes]) -> list[int]:
        roots = Roots(HONEST.ledger_id(), EVERY_SIZE)
        parts = (leaves[at : at + size] for at in range(0, len(leaves), size))
        told = [one for part in parts for one in roots.append(part)]
        return [one.position for one in (*told, *roots.end(len(leaves)))]

    leaves = [entry.hash for entry in ENTRIES]
    assert found(leaves) == []
    assert found([*leaves[:7], bytes(32), *leaves[8:]]) == list(range(8, HEAD + 1))
    assert found(leaves[:7]) == [8]


@proves("VERIFY-HASHES")
def test_slices_may_be_checked_elsewhere() -> None:
    told: list[int] = []

    def elsewhere(spans: Sequence[Span]) -> list[Slice]:
        return [check_slice(HONEST, span) for span in reversed(spans)][::-1]

    assert list(check_ledger(HONEST, EVERY_SIZE, told.append, elsewhere, 16)) == []
    assert told == [16] * (HEAD // 16) + [HEAD % 16] * bool(HEAD % 16)


@proves("VERIFY-HASHES")
def test_trees_are_grown_as_far_as_something_was_signed() -> None:
    parts = spans(HEAD, (7, 20), 16)
    assert [part.sizes for part in parts[:3]] == [(7, 16), (20,), ()]
    assert [list(check_slice(HONEST, part).trees) for part in parts[:3]] == [[7, 16], [20], []]
    assert not any(part.sizes for part in spans(HEAD, (), 16))


STREAM = "task:once"


def state(store: OpenStore) -> Task:
    """The stored state of a task."""
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
    "a state that is no state": (lambda store: store.row(STREAM, state=b"{}"), "state differs"),
    "in a ready queue": (
        lambda store: store.row(STREAM, shelf=Shelf("ready", "", 2, 1)),
        "indexes differ",
    ),
    "another owner": (
        lambda store: store.row(STREAM, shelf=Shelf("blocked", owner="mallory")),
        "indexes differ",
    ),
    "off the board": (lambda store: store.row(STREAM, shelf=Shelf()), "indexes differ"),
    "a lease": (
        lambda store: store.row(STREAM, lease=Lease("mallory", 2, 1, 1, 1)),
        "lease does not belong",
    ),
    "an actor's record": (
        lambda store: store.row("actor:agent:alice", state=b'{"minute":1}'),
        "stored state differs",
    ),
}


@proves("VERIFY-VIEWS")
@pytest.mark.parametrize(("tamper", "problem"), TAMPERED_ROWS.values(), ids=TAMPERED_ROWS)
def test_a_changed_view_is_found(tamper: Callable[[Ledger], Any], problem: str) -> None:
    store = ledger()
    tamper(store)
    found = list(check_views(store, silent))
    assert len(found) == 1
    assert problem in found[0].problem
    assert found[0].stream in (STREAM, "actor:agent:alice")
    assert found[0].position == 0
    assert first(store) is None, "the ledger itself is sound"


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize(
    ("fields", "position"),
    [({"version": 3}, 0), ({"version": 99}, HEAD + 1), ({"hash": bytes(32)}, 0)],
)
def test_a_row_that_does_not_stand_where_its_entries_end_is_found(
    fields: dict[str, Any], position: int
) -> None:
    (found,) = check_ledger(ledger().row(STREAM, **fields), (), silent)
    assert (found.stream, found.position) == (STREAM, position)


@proves("VERIFY-VIEWS")
def test_a_row_that_is_missing_or_has_no_entries_is_found() -> None:
    store = ledger()
    del store.tables.rows[store.tables.numbers.pop(STREAM)]
    assert Finding("the stream has entries but no row", stream=STREAM) in findings(store)
    extra = ledger()
    row = extra.tables.rows[extra.tables.numbers[STREAM]]
    extra.tables.rows[999] = replace(row, number=999, name="task:ghost")
    assert {found.stream for found in findings(extra)} == {"task:ghost"}


@proves("VERIFY-VIEWS", "NAME-ALIAS")
@pytest.mark.parametrize("pair", sorted(HONEST.tables.names), ids=":".join)
def test_a_name_that_is_missing_or_leads_elsewhere_is_found(pair: tuple[str, str]) -> None:
    name, kind = pair
    removed, redirected = ledger(), ledger()
    owner = removed.tables.names.pop(pair)
    removed.tables.kinds[name].remove(kind)
    problem = Finding(f"the alias {kind}:{name} is missing", stream=owner)
    assert problem in findings(removed)
    redirected.tables.names[pair] = "task:once" if owner != "task:once" else "task:build"
    assert problem in findings(redirected)


@proves("VERIFY-VIEWS", "NAME-ALIAS")
def test_a_name_that_nobody_gave_is_found() -> None:
    store = ledger()
    store.tables.names["mine", "bead"] = STREAM
    store.tables.kinds["mine"] = ["bead"]
    (found,) = findings(store)
    assert found == Finding("nothing in the ledger gave it the alias bead:mine", stream=STREAM)


@proves("VERIFY-VIEWS", "LEASE-FENCE")
@pytest.mark.parametrize(
    "fields",
    [None, {"fence": 2}, {"fence": 0}, {"holder": "mallory"}, {"session": "another"}],
)
def test_a_lease_that_is_gone_or_another_attempts_is_found(fields: dict[str, Any] | None) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice", "s1"))
    assert findings(lab.store) == []
    held = lab.lease("T")
    assert held is not None
    store = ledger(lab.store)
    store.row("task:T", lease=None if fields is None else replace(held, **fields))
    assert findings(store) == [Finding("the lease does not belong to the attempt", stream="task:T")]


@proves("VERIFY-VIEWS", "LEASE-OFF-LEDGER")
def test_heartbeats_are_not_history() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    held = lab.lease("T")
    assert held is not None
    store = ledger(lab.store)
    store.row("task:T", lease=replace(held, beat_at=1, expires_at=2, beats=99))
    assert findings(store) == []


@proves("VERIFY-VIEWS", "RETRY-BACKOFF")
def test_a_resting_task_may_stand_in_its_queue_or_not_yet() -> None:
    """Whether a duty has promoted it is not in the ledger; everything else about it is."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    store = ledger(lab.store)
    resting = replace(lab.task("T"), not_before=lab.clock.now() + 1_000)
    born = lab.task("T").created_at
    for shelf, sound in (
        (Shelf("ready", "", 2, born), True),
        (Shelf("ready", None, 2, born, 0), False),
        (Shelf("ready", None, 2, born, resting.not_before), False),
    ):
        store.row("task:T", shelf=shelf)
        assert (findings(store) == []) is sound


@proves("VERIFY-VIEWS", "STORE-REFOLD")
def test_a_state_of_an_old_fold_may_differ_but_neither_be_missing_nor_misplaced() -> None:
    older = ledger().row(STREAM, fold=FOLD - 1, state=b"as older rules had it")
    assert findings(older) == []
    for fields in ({"state": b""}, {"shelf": Shelf()}):
        assert findings(ledger().row(STREAM, fold=FOLD - 1, **fields)) != []


class Busy(OpenStore):
    """A store in which somebody writes between the looks of a verifier."""

    def __init__(self) -> None:
        super().__init__()
        self.writing: list[Callable[[], object]] = []

    def rows(self, after: int, limit: int) -> list[Row]:
        """A page of rows that is out of date when it arrives."""
        page = super().rows(after, limit)
        while self.writing:
            self.writing.pop(0)()
        return page


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@pytest.mark.parametrize("of", ["views", "ledger"])
def test_verify_is_not_alarmed_by_somebody_who_writes_beside_it(of: str) -> None:
    store = Busy()
    lab = Lab(store)
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    store.writing = [
        lambda: lab.do(HUMAN, NoteTask("T", "x")),
        lambda: lab.do(ALICE, ClaimTask("T", "alice")),
        lambda: lab.do(HUMAN, CreateTask("new", "N", aliases=("bead:n",))),
    ]
    found = check_views(store, silent) if of == "views" else check_ledger(store, (), silent)
    assert list(found) == []
    assert lab.task("T").notes == 1


@proves("VERIFY-HASHES", "VERIFY-REMOVED")
@pytest.mark.parametrize("fields", [{"version": 9}, {"hash": bytes(32)}, {"version": 0}])
def test_a_row_that_claims_to_have_grown_is_found(fields: dict[str, Any]) -> None:
    class Forged(Busy):
        def rows(self, after: int, limit: int) -> list[Row]:
            return [replace(row, **fields) for row in super().rows(after, limit)]

    store = Forged()
    lab = Lab(store)
    lab.do(HUMAN, CreateTask("t", "T"))
    store.writing = [lambda: lab.do(HUMAN, NoteTask("T", "x"))]
    assert list(check_ledger(store, (), silent)) != []


@proves("VERIFY-VIEWS", "VERIFY-HASHES")
@POSITIONS
def test_views_are_checked_to_the_end_whatever_the_ledger_is_like(position: int) -> None:
    broken = changed(position, line=b"not a line")
    stream = ENTRIES[position - 1].stream
    found = list(check_views(broken, silent))
    assert any(f.stream == stream and "cannot be replayed" in f.problem for f in found)
    removed = ledger().cut([kept for kept in ENTRIES if kept.position != position])
    found = list(check_views(removed, silent))
    if ENTRIES[position - 1].event == "task.created":
        assert any(f.stream == stream for f in found), "a stream without its beginning"


@proves("VERIFY-VIEWS")
def test_a_note_to_an_honest_ledger_stays_honest() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T"))
    signed = checkpoint(lab.store)
    lab.do(HUMAN, NoteTask("T", "x"))
    assert findings(lab.store, [signed]) == []
    assert list(check_tail(lab.store, signed)) == []


@proves("VERIFY-HASHES")
@POSITIONS
def test_a_line_that_cannot_be_read_is_no_growth_of_its_stream(position: int) -> None:
    found = list(check_ledger(changed(position, line=b"not a line"), (), silent))
    assert found[0].position == position
    last = max(e.position for e in ENTRIES if e.stream == ENTRIES[position - 1].stream)
    ends = [f for f in found if "its entries end at" in f.problem]
    assert bool(ends) == (position == last)
