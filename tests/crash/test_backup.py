"""Backups: made under load, restored anywhere, killed at any step, without loss."""

import errno
import json
import os
import random
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from dragoman.bootstrap.archives import restore_archive
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.request import Committed
from dragoman.files.archive import BACKUP, check_archive
from dragoman.files.errors import TargetTaken
from dragoman.ledger.entry import read_line
from dragoman.store.postgres.migrate import drop_schema_at, schema_version_at
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.safe_fs import SafeDisk
from tests.conftest import LONG_RUN
from tests.crash.data_directories import (
    ADA,
    PERSON,
    findings,
    no_progress,
    open_new_directory,
    run_killed_at,
)
from tests.requirements import proves
from tests.servers import fresh_schema

IS_LONG = bool(os.environ.get(LONG_RUN))
SEED = random.randrange(2**32) if IS_LONG else 1_770_670_500

MIN_ACKNOWLEDGED = 20
"""Number of acknowledged writes before the first backup."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """URL of an empty store; empty: the directory's own file."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def claim_task_with_draft(directory: DataDirectory) -> Committed:
    """Make a task that ada holds, with a file of hers; returns the answer to the note with key
    `old`."""
    hub = directory.hub
    hub.submit(PERSON, CreateTask("first", id="one", ready=True))
    hub.submit(ADA, ClaimTask("one", "ada"))
    answer = hub.submit(ADA, NoteTask("one", "half done"), key="old")
    assert list(directory.catch_up()) == []
    (work,) = directory.path.glob("tasks/in-progress/*/work")
    (work / "draft.bin").write_bytes(bytes(range(256)))
    return answer


def read_lines(directory: DataDirectory) -> list[bytes]:
    """Lines of the ledger."""
    return [entry.line for entry in directory.hub.store.entries(0, 100_000)]


@proves("BACKUP-WHOLE")
@pytest.mark.parametrize("target_kind", ["sqlite", "postgres"])
def test_restored_hub_continues_unchanged(
    url: str, target_kind: str, tmp_path: Path, postgres_server: str
) -> None:
    with open_new_directory(tmp_path / "old", url) as old:
        answer = claim_task_with_draft(old)
        token = load_or_create_token(old.path).decode()
        old.archive("backup", tmp_path / "hub.tar", no_progress)
        ledger, row_before = read_lines(old), old.hub.store.stream("task:one")
        owner = old.authenticate(token, "http")
    with fresh_schema(postgres_server) as schema:
        other = schema if target_kind == "postgres" else f"sqlite:///{tmp_path / 'new/own.db'}"

        restore_archive("backup", tmp_path / "hub.tar", tmp_path / "new", other, no_progress)

        with open_new_directory(tmp_path / "new") as new:
            store = new.hub.store
            assert (read_lines(new), findings(new)) == (ledger, [])
            row = store.stream("task:one")
            assert row_before is not None
            assert row is not None
            assert (row.lease, row.state) == (row_before.lease, row_before.state)
            repeated = new.hub.submit(ADA, NoteTask("one", "half done"), key="old")
            assert (repeated.receipts, repeated.repeated) == (answer.receipts, True)
            assert store.head() == len(ledger)
            (draft,) = new.path.glob("tasks/in-progress/*/work/draft.bin")
            assert draft.read_bytes() == bytes(range(256))
            assert new.authenticate(token, "http") == owner
            assert not isinstance(owner, Refusal)
            new.hub.submit(ADA, NoteTask("one", "more"))
            assert list(new.catch_up()) == []
            # The new checkpoint is signed with the restored key, which verifies all of them.
            assert findings(new) == []
        settings = (tmp_path / "new" / "dragoman.toml").read_text()
        assert other in settings
    assert sorted(path.name for path in tmp_path.iterdir() if ".restoring" in path.name) == []


class Load:
    """Writers that run until they are stopped, and record what was acknowledged."""

    def __init__(self, directory: DataDirectory, writers: int) -> None:
        self.acknowledged: list[str] = []
        self.faults: list[BaseException] = []
        self._stop = Event()
        self._place = directory
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
                self._place.hub.submit(PERSON, CreateTask(key, ready=True), key=key)
                self.acknowledged.append(key)
                if len(self.acknowledged) > MIN_ACKNOWLEDGED:
                    self._has_begun.set()
        except BaseException as fault:
            self.faults.append(fault)
            self._has_begun.set()
            raise


def read_titles(directory: DataDirectory) -> list[str]:
    """Titles of created tasks, in order."""
    found = (read_line(line) for line in read_lines(directory))
    return [json.loads(bytes(line.body))["title"] for line in found if line.event == "task.created"]


@proves("BACKUP-ONLINE")
def test_backup_under_load_has_every_acknowledged_write(url: str, tmp_path: Path) -> None:
    before: list[list[str]] = []
    with open_new_directory(tmp_path / "old", url) as old, Load(old, 3) as load:
        for number in range(3):
            before.append([*load.acknowledged])
            old.archive("backup", tmp_path / f"{number}.tar", no_progress)
    assert load.faults == []
    assert len(load.acknowledged) > len(before[-1]) >= len(before[0]) > 0

    for number, acknowledged in enumerate(before):
        data = tmp_path / f"new-{number}"
        restore_archive(
            "backup", tmp_path / f"{number}.tar", data, f"sqlite:///{data}/dragoman.db", no_progress
        )
        with open_new_directory(data) as new:
            assert findings(new) == []
            restored = set(read_titles(new))
            assert restored.issuperset(acknowledged)
            for key in acknowledged:
                assert new.hub.submit(PERSON, CreateTask(key, ready=True), key=key).repeated
            for key in load.acknowledged[len(acknowledged) :]:
                repeated = new.hub.submit(PERSON, CreateTask(key, ready=True), key=key)
                assert repeated.repeated == (key in restored)
            everything = read_titles(new)
            assert len(everything) == len(set(everything))


def kill_steps() -> range:
    """Every step in a long run; otherwise every 17th from a seeded one on."""
    if IS_LONG:
        return range(1, 100_000)
    return range(random.Random(SEED).randrange(1, 18), 100_000, 17)


@proves("BACKUP-KILLED")
def test_killed_backup_leaves_none_and_next_succeeds(tmp_path: Path) -> None:
    data, target = tmp_path / "hub", tmp_path / "hub.tar"
    with open_new_directory(data) as directory:
        claim_task_with_draft(directory)
        directory.archive("backup", tmp_path / "first.tar", no_progress)

    def make_backup() -> None:
        with open_new_directory(data) as directory:
            directory.archive("backup", target, no_progress)

    kills = 0
    for step in kill_steps():
        if not run_killed_at(step, make_backup):
            break
        kills += 1
        if target.exists():
            check_archive(target, BACKUP)
            target.unlink()
    assert kills > 3
    assert check_archive(target, BACKUP).manifest.entries > 0
    with open_new_directory(data) as directory:
        assert findings(directory) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.tar", "hub", "hub.tar"]


@proves("BACKUP-KILLED")
def test_killed_restore_leaves_none_and_next_succeeds(tmp_path: Path) -> None:
    backup, data = tmp_path / "hub.tar", tmp_path / "new" / "hub"
    with open_new_directory(tmp_path / "old") as old:
        claim_task_with_draft(old)
        old.archive("backup", backup, no_progress)
        ledger = read_lines(old)
    restore_archive("backup", backup, tmp_path / "warm", "", no_progress)

    def restore() -> None:
        restore_archive("backup", backup, data, "", no_progress)

    kills = 0
    for step in kill_steps():
        if not run_killed_at(step, restore):
            break
        kills += 1
        if data.exists():
            break
    assert kills > 3, f"seed {SEED}"
    with open_new_directory(data) as new:
        assert (read_lines(new), findings(new)) == (ledger, []), f"seed {SEED}"
    assert {path.name for path in data.parent.iterdir()} == {"hub"}


@proves("BACKUP-KILLED", "BACKUP-REFUSED")
def test_store_of_a_killed_restore_in_postgresql_is_named_and_left_to_a_person(
    tmp_path: Path, postgres_url: str
) -> None:
    backup = tmp_path / "hub.tar"
    with open_new_directory(tmp_path / "old") as old:
        claim_task_with_draft(old)
        old.archive("backup", backup, no_progress)
        ledger = read_lines(old)
    restore_archive("backup", backup, tmp_path / "warm", "", no_progress)
    data = tmp_path / "new"

    def run_import() -> None:
        restore_archive("backup", backup, data, postgres_url, no_progress)

    kills = refused = 0
    for step in range(2, 200, 1 if IS_LONG else 5):
        if not run_killed_at(step, run_import):
            break
        kills += 1
        if data.exists():
            break
        if schema_version_at(postgres_url):
            refused += 1
            with pytest.raises(TargetTaken, match=r"is not empty.* drop its schema"):
                run_import()
            drop_schema_at(postgres_url)
    assert kills > 1
    assert refused
    with open_new_directory(data) as new:
        assert (read_lines(new), findings(new)) == (ledger, [])
    with pytest.raises(TargetTaken, match=r"is not empty.*stays as it is"):
        restore_archive("backup", backup, tmp_path / "second", postgres_url, no_progress)
    assert not (tmp_path / "second").exists()
    with open_new_directory(data) as new:
        assert (read_lines(new), findings(new)) == (ledger, [])


@proves("BACKUP-KILLED")
def test_failed_restore_in_postgresql_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    backup, data = tmp_path / "hub.tar", tmp_path / "new"
    with open_new_directory(tmp_path / "old") as old:
        claim_task_with_draft(old)
        old.archive("backup", backup, no_progress)
        ledger = read_lines(old)

    def failing_move(self: SafeDisk, old: str, new: str) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(SafeDisk, "move", failing_move)
        with pytest.raises(OSError, match="Input/output"):
            restore_archive("backup", backup, data, postgres_url, no_progress)
    assert (data.exists(), schema_version_at(postgres_url)) == (False, 0)

    restore_archive("backup", backup, data, postgres_url, no_progress)

    with open_new_directory(data) as new:
        assert (read_lines(new), findings(new)) == (ledger, [])
