"""Ids: time-ordered UUIDs, and sequential ones that are the same in every run."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from dragoman.system.clock import SequentialIds, new_id
from tests.requirements import proves


def take(ids: Callable[[], str], count: int) -> list[str]:
    return [ids() for _ in range(count)]


@proves("SYSTEM-IDS")
def test_ids_are_uuids_of_version_7() -> None:
    fresh = new_id()
    assert UUID(fresh).version == 7
    assert str(UUID(fresh)) == fresh


@proves("SYSTEM-IDS")
def test_ids_rise_within_one_millisecond() -> None:
    ids = take(new_id, 100_000)
    assert ids == sorted(set(ids))


@proves("SYSTEM-IDS")
def test_threads_never_share_an_id() -> None:
    for ids in (new_id, SequentialIds()):
        with ThreadPoolExecutor(4) as pool:
            batches = list(pool.map(take, [ids] * 4, [10_000] * 4))
        assert len({fresh for batch in batches for fresh in batch}) == 40_000


@proves("TESTING-HUB")
def test_sequential_ids_are_reproducible_and_rise() -> None:
    first, second = take(SequentialIds(), 300), take(SequentialIds(), 300)
    assert first == second == sorted(set(first))
    assert first[0] == "00000000-0000-7000-8000-000000000001"
    assert {UUID(counted).version for counted in first} == {7}
