"""Fixtures of the end-to-end tests: the program on an unused directory."""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.program import Program


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory that does not exist yet."""
    with closing(Program(tmp_path / "hub", bytecode)) as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def program_per_store(
    program: Program, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """Give the program once for each of the two databases."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("DRAGOMAN_STORE_URL", url)
    return program
