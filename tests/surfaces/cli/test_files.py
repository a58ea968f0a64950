"""watch-files, rebuild-files, export and import: what lies beside the ledger, and all of it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.system.hub_lock import HubLock
from tests.protocols.aof.hub import CHILD, PARENT, report, request, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.letters import Letters

pytestmark = proves("CLI-FILES")


@pytest.fixture
def busy(dragoman: Console, letter: Letters) -> Console:
    """Give a directory with a task that is reported on, and one that is asked for."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.make("Two", "--id", CHILD, "--ready", "--alias", "bead:ol-1")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend", "--session", "s-1")
    dragoman.ask("send", letter(request()))
    (dragoman.data / f"tasks/in-progress/{PARENT}/work/notes.bin").write_bytes(b"\0\xff\n")
    dragoman.ask("send", letter(report("partial")))
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    return dragoman


def tree(data: Path) -> dict[str, bytes]:
    """Every file of tasks, runs and events."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for part in ("tasks", "runs", "events")
        for path in (data / part).rglob("*")
        if path.is_file()
    }


def looks(*steps: Callable[[], object]) -> Callable[[], bool]:
    """A wait that does one step between two looks, and ends after the last."""
    left = list(steps)

    def wait() -> bool:
        if not left:
            return False
        left.pop(0)()
        return True

    return wait


def until(*steps: tuple[Callable[[], object], Callable[[], bool]]) -> Callable[[], bool]:
    """A wait that does a step, looks until what should come of it has come, and ends at last."""
    left, awaited = list(steps), list[Callable[[], bool]]()

    def wait() -> bool:
        if awaited and not awaited[-1]():
            return True
        if not left:
            return False
        step, comes = left.pop(0)
        awaited.append(comes)
        step()
        return True

    return wait


@proves("FILES-INBOX", "FILES-EDITS")
def test_what_is_put_beside_the_ledger_is_taken_as_it_comes(busy: Console) -> None:
    inbox, ready = busy.data / "inbox/swe-backend", busy.data / "tasks/ready"
    moved = busy.data / f"tasks/backlog/{CHILD}.md"

    def message() -> None:
        inbox.mkdir()
        (inbox / "1.json").write_text(json.dumps(update(progress="Half of it")))

    def move() -> None:
        (ready / f"{CHILD}.md").rename(moved)

    said = busy(
        "watch-files",
        "--json",
        wait=until(
            (message, (inbox / "processed/1.json").exists),
            (move, lambda: "status: backlog" in moved.read_text()),
        ),
    )

    assert said.code == 0
    done = [told["duties"] for told in said.objects]
    assert sum(duties.get("inbox", 0) for duties in done) == 1
    assert sum(duties.get("files", 0) for duties in done) == 1
    assert (inbox / "processed/1.json").exists()
    assert "Progress: Half of it" in (busy.data / f"tasks/in-progress/{PARENT}.md").read_text()
    assert busy.ask("task", "show", CHILD)["status"] == "backlog"
    assert busy.ask("verify")["findings"] == []


def test_whoever_watches_is_told_in_words(busy: Console) -> None:
    (busy.data / "inbox/1.json").write_text("hello")

    said = busy("watch-files", wait=looks(lambda: None))

    assert (said.code, said.out) == (0, "inbox 1\n")


@proves("FILES-INBOX")
@pytest.mark.parametrize("words", [("watch-files",), ("tick", "--watch")])
def test_nobody_watches_beside_a_hub_that_does_it_itself(
    busy: Console, words: tuple[str, ...]
) -> None:
    with HubLock.acquire(busy.data, "dragoman up"):
        said = busy(*words, "--json", wait=looks(lambda: None))
    assert (said.code, said.json["code"]) == (1, "hub_running")


@proves("HUB-TROUBLE")
@pytest.mark.parametrize("words", [("watch-files",), ("tick", "--watch")])
def test_whoever_watches_is_told_once_that_files_lag_and_once_more_at_the_end(
    busy: Console, words: tuple[str, ...]
) -> None:
    (busy.data / "projection.lock").unlink()
    (busy.data / "projection.lock").mkdir()
    busy.ask("task", "create", "Not in the files")

    said = busy(*words, wait=looks(*[lambda: None] * 4))

    assert said.code == 0
    assert said.err.count("warning: the files lag behind the ledger: projection.lock") == 2


@proves("FILES-COMPARE", "CLI-VERIFY")
def test_lost_and_damaged_files_are_found_and_written_anew(busy: Console) -> None:
    before = tree(busy.data)
    shutil.rmtree(busy.data / "tasks/ready")
    shutil.rmtree(busy.data / "events")
    shutil.rmtree(busy.data / "runs")
    (busy.data / f"tasks/in-progress/{PARENT}.md").unlink()
    (busy.data / "projection.json").unlink()

    found = busy.ask("verify", code=1)
    assert {finding["problem"].rpartition(" is ")[2] for finding in found["findings"]} == {
        "missing"
    }
    assert found["firstBadPosition"] is None
    assert busy.ask("rebuild-files") == {"ok": True, "tasks": 2}
    assert busy.ask("verify")["findings"] == []
    assert tree(busy.data) == before
    assert busy("rebuild-files").out == "files of 2 tasks written\n"


@proves("FILES-ARCHIVE", "CLI-VERIFY")
def test_a_directory_is_carried_whole(busy: Console, tmp_path: Path, letter: Letters) -> None:
    archive, restored = tmp_path / "backup.tar", Console(tmp_path / "restored")

    written = busy.ask("export", str(archive))
    taken = restored.ask("import", str(archive))

    assert (written["file"], written["leftOut"]) == (str(archive), [])
    assert (taken["entries"], taken["ledger"]) == (written["entries"], written["ledger"])
    assert tree(restored.data) == tree(busy.data)
    assert restored("events", "--json").out == busy("events", "--json").out
    assert restored.ask("verify")["findings"] == []
    assert restored.ask("task", "show", "bead:ol-1")["id"] == CHILD
    # Life goes on there: the attempt, its report and the roles are what they were.
    restored.ask("send", letter(update(progress="Elsewhere")))
    restored.ask("session-end", "--as", "boss")
    assert restored.ask("task", "show", PARENT)["status"] == "review"
    assert restored.ask("verify")["findings"] == []
    assert busy.ask("task", "show", PARENT)["status"] == "in-progress"


@proves("FILES-ARCHIVE", "SYSTEM-KEYS")
def test_no_private_key_leaves_the_directory(busy: Console, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    busy.ask("export", str(archive))

    content = archive.read_bytes()
    for key in (busy.data / "keys").iterdir():
        if key.suffix != ".pub":
            assert key.read_bytes().strip() not in content, key.name


@proves("FILES-CARRIED")
@pytest.mark.parametrize("way", [("export", "import"), ("backup", "restore")])
def test_names_that_are_no_text_execute_bits_and_empty_folders_are_carried(
    busy: Console, tmp_path: Path, way: tuple[str, str]
) -> None:
    work = Path(f"tasks/in-progress/{PARENT}/work/mine")
    (busy.data / work).mkdir()
    for name, mode in ((b"caf\xe9.txt", 0o644), (b"d\xe9r/run.sh", 0o4755), (b"own.sh", 0o700)):
        path = busy.data / work / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name)
        path.chmod(mode)
    for name in (b"hollow/deep", b"d\xe9r/\xff"):
        (busy.data / work / os.fsdecode(name)).mkdir(parents=True)
    archive, new = str(tmp_path / "all.tar"), Console(tmp_path / "new")
    assert busy.ask(way[0], archive)["leftOut"] == []
    new.ask(way[1], archive)
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
        b"d\xe9r/\xff": True,
        b"own.sh": (b"own.sh", 0o100),
        b"hollow": True,
        b"hollow/deep": True,
    }
    assert new("verify").code == 0


def test_people_are_told_what_was_left_out(busy: Console, tmp_path: Path) -> None:
    (busy.data / f"tasks/in-progress/{PARENT}/outputs/link").symlink_to("/etc")

    said = busy("export", str(tmp_path / "backup.tar"))

    first, second = said.out.splitlines()
    assert first.startswith(f"{tmp_path / 'backup.tar'}: ")
    assert "left out, because it is no plain file" in second
    assert "outputs/link" in second


@proves("FILES-ARCHIVE", "CLI-EXIT")
def test_a_damaged_archive_is_refused_and_makes_nothing(busy: Console, tmp_path: Path) -> None:
    archive, target = tmp_path / "backup.tar", Console(tmp_path / "restored")
    busy.ask("export", str(archive))
    whole = archive.read_bytes()
    notes = whole.index(b"\0\xff\n\0")

    damages = (
        ("ledger/", whole.replace(b"One", b"0ne", 1)),
        ("notes.bin", whole[:notes] + b"\1" + whole[notes + 1 :]),
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
def test_an_import_never_writes_over_a_directory(busy: Console, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    busy.ask("export", str(archive))
    before = tree(busy.data)

    refused = busy.ask("import", str(archive), code=1)

    assert refused["code"] == "place_taken"
    assert "is not empty" in refused["detail"]
    assert tree(busy.data) == before


@proves("CLI-EXIT")
def test_places_that_cannot_be_are_wrong_usage(dragoman: Console, tmp_path: Path) -> None:
    for words, said in (
        (("export", str(tmp_path)), "name a file in a folder that exists"),
        (("export", str(tmp_path / "nowhere/x.tar")), "name a file in a folder that exists"),
        (("export",), "Missing argument 'FILE'"),
        (("export", "-"), "not written to standard output: name a file"),
        (("backup", "-"), "not written to standard output: name a file"),
        (("import", str(tmp_path / "nowhere.tar")), "No such file"),
        (("import", str(tmp_path)), "Is a directory"),
    ):
        ended = dragoman(*words)
        assert ended.code == 2
        assert said in ended.err
    assert not dragoman.data.exists()


@proves("CLI-EXIT", "FILES-ARCHIVE")
@pytest.mark.parametrize("command", ["export", "rebuild-files"])
def test_what_only_reads_a_directory_makes_none(
    dragoman: Console, tmp_path: Path, command: str
) -> None:
    target = [str(tmp_path / "backup.tar")] if command == "export" else []

    refused = dragoman.ask(command, *target, code=1)

    assert refused["code"] == "store_unavailable"
    assert "there is no data directory" in refused["detail"]
    assert not dragoman.data.exists()


@proves("FILES-ARCHIVE")
def test_a_file_that_is_replaced_is_told(busy: Console, tmp_path: Path) -> None:
    archive = str(tmp_path / "backup.tar")
    assert busy.ask("export", archive)["replaced"] is False
    assert busy.ask("export", archive)["replaced"] is True
    assert "in place of the file that was there" in busy("export", archive).out
