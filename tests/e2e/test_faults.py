"""Broken, foreign or unwritable directories and files: clear errors, no damage."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest

from dragoman.store.sqlite.connect import open_reader
from tests.e2e.program import ProcessResult, Program
from tests.requirements import proves

NOBODY_UID = 65_534

NOBODY_PROGRAM = dedent("""
    import ctypes, os, sys
    from dragoman.bootstrap.cli_wiring import CLI_WIRING
    from dragoman.surfaces.cli.app import main
    from dragoman.surfaces.cli.commands import GROUPS, TOP_LEVEL, load_commands
    import dragoman.bootstrap.stores, dragoman.bootstrap.data_directory
    import dragoman.bootstrap.data_directory
    import dragoman.engine.verify, dragoman.store.sqlite, dragoman.system.hub_lock
    import dragoman.bootstrap.archives, dragoman.files.archive, dragoman.surfaces.http

    for module in (*TOP_LEVEL, *(name for group in GROUPS.values() for name in group.modules)):
        load_commands(module)
    # Everything is loaded by now: the one who works below may not be able to read our files.
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid({nobody}, {nobody}, {nobody})
        os.setresuid({nobody}, {nobody}, {nobody})
    sys.exit(main(CLI_WIRING, sys.argv[1:], sys.stdout, sys.stderr, lambda: False))
""").format(nobody=NOBODY_UID)
"""The program for a user bound by file permissions, even if tests run as root."""


def run_as_nobody(program: Program, *args: str) -> ProcessResult:
    done = subprocess.run(
        (sys.executable, "-c", NOBODY_PROGRAM, *args),
        capture_output=True,
        text=True,
        check=False,
        env=program.environment(),
        cwd="/",
    )
    assert "Traceback" not in done.stderr, done.stderr
    return ProcessResult(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def shared_folder() -> Generator[Path]:
    """Give a folder that every user can enter; pytest's own folders are closed to others."""
    with TemporaryDirectory(prefix="dragoman-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def owned_program(shared_folder: Path, bytecode: Path) -> Program:
    """Give a directory with a task, whose owner can be changed."""
    program = Program(shared_folder / "hub", bytecode)
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")
    return program


def chown_to_nobody(data: Path) -> None:
    """Make the user nobody the owner, if tests run as root."""
    if os.getuid() == 0:
        for path in (data, *data.rglob("*")):
            os.chown(path, NOBODY_UID, NOBODY_UID)


def make_read_only(data: Path) -> None:
    """Remove all write permissions."""
    chown_to_nobody(data)
    for path in sorted(data.rglob("*"), reverse=True):
        path.chmod(0o500 if path.is_dir() else 0o400)
    data.chmod(0o500)


@proves("STORE-READ-ONLY", "CLI-EXIT")
def test_unwritable_parent_folder_is_a_clear_error(
    owned_program: Program, shared_folder: Path
) -> None:
    closed = shared_folder / "closed"
    closed.mkdir(0o555)

    for args in (("init",), ("task", "create", "x")):
        ended = run_as_nobody(owned_program, "--data", str(closed / "hub"), *args, "--json")
        assert ended.code == 1
        assert ended.json["code"] == "store_unavailable"
        assert str(closed / "hub") in ended.json["detail"]
        assert "Permission denied" in ended.json["detail"]
    assert list(closed.iterdir()) == []


@proves("STORE-READ-ONLY", "CLI-EXIT", "CLI-DOCTOR", "DOCTOR-AGREES")
def test_read_only_directory_refuses_writes_with_a_clear_error(owned_program: Program) -> None:
    make_read_only(owned_program.data)
    before = {p: p.read_bytes() for p in owned_program.data.rglob("*") if p.is_file()}

    ended = run_as_nobody(owned_program, "task", "create", "Two", "--json")
    assert ended.code == 1
    assert ended.json["code"] == "store_unavailable"
    assert str(owned_program.data) in ended.json["detail"]
    examined = run_as_nobody(owned_program, "doctor")
    assert examined.code == 1
    assert "cannot be written" in examined.out
    assert {p: p.read_bytes() for p in owned_program.data.rglob("*") if p.is_file()} == before


@proves("DOCTOR-AGREES", "STORE-READ-ONLY")
def test_unwritable_database_is_refused_and_leaves_no_obstacle(
    owned_program: Program,
) -> None:
    database = owned_program.data / "dragoman.db"
    chown_to_nobody(owned_program.data)
    database.chmod(0o400)

    examined = run_as_nobody(owned_program, "doctor", "--json")
    checks = {check["name"]: check for check in examined.json["checks"]}
    assert examined.json["detail"] == "bad: store"
    assert f"{database} cannot be written" in checks["store"]["found"]
    assert checks["store"]["advice"] == f"chmod u+rw {database}"
    for command in (("task", "list"), ("task", "create", "Two")):
        refused = run_as_nobody(owned_program, *command, "--json").json
        assert refused["code"] == "store_unavailable"
        assert f"{database} cannot be written" in refused["detail"]
    assert list(owned_program.data.glob("dragoman.db-*")) == []

    database.chmod(0o600)
    assert run_as_nobody(owned_program, "task", "create", "Two").code == 0
    assert run_as_nobody(owned_program, "doctor").code == 0


@proves("DOCTOR-AGREES", "STORE-READ-ONLY")
def test_doctor_names_leftover_wal_files_of_another_reader(owned_program: Program) -> None:
    """A reader without write permission leaves -wal and -shm files without it."""
    log, index = (owned_program.data / f"dragoman.db{end}" for end in ("-wal", "-shm"))
    log.touch()
    index.write_bytes(bytes(32_768))
    chown_to_nobody(owned_program.data)
    for leftover in (log, index):
        leftover.chmod(0o400)

    refused = run_as_nobody(owned_program, "task", "create", "Two", "--json").json
    examined = run_as_nobody(owned_program, "doctor", "--json")

    assert (refused["code"], f"{log} and -shm" in refused["detail"]) == ("store_unavailable", True)
    checks = {check["name"]: check for check in examined.json["checks"]}
    assert checks["store"]["advice"] == f"chmod u+rw {index}"
    index.chmod(0o600)
    assert run_as_nobody(owned_program, "task", "create", "Two").code == 0


@proves("DOCTOR-AGREES", "STORE-READ-ONLY")
def test_doctor_names_the_folder_of_an_external_database(
    owned_program: Program, shared_folder: Path
) -> None:
    folder, beside = shared_folder / "elsewhere", shared_folder / "beside"
    folder.mkdir()
    owned_program.prepare("--data", str(beside), "--store", f"sqlite:///{folder}/hub.db", "init")
    chown_to_nobody(folder)
    chown_to_nobody(beside)
    folder.chmod(0o500)

    examined = run_as_nobody(owned_program, "--data", str(beside), "doctor", "--json")

    checks = {check["name"]: check for check in examined.json["checks"]}
    assert examined.json["detail"] == "bad: store"
    assert checks["store"]["advice"] == f"chmod u+rwx {folder}"


@proves("DOCTOR-AGREES", "STORE-READ-ONLY")
def test_doctor_names_unwritable_checkpoints(owned_program: Program) -> None:
    chown_to_nobody(owned_program.data)
    signed = owned_program.data / "checkpoints.jsonl"
    signed.chmod(0o400)

    examined = run_as_nobody(owned_program, "doctor", "--json")

    checks = {check["name"]: check for check in examined.json["checks"]}
    assert examined.json["detail"] == "bad: ledger"
    assert checks["ledger"]["found"] == f"{signed} cannot be written: nothing more is signed"
    assert checks["ledger"]["advice"] == f"chmod u+rw {signed}"
    output = run_as_nobody(owned_program, "task", "create", "Two").err
    assert f"done, but not signed: {signed}: Permission denied; run `dragoman tick`" in output


def leave_wal(owned_program: Program) -> None:
    """Leave a WAL without index beside the database, as after a kill and a copy."""
    log = owned_program.data / "dragoman.db-wal"
    with closing(open_reader(owned_program.data / "dragoman.db")) as reader:
        reader.execute("BEGIN; SELECT * FROM meta")
        owned_program.prepare("task", "create", "Two")
        written = log.read_bytes()
    log.write_bytes(written)
    log.with_name("dragoman.db-shm").unlink(missing_ok=True)


@proves("DOCTOR-AGREES", "STORE-READ-ONLY")
def test_doctor_leaves_no_index_that_blocks_a_writer(owned_program: Program) -> None:
    leave_wal(owned_program)
    database = owned_program.data / "dragoman.db"
    chown_to_nobody(owned_program.data)
    database.chmod(0o400)

    examined = run_as_nobody(owned_program, "doctor", "--json")

    checks = {check["name"]: check for check in examined.json["checks"]}
    assert checks["store"]["advice"] == f"chmod u+rw {database}"
    assert not database.with_name("dragoman.db-shm").exists()
    database.chmod(0o600)
    assert run_as_nobody(owned_program, "task", "create", "Three").code == 0


@proves("STORE-CORRUPT", "CLI-EXIT", "CLI-DOCTOR")
@pytest.mark.parametrize(
    "content",
    [b"a letter to my aunt " * 500, b"SQLite format 3\x00" + b"\xff" * 4_080],
    ids=["foreign", "garbled"],
)
def test_corrupt_database_is_a_clear_error_and_stays_unchanged(
    program: Program, content: bytes
) -> None:
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")
    database = program.data / "dragoman.db"
    for helper in program.data.glob("dragoman.db-*"):
        helper.unlink()
    database.write_bytes(content)

    for args in (
        ("task", "create", "Two"),
        ("task", "list"),
        ("task", "claim", "--agent", "ada"),
        ("verify",),
        ("tick",),
        ("init",),
    ):
        refused = program.ask(*args, code=1)
        assert refused["code"] == "store_corrupt", args
        assert str(database) in refused["detail"]
    assert program.ask("doctor", code=1)["detail"] == "bad: store"
    assert database.read_bytes() == content


@proves("CONFIG-ONCE", "CLI-EXIT")
def test_invalid_settings_are_named(program: Program) -> None:
    program.prepare("init")
    (program.data / "dragoman.toml").write_text("[leases]\nttl = 5\n")

    refused = program.ask("task", "list", code=1)
    assert refused["code"] == "invalid_settings"
    assert "dragoman.toml" in refused["detail"]
    assert "ttl_ms" in refused["detail"]


@proves("SYSTEM-KEYS", "CLI-EXIT")
def test_key_readable_by_others_is_refused_with_a_remedy(program: Program) -> None:
    program.prepare("init")
    (program.data / "keys" / "ledger.key").chmod(0o644)

    refused = program.ask("task", "create", "x", code=1)
    assert refused["code"] == "bad_key"
    assert "chmod 600" in refused["detail"]


@proves("CLI-EXIT")
def test_impossible_directory_is_a_clear_error(program: Program) -> None:
    refused = program.ask("init", "--data", "/proc/dragoman/hub", code=1)

    assert refused["code"] == "store_unavailable"
    assert "/proc/dragoman/hub" in refused["detail"]


@proves("VERIFY-HASHES", "CLI-VERIFY")
def test_byte_flipped_in_the_database_file_is_found(program: Program) -> None:
    program.prepare("task", "create", "Original words", "--id", "T-1")
    program.prepare("task", "create", "Other", "--id", "T-2")
    database = program.data / "dragoman.db"
    content = database.read_bytes()
    assert content.count(b"Original words") == 2, "in the ledger, and in the view of the task"

    for start in (content.find(b"Original words"), content.rfind(b"Original words")):
        database.write_bytes(content[:start] + b"Forged" + content[start + 6 :])
        ended = program.run("verify", "--json")
        assert ended.code == 1
        assert ended.json["found"] >= 1
    database.write_bytes(content)
    assert program.run("verify").code == 0
