"""Backups: made under load, restored anywhere, killed at any step; no store loses by it."""

import errno
import json
import os
import random
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from dragoman.bootstrap.backups import restore_backup
from dragoman.bootstrap.stores import open_store
from dragoman.core.commands import ClaimTask, CreateTask, NoteTask
from dragoman.core.errors import Refusal
from dragoman.engine.request import Accepted
from dragoman.files.archives.backup import check_backup
from dragoman.files.problems import PlaceTaken
from dragoman.ledger.entry import read_line
from dragoman.surfaces.cli.place import Place
from dragoman.system.token_file import load_or_create_token
from tests.conftest import LONG_RUN
from tests.crash.hubs import ADA, PERSON, findings, killed_at, no_bars, opened
from tests.requirements import proves
from tests.servers import fresh_schema

IS_LONG = bool(os.environ.get(LONG_RUN))
SEED = random.randrange(2**32) if IS_LONG else 1_770_670_500

ENOUGH = 20
"""So much was acknowledged before the first backup begins."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store; empty: the directory's own file."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def begin(place: Place) -> Accepted:
    """A task that ada holds, with a file of her own; the answer to the note under the key `old`."""
    hub = place.hub
    hub.do(PERSON, CreateTask("first", id="one", ready=True))
    hub.do(ADA, ClaimTask("one", "ada"))
    answer = hub.do(ADA, NoteTask("one", "half done"), key="old")
    assert list(place.settle()) == []
    (work,) = place.data.glob("tasks/in-progress/*/work")
    (work / "draft.bin").write_bytes(bytes(range(256)))
    return answer


def lines(place: Place) -> list[bytes]:
    """The ledger."""
    return [entry.line for entry in place.hub.store.entries(0, 100_000)]


@proves("BACKUP-WHOLE")
@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_restored_hub_goes_on_as_if_nothing_had_happened(
    url: str, into: str, tmp_path: Path, postgres_server: str
) -> None:
    with opened(tmp_path / "old", url) as old:
        answer = begin(old)
        token = load_or_create_token(old.data).decode()
        old.backup(tmp_path / "hub.tar", no_bars)
        ledger, held = lines(old), old.hub.store.stream("task:one")
        owner = old.identify(token, "http")
    with fresh_schema(postgres_server) as schema:
        other = schema if into == "postgres" else f"sqlite:///{tmp_path / 'elsewhere.db'}"

        restore_backup(tmp_path / "hub.tar", tmp_path / "new", other, no_bars)

        with opened(tmp_path / "new") as new:
            store = new.hub.store
            assert (lines(new), findings(new)) == (ledger, [])
            row = store.stream("task:one")
            assert held is not None
            assert row is not None
            assert (row.lease, row.state) == (held.lease, held.state)
            again = new.hub.do(ADA, NoteTask("one", "half done"), key="old")
            assert (again.receipts, again.repeated) == (answer.receipts, True)
            assert store.head() == len(ledger)
            (draft,) = new.data.glob("tasks/in-progress/*/work/draft.bin")
            assert draft.read_bytes() == bytes(range(256))
            assert new.identify(token, "http") == owner
            assert not isinstance(owner, Refusal)
            new.hub.do(ADA, NoteTask("one", "more"))
            assert list(new.settle()) == []
            # The new checkpoint is signed by the old key, which all of them are checked by.
            assert findings(new) == []
        settings = (tmp_path / "new" / "dragoman.toml").read_text()
        assert other in settings
    assert sorted(path.name for path in tmp_path.iterdir() if ".restoring" in path.name) == []


class Load:
    """Writers that go on until they are stopped, and know what was acknowledged to them."""

    def __init__(self, place: Place, writers: int) -> None:
        self.acknowledged: list[str] = []
        self.faults: list[BaseException] = []
        self._stop = Event()
        self._place = place
        self._threads = [Thread(target=self._write, args=(n,)) for n in range(writers)]
        self._has_begun = Event()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._has_begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        number = 0
        try:
            while not self._stop.is_set() and number < 2_000:
                number += 1
                key = f"{writer}-{number}"
                self._place.hub.do(PERSON, CreateTask(key, ready=True), key=key)
                self.acknowledged.append(key)
                if len(self.acknowledged) > ENOUGH:
                    self._has_begun.set()
        except BaseException as fault:
            self.faults.append(fault)
            self._has_begun.set()
            raise


def titles(place: Place) -> list[str]:
    """What was created, in order."""
    found = (read_line(line) for line in lines(place))
    return [json.loads(bytes(line.body))["title"] for line in found if line.event == "task.created"]


@proves("BACKUP-ONLINE")
def test_a_backup_under_load_has_all_that_was_acknowledged_before_and_nothing_by_halves(
    url: str, tmp_path: Path
) -> None:
    before: list[list[str]] = []
    with opened(tmp_path / "old", url) as old, Load(old, 3) as load:
        for number in range(3):
            before.append([*load.acknowledged])
            old.backup(tmp_path / f"{number}.tar", no_bars)
    assert load.faults == []
    assert len(load.acknowledged) > len(before[-1]) >= len(before[0]) > 0

    for number, known in enumerate(before):
        data = tmp_path / f"new-{number}"
        restore_backup(tmp_path / f"{number}.tar", data, f"sqlite:///{data}/dragoman.db", no_bars)
        with opened(data) as new:
            assert findings(new) == []
            there = set(titles(new))
            assert there.issuperset(known)
            for key in known:
                assert new.hub.do(PERSON, CreateTask(key, ready=True), key=key).repeated
            for key in load.acknowledged[len(known) :]:
                again = new.hub.do(PERSON, CreateTask(key, ready=True), key=key)
                assert again.repeated == (key in there)
            everything = titles(new)
            assert len(everything) == len(set(everything))


def steps() -> range:
    """Each step, or every so many from a chosen one on: the tests are run every day."""
    if IS_LONG:
        return range(1, 100_000)
    return range(random.Random(SEED).randrange(1, 18), 100_000, 17)


@proves("BACKUP-KILLED")
def test_a_backup_that_is_killed_is_none_and_the_next_one_succeeds(tmp_path: Path) -> None:
    data, target = tmp_path / "hub", tmp_path / "hub.tar"
    with opened(data) as place:
        begin(place)
        place.backup(tmp_path / "first.tar", no_bars)

    def back_up() -> None:
        with opened(data) as place:
            place.backup(target, no_bars)

    kills = 0
    for step in steps():
        if not killed_at(step, back_up):
            break
        kills += 1
        if target.exists():
            check_backup(target, lambda _: None)
            target.unlink()
    assert kills > 3
    assert check_backup(target, lambda _: None).manifest.head > 0
    with opened(data) as place:
        assert findings(place) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.tar", "hub", "hub.tar"]


@proves("BACKUP-KILLED")
@pytest.mark.parametrize("own", [True, False], ids=["own file", "file elsewhere"])
def test_a_restore_that_is_killed_is_none_and_the_next_one_succeeds(
    tmp_path: Path, own: bool
) -> None:
    backup, data = tmp_path / "hub.tar", tmp_path / "new" / "hub"
    store = "" if own else f"sqlite:///{tmp_path / 'new' / 'elsewhere.db'}"
    with opened(tmp_path / "old") as old:
        begin(old)
        old.backup(backup, no_bars)
        ledger = lines(old)
    restore_backup(backup, tmp_path / "warm", "", no_bars)

    kills = 0
    for step in steps():
        if not killed_at(step, lambda: restore_backup(backup, data, store, no_bars)):
            break
        kills += 1
        if data.exists():
            break
    assert kills > 3, f"seed {SEED}"
    with opened(data) as new:
        assert (lines(new), findings(new)) == (ledger, []), f"seed {SEED}"
    there = {path.name for path in data.parent.iterdir()}
    assert there == ({"hub"} if own else {"hub", "elsewhere.db"})


@proves("BACKUP-KILLED", "BACKUP-REFUSED")
def test_what_a_killed_restore_left_in_postgresql_does_not_stop_the_next_one(
    tmp_path: Path, postgres_url: str
) -> None:
    backup = tmp_path / "hub.tar"
    with opened(tmp_path / "old") as old:
        begin(old)
        old.backup(backup, no_bars)
        ledger = lines(old)
    restore_backup(backup, tmp_path / "warm", "", no_bars)
    data = tmp_path / "new"

    def restore() -> None:
        restore_backup(backup, data, postgres_url, no_bars)

    kills = 0
    for step in range(2, 200, 1 if IS_LONG else 5):
        if not killed_at(step, restore):
            break
        kills += 1
        if data.exists():
            break
    assert kills > 1
    with opened(data) as new:
        assert (lines(new), findings(new)) == (ledger, [])
    with pytest.raises(PlaceTaken, match="holds this very ledger"):
        restore_backup(backup, tmp_path / "second", postgres_url, no_bars)
    with opened(data) as new:
        new.hub.do(ADA, NoteTask("one", "more"))
    with pytest.raises(PlaceTaken, match=r"is not empty.*stays as it is"):
        restore_backup(backup, tmp_path / "second", postgres_url, no_bars)
    assert not (tmp_path / "second").exists()


@proves("BACKUP-KILLED")
def test_a_restore_that_was_killed_between_the_store_and_the_directory_is_finished(
    tmp_path: Path, postgres_url: str
) -> None:
    backup, data = tmp_path / "hub.tar", tmp_path / "new"
    with opened(tmp_path / "old") as old:
        begin(old)
        old.backup(backup, no_bars)
        ledger = lines(old)
    restore_backup(backup, data, postgres_url, no_bars)
    unfinished, record = tmp_path / ".new.restoring", (data / "restored.json").read_bytes()
    data.rename(unfinished)
    (unfinished / "restored.json").unlink()
    with pytest.raises(PlaceTaken, match="holds this very ledger"):
        restore_backup(backup, data, postgres_url, no_bars)
    (unfinished / "restored.json").write_bytes(record)

    restore_backup(backup, data, postgres_url, no_bars)

    with opened(data) as new:
        assert (lines(new), findings(new)) == (ledger, [])


@proves("BACKUP-KILLED")
def test_a_restore_that_fails_when_the_store_has_just_got_its_name_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, data, far = tmp_path / "hub.tar", tmp_path / "new", tmp_path / "far.db"
    with opened(tmp_path / "old") as old:
        begin(old)
        old.backup(backup, no_bars)
        ledger = lines(old)
    sync = os.fsync

    def broken(descriptor: int) -> None:
        if far.exists():
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="Input/output"):
            restore_backup(backup, data, f"sqlite:///{far}", no_bars)
    assert far.exists()
    assert not data.exists()

    restore_backup(backup, data, f"sqlite:///{far}", no_bars)

    with opened(data) as new:
        assert (lines(new), findings(new)) == (ledger, [])


@proves("BACKUP-KILLED", "BACKUP-REFUSED")
def test_a_restore_whose_place_was_taken_meanwhile_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, data, far = tmp_path / "hub.tar", tmp_path / "new" / "hub", tmp_path / "far.db"
    with opened(tmp_path / "old") as old:
        begin(old)
        old.backup(backup, no_bars)
    sync = os.fsync

    def raced(descriptor: int) -> None:
        sync(descriptor)
        if (data.parent / ".hub.restoring" / "restored.json").exists() and not far.exists():
            open_store(f"sqlite:///{far}", tmp_path).close()

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", raced)
        with pytest.raises(PlaceTaken, match="is there by now"):
            restore_backup(backup, data, f"sqlite:///{far}", no_bars)

    assert list(data.parent.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if ".restoring" in path.name] == []
