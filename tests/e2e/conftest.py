"""What the end-to-end tests share: the program on an unused directory."""

from pathlib import Path

import pytest

from tests.e2e.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Give the program on a data directory that does not exist yet."""
    return Program(tmp_path / "hub")
