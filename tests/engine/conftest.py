"""The lab of the engine's tests."""

from collections.abc import Generator

import pytest

from tests.engine.lab import Lab, findings


@pytest.fixture
def lab() -> Generator[Lab]:
    """Give a fresh hub; whatever a test does to it, its ledger must verify in the end."""
    lab = Lab()
    yield lab
    lab.engine.close()
    assert findings(lab.store) == []
