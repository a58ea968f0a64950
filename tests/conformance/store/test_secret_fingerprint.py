"""Secret fingerprint: the first hub's is kept for all, until one is overwritten on purpose."""

from dragoman.engine.ports import Store
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.storages import Storage
from tests.conformance.store.threads import run_concurrently
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-SECRET")


def test_first_fingerprint_is_kept_and_writes_no_entry(open_store: OpenStore) -> None:
    first = open_store()

    assert first.secret_fingerprint("ours") == "ours"
    assert open_store().secret_fingerprint("theirs") == "ours"
    assert first.secret_fingerprint("theirs", overwrite=True) == "theirs"
    assert open_store().secret_fingerprint("ours") == "theirs"
    assert first.head() == 0


def test_one_of_many_concurrent_fingerprints_is_kept(database: Storage) -> None:
    stores: list[Store] = [database.open() for _ in range(4)]

    fingerprints = run_concurrently(
        [
            lambda store=store, n=n: store.secret_fingerprint(f"mark {n}")
            for n, store in enumerate(stores)
        ]
    )

    assert len(set(fingerprints)) == 1
