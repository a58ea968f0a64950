"""Fixture of the SDK tests: a hub behind a relay."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.client.backend import Backend, running_backend


@pytest.fixture
def backend(tmp_path: Path) -> Generator[Backend]:
    """Give a hub on a disk, with the agents ada and bob, behind a relay."""
    with running_backend(tmp_path) as created:
        yield created
