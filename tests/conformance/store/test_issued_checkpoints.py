"""Extents of issued checkpoints: one of each file, the last that was kept."""

from tests.conformance.store.conftest import OpenStore
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "CHECKPOINT-REMOVED")


def test_last_extent_of_each_file_is_kept(open_store: OpenStore) -> None:
    first = open_store()
    assert first.issued_checkpoints() == {}
    first.secret_fingerprint("ours")

    first.keep_issued_checkpoints("a", "1 100 x")
    first.keep_issued_checkpoints("b", "1 90 y")
    first.keep_issued_checkpoints("a", "2 200 z")

    assert open_store().issued_checkpoints() == {"a": "2 200 z", "b": "1 90 y"}
    assert first.head() == 0
