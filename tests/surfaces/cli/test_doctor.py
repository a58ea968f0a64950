"""`doctor`: findings and advice, without changes, on broken directories too."""

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.connect import open_reader
from dragoman.store.sqlite.migrate import MIGRATIONS
from dragoman.surfaces.cli.commands.doctor import CHECKS, check_free_space
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.hub_lock import HubConfig, HubLock
from tests.requirements import proves
from tests.store.sqlite.files import hide_from_index
from tests.store.upgrades import COMING
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.tampering import FORGET_CHECKPOINTS, change

pytestmark = proves("CLI-DOCTOR")


def examine(dragoman: Console, *args: str) -> dict[str, dict[str, Any]]:
    """Run `doctor` and return its checks by name."""
    reply = dragoman("doctor", *args, "--json").json
    return {check["name"]: check for check in reply["checks"]}


def bad_checks(dragoman: Console, *args: str) -> list[str]:
    return [name for name, c in examine(dragoman, *args).items() if c["state"] == "bad"]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of every file in a folder, except SQLite's -wal and -shm files."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def healthy(dragoman: Console) -> Console:
    """Give a directory with one task and no problem."""
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    return dragoman


def test_healthy_directory_is_ok_in_every_check(healthy: Console) -> None:
    result = healthy("doctor")

    assert result.code == 0
    lines = [line.split(maxsplit=2) for line in result.out.splitlines()]
    assert [(state, name) for state, name, _ in lines] == [("ok", name) for name in CHECKS]
    assert healthy.ask("doctor")["ok"] is True


def test_missing_directory_is_bad_and_is_not_created(dragoman: Console) -> None:
    result = dragoman("doctor")

    assert result.code == 1
    assert "does not exist" in result.out
    assert "→ run `dragoman init`" in result.out
    refused = dragoman.ask("doctor", code=1)
    assert (refused["code"], refused["detail"]) == ("unhealthy", "bad: directory")
    assert not dragoman.data.exists()


def test_file_in_place_of_directory_is_bad(dragoman: Console) -> None:
    dragoman.data.write_text("not a directory")

    assert "is not a directory" in examine(dragoman)["directory"]["found"]
    assert dragoman.data.read_text() == "not a directory"


def test_empty_directory_stays_empty(dragoman: Console) -> None:
    dragoman.data.mkdir(0o700)

    assert bad_checks(dragoman) == ["keys"]
    assert list(dragoman.data.iterdir()) == []


@proves("CONFIG-ONCE")
@pytest.mark.parametrize(
    "text", [b"not [toml", b"[store]\nurll = 1\n", b"\xff\xfe", b"[tasks]\nmax_attempts = 'x'\n"]
)
def test_broken_settings_are_named_and_other_checks_run(healthy: Console, text: bytes) -> None:
    (healthy.data / "dragoman.toml").write_bytes(text)
    before = snapshot(healthy.data)

    found = examine(healthy)
    assert [name for name, c in found.items() if c["state"] == "bad"] == ["settings"]
    assert found["keys"]["state"] == found["disk"]["state"] == "ok"
    assert "store" not in found, "it is not known where it is"
    assert snapshot(healthy.data) == before


@proves("CONFIG-ONCE")
def test_missing_keys_advice_depends_on_settings_and_signatures(
    dragoman: Console,
) -> None:
    dragoman.data.mkdir(0o700)
    (dragoman.data / "dragoman.toml").write_text("[leases]\nttl_ms = 'x'\n")
    assert examine(dragoman)["keys"]["advice"].startswith("first mend the settings, which say")

    (dragoman.data / "checkpoints.jsonl").touch()
    assert "out of a backup" in examine(dragoman)["keys"]["advice"]


@proves("RUN-NOT-STARTED")
def test_missing_requirements_of_an_agent_are_named(
    healthy: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "x")
    monkeypatch.delenv("FORGOTTEN", raising=False)
    (healthy.data / "dragoman.toml").write_text(
        "[agents.ada]\ncommand = ['sh', './nope']\nenvironment = ['GIVEN']\n"
        "[agents.bob]\ncommand = ['./nope']\nenvironment = ['FORGOTTEN']\nrepository = '../r'\n"
        "[agents.eve]\nurl = 'https://eve.example'\n"
    )
    found = examine(healthy)["agents"]
    assert found["state"] == "warning"
    assert found["found"] == (
        f"bob has no program ./nope; bob has no commit at {healthy.data / '../r'}; "
        "bob has no variable FORGOTTEN"
    )


@pytest.mark.parametrize("create", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize(("name", "check"), [("hub.lock", "hub"), ("checkpoints.jsonl", "ledger")])
def test_obstacle_in_place_of_a_file_is_to_be_moved(
    healthy: Console, create: Callable[[Path], None], name: str, check: str
) -> None:
    path = healthy.data / name
    path.unlink(missing_ok=True)
    create(path)
    advice = "move it out of the way, and put the file back that was there"
    assert examine(healthy)[check]["advice"].startswith(advice)
    refused = healthy.ask("task", "create", "Two", code=1)
    assert refused["detail"].startswith(f"{path}: ")
    assert advice in refused["detail"]


@proves("DOCTOR-AGREES", "HTTP-EXPOSURE")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[agents.ada]", "agents.ada needs a command, a url, or (asked in CCOS) a function"),
        ('[agents.ada]\ncommand = [""]', "begins with a program's name"),
        ('[agents.ada]\nurl = "ftp://x"', "agents.ada.url must begin with https://"),
        ('[agents.ada]\nfunction = "no.such:x"\nspeaks = ["ccos"]', "cannot be found"),
        ("[agents.a]\ncommand = ['x']\nenvironment = ['K=v']", "'K=v' is no name of a variable"),
        ("[agents.a]\ncommand = ['x']\nenvironment = ['']", "'' is no name of a variable"),
        ('[http]\nhost = "10.0.0.7"', "tokens would travel in the open"),
        ('[http]\ntls_cert = "/nope"\ntls_key = "/nope"', "cannot be read: No such file"),
        ('[http]\ntls_cert = "{toml}"\ntls_key = "{toml}"', "without a password: "),
        ('[notify]\nwebhook_url = "ftp://x"', "notify.webhook_url must begin with"),
        ('[notify]\ncommand = [""]', "notify.command must be a list"),
        ('[workq]\nurl = "ftp://x"', "workq.url must begin with https://"),
        ('[redaction]\nvariables = ["SHORT"]', "SHORT has fewer than"),
        ('[store]\nurl = "mysql://x"', "mysql: is not a kind of store"),
    ],
)
def test_settings_that_prevent_startup_are_bad(
    healthy: Console, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "abc")
    toml = healthy.data / "dragoman.toml"
    toml.write_text(text.replace("{toml}", f"{toml}"))

    found = examine(healthy)
    refused = healthy.ask("up", "--port", "0", code=1)

    assert found["settings"]["state"] == "bad"
    assert expected in found["settings"]["found"]
    assert (refused["code"], refused["detail"]) == ("invalid_settings", found["settings"]["found"])


def test_invalid_agent_settings_do_not_stop_other_checks(
    healthy: Console,
) -> None:
    (healthy.data / "dragoman.toml").write_text("[agents.ada]\n")

    found = examine(healthy)

    assert list(found) == list(CHECKS)
    assert [name for name, c in found.items() if c["state"] != "ok"] == ["settings"]


@proves("DOCTOR-GIT")
def test_repository_without_a_commit_is_a_warning(healthy: Console, tmp_path: Path) -> None:
    def git_check(named: str) -> tuple[str, str]:
        (healthy.data / "dragoman.toml").write_text(f'[git]\nrepository = "{named}"\n')
        check = examine(healthy)["git"]
        return check["state"], check["found"]

    for named in ("/nope", f"{tmp_path}"):
        state, detail = git_check(named)
        assert (state, f"there is no commit at {named}" in detail) == ("warning", True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "r")], check=True)
    (tmp_path / "r" / "below").mkdir()
    assert git_check(f"{tmp_path / 'r' / 'below'}")[0] == "warning"
    detail = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx")
    subprocess.run(["git", "-C", str(tmp_path / "r"), *detail], check=True)
    assert git_check(f"{tmp_path / 'r' / 'below'}")[0] == "ok"


@proves("SYSTEM-KEYS")
@pytest.mark.parametrize("missing", ["ledger.key", "secret", "ledger.pub"])
def test_missing_key_is_bad_and_is_not_created(healthy: Console, missing: str) -> None:
    (healthy.data / "keys" / missing).unlink()
    before = snapshot(healthy.data)

    assert bad_checks(healthy) == ["keys"]
    assert f"{missing} is missing" in examine(healthy)["keys"]["found"]
    assert snapshot(healthy.data) == before


@proves("SYSTEM-KEYS")
def test_key_readable_by_others_is_bad(healthy: Console) -> None:
    (healthy.data / "keys" / "ledger.key").chmod(0o644)

    found = examine(healthy)["keys"]
    assert found["state"] == "bad"
    assert "chmod 600" in found["found"]


@proves("CLI-DOCTOR")
@pytest.mark.parametrize(
    ("create", "expected"), [(Path.mkdir, "is a directory"), (os.mkfifo, "is a pipe or a device")]
)
def test_obstacle_in_place_of_the_database_is_named(
    healthy: Console, create: Callable[[Path], None], expected: str
) -> None:
    for file in healthy.data.glob("dragoman.db*"):
        file.unlink()
    create(healthy.data / "dragoman.db")

    found = examine(healthy)["store"]
    assert (found["state"], expected in found["found"]) == ("bad", True)
    assert found["advice"].startswith("move it away, and put it back")


@proves("STORE-CORRUPT")
@pytest.mark.parametrize(
    ("content", "state", "part"),
    [
        (
            b"a letter to my aunt" * 10,
            "bad",
            "is not a SQLite database",
        ),
        (b"SQLite format 3\x00", "bad", "is not a SQLite database"),
        (b"", "bad", "is empty, and checkpoints.jsonl has signed"),
        (None, "bad", "there is no database"),
    ],
    ids=["foreign", "short", "empty", "missing"],
)
def test_damaged_database_is_named_and_left_unchanged(
    healthy: Console, content: bytes | None, state: str, part: str
) -> None:
    database = healthy.data / "dragoman.db"
    database.unlink()
    for helper in healthy.data.glob("dragoman.db-*"):
        helper.unlink()
    if content is not None:
        database.write_bytes(content)
    before = snapshot(healthy.data)

    found = examine(healthy)["store"]
    assert (found["state"], part in found["found"]) == (state, True), found
    assert found["advice"]
    assert snapshot(healthy.data) == before


@proves("STORE-CORRUPT")
def test_database_with_a_damaged_page_is_bad_and_left_unchanged(healthy: Console) -> None:
    database = healthy.data / "dragoman.db"
    content = bytearray(database.read_bytes())
    content[4_096 : len(content) : 3] = bytes(len(content[4_096 : len(content) : 3]))
    database.write_bytes(content)
    for helper in healthy.data.glob("dragoman.db-*"):
        helper.unlink()
    before = snapshot(healthy.data)

    assert bad_checks(healthy), "some check has found it"
    assert snapshot(healthy.data) == before


@proves("STORE-INSPECT")
def test_index_without_a_task_is_bad_and_ends_the_checks(healthy: Console) -> None:
    healthy.make("Two", "--id", "T-2", "--ready")
    hide_from_index(healthy.data / "dragoman.db", "streams_ready", "task:T-2")
    before = snapshot(healthy.data)

    found = examine(healthy)
    assert (found["store"]["state"], list(found)[-1]) == ("bad", "store")
    assert "missing from index streams_ready" in found["store"]["found"]
    assert "dragoman verify" in found["store"]["advice"]
    assert snapshot(healthy.data) == before


@proves("STORE-TEXT")
def test_unreadable_ledger_id_is_one_finding(healthy: Console) -> None:
    change(healthy.data / "dragoman.db", "UPDATE meta SET value = CAST(x'f4' AS TEXT)")

    assert bad_checks(healthy) == ["store"]


@proves("STORE-CORRUPT")
def test_foreign_database_is_bad_and_left_unchanged(healthy: Console, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    change(foreign, "CREATE TABLE aunts (name TEXT)")
    before = foreign.read_bytes()

    found = examine(healthy, "--store", f"sqlite:///{foreign}")["store"]
    assert found["state"] == "bad"
    assert "not one of dragoman's" in found["found"]
    assert foreign.read_bytes() == before


@proves("STORE-MIGRATIONS")
def test_schema_of_another_version_is_bad_and_left_unchanged(healthy: Console) -> None:
    for version in (0, 13):
        change(healthy.data / "dragoman.db", f"PRAGMA user_version = {version}")
        before = snapshot(healthy.data)

        found = examine(healthy)["store"]
        assert found["state"] == "bad"
        assert f"another version of dragoman (schema {version}, this one" in found["found"]
        assert snapshot(healthy.data) == before


@proves("STORE-MIGRATIONS", "UPGRADE-OLD")
def test_older_schema_is_a_warning_and_is_not_migrated(
    healthy: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])
    before = snapshot(healthy.data)

    found = examine(healthy)["store"]
    assert found["state"] == "warning"
    assert f"has schema {len(MIGRATIONS)}" in found["found"]
    assert f"with the dragoman that you had before, or copy {healthy.data} while" in found["advice"]
    assert snapshot(healthy.data) == before


@proves("STORE-MIGRATIONS", "UPGRADE-OLD")
def test_advice_upgrades_a_store_of_an_earlier_version(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "else where.db"
    dragoman.ask("init", "--store", f"sqlite:///{elsewhere}")
    dragoman.make("One")
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])
    found = examine(dragoman)["store"]
    assert f"copy {dragoman.data} and '{elsewhere}' while nothing works there" in found["advice"]
    kept = elsewhere.read_bytes()

    # Any command of this version, even a backup, ends the way back to the earlier one.
    assert dragoman("backup", str(tmp_path / "hub.tar")).code == 0
    assert elsewhere.read_bytes() != kept
    assert dragoman("verify").code == 0
    assert examine(dragoman)["store"]["state"] == "ok"


@proves("STORE-MIGRATIONS", "UPGRADE-OLD")
def test_store_migrated_only_in_its_wal_is_current(
    healthy: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = healthy.data / "dragoman.db"
    newer = len(MIGRATIONS) + 1
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])
    with closing(open_reader(path)) as reader:
        reader.execute("BEGIN; SELECT * FROM meta")
        # While a reader is open, as beside a running hub, the WAL is not checkpointed.
        change(path, f"PRAGMA user_version = {newer}")
        assert path.read_bytes()[60:64] == len(MIGRATIONS).to_bytes(4, "big")

        assert examine(healthy)["store"]["state"] == "ok"


@proves("VERIFY-CUT-TAIL")
def test_cut_tail_is_bad(healthy: Console) -> None:
    healthy.make("Two")
    change(healthy.data / "dragoman.db", "DELETE FROM entries WHERE position = 2")

    found = examine(healthy)["ledger"]
    assert found["state"] == "bad"
    assert found["found"].startswith("position 2: ")
    assert "dragoman verify" in found["advice"]


def test_bad_checkpoint_and_unsigned_ledger_differ(healthy: Console) -> None:
    file = healthy.data / "checkpoints.jsonl"
    file.write_bytes(b"{}\n")
    assert bad_checks(healthy) == ["ledger"]
    file.unlink()
    assert bad_checks(healthy) == ["ledger"]
    change(healthy.data / "dragoman.db", FORGET_CHECKPOINTS)
    assert examine(healthy)["ledger"]["state"] == "warning"


@proves("CHECKPOINT-NEWEST")
@pytest.mark.parametrize("line", [b"\n", b"{}\n{}\n"])
def test_invalid_last_checkpoint_lines_are_a_warning(healthy: Console, line: bytes) -> None:
    file = healthy.data / "checkpoints.jsonl"
    file.write_bytes(file.read_bytes() + line)
    found = examine(healthy)["ledger"]
    assert found["state"] == "warning"
    assert f"do not hold: {line.count(b'}') or 1}; those before them do" in found["found"]
    assert "dragoman verify" in found["advice"]
    healthy.make("Two")
    assert examine(healthy)["ledger"]["state"] == "ok"
    assert healthy.ask("verify", code=1)["code"] == "ledger_broken"
    file.write_bytes(file.read_bytes().replace(b"{}\n", b"").replace(b"\n\n", b"\n"))
    healthy.ask("checkpoints", "accept")
    assert healthy.ask("verify")["ok"]


def test_unused_hub_has_an_empty_ledger(dragoman: Console) -> None:
    dragoman("init")

    assert examine(dragoman)["ledger"]["found"] == "empty"


@proves("HUB-TROUBLE")
def test_lagging_files_are_a_warning(healthy: Console) -> None:
    task = healthy.ask("task", "show", "T-1")["aofId"]
    obstacle = healthy.data / "runs" / task / "run.json"
    obstacle.mkdir(parents=True)
    healthy("task", "claim", "T-1", "--agent", "ada")
    assert "those of task:T-1" in examine(healthy)["files"]["found"]
    obstacle.rmdir()
    healthy("tick")
    assert examine(healthy)["files"]["state"] == "ok"
    (healthy.data / "projection.json").unlink()
    assert "not in the files yet" in examine(healthy)["files"]["found"]


@proves("FILES-PLACES")
def test_obstacle_in_place_of_a_folder_is_a_warning(healthy: Console) -> None:
    inbox = healthy.data / "inbox"
    inbox.rmdir()
    os.mkfifo(inbox)
    assert examine(healthy)["files"]["found"].endswith("something else: inbox")
    healthy("tick")
    assert examine(healthy)["files"]["state"] == "ok"
    assert inbox.is_dir()


def test_directory_open_to_others_is_a_warning(tmp_path: Path) -> None:
    dragoman = Console(tmp_path / "of ada")
    dragoman.ask("init")
    dragoman.data.chmod(0o755)

    found = examine(dragoman)["directory"]
    assert (found["state"], found["advice"]) == ("warning", f"chmod 700 '{dragoman.data}'")
    assert dragoman("doctor").code == 0


@proves("STORE-READ-ONLY")
def test_read_only_mount_is_reported_as_such(
    healthy: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs

    def read_only(path: Any) -> os.statvfs_result:
        found = real(path)
        return os.statvfs_result((*found[:8], found.f_flag | os.ST_RDONLY, found.f_namemax))

    with monkeypatch.context() as mounted:
        mounted.setattr(os, "statvfs", read_only)
        found = examine(healthy)

    assert found["directory"]["state"] == "bad"
    assert "mounted read-only" in found["directory"]["found"]
    assert "mount it for writing" in found["directory"]["advice"]
    assert "ledger" not in found


def test_settings_with_store_readable_by_others_are_a_warning(
    dragoman: Console, tmp_path: Path
) -> None:
    dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/x.db")
    (dragoman.data / "dragoman.toml").chmod(0o644)

    assert examine(dragoman)["settings"]["state"] == "warning"


def test_nearly_full_disk_is_bad() -> None:
    assert check_free_space(64 * 1024 * 1024).state == "ok"
    assert check_free_space(64 * 1024 * 1024 - 1).state == "bad"


def test_running_hub_is_named(healthy: Console) -> None:
    with HubLock.acquire(healthy.data, "dragoman serve"):
        assert (
            f"dragoman serve is the hub (process {os.getpid()}" in examine(healthy)["hub"]["found"]
        )
    assert "no hub is running" in examine(healthy)["hub"]["found"]


def test_hub_without_token_is_bad(healthy: Console) -> None:
    with HubLock.acquire(healthy.data, "dragoman up") as lock:
        lock.announce_url("http://127.0.0.1:1")
        found = examine(healthy)["hub"]
        listed = healthy.ask("task", "list", code=1)
    assert found["state"] == "bad"
    assert f"{healthy.data / 'token'} is gone" in found["found"]
    assert (listed["code"], listed["detail"]) == ("bad_key", found["found"])


@proves("CLI-NOW")
def test_clock_behind_the_newest_entry_is_a_warning(healthy: Console) -> None:
    found = examine(healthy, "--now", "2026-02-09T11:00:00Z")["clock"]

    assert found["state"] == "warning"
    assert "1h before the newest entry" in found["found"]


@proves("CLI-NOW")
def test_expired_leases_are_a_warning(healthy: Console) -> None:
    healthy.ask("task", "claim", "--agent", "ada", "--now", NOON)

    found = examine(healthy, "--now", "2026-02-09T12:10:00Z")["leases"]
    assert (found["state"], found["advice"]) == ("warning", "run `dragoman tick`")
    assert examine(healthy, "--now", NOON)["leases"]["state"] == "ok"


def test_read_only_server_is_bad(dragoman: Console, postgres_url: str) -> None:
    dragoman.ask("init", "--store", postgres_url)
    assert examine(dragoman)["store"]["state"] == "ok"

    read_only = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"
    found = examine(dragoman, "--store", read_only)["store"]
    assert (found["state"], "can only be read" in found["found"]) == ("bad", True)


@proves("FILES-CUT")
def test_truncated_log_is_named_until_it_is_completed(healthy: Console) -> None:
    log = max((healthy.data / "events").iterdir())
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])

    found = examine(healthy)["files"]
    assert (found["state"], f"events/{log.name}" in found["found"]) == ("warning", True)
    assert "dragoman tick" in found["advice"]
    healthy.ask("tick", "--now", NOON)
    assert log.read_bytes().startswith(whole)
    assert examine(healthy)["files"]["state"] == "ok"


def test_settings_of_a_running_hub_are_checked(healthy: Console, tmp_path: Path) -> None:
    named = tmp_path / "elsewhere.toml"
    named.write_text('[git]\nrepository = "/nowhere"\n')
    (healthy.data / "dragoman.toml").write_text("this is not TOML")
    with HubLock.acquire(healthy.data, "dragoman up") as lock:
        assert examine(healthy)["settings"]["state"] == "bad", "it has not said yet"
        lock.announce_config(HubConfig(f"sqlite:///{healthy.data}/dragoman.db", "L", f"{named}"))
        found = examine(healthy)

    assert (found["settings"]["state"], found["settings"]["found"]) == ("ok", f"{named}")
    assert "/nowhere" in found["git"]["found"]
    assert examine(healthy)["settings"]["state"] == "bad"


@proves("ADVICE-LEADS-ON")
def test_file_in_place_of_directory_is_to_be_moved(dragoman: Console) -> None:
    dragoman.data.write_bytes(b"mine")

    report = dragoman.ask("doctor", code=1)
    refused = dragoman.ask("init", code=1)

    (advice,) = [check["advice"] for check in report["checks"] if check["name"] == "directory"]
    assert advice == "move it away, or name another one with --data or DRAGOMAN_DATA"
    assert "is there, and is no directory. Move it away, or name another place" in refused["detail"]


@proves("ADVICE-LEADS-ON")
def test_lost_checkpoints_are_to_be_restored(dragoman: Console) -> None:
    dragoman.make("One")
    (dragoman.data / "checkpoints.jsonl").unlink()
    assert "Bring the file back from a copy" in dragoman("verify").out
    change(dragoman.data / "dragoman.db", FORGET_CHECKPOINTS)

    report = dragoman.ask("doctor")
    (advice,) = [check["advice"] for check in report["checks"] if check["name"] == "ledger"]

    assert advice.startswith("if checkpoints.jsonl was there before, bring it back; else run")
    assert "If checkpoints.jsonl was there before, bring it back" in dragoman("verify").out


@proves("ADVICE-LEADS-ON")
@pytest.mark.parametrize("args", [("doctor",), ("task", "create", "One"), ("up",)])
def test_directory_name_that_is_not_utf_8_is_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    result = Console(tmp_path / "m\udcff")(*args)

    assert result.code == 2
    assert "is not UTF-8: name another one with --data" in result.err
    assert list(tmp_path.iterdir()) == []


@proves("ADVICE-LEADS-ON")
def test_now_option_beside_a_hub_is_refused(dragoman: Console) -> None:
    dragoman.ask("init")
    load_or_create_token(dragoman.data)
    with HubLock.acquire(dragoman.data, "dragoman up") as lock:
        lock.announce_url("http://127.0.0.1:1")
        for command in ("doctor", "verify"):
            assert dragoman.ask(command, "--now", NOON, code=1)["code"] == "hub_running"


@proves("CLI-NOW")
def test_up_does_not_offer_now_option(
    dragoman: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    dragoman("up", "--help")
    assert "--now" not in capsys.readouterr().out
    assert "leave out --now" in dragoman("up", "--now", NOON).err


@proves("NOTIFY-ATTENTION")
def test_what_needs_a_person_is_a_warning_with_its_command(healthy: Console) -> None:
    healthy.ask("task", "claim", "T-1", "--agent", "ada")
    healthy.ask("task", "ask", "T-1", "red or blue?", "--agent", "ada")

    found = examine(healthy)["attention"]

    assert (found["state"], found["found"]) == (
        "warning",
        "1 question; e.g. T-1: ada asks: red or blue?",
    )
    assert found["advice"].startswith('`dragoman task answer T-1 "…"`')
    (healthy.data / "dragoman.toml").write_text('[notify]\nattention = ["deadletter"]\n')
    assert examine(healthy)["attention"]["state"] == "ok"
