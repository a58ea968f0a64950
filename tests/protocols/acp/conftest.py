"""Fixtures of the ACP tests."""

from pathlib import Path

import pytest

from tests.protocols.acp.hub import AcpHub


@pytest.fixture
def hub(tmp_path: Path) -> AcpHub:
    """Give a hub that speaks ACP."""
    return AcpHub(tmp_path)
