"""`backup` and `restore`: output and refusals."""

import fcntl
import io
import json
import os
import random
import resource
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.bootstrap.archives import restore_archive
from dragoman.files.archive import BACKUP, check_archive
from dragoman.files.errors import BadArchive
from dragoman.store.postgres import migrate as postgres_migrate
from dragoman.store.sqlite import migrate as sqlite_migrate
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.hub_lock import HubLock
from tests.crash.data_directories import no_progress
from tests.forked import fork
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("BACKUP-REFUSED")

SEED = 1_770_670_500


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the template of `populated` with a backup beside it."""
    dragoman = Console(tmp_path_factory.mktemp("story") / "hub")
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada")
    (dragoman.data / "dragoman.toml").write_text("[tasks]\nmax_attempts = 4\n")
    (dragoman.data / "inbox" / "later.json").write_text("{}")
    dragoman.ask("backup", str(dragoman.data.parent / "hub.tar"))
    return dragoman.data.parent


@pytest.fixture
def populated(dragoman: Console, template: Path) -> Console:
    """Give a directory with a task held by ada, and a setting."""
    shutil.copytree(template / "hub", dragoman.data)
    return dragoman


@pytest.fixture
def backup_file(template: Path, tmp_path: Path) -> Path:
    """Give a backup of `populated`."""
    path = tmp_path / "before.tar"
    shutil.copy(template / "hub.tar", path)
    return path


@pytest.fixture
def other(tmp_path: Path) -> Console:
    """Give a command line on another directory that does not exist yet."""
    return Console(tmp_path / "other" / "hub")


def is_untouched(console: Console) -> bool:
    """Check that a refused restore left no trace."""
    parent = console.data.parent
    return not parent.exists() or list(parent.iterdir()) == []


@proves("BACKUP-WHOLE")
def test_restored_directory_verifies_and_equals_its_source(
    populated: Console, other: Console, tmp_path: Path
) -> None:
    token = populated.ask("agent", "add", "ben")["token"]
    path = tmp_path / "hub.tar"

    reply = populated.ask("backup", str(path))
    assert (reply["file"], reply["entries"], reply["skippedFiles"]) == (str(path), 4, [])
    assert reply["bytes"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert other.ask("restore", str(path))["entries"] == 4

    assert other.ask("verify")["ok"]
    shown = other.ask("task", "show", "T-1")
    assert (shown["status"], shown["assignee"]) == ("in-progress", "ada")
    for name in ("dragoman.toml", "inbox/later.json", "keys/secret", "keys/ledger.key"):
        assert (other.data / name).read_bytes() == (populated.data / name).read_bytes()
    keys = other.data / "keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in keys.iterdir()} == {0o600}
    assert token not in path.read_bytes().decode("latin-1")
    assert other.ask("task", "heartbeat", "T-1", "--agent", "ada")["ok"]


@proves("BACKUP-WHOLE")
def test_backup_carries_logs_of_agents_and_originals_of_messages(
    populated: Console, other: Console, tmp_path: Path
) -> None:
    files = {
        "runs/T-1/output.log": b"what the second attempt printed",
        "runs/T-1/attempts/1/output.log": b"what the first attempt printed",
        "tasks/in-progress/T-1/outputs/report.md": b"an output",
        "inbox/ada/processed/update.json": b"{}",
        "inbox/rejected/junk.json": b"junk",
        "inbox/rejected/junk.json.reason.txt": b"why",
    }
    for path, content in files.items():
        (populated.data / path).parent.mkdir(parents=True, exist_ok=True)
        (populated.data / path).write_bytes(content)
    populated.ask("backup", str(tmp_path / "hub.tar"))
    other.ask("restore", str(tmp_path / "hub.tar"))

    assert {path: (other.data / path).read_bytes() for path in files} == files
    assert other.ask("verify")["warnings"] == []


@proves("BACKUP-WHOLE")
def test_backup_names_what_it_cannot_hold(
    populated: Console, other: Console, tmp_path: Path
) -> None:
    lost = ("tasks/in-progress/T-1/outputs/link", "runs/T-1/output.log")
    for path in lost:
        (populated.data / path).parent.mkdir(parents=True, exist_ok=True)
        (populated.data / path).symlink_to("/dev/null")
    reply = populated.ask("backup", str(tmp_path / "hub.tar"))
    assert sorted(reply["skippedFiles"]) == sorted(lost)
    other.ask("restore", str(tmp_path / "hub.tar"))

    verified = other.ask("verify")
    assert (verified["ok"], verified["warnings"]) == (True, [])


def test_backup_reports_check_and_contents(populated: Console, tmp_path: Path) -> None:
    result = populated("backup", str(tmp_path / "hub.tar"))
    assert "read back: good" in result.out
    assert "private keys" in result.out
    shown = populated.on_terminal("backup", str(tmp_path / "again.tar"))
    assert "read back: good" in shown.out


@proves("VERIFY-UNSIGNED")
def test_backup_without_signed_checkpoint_warns(populated: Console, tmp_path: Path) -> None:
    assert populated.ask("backup", str(tmp_path / "signed.tar"))["warnings"] == []
    (populated.data / "checkpoints.jsonl").unlink()

    (warning,) = populated.ask("backup", str(tmp_path / "hub.tar"))["warnings"]
    result = populated("backup", str(tmp_path / "again.tar"))

    assert warning.startswith("no signed checkpoint covers them")
    assert f"warning: {warning}" in result.out


@pytest.mark.parametrize(
    "args",
    [
        ("backup", "{there}"),
        ("backup", "{there}/no/such"),
        ("backup", "{data}/hub.tar"),
        ("backup", "{data}/../hub/tasks/hub.tar"),
        ("restore", "no"),
        ("restore", "{data}"),
    ],
)
def test_impossible_path_is_a_usage_error(
    populated: Console, tmp_path: Path, args: tuple[str, ...]
) -> None:
    there = tmp_path / "there"
    there.write_text("mine")

    result = populated(*(word.format(there=there, data=populated.data) for word in args))

    assert result.code == 2, result
    assert there.read_text() == "mine"


def test_restore_leaves_a_non_empty_directory_untouched(
    populated: Console, backup_file: Path, other: Console
) -> None:
    for console in (populated, other):
        console.data.mkdir(parents=True, exist_ok=True)
        (console.data / "mine").write_text("mine")
        answer = console.ask("restore", str(backup_file), code=1)
        assert (answer["ok"], answer["code"]) == (False, "target_in_use")
        assert "is not empty" in answer["detail"]
        assert (console.data / "mine").read_text() == "mine"


def test_restore_names_a_running_hub(backup_file: Path, other: Console) -> None:
    other.data.mkdir(parents=True)
    with HubLock.acquire(other.data, "dragoman up"):
        answer = other.ask("restore", str(backup_file), code=1)
    assert answer["code"] == "hub_running"
    assert str(os.getpid()) in answer["detail"]


def with_label(backup_file: Path, target: Path, **label: str) -> Path:
    """Copy a backup with another label."""
    with tarfile.open(backup_file) as old, tarfile.open(target, "w") as new:
        for info in old:
            content = old.extractfile(info)
            assert content is not None
            data = content.read()
            if info.name == "label.json":
                data = json.dumps({**json.loads(data), **label}).encode()
                info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    return target


def test_restore_names_a_file_that_is_no_readable_backup(
    populated: Console, backup_file: Path, other: Console, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("no tar at all")
    populated.ask("export", str(tmp_path / "export.tar"))
    newer = with_label(backup_file, tmp_path / "newer", format="dragoman archive 2", dragoman="9.0")
    foreign = with_label(backup_file, tmp_path / "foreign", format="a pie")
    relabelled = with_label(backup_file, tmp_path / "relabelled", ledger="another")
    for path, sentence in (
        (text, "is no backup"),
        (tmp_path / "export.tar", "use `dragoman import`"),
        (newer, "made by dragoman 9.0; this one reads 'dragoman archive 1'. Upgrade dragoman"),
        (foreign, "no backup of dragoman's"),
        (relabelled, "it is not as it was written"),
    ):
        answer = other.ask("restore", str(path), code=1)
        assert answer["code"] == "bad_archive"
        assert sentence in answer["detail"], answer
        assert is_untouched(other)


def test_import_of_a_backup_names_restore(backup_file: Path, tmp_path: Path) -> None:
    other = Console(tmp_path / "other")
    answer = other.ask("import", str(backup_file), code=1)
    assert answer["code"] == "bad_archive"
    assert answer["detail"] == f"{backup_file} is no export but 'backup': use `dragoman restore`"
    assert not other.data.exists()


def test_flipped_or_cut_byte_is_detected_or_harmless(backup_file: Path, tmp_path: Path) -> None:
    whole = check_archive(backup_file, BACKUP).manifest
    content, rng = backup_file.read_bytes(), random.Random(SEED)
    damaged, found = tmp_path / "damaged", 0
    for at in rng.sample(range(len(content)), 100):
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            assert check_archive(damaged, BACKUP).manifest == whole, f"byte {at}, seed {SEED}"
        except BadArchive:
            found += 1
    assert found > 10
    last = content.index(b"sha256\0")
    for size in rng.sample(range(1, last), 20):
        damaged.write_bytes(content[:size])
        with pytest.raises(BadArchive):
            check_archive(damaged, BACKUP)


def test_damaged_backup_is_refused_and_leaves_nothing(
    backup_file: Path, other: Console, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    title = b'"title":"One"'
    damaged.write_bytes(backup_file.read_bytes().replace(title, title.replace(b"One", b"Two")))
    answer = other.ask("restore", str(damaged), code=1)
    assert "it is not as it was written" in answer["detail"]
    assert is_untouched(other)


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no end": (lambda whole: whole.rstrip(b"\0"), "not a whole archive"),
    "half an end": (
        lambda whole: whole[: len(whole.rstrip(b"\0")) // 512 * 512 + 1_024],
        "cut off",
    ),
    **{
        f"{cut} bytes less": (lambda whole, cut=cut: whole[:-cut], "its last bytes are missing")
        for cut in (1, 512, 2_048)
    },
    "a block more": (lambda whole: whole + bytes(512), "data was appended"),
    "appended": (lambda whole: whole + b"more", "data was appended"),
    "twice": (lambda whole: whole + whole, "data was appended"),
    "half": (lambda whole: whole[: len(whole) // 2], "not a whole archive"),
    "changed": (lambda whole: whole.replace(b"attempts = 4", b"attempts = 5"), "SHA-256"),
}
"""Damage done to a backup -> part of its error message."""


@proves("BACKUP-WORDS")
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_has_the_same_message_format(
    backup_file: Path, other: Console, damage: str
) -> None:
    change, expected = DAMAGES[damage]
    backup_file.write_bytes(change(backup_file.read_bytes()))

    answer = other.ask("restore", str(backup_file), code=1)

    assert answer["code"] == "bad_archive"
    assert answer["detail"].startswith(f"{backup_file} is damaged, and nothing was restored: ")
    assert expected in answer["detail"]
    assert answer["detail"].endswith(". Take another backup")
    assert is_untouched(other)


@proves("BACKUP-WORDS", "CLI-VERIFY")
def test_interrupted_restore_is_not_reported_as_edits(backup_file: Path, other: Console) -> None:
    # An interrupt just before the files are written: only the first part of the command ran.
    restore_archive("backup", backup_file, other.data, "", no_progress)

    found = other.ask("verify", code=1)
    again = other.ask("restore", str(backup_file), code=1)

    assert found["code"] == "files_differ"
    assert "`dragoman rebuild-files` writes all files anew" in found["detail"]
    assert again["code"] == "target_in_use"
    other.ask("tick")
    assert other.ask("verify")["ok"]


@proves("CHECKPOINT-NEWEST")
def test_broken_checkpoint_line_is_copied_and_stops_no_backup(
    populated: Console, other: Console, tmp_path: Path
) -> None:
    file = populated.data / "checkpoints.jsonl"
    lines = file.read_text().splitlines()
    for broken in ([lines[0][::-1], *lines[1:]], [*lines[:-1], lines[-1][::-1]], [*lines, ""]):
        file.write_text("\n".join([*broken, ""]))
        assert populated.ask("backup", str(tmp_path / "hub.tar"))["warnings"] == []
        (tmp_path / "hub.tar").unlink()
    populated.ask("backup", str(tmp_path / "hub.tar"))
    other.ask("restore", str(tmp_path / "hub.tar"))
    assert (other.data / "checkpoints.jsonl").read_text().startswith(file.read_text())


def test_broken_ledger_is_not_backed_up(populated: Console, tmp_path: Path) -> None:
    lines = (populated.data / "checkpoints.jsonl").read_text().splitlines()
    (populated.data / "checkpoints.jsonl").write_text("\n".join([*(s[::-1] for s in lines), ""]))

    answer = populated.ask("backup", str(tmp_path / "hub.tar"), code=1)

    assert answer["code"] == "ledger_broken"
    assert "checkpoint" in answer["detail"]
    assert ".." not in answer["detail"]
    assert [path.name for path in tmp_path.glob("*hub.tar*")] == []


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_full_disk_leaves_no_partial_file(
    populated: Console, backup_file: Path, other: Console, tmp_path: Path, command: str
) -> None:
    console = populated if command == "backup" else other
    path = tmp_path / "second.tar" if command == "backup" else backup_file
    read_end, write_end = os.pipe()

    def run_command() -> None:
        # A limit on file sizes stands for a disk that is nearly full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))
        os.write(write_end, json.dumps(console.ask(command, str(path), code=1)).encode())

    assert os.waitpid(fork(run_command), 0)[1] == 0
    answer = json.loads(os.read(read_end, 10_000))

    assert answer["code"] == "store_unavailable"
    assert "room" in answer["detail"] or "disk" in answer["detail"]
    assert not (tmp_path / "second.tar").exists()
    assert [found.name for found in tmp_path.iterdir() if "second" in found.name] == []
    assert is_untouched(other)
    assert console.ask(command, str(path))["ok"]


def test_leftover_is_removed_unless_another_process_writes_it(
    populated: Console, tmp_path: Path
) -> None:
    leftover, busy_path = tmp_path / ".hub.tar.left.tmp", tmp_path / ".hub.tar.busy.tmp"
    leftover.touch()
    with busy_path.open("wb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        assert populated.ask("backup", str(tmp_path / "hub.tar"))["ok"]
    assert (leftover.exists(), busy_path.exists()) == (False, True)


@proves("BACKUP-WHOLE")
def test_store_option_replaces_the_store_in_restored_settings(
    populated: Console, other: Console, tmp_path: Path
) -> None:
    settings = populated.data / "dragoman.toml"
    here = f"sqlite:///{populated.data / 'dragoman.db'}"
    settings.write_text(f'[tasks]\nmax_attempts = 4\n[store]\nurl = "{here}"\n[retry]\n')
    populated.ask("backup", str(tmp_path / "hub.tar"))
    outside = other.ask("restore", str(tmp_path / "hub.tar"), code=1)
    assert "outside of the data directory" in outside["detail"]
    there = f"sqlite:///{other.data / 'there.db'}"

    other.ask("restore", str(tmp_path / "hub.tar"), "--store", there)

    assert (other.data / "dragoman.toml").read_text() == settings.read_text().replace(here, there)
    assert other.ask("verify")["ok"]
    assert (other.data / "there.db").exists()


@proves("UPGRADE-FENCE")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_newer_version_does_not_migrate_beside_a_running_hub(
    dragoman: Console,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    dragoman.ask("init", *(("--store", url) if url else ()))
    load_or_create_token(dragoman.data)
    with HubLock.acquire(dragoman.data, "dragoman up") as lock:
        lock.announce_url("http://127.0.0.1:1")
        assert dragoman.ask("task", "list")["ok"]
        module = postgres_migrate if url else sqlite_migrate
        coming = [*module.MIGRATIONS, "CREATE TABLE more (x text)"]
        monkeypatch.setattr(module, "MIGRATIONS", coming)

        answer = dragoman.ask("task", "list", code=1)

    assert answer["code"] == "hub_running"
    assert "earlier dragoman" in answer["detail"]


@proves("UPGRADE-OLD")
def test_directory_of_an_earlier_version_verifies_and_can_be_backed_up(
    populated: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = [*sqlite_migrate.MIGRATIONS, "CREATE TABLE more (x text)"]
    monkeypatch.setattr(sqlite_migrate, "MIGRATIONS", coming)
    populated.ask("tick", "--now", NOON)

    assert populated.ask("verify")["ok"]
    populated.ask("backup", str(tmp_path / "hub.tar"))
    assert Console(tmp_path / "new").ask("restore", str(tmp_path / "hub.tar"))["ok"]


def test_foreign_store_stays_unchanged_by_any_path(
    backup_file: Path, other: Console, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign.db"
    Console(tmp_path / "second").ask("init", "--store", f"sqlite:///{foreign}")
    before = foreign.read_bytes()
    link = other.data.parent / "aside"
    other.data.parent.mkdir()
    link.symlink_to(tmp_path)
    for path in (other.data / ".." / ".." / "foreign.db", link / "foreign.db"):
        answer = other.ask("restore", str(backup_file), "--store", f"sqlite:///{path}", code=1)
        assert "outside of the data directory" in answer["detail"], path
        assert foreign.read_bytes() == before
        assert not other.data.exists()


@proves("BACKUP-WHOLE")
def test_restore_accepts_a_store_path_through_a_symlink(backup_file: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    linked = Console(tmp_path / "link" / "hub")

    linked.ask("restore", str(backup_file), "--store", f"sqlite:///{linked.data / 'x.db'}")

    assert linked.ask("verify")["ok"]
    assert (tmp_path / "real" / "hub" / "x.db").exists()


def test_restore_does_not_use_a_planted_directory(
    backup_file: Path, other: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = other.data.parent / ".hub.restoring"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    with monkeypatch.context() as user:
        user.setattr(os, "geteuid", lambda: planted.stat().st_uid + 1)
        answer = other.ask("restore", str(backup_file), code=1)
    assert "belongs to another user" in answer["detail"]
    assert (list(planted.iterdir()), other.data.exists()) == ([], False)

    other.ask("restore", str(backup_file))

    assert stat.S_IMODE(other.data.stat().st_mode) == 0o700
