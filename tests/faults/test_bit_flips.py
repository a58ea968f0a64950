"""Flipped bits in the database file: each is detected by verify, or without effect on reads."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.errors import DragomanError
from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger, check_stored_states
from tests.conformance.store.changes import everything
from tests.conftest import LONG_RUN
from tests.ledger.released import play
from tests.requirements import proves
from tests.store.sqlite.files import open_store

FLIPS = 20_000 if os.environ.get(LONG_RUN) else 100
SEED = int(os.environ.get("DRAGOMAN_SEED", "1"))
HEADER = 100


@pytest.fixture(scope="module")
def sound_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Closed database with everything that a ledger leaves in one."""
    path = tmp_path_factory.mktemp("sound") / "hub.db"
    store = open_store(path)
    play(store)
    store.close()
    return path


def problems(store: Store) -> Iterator[str]:
    """Problems that `verify` finds, in its order: a damaged database is not replayed."""
    for finding in check_ledger(store, (), lambda _: None):
        yield finding.problem
    damage = store.inspect().damage
    yield from damage
    if not damage:
        for finding in check_stored_states(store, lambda _: None):
            yield finding.problem


def read_all(store: Store) -> tuple[object, ...]:
    """Everything that a store shows, except the times of leases, which are in no ledger."""
    head, entries, rows, *rest = everything(store)
    leases = [one.lease and (one.lease.holder, one.lease.fence, one.lease.session) for one in rows]
    return head, entries, [replace(one, lease=None) for one in rows], leases, *rest


@proves("STORE-FLIPS")
def test_flipped_bit_is_detected_or_without_effect(sound_database: Path, tmp_path: Path) -> None:
    data, path = sound_database.read_bytes(), tmp_path / "hub.db"
    sound_store = open_store(sound_database)
    expected = read_all(sound_store)
    sound_store.close()
    nonzero_bytes = [at for at in range(HEADER, len(data)) if data[at]]
    rng, detected = random.Random(SEED), 0
    for number in range(FLIPS):
        at, bit = rng.choice(nonzero_bytes), rng.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
        if not _is_detected(path):
            store = open_store(path)
            assert read_all(store) == expected, (
                f"seed {SEED}, flip {number}: bit {bit} of byte {at}"
            )
            store.close()
        else:
            detected += 1
    assert detected > FLIPS // 4


def _is_detected(path: Path) -> bool:
    """True if verify, or opening the file, reports a problem."""
    try:
        store = open_store(path)
    except DragomanError:
        return True
    try:
        return next(problems(store), None) is not None
    except DragomanError:
        return True
    finally:
        store.close()
