"""The same storage for every kind of store, so that each test of the suite runs on all of them."""

from collections.abc import Callable, Generator

import pytest

from dragoman.engine.ports import Store
from tests.conformance.store.hubs import Hubs
from tests.conformance.store.storages import Storage, Storages

OpenStore = Callable[[], Store]


def make_storages(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Storages:
    """Make places of this kind; the server is started only for those that need it."""
    if kind == "postgres":
        return Storages(kind, request.getfixturevalue("postgres_server"))
    return Storages(kind, str(tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="session", params=["memory", "sqlite", "postgres"])
def storages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storages:
    """Places of each kind."""
    return make_storages(request.param, request, tmp_path_factory)


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storages:
    """Places that several processes can share."""
    return make_storages(request.param, request, tmp_path_factory)


@pytest.fixture
def storage(storages: Storages) -> Generator[Storage]:
    """An empty place."""
    with storages.new() as storage:
        yield storage


@pytest.fixture
def database(databases: Storages) -> Generator[Storage]:
    """An empty place that several processes can share."""
    with databases.new() as storage:
        yield storage


@pytest.fixture
def open_store(storage: Storage) -> OpenStore:
    """Open the same storage, once more with each call."""
    return storage.open


@pytest.fixture
def store(storage: Storage) -> Store:
    """A store on an empty place."""
    return storage.open()


@pytest.fixture
def hubs(storage: Storage) -> Generator[Hubs]:
    """Hubs on one storage under one clock."""
    hubs = Hubs(storage.open)
    yield hubs
    hubs.close()
