"""Fixtures of the dashboard's tests: one browser for all, and a hub with trouble in it."""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.program import Program
from tests.web.browser import chromium
from tests.web.fleet import Fleet, add_trouble, running_fleet


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Start a browser."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, bytecode: Path) -> Generator[Fleet]:
    """Give a hub with work and trouble in it, for all tests of a module."""
    data = tmp_path_factory.mktemp("fleet") / "hub"
    with closing(Program(data, bytecode)) as program, running_fleet(program) as running:
        add_trouble(running)
        yield running


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory that does not exist yet."""
    with closing(Program(tmp_path / "hub", bytecode)) as started:
        yield started


@pytest.fixture
def empty_fleet(program: Program) -> Generator[Fleet]:
    """Give a hub with agents and no work."""
    with running_fleet(program) as running:
        yield running
