"""Fixtures of the AOF/1 tests."""

import pytest

from tests.protocols.aof.hub import AofHub


@pytest.fixture
def hub() -> AofHub:
    """Give a hub that speaks AOF/1, with a parent task in progress and a ready child."""
    return AofHub()
