"""Fixtures for all tests: PostgreSQL, pipes, bytecode cache, and profiles of hypothesis."""

import faulthandler
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.bytecode import keep_bytecode
from tests.memory import use_memory
from tests.servers import fresh_schema, running_postgres
from tests.traces import Trace

BYTECODE = Path(__file__).parent.parent / ".pytest_cache" / "bytecode"
LONG_RUN = "DRAGOMAN_LONG_TESTS"

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=100,
    stateful_step_count=30,
    # A slow machine is not a failed test.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    settings.get_profile("ci"),
    derandomize=False,
    max_examples=5_000,
    stateful_step_count=100,
    print_blob=True,
)
settings.load_profile("long" if os.environ.get(LONG_RUN) else "ci")


def pytest_configure() -> None:
    """Set up the environment before any worker process of this run starts."""
    keep_bytecode(BYTECODE)
    if not os.environ.get(LONG_RUN):
        use_memory()


def pytest_runtest_setup() -> None:
    """Lift the time limit of tests in a long run; otherwise a hanging test is ended."""
    if os.environ.get(LONG_RUN):
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def bytecode() -> Path:
    """Give the folder in which all processes share their compiled modules."""
    return BYTECODE


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """Give the URL of this worker's own PostgreSQL; a failed start is a failure, not a skip."""
    with running_postgres() as url:
        yield url


@pytest.fixture
def trace(tmp_path: Path) -> Generator[Trace]:
    """Give a pipe that programs hold open while they run; its end of file shows their exit."""
    opened = Trace(tmp_path / "trace")
    yield opened
    opened.close()


@pytest.fixture
def postgres_url(postgres_server: str) -> Generator[str]:
    """Give the URL of an empty schema in that PostgreSQL: `postgresql://…&schema=NAME`."""
    with fresh_schema(postgres_server) as url:
        yield url
