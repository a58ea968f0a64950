"""Fixtures of the command-line tests."""

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
    """Give a writer of message files."""
    return MessageFiles(tmp_path / "letters")
