"""The search indexer: follows the ledger without any search, in batches."""

import pytest

from dragoman.services import search_indexer
from dragoman.services.search_indexer import SearchIndexer
from tests.engine.lab import Lab
from tests.engine.letters import post, read
from tests.requirements import proves

pytestmark = proves("STORE-SEARCH")


def test_letters_are_indexed_in_batches_before_any_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_indexer, "_BATCH", 3)
    lab = Lab()
    service, now = SearchIndexer(lab.hub), lab.clock.now()
    assert (service.name, service.run_once(now)) == ("search-index", 0)
    post(lab.store, "1")
    read(lab.store, "1")
    post(lab.store, "2")
    post(lab.store, "3")
    assert service.run_once(now) == 2
    assert lab.store.indexed_position() == 3, "a long ledger is not looked through in one run"
    assert service.run_once(now) == 1
    assert lab.store.indexed_position() == lab.store.head()
    assert service.run_once(now) == 0
