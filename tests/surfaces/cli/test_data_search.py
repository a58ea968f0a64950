"""Search for the data directory: found from a subfolder, founded by few commands, never foreign."""

import os
from io import StringIO
from pathlib import Path

import pytest

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.surfaces.cli.app import main
from dragoman.system.data_search import find_data
from tests.requirements import proves
from tests.surfaces.cli.console import CommandResult, Console

pytestmark = proves("CLI-SEARCH")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a subfolder of a folder without a data directory."""
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "project" / "src"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def run(*args: str) -> CommandResult:
    """Run a command that names no data directory."""
    out, err = StringIO(), StringIO()
    code = main(CLI_WIRING, args, out, err, lambda: False)
    return CommandResult(code, out.getvalue(), err.getvalue())


def test_command_in_a_subfolder_uses_the_directory_above(folder: Path) -> None:
    above = folder.parent / ".dragoman"
    Console(above).make("One", "--id", "T-1")

    assert run("task", "create", "Two", "--id", "T-2").code == 0
    assert "T-1" in run("task", "list").out
    assert run("init", "--json").json["data"] == str(above)
    assert run("init").out.endswith("--ready\n"), "no --data: the next command finds it, too"
    assert not (folder / ".dragoman").exists()


def test_nearest_directory_wins(folder: Path) -> None:
    Console(folder.parent / ".dragoman").make("Above")
    Console(folder / ".dragoman").make("Here")

    assert "Here" in run("task", "list").out
    assert find_data() == (".dragoman", "")


def test_directory_is_made_by_commands_that_found_one(folder: Path) -> None:
    for args in (
        ("task", "create", "One", "--ready"),
        ("task", "claim", "--agent", "ada"),
        ("send", "missing.json"),
        ("agent", "add", "ada"),
        ("mail", "inbox"),
        ("tick",),
        ("mcp",),
        ("task", "list"),
        ("checkpoints", "accept"),
    ):
        refused = run(*args)
        assert refused.code != 0, args
        assert list(folder.iterdir()) == [], args
        if args != ("send", "missing.json"):
            assert "there is no data directory .dragoman in this folder or above it" in refused.err
            assert "run `dragoman init`" in refused.err
    assert run("init").code == 0
    assert list(folder.iterdir()) == [folder / ".dragoman"]
    assert run("task", "create", "One", "--ready").code == 0
    assert run("backup", "../b.tar").code == run("export", "../e.tar").code == 0


@pytest.mark.parametrize(("write", "read"), [("backup", "restore"), ("export", "import")])
def test_archive_is_unpacked_into_a_new_directory_here(
    tmp_path: Path, folder: Path, write: str, read: str
) -> None:
    console = Console(tmp_path / "origin")
    console.make("One")
    assert console(write, str(tmp_path / "archive.tar")).code == 0

    assert run(read, str(tmp_path / "archive.tar")).code == 0
    assert "One" in run("task", "list").out
    assert (folder / ".dragoman").is_dir()
    assert run(read, str(tmp_path / "archive.tar")).code == 1, "there is one now"


def test_named_directory_is_made_by_a_command_that_writes_but_not_by_mcp(folder: Path) -> None:
    assert run("mcp", "--data", "new").code == 1
    assert list(folder.iterdir()) == []
    assert run("task", "create", "One", "--data", "new").code == 0


def test_directory_of_another_user_is_passed_over_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Console(folder.parent.parent / ".dragoman").make("Mine")
    foreign = folder.parent / ".dragoman"
    foreign.mkdir()
    theirs = foreign.stat().st_ino
    lstat = os.lstat

    def as_theirs(path: object) -> os.stat_result:
        found = lstat(path)  # pyright: ignore[reportArgumentType]
        fields = list(found)
        fields[4] += found.st_ino == theirs
        return os.stat_result(fields)

    with monkeypatch.context() as patch:
        patch.setattr("dragoman.system.data_search.os.lstat", as_theirs)
        assert find_data() == (str(folder.parent.parent / ".dragoman"), str(foreign))
    for one in folder.parent.parent.glob(".dragoman"):
        one.rename(folder.parent.parent / "hub")
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.system.data_search.os.lstat", as_theirs)
        refused = run("task", "list")
    assert f"({foreign} belongs to another user, and is used only if it is named)" in refused.err


def test_link_leads_to_a_directory_of_ones_own(folder: Path) -> None:
    Console(folder.parent / "hub").make("Linked")
    (folder.parent / ".dragoman").symlink_to("hub")
    (folder / ".dragoman").symlink_to("nowhere")

    assert "Linked" in run("task", "list").out


def test_file_of_that_name_is_no_directory(folder: Path) -> None:
    (folder / ".dragoman").touch()
    assert "there is no data directory" in run("task", "list").err
    assert "is no directory" in run("init").err


def test_removed_working_directory_has_none(folder: Path) -> None:
    folder.rmdir()
    assert find_data() == ("", "")
