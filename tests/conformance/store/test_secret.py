"""The mark of the secret: the first hub's counts, for everyone, until one is set on purpose."""

from dragoman.engine.ports import Store
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.storages import Storage
from tests.conformance.store.threads import at_once
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-SECRET")


def test_the_first_mark_counts_and_writes_no_entry(open_store: OpenStore) -> None:
    first = open_store()

    assert first.secret_mark("ours") == "ours"
    assert open_store().secret_mark("theirs") == "ours"
    assert first.secret_mark("theirs", anew=True) == "theirs"
    assert open_store().secret_mark("ours") == "theirs"
    assert first.head() == 0


def test_of_many_who_come_first_at_once_one_counts_for_all(database: Storage) -> None:
    stores: list[Store] = [database.open() for _ in range(4)]

    marks = at_once(
        [lambda store=store, n=n: store.secret_mark(f"mark {n}") for n, store in enumerate(stores)]
    )

    assert len(set(marks)) == 1
