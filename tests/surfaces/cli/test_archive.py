"""`tick`, `rebuild-files`, `export` and `import`: files beside the ledger."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.protocols.aof.hub import CHILD, PARENT, report, request, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.message_files import MessageFiles

pytestmark = proves("CLI-FILES")


@pytest.fixture
def populated(dragoman: Console, message_file: MessageFiles) -> Console:
    """Give a directory with a reported task and a delegated one."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.make("Two", "--id", CHILD, "--ready", "--alias", "bead:ol-1")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend", "--session", "s-1")
    dragoman.ask("send", message_file(request()))
    (dragoman.data / f"tasks/in-progress/{PARENT}/work/notes.bin").write_bytes(b"\0\xff\n")
    dragoman.ask("send", message_file(report("partial")))
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    return dragoman


def snapshot(data: Path) -> dict[str, bytes]:
    """Content of every file of tasks, runs and events."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for part in ("tasks", "runs", "events")
        for path in (data / part).rglob("*")
        if path.is_file()
    }


@proves("FILES-INBOX", "FILES-EDITS")
def test_tick_applies_inbox_messages_and_moved_files(populated: Console) -> None:
    inbox, ready = populated.data / "inbox/swe-backend", populated.data / "tasks/ready"
    inbox.mkdir()
    (inbox / "1.json").write_text(json.dumps(update(progress="Half of it")))
    assert populated.ask("tick")["services"]["inbox"] == 1
    (ready / f"{CHILD}.md").rename(populated.data / f"tasks/backlog/{CHILD}.md")
    assert populated.ask("tick")["services"]["file-watch"] == 1

    assert (inbox / "processed/1.json").exists()
    assert "Progress: Half of it" in (populated.data / f"tasks/in-progress/{PARENT}.md").read_text()
    assert populated.ask("task", "show", CHILD)["status"] == "backlog"
    assert populated.ask("verify")["findings"] == []


@proves("FILES-COMPARE", "CLI-VERIFY")
def test_rebuild_files_restores_lost_and_damaged_files(populated: Console) -> None:
    before = snapshot(populated.data)
    shutil.rmtree(populated.data / "tasks/ready")
    shutil.rmtree(populated.data / "events")
    shutil.rmtree(populated.data / "runs")
    (populated.data / f"tasks/in-progress/{PARENT}.md").unlink()
    (populated.data / "projection.json").unlink()

    found = populated.ask("verify", code=1)
    assert {finding["problem"].rpartition(" is ")[2] for finding in found["findings"]} == {
        "missing"
    }
    assert found["firstBadPosition"] is None
    assert populated.ask("rebuild-files") == {"ok": True, "tasks": 2}
    assert populated.ask("verify")["findings"] == []
    assert snapshot(populated.data) == before
    assert populated("rebuild-files").out == "files of 2 tasks written\n"


@proves("FILES-ARCHIVE", "CLI-VERIFY")
def test_export_and_import_carry_the_whole_directory(
    populated: Console, tmp_path: Path, message_file: MessageFiles
) -> None:
    archive, restored = tmp_path / "backup.tar", Console(tmp_path / "restored")

    written = populated.ask("export", str(archive))
    taken = restored.ask("import", str(archive))

    assert (written["file"], written["skippedFiles"]) == (str(archive), [])
    assert (taken["entries"], taken["ledger"]) == (written["entries"], written["ledger"])
    assert snapshot(restored.data) == snapshot(populated.data)
    assert restored("events", "--json").out == populated("events", "--json").out
    assert restored.ask("verify")["findings"] == []
    assert restored.ask("task", "show", "bead:ol-1")["id"] == CHILD
    # Work continues in the copy: attempt, report and roles are the same.
    restored.ask("send", message_file(update(progress="Elsewhere")))
    restored.ask("session-end", "--as", "boss")
    assert restored.ask("task", "show", PARENT)["status"] == "review"
    assert restored.ask("verify")["findings"] == []
    assert populated.ask("task", "show", PARENT)["status"] == "in-progress"


@proves("FILES-ARCHIVE", "SYSTEM-KEYS")
def test_export_contains_no_private_key(populated: Console, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    populated.ask("export", str(archive))

    content = archive.read_bytes()
    for key in (populated.data / "keys").iterdir():
        if key.suffix != ".pub":
            assert key.read_bytes().strip() not in content, key.name


@proves("FILES-CARRIED")
@pytest.mark.parametrize("commands", [("export", "import"), ("backup", "restore")])
def test_archives_carry_undecodable_names_and_modes(
    populated: Console, tmp_path: Path, commands: tuple[str, str]
) -> None:
    work = Path(f"tasks/in-progress/{PARENT}/work/mine")
    (populated.data / work).mkdir()
    for name, mode in ((b"caf\xe9.txt", 0o644), (b"d\xe9r/run.sh", 0o4755), (b"own.sh", 0o700)):
        path = populated.data / work / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name)
        path.chmod(mode)
    archive, new = str(tmp_path / "all.tar"), Console(tmp_path / "new")
    assert populated.ask(commands[0], archive)["skippedFiles"] == []
    new.ask(commands[1], archive)
    arrived = {
        os.fsencode(path.relative_to(new.data / work)): (
            path.is_dir() or (path.read_bytes(), path.stat().st_mode & 0o7100)
        )
        for path in (new.data / work).rglob("*")
    }
    assert arrived == {
        b"caf\xe9.txt": (b"caf\xe9.txt", 0),
        b"d\xe9r": True,
        b"d\xe9r/run.sh": (b"d\xe9r/run.sh", 0o100),
        b"own.sh": (b"own.sh", 0o100),
    }
    assert new("verify").code == 0


def test_export_lists_skipped_files(populated: Console, tmp_path: Path) -> None:
    (populated.data / f"tasks/in-progress/{PARENT}/outputs/link").symlink_to("/etc")

    result = populated("export", str(tmp_path / "backup.tar"))

    first, second = result.out.splitlines()
    assert first.startswith(f"{tmp_path / 'backup.tar'}: ")
    assert "left out, because it is no plain file" in second
    assert "outputs/link" in second


@proves("FILES-ARCHIVE", "CLI-EXIT")
def test_damaged_archive_is_refused_and_creates_nothing(populated: Console, tmp_path: Path) -> None:
    archive, target = tmp_path / "backup.tar", Console(tmp_path / "restored")
    populated.ask("export", str(archive))
    whole = archive.read_bytes()
    notes = whole.index(b"\0\xff\n\0")

    damages = (
        ("SHA-256", whole.replace(b"One", b"0ne", 1)),
        ("SHA-256", whole[:notes] + b"\1" + whole[notes + 1 :]),
        ("backup.tar", whole[: len(whole) // 2]),
        ("backup.tar", b"a letter to my aunt"),
    )
    for named, damaged in damages:
        archive.write_bytes(damaged)
        refused = target.ask("import", str(archive), code=1)
        assert refused["code"] == "bad_archive"
        assert named in refused["detail"]
        assert not target.data.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@proves("FILES-ARCHIVE", "CLI-EXIT")
def test_import_never_overwrites_a_directory(populated: Console, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    populated.ask("export", str(archive))
    before = snapshot(populated.data)

    refused = populated.ask("import", str(archive), code=1)

    assert refused["code"] == "target_in_use"
    assert "is not empty" in refused["detail"]
    assert snapshot(populated.data) == before


@proves("CLI-EXIT")
def test_impossible_archive_paths_are_usage_errors(dragoman: Console, tmp_path: Path) -> None:
    for args, expected in (
        (("export", str(tmp_path)), "replaces nothing: name another file"),
        (("export", str(tmp_path / "nowhere/x.tar")), "name a file in a folder that exists"),
        (("export",), "Missing argument 'FILE'"),
        (("export", "-"), "not written to standard output: name a file"),
        (("backup", "-"), "not written to standard output: name a file"),
        (("import", str(tmp_path / "nowhere.tar")), "No such file"),
        (("import", str(tmp_path)), "Is a directory"),
    ):
        ended = dragoman(*args)
        assert ended.code == 2
        assert expected in ended.err
    assert not dragoman.data.exists()


@proves("CLI-EXIT", "FILES-ARCHIVE")
@pytest.mark.parametrize("command", ["export", "rebuild-files"])
def test_read_only_command_creates_no_directory(
    dragoman: Console, tmp_path: Path, command: str
) -> None:
    target = [str(tmp_path / "backup.tar")] if command == "export" else []

    refused = dragoman.ask(command, *target, code=1)

    assert refused["code"] == "store_unavailable"
    assert "there is no data directory" in refused["detail"]
    assert not dragoman.data.exists()


@proves("FILES-ARCHIVE")
def test_export_replaces_no_file(populated: Console, tmp_path: Path) -> None:
    archive = tmp_path / "hub.tar"
    populated.ask("export", str(archive))
    before = archive.read_bytes()
    refused = populated("export", str(archive))
    assert refused.code == 2
    assert f"{archive} is there, and an archive replaces nothing" in refused.err
    assert archive.read_bytes() == before
