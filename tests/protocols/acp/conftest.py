"""What the tests of ACP share."""

from pathlib import Path

import pytest

from tests.protocols.acp.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a hub that speaks ACP."""
    return Desk(tmp_path)
