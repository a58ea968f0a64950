"""Hubs that are killed at any moment: nothing acknowledged is lost, nothing is doubled.

`DRAGOMAN_LONG_TESTS=1 uv run pytest tests/crash -n0` kills a hundred thousand times.
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from itertools import count, takewhile
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.bootstrap.places import open_place
from dragoman.engine.verifying.verify import check_ledger, check_views
from tests.conftest import LONG_RUN
from tests.crash.campaign import KILLED, MEMORY, Campaign, Fate, Hub, Wrong, serving
from tests.crash.dispatching import STARTED, Dispatch
from tests.crash.life import Build, Said
from tests.crash.points import Kill
from tests.crash.restoring import Restoration
from tests.crash.story import START, STORY
from tests.requirements import proves

KILLS: Final = 100_000 if os.environ.get(LONG_RUN) else 740
PAIRS: Final = 5_000 if os.environ.get(LONG_RUN) else 60
DISPATCHES: Final = 200 if os.environ.get(LONG_RUN) else 6
_DISPATCHED: Final = 250
"""As many points a hub passes, more or less, until its one task is done."""
_FAR: Final = 100
"""As many points lie in about one step: deaths while opening, recovering and working."""
_RECOVERY: Final = 24
"""As many points a hub passes, more or less, before it is asked for anything new."""
_LONG_MICROSECONDS: Final = 60_000


@pytest.fixture(scope="module")
def campaign() -> Generator[Campaign]:
    """Give a fork server, and how the story goes when nobody is killed."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        with serving() as server:
            yield Campaign(server, folder)
    finally:
        shutil.rmtree(folder)


def random_fates(seed: int) -> Iterator[Fate]:
    """Deaths that nobody expects: mostly at a point, sometimes after a time."""
    chance = Random(seed)
    while True:
        verify = chance.random() < 0.05
        if chance.random() < 0.1:
            yield Fate(microseconds=chance.randrange(1, _LONG_MICROSECONDS), verify=verify)
        else:
            yield Fate(Kill(at=chance.randrange(1, _FAR)), verify=verify)


def tell_to_the_end(hub: Hub, fates: Iterator[Fate]) -> int:
    """Let it die again and again until its story is told; how often it was killed."""
    while not hub.has_ended:
        hub.live(next(fates))
    hub.finish()
    hub.remove()
    return len(hub.deaths)


@proves("CRASH-KILL", "STORE-DURABLE", "IDEM-REPEAT", "FILES-CRASH", "NOTIFY-AT-LEAST-ONCE")
def test_killed_at_any_moment(campaign: Campaign) -> None:
    killed, seeds = 0, count(1)
    while killed < KILLS:
        seed = next(seeds)
        killed += tell_to_the_end(campaign.hub(seed=seed), random_fates(seed))


def kill_at_every_point(campaign: Campaign) -> list[str]:
    """Kill once at every point that has a name, until there is none left; their names."""
    known, seen_before = set[str](), -1
    while len(known) > seen_before:
        seen_before, hub = len(known), campaign.hub()
        while not hub.has_ended:
            hub.live(Fate(Kill(beyond=sorted(known))))
            known.update(hub.deaths)
        hub.finish()
        hub.remove()
    return sorted(known)


@proves("CRASH-FAILPOINTS", "CRASH-RECOVERY", "FILES-CRASH")
def test_killed_at_every_point_that_has_a_name_and_again_in_the_recovery(
    campaign: Campaign,
) -> None:
    points = kill_at_every_point(campaign)
    parts = {name.partition(":")[0] for name in points}
    assert len(points) >= 80, points
    assert parts >= {"open", "ask", "ask again", "tick", "close", "recover projection"}, parts
    assert parts >= {f"follow {duty}" for duty in ("projection", "checkpoint", "notify")}, parts

    chance = Random(7)

    def fates() -> Iterator[Fate]:
        while True:
            yield Fate(Kill(name=chance.choice(points), at=_FAR), verify=chance.random() < 0.1)
            yield Fate(Kill(at=chance.randrange(1, _RECOVERY)))

    killed, pairs = 0, fates()
    while killed < 2 * PAIRS:
        killed += tell_to_the_end(campaign.hub(seed=7), pairs)


@proves("CRASH-FAILPOINTS", "STORE-DURABLE", "IDEM-REPEAT")
def test_killed_at_each_failpoint_of_each_step_on_postgresql(
    campaign: Campaign, postgres_url: str
) -> None:
    hub = campaign.hub(store=postgres_url)
    failpoints = tuple(f"ask: engine {name}" for name in ("decided", "written", "committed"))
    passes = 1
    for _ in takewhile(lambda step: step.requests, STORY):
        for failpoint in failpoints:
            hub.live(Fate(Kill(name=failpoint, passes=passes)))
            passes = 1
        passes = 2  # the next life comes as far as the next step
    hub.finish()
    assert set(hub.deaths) == set(failpoints)


@proves("CRASH-FAILPOINTS")
def test_an_import_that_is_killed_is_whole_or_can_be_begun_again(
    campaign: Campaign, tmp_path: Path
) -> None:
    original = campaign.hub()
    original.finish()
    place = open_place(original.data, "", START, create=False)
    place.export(tmp_path / "archive.tar", ignore)
    head = place.hub.store.head()
    place.hub.close()

    data, said, known = tmp_path / "data", tmp_path / "said", set[str]()
    job = Restoration(str(tmp_path / "archive.tar"), str(data), str(said))
    while campaign.server.live(replace(job, kill=Kill(beyond=sorted(known)))) == KILLED:
        known.add(last_word(said))
        if data.exists():
            assert check_sound(data) == head
            shutil.rmtree(data)
    assert check_sound(data) == head
    assert len(known) >= 8, known


@proves("CRASH-FAILPOINTS", "DISPATCH-RESTART")
def test_a_hub_that_is_killed_while_it_starts_agents_starts_no_session_twice(
    campaign: Campaign, tmp_path: Path
) -> None:
    known, chance = set[str](), Random(3)
    while (unseen := dispatched(campaign, tmp_path / "0", Kill(beyond=sorted(known)))) == KILLED:
        known.add(last_word(tmp_path / "0" / "said"))
    assert unseen == 0
    assert len(known) >= 10, known
    for number in range(1, DISPATCHES):
        folder = tmp_path / f"{number}"
        while dispatched(campaign, folder, Kill(at=chance.randrange(1, _DISPATCHED))) == KILLED:
            continue
    for folder in tmp_path.iterdir():
        begun = (folder / STARTED).read_text().splitlines()
        assert begun
        assert len(begun) == len(set(begun)), begun
        check_sound(folder / "data")


def dispatched(campaign: Campaign, folder: Path, kill: Kill) -> int:
    """A hub that has a program do its one task, or dies; how it ended."""
    folder.mkdir(exist_ok=True)
    return campaign.server.live(Dispatch(str(folder / "data"), str(folder / "said"), kill))


def last_word(said: Path) -> str:
    """Where the process died."""
    return msgspec.json.decode(said.read_bytes().splitlines()[-1], type=Said).text


def check_sound(data: Path) -> int:
    """The ledger and its views hold; where it ends."""
    place = open_place(data, "", START, create=True)
    store = place.hub.store
    assert [*check_ledger(store, (), ignore), *check_views(store, ignore)] == []
    head = store.head()
    place.hub.close()
    return head


def ignore(_: int) -> None:
    """Nobody watches the progress."""


@proves("CRASH-TEETH")
@pytest.mark.parametrize(
    ("build", "complaint"),
    [("hasty", "steps were acknowledged"), ("keyless", "again: |added entries|acknowledged")],
)
def test_builds_that_are_broken_on_purpose_are_found_out(
    campaign: Campaign, build: Build, complaint: str
) -> None:
    def kill(times: int) -> None:
        for seed in range(times):
            tell_to_the_end(campaign.hub(seed=seed, build=build), random_fates(seed))

    with pytest.raises(Wrong, match=complaint):
        kill(100)
