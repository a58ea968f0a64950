"""What the tests of the command line share: somebody who types."""

from pathlib import Path

import pytest

from tests.surfaces.cli.console import Console
from tests.surfaces.cli.message_files import MessageFiles


@pytest.fixture
def dragoman(tmp_path: Path) -> Console:
    """Give a command line on a data directory that does not exist yet."""
    return Console(tmp_path / "hub")


@pytest.fixture
def message_file(tmp_path: Path) -> MessageFiles:
    """Give a way to write messages into files."""
    return MessageFiles(tmp_path / "letters")
