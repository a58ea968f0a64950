"""Reads: after the same requests every store shows what the oracle shows."""

from collections.abc import Sequence

from hypothesis import given

from dragoman.engine.ports import IntegrityReport, Store
from dragoman.engine.request import Outcome
from dragoman.ledger.entry import GENESIS, link_hash
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds
from tests.conformance.store.changes import begin_stream
from tests.conformance.store.hubs import NOW, Hub
from tests.conformance.store.oracle import compare
from tests.conformance.store.scripts import AGENTS, SCRIPT, TTL, Step, scripts
from tests.conformance.store.storages import Storage, Storages
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT")


def play(script: Sequence[Step], store: Store) -> tuple[list[Outcome], int]:
    """Run a script; equal ids and times give equal bytes on every store."""
    hub = Hub(store, ManualClock(NOW), SequentialIds())
    outcomes: list[Outcome] = []
    for step in script:
        outcomes.append(hub.ask(step.actor, *step.commands, key=step.key))
        hub.clock.advance(step.then_wait)
    return outcomes, hub.clock.now()


def test_script_leaves_the_same_data_in_every_reader(store: Store) -> None:
    oracle = MemoryStore("oracle")

    outcomes, now = play(SCRIPT, store)

    assert (outcomes, now) == play(SCRIPT, oracle)
    compare(store, oracle, AGENTS, now)
    assert store.head() >= 30
    assert set(store.status_counts()) == {"done", "cancelled", "in-progress", "ready"}
    assert store.streams_in_session("s-bob") != []
    assert store.overdue_streams(now, 9) == ["task:X-1"]
    assert store.overdue_streams(now + 90 * TTL, 9) == ["task:X-1", "task:d"]
    known = [row.name for row in store.streams_of_kind("agent", "", 9)]
    assert known == ["agent:Zoe", "agent:a-b", "agent:a.b@host", "agent:alice"]


@proves("MODEL-REPLAY")
@given(script=scripts)
def test_any_script_leaves_the_same_data_in_every_reader(
    storages: Storages, script: Sequence[Step]
) -> None:
    oracle = MemoryStore("oracle")
    with storages.new() as storage:
        store = storage.open()

        outcomes, now = play(script, store)

        assert (outcomes, now) == play(script, oracle)
        compare(store, oracle, AGENTS, now)


@proves("LEDGER-CHAIN")
def test_stored_ledger_is_chained_stream_by_stream(store: Store) -> None:
    play(SCRIPT, store)

    heads: dict[str, bytes] = {}
    for entry in store.entries(0, 1_000):
        assert entry.previous == heads.get(entry.stream, GENESIS)
        assert entry.hash == link_hash(entry.previous, entry.line)
        heads[entry.stream] = entry.hash
    assert heads == {row.name: row.hash for row in store.rows(0, 1_000) if row.version}


@proves("STORE-INSPECT")
def test_intact_store_has_no_damage_and_reports_if_the_check_was_complete(storage: Storage) -> None:
    store = storage.open()
    begin_stream(store, "task:a")

    assert store.inspect() == IntegrityReport(is_complete=storage.kind != "postgres")
