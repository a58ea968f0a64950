"""Storages of every kind, so that each test of the suite runs on all stores."""

from collections.abc import Callable, Generator

import pytest

from dragoman.engine.ports import Store
from tests.conformance.store.hubs import Hubs
from tests.conformance.store.storages import Storage, Storages

OpenStore = Callable[[], Store]


def make_storages(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Storages:
    """Make storages of this kind; the server is started only if it is needed."""
    if kind == "postgres":
        return Storages(kind, request.getfixturevalue("postgres_server"))
    return Storages(kind, str(tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="session", params=["memory", "sqlite", "postgres"])
def storages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storages:
    """Storages of each kind."""
    return make_storages(request.param, request, tmp_path_factory)


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storages:
    """Storages that several processes can share."""
    return make_storages(request.param, request, tmp_path_factory)


@pytest.fixture
def storage(storages: Storages) -> Generator[Storage]:
    """Empty storage."""
    with storages.new() as storage:
        yield storage


@pytest.fixture
def database(databases: Storages) -> Generator[Storage]:
    """Empty storage that several processes can share."""
    with databases.new() as storage:
        yield storage


@pytest.fixture
def open_store(storage: Storage) -> OpenStore:
    """Function that opens the same storage, once more with each call."""
    return storage.open


@pytest.fixture
def store(storage: Storage) -> Store:
    """Store on an empty storage."""
    return storage.open()


@pytest.fixture
def hubs(storage: Storage) -> Generator[Hubs]:
    """Hubs on one storage with one clock."""
    hubs = Hubs(storage.open)
    yield hubs
    hubs.close()
