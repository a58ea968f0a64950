"""A fresh scene for each test."""

import pytest

from tests.protocols.aof.hub import AofHub


@pytest.fixture
def hub() -> AofHub:
    """Give a hub that speaks AOF/1, with a parent task in work and a child that waits."""
    return AofHub()
