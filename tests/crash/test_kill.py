"""Hubs killed at any moment: nothing acknowledged is lost, nothing is doubled.

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

from dragoman.bootstrap.data_directory import open_directory
from dragoman.engine.verify import check_ledger, check_stored_states
from tests.conftest import LONG_RUN
from tests.crash.campaign import (
    KILLED,
    MEMORY,
    Campaign,
    HubUnderTest,
    KillPlan,
    OracleViolation,
    run_fork_server,
)
from tests.crash.data_directories import no_progress
from tests.crash.dispatch_process import STARTED, DispatchJob
from tests.crash.hub_run import Build, Report
from tests.crash.import_process import ImportJob
from tests.crash.kill_points import Kill
from tests.crash.scenario import SCENARIO, START
from tests.requirements import proves

KILLS: Final = 100_000 if os.environ.get(LONG_RUN) else 740
RECOVERY_KILLS: Final = 5_000 if os.environ.get(LONG_RUN) else 60
DISPATCHES: Final = 200 if os.environ.get(LONG_RUN) else 6
_DISPATCH_POINTS: Final = 250
"""About as many points as a hub passes until its one task is done."""
_POINTS_PER_STEP: Final = 100
"""About as many points as one step has, with opening and recovery."""
_RECOVERY_POINTS: Final = 24
"""About as many points as a hub passes before it gets a new request."""
_MAX_MICROSECONDS: Final = 60_000


@pytest.fixture(scope="module")
def campaign() -> Generator[Campaign]:
    """Fork server, and the baseline of an undisturbed run."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        with run_fork_server() as server:
            yield Campaign(server, folder)
    finally:
        shutil.rmtree(folder)


def random_kills(seed: int) -> Iterator[KillPlan]:
    """Random kills: mostly at a point, sometimes after a time."""
    rng = Random(seed)
    while True:
        verify = rng.random() < 0.05
        if rng.random() < 0.1:
            yield KillPlan(microseconds=rng.randrange(1, _MAX_MICROSECONDS), verify=verify)
        else:
            yield KillPlan(Kill(at=rng.randrange(1, _POINTS_PER_STEP)), verify=verify)


def run_to_the_end(hub: HubUnderTest, kills: Iterator[KillPlan]) -> int:
    """Kill the hub again and again until the scenario is completed; returns the number of kills."""
    while not hub.has_ended:
        hub.run(next(kills))
    hub.finish()
    hub.remove()
    return len(hub.kills)


@proves("CRASH-KILL", "STORE-DURABLE", "IDEM-REPEAT", "FILES-CRASH", "NOTIFY-AT-LEAST-ONCE")
def test_hub_survives_kill_at_random_moments(campaign: Campaign) -> None:
    killed, seeds = 0, count(1)
    while killed < KILLS:
        seed = next(seeds)
        killed += run_to_the_end(campaign.hub(seed=seed), random_kills(seed))


def kill_at_every_point(campaign: Campaign) -> list[str]:
    """Kill once at every named point until no new one is found; returns the names."""
    seen_points, count_before = set[str](), -1
    while len(seen_points) > count_before:
        count_before, hub = len(seen_points), campaign.hub()
        while not hub.has_ended:
            hub.run(KillPlan(Kill(beyond=sorted(seen_points))))
            seen_points.update(hub.kills)
        hub.finish()
        hub.remove()
    return sorted(seen_points)


@proves("CRASH-FAILPOINTS", "CRASH-RECOVERY", "FILES-CRASH")
def test_hub_survives_kill_at_every_point_and_in_recovery(
    campaign: Campaign,
) -> None:
    points = kill_at_every_point(campaign)
    parts = {name.partition(":")[0] for name in points}
    assert len(points) >= 80, points
    assert parts >= {"open", "ask", "ask again", "tick", "close", "recover projection"}, parts
    assert parts >= {f"follow {service}" for service in ("projection", "checkpoint", "notifier")}, (
        parts
    )

    rng = Random(7)

    def kills() -> Iterator[KillPlan]:
        while True:
            yield KillPlan(
                Kill(name=rng.choice(points), at=_POINTS_PER_STEP), verify=rng.random() < 0.1
            )
            yield KillPlan(Kill(at=rng.randrange(1, _RECOVERY_POINTS)))

    killed, pairs = 0, kills()
    while killed < 2 * RECOVERY_KILLS:
        killed += run_to_the_end(campaign.hub(seed=7), pairs)


@proves("CRASH-FAILPOINTS", "STORE-DURABLE", "IDEM-REPEAT")
def test_hub_on_postgresql_survives_kill_at_every_failpoint(
    campaign: Campaign, postgres_url: str
) -> None:
    hub = campaign.hub(store=postgres_url)
    failpoints = tuple(f"ask: engine {name}" for name in ("decided", "written", "committed"))
    passes = 1
    for _ in takewhile(lambda step: step.requests, SCENARIO):
        for failpoint in failpoints:
            hub.run(KillPlan(Kill(name=failpoint, passes=passes)))
            passes = 1
        passes = 2  # the next run gets as far as the next step
    hub.finish()
    assert set(hub.kills) == set(failpoints)


@proves("CRASH-FAILPOINTS")
def test_killed_import_is_complete_or_restartable(campaign: Campaign, tmp_path: Path) -> None:
    original = campaign.hub()
    original.finish()
    directory = open_directory(original.data, "", START, create=False)
    directory.archive("export", tmp_path / "archive.tar", no_progress)
    head = directory.hub.store.head()
    directory.hub.close()

    data, reports, seen_points = tmp_path / "data", tmp_path / "said", set[str]()
    job = ImportJob(str(tmp_path / "archive.tar"), str(data), str(reports))
    while campaign.server.run(replace(job, kill=Kill(beyond=sorted(seen_points)))) == KILLED:
        seen_points.add(last_report(reports))
        if data.exists():
            assert check_sound(data) == head
            shutil.rmtree(data)
    assert check_sound(data) == head
    assert len(seen_points) >= 8, seen_points


@proves("CRASH-FAILPOINTS", "DISPATCH-RESTART")
def test_hub_killed_while_dispatching_starts_no_session_twice(
    campaign: Campaign, tmp_path: Path
) -> None:
    seen_points, rng = set[str](), Random(3)
    while (
        status := run_dispatch_job(campaign, tmp_path / "0", Kill(beyond=sorted(seen_points)))
    ) == KILLED:
        seen_points.add(last_report(tmp_path / "0" / "said"))
    assert status == 0
    assert len(seen_points) >= 10, seen_points
    for number in range(1, DISPATCHES):
        folder = tmp_path / f"{number}"
        while (
            run_dispatch_job(campaign, folder, Kill(at=rng.randrange(1, _DISPATCH_POINTS)))
            == KILLED
        ):
            continue
    for folder in tmp_path.iterdir():
        sessions = (folder / STARTED).read_text().splitlines()
        assert sessions
        assert len(sessions) == len(set(sessions)), sessions
        check_sound(folder / "data")


def run_dispatch_job(campaign: Campaign, folder: Path, kill_many: Kill) -> int:
    """Run a hub that dispatches its one task, or is killed; returns its exit status."""
    folder.mkdir(exist_ok=True)
    return campaign.server.run(DispatchJob(str(folder / "data"), str(folder / "said"), kill_many))


def last_report(reports: Path) -> str:
    """Point at which the process was killed."""
    return msgspec.json.decode(reports.read_bytes().splitlines()[-1], type=Report).text


def check_sound(data: Path) -> int:
    """Verify the ledger and its views; returns the head."""
    directory = open_directory(data, "", START, create=True)
    store = directory.hub.store
    assert [
        *check_ledger(store, (), ignore_progress),
        *check_stored_states(store, ignore_progress),
    ] == []
    head = store.head()
    directory.hub.close()
    return head


def ignore_progress(_: int) -> None:
    """Ignore the progress."""


@proves("CRASH-TEETH")
@pytest.mark.parametrize(
    ("build", "complaint"),
    [("hasty", "steps were acknowledged"), ("keyless", "again: |added entries|acknowledged")],
)
def test_mutant_builds_are_detected(campaign: Campaign, build: Build, complaint: str) -> None:
    def kill_many(times: int) -> None:
        for seed in range(times):
            run_to_the_end(campaign.hub(seed=seed, build=build), random_kills(seed))

    with pytest.raises(OracleViolation, match=complaint):
        kill_many(100)
