"""A fresh scene for each test."""

import pytest

from tests.protocols.aof.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """Give a hub that speaks AOF/1, with a parent task in work and a child that waits."""
    return Scene()
