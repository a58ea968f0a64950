"""`init`: creates a directory once and never replaces a saved store silently."""

import subprocess
from pathlib import Path
from shutil import copytree

import pytest

from dragoman.surfaces.cli.data_directory import mask_password
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-INIT")


def contents(folder: Path) -> dict[Path, bytes]:
    """Content of every file, except SQLite's -wal and -shm files."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}


def test_init_creates_a_private_directory_and_is_idempotent(
    dragoman: Console,
) -> None:
    first = dragoman.ask("init")
    files = contents(dragoman.data)
    second = dragoman.ask("init")

    store = f"sqlite:///{dragoman.data}/dragoman.db"
    assert first == {
        "ok": True,
        "data": str(dragoman.data),
        "store": store,
        "created": True,
        "storeUrlSaved": False,
    }
    assert second == {**first, "created": False}
    assert contents(dragoman.data) == files
    assert dragoman.data.stat().st_mode & 0o777 == 0o700


def test_git_ignores_a_directory_with_keys(dragoman: Console, tmp_path: Path) -> None:
    repository, backup = tmp_path / "repository", str(tmp_path / "hub.tar")
    archive = str(tmp_path / "archive.tar")
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    dragoman.make("One")
    dragoman.ask("backup", backup)
    dragoman.ask("export", archive)
    existing = repository / "told"
    existing.mkdir()
    (existing / "dragoman.toml").write_text("[hub]\n")
    made = {"told": ["init"], "restored": ["restore", backup], "imported": ["import", archive]}

    for data, args in made.items():
        dragoman.ask("--data", str(repository / data), *args)
        assert (repository / data / "keys" / "secret").exists()

    assert git_status(repository) == []


def test_existing_gitignore_stays_unchanged(dragoman: Console, tmp_path: Path) -> None:
    root, with_gitignore, without_gitignore = (
        tmp_path / "root",
        tmp_path / "own",
        tmp_path / "taken",
    )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    with_gitignore.mkdir()
    (with_gitignore / ".gitignore").write_text("keys\n")
    for data in (root, with_gitignore, without_gitignore):
        dragoman.ask("--data", str(data), "init")
    (without_gitignore / ".gitignore").unlink()
    dragoman.ask("--data", str(without_gitignore), "init")

    assert not (root / ".gitignore").exists(), "more may be in it than what is ours"
    assert (with_gitignore / ".gitignore").read_text() == "keys\n"
    assert not (without_gitignore / ".gitignore").exists(), "somebody wants to commit it"


def git_status(repository: Path) -> list[str]:
    result = subprocess.run(
        ["git", "-C", str(repository), "status", "--porcelain"],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.splitlines()


def test_init_prints_paths_and_the_next_command(dragoman: Console) -> None:
    result = dragoman("init")

    assert result.code == 0
    assert result.out.splitlines() == [
        f"data directory  {dragoman.data}",
        f"store           sqlite:///{dragoman.data}/dragoman.db",
        f'Next: dragoman task create "What to do" --ready --data {dragoman.data}',
    ]
    assert "(was there)" in dragoman("init").out


def test_next_command_names_the_directory_only_if_needed(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    here, elsewhere = (dragoman("init", "--data", data) for data in (".dragoman", "my hub"))

    assert here.out.endswith('Next: dragoman task create "What to do" --ready\n')
    assert elsewhere.out.endswith(f" --ready --data '{tmp_path}/my hub'\n")


@proves("STORE-URL")
def test_store_option_is_saved_for_the_owner_only(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = dragoman.ask("init", "--store", "sqlite:///beside.db")

    file = dragoman.data / "dragoman.toml"
    assert made["storeUrlSaved"] is True
    assert made["store"] == f"sqlite:///{tmp_path}/beside.db", "whatever the directory is later"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == f'[store]\nurl = "sqlite:///{tmp_path}/beside.db"\n'
    monkeypatch.chdir("/")
    dragoman.make("One", "--id", "T-1")
    assert (tmp_path / "beside.db").exists()
    assert not (dragoman.data / "dragoman.db").exists()
    again = dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/beside.db")
    assert (again["storeUrlSaved"], again["created"]) == (False, False)
    assert dragoman.ask("init")["store"] == made["store"]


@proves("STORE-URL")
def test_saved_store_is_never_replaced(dragoman: Console, tmp_path: Path) -> None:
    dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/one.db")
    before = (dragoman.data / "dragoman.toml").read_bytes()

    refused = dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/two.db", code=1)

    assert refused["code"] == "invalid_settings"
    assert f"{tmp_path}/one.db" in refused["detail"]
    assert (dragoman.data / "dragoman.toml").read_bytes() == before
    assert not (tmp_path / "two.db").exists()


@proves("STORE-URL")
def test_directory_with_its_own_database_keeps_it(dragoman: Console, tmp_path: Path) -> None:
    dragoman.make("One", "--id", "T-1")

    refused = dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/two.db", code=1)

    assert "dragoman.db" in refused["detail"]
    assert dragoman.ask("task", "show", "T-1")["title"] == "One"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[tasks]\nmax_attempts = 3\n", '\n\n[store]\nurl = "'),
        ("[store]  # where\n[tasks]\nmax_attempts = 3\n", '[store]  # where\nurl = "'),
        ("# nothing yet\n", '# nothing yet\n\n[store]\nurl = "'),
    ],
)
def test_existing_settings_are_kept(
    dragoman: Console, tmp_path: Path, text: str, line: str
) -> None:
    dragoman.data.mkdir(0o700)
    file = dragoman.data / "dragoman.toml"
    file.write_text(text)

    assert dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/x.db")["storeUrlSaved"] is True
    assert line in file.read_text()
    assert all(kept in file.read_text() for kept in text.splitlines())


def test_settings_that_cannot_be_extended_stay_unchanged(dragoman: Console, tmp_path: Path) -> None:
    dragoman.data.mkdir(0o700)
    file = dragoman.data / "dragoman.toml"
    file.write_text("store = {}\n")

    refused = dragoman.ask("init", "--store", f"sqlite:///{tmp_path}/x.db", code=1)
    assert refused["code"] == "invalid_settings"
    assert "by hand" in refused["detail"]
    assert file.read_text() == "store = {}\n"


def test_unreachable_store_is_not_saved(dragoman: Console) -> None:
    refused = dragoman.ask("init", "--store", "sqlite:////nowhere/at/all/x.db", code=1)

    assert refused["code"] == "store_unavailable"
    assert not (dragoman.data / "dragoman.toml").exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://hub:secret@host/db", "postgresql://hub:***@host/db"),
        ("postgresql://hub@host/db?password=s3&x=1", "postgresql://hub@host/db?password=***&x=1"),
        ("postgresql://hub@host:5432/db", "postgresql://hub@host:5432/db"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_password_is_masked(url: str, shown: str) -> None:
    assert mask_password(url) == shown


@proves("STORE-REMEMBERED")
@pytest.mark.parametrize(
    "args",
    [("task", "create", "One"), ("tick",), ("import", "{archive}"), ("restore", "{backup}")],
)
def test_every_command_that_creates_a_directory_saves_its_store(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    made = {"archive": str(tmp_path / "a.tar"), "backup": str(tmp_path / "b.tar")}
    dragoman.make("One")
    dragoman.ask("export", made["archive"])
    dragoman.ask("backup", made["backup"])
    monkeypatch.chdir(tmp_path)
    other = Console(tmp_path / "other")
    other.ask(*(word.format(**made) for word in args), "--store", "sqlite:///other/beside.db")

    assert not (other.data / "dragoman.db").exists()
    assert f"sqlite:///{tmp_path}/other/beside.db" in (other.data / "dragoman.toml").read_text()
    other.make("Two")
    assert other("verify").code == 0
    assert not (other.data / "dragoman.db").exists()


@proves("STORE-REMEMBERED")
def test_directory_with_copied_keys_saves_its_store(dragoman: Console, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/beside.db"
    dragoman.ask("init", "--store", url)
    second = Console(tmp_path / "second")
    copytree(dragoman.data / "keys", second.data / "keys")

    second.make("One", "--store", url)

    assert url in (second.data / "dragoman.toml").read_text()
    assert second("verify").code == 0
    assert not (second.data / "dragoman.db").exists()


@proves("STORE-REMEMBERED")
def test_store_option_of_a_read_command_is_not_saved(dragoman: Console, tmp_path: Path) -> None:
    dragoman.ask("init")
    dragoman("task", "list", "--store", f"sqlite:///{tmp_path}/beside.db")

    assert not (dragoman.data / "dragoman.toml").exists()


@proves("STORE-PRIVATE")
def test_files_outside_of_the_directory_are_private_too(dragoman: Console, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}"
    dragoman.ask("init", "--store", f"{url}/beside.db")
    dragoman.make("One")
    dragoman.ask("export", str(tmp_path / "a.tar"))
    dragoman.ask("backup", str(tmp_path / "b.tar"))
    made = [path for path in tmp_path.iterdir() if path.is_file()]

    assert {"beside.db", "a.tar", "b.tar"} <= {path.name for path in made}
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    assert "can read it" not in dragoman("doctor").out
    (tmp_path / "beside.db").chmod(0o644)
    output = dragoman("doctor").out
    assert f"{tmp_path}/beside.db: others on this machine can read it" in output
    assert f"chmod 600 {tmp_path}/beside.db*" in output
