"""Fixtures of the engine tests."""

from collections.abc import Generator

import pytest

from tests.engine.lab import Lab, findings


@pytest.fixture
def lab() -> Generator[Lab]:
    """Hub in memory; its ledger must verify after every test."""
    lab = Lab()
    yield lab
    lab.engine.close()
    assert findings(lab.store) == []
