"""A hub that agents can call, for the tests of the SDK."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.client.stage import Stage, staged


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Stage]:
    """Give a hub on a disk, with the agents ada and bob, behind a relay."""
    with staged(tmp_path) as made:
        yield made
