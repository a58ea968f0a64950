"""Keys of a hub: one secret per store, a remedy for another secret, and lost keys."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.system.hub_lock import HubLock
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.tampering import change

pytestmark = proves("STORE-SECRET")


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a store that does not exist yet."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def first(tmp_path: Path, store: str) -> Console:
    """Give the directory whose hub created the store."""
    console = Console(tmp_path / "first")
    console.ask("init", "--store", store)
    return console


@pytest.fixture
def second(tmp_path: Path) -> Console:
    """Give a directory that does not exist yet."""
    return Console(tmp_path / "second")


def copy_keys(source: Console, target: Console) -> None:
    shutil.rmtree(target.data / "keys", ignore_errors=True)
    shutil.copytree(source.data / "keys", target.data / "keys")


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_hub_with_another_secret_is_refused_and_names_the_folder_to_copy(
    first: Console, second: Console, store: str
) -> None:
    refused = second.ask("init", "--store", store, code=1)

    assert refused["code"] == "bad_key"
    assert f"the secret in {second.data / 'keys'} is not the one" in refused["detail"]
    assert "Copy the folder keys from the data directory of a hub that works" in refused["detail"]
    assert second.ask("up", "--port", "0", "--store", store, code=1)["code"] == "bad_key"

    copy_keys(first, second)
    second.ask("init", "--store", store)
    made = first.ask("task", "create", "One", "--key", "once")
    again = second.ask("task", "create", "One", "--key", "once")
    assert (again["id"], again["repeated"]) == (made["id"], True)


@proves("CLI-DOCTOR")
def test_doctor_reports_another_secret(first: Console, second: Console, store: str) -> None:
    copy_keys(first, second)
    second.ask("init", "--store", store)
    shutil.rmtree(second.data / "keys")
    (second.data / "checkpoints.jsonl").unlink(missing_ok=True)
    second("init")

    checks = {check["name"]: check for check in second.ask("doctor", code=1)["checks"]}

    assert checks["keys"]["state"] == "ok"
    assert checks["store"]["state"] == "bad"
    assert "is not the one that the hubs of this store have" in checks["store"]["found"]
    assert first.ask("doctor")["ok"] is True


@proves("CLI-INIT")
def test_new_keys_option_continues_a_store_with_lost_keys(
    first: Console, second: Console, store: str
) -> None:
    assert second("init", "--store", store).code == 1

    second.ask("init", "--store", store, "--new-keys")

    assert second.ask("doctor")["ok"] is True
    assert first.ask("task", "create", "one", code=1)["code"] == "bad_key"


def test_store_without_secret_takes_that_of_the_first_hub(
    first: Console, second: Console, store: str
) -> None:
    change(
        Path(store.removeprefix("sqlite:///")), "DELETE FROM meta WHERE key = 'secret_fingerprint'"
    )

    first.ask("task", "create", "one")

    assert second("init", "--store", store).code == 1


def keys_advice(console: Console) -> str:
    (found,) = [c for c in console.ask("doctor", code=1)["checks"] if c["name"] == "keys"]
    return found["advice"]


@proves("KEYS-LOST", "CLI-DOCTOR")
@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_lost_keys_of_an_external_store_are_reported(first: Console, store: str) -> None:
    shutil.rmtree(first.data / "keys")
    assert not (first.data / "checkpoints.jsonl").exists(), "nothing was signed yet"

    advice = keys_advice(first)
    assert "Take them out of a backup" in advice
    assert "copy the folder keys from the data directory of a hub that works on it" in advice
    (last,) = re.findall("`dragoman ([^`]+)`", advice)
    first.ask(*last.split()[2:])
    assert first.ask("doctor")["ok"] is True


@proves("KEYS-LOST", "CLI-DOCTOR")
@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_empty_store_needs_no_key_recovery(second: Console, store: str) -> None:
    second.data.mkdir(0o700)
    settings = second.data / "dragoman.toml"
    settings.write_text(f'[store]\nurl = "{store}"\n')
    settings.chmod(0o600)

    assert keys_advice(second) == "run `dragoman init`"
    if store.startswith("sqlite"):
        Path(store.removeprefix("sqlite:///")).touch()
        assert keys_advice(second) == "run `dragoman init`"
    second.ask("init")
    assert second.ask("doctor")["ok"] is True


@proves("KEYS-LOST", "CLI-DOCTOR")
@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ("[store", "first mend the settings"),
        (
            '[store]\nurl = "postgresql://nobody@localhost:1/none"\n',
            "what to do depends on what is in it. PostgreSQL at localhost:1",
        ),
    ],
    ids=["broken settings", "no answer"],
)
def test_unreachable_store_makes_key_loss_uncertain(
    second: Console, settings: str, advice: str
) -> None:
    second.data.mkdir(0o700)
    (second.data / "dragoman.toml").write_text(settings)

    assert advice in keys_advice(second)


@proves("KEYS-LOST", "CLI-DOCTOR")
def test_lost_keys_are_recovered_from_a_backup_by_the_printed_advice(
    dragoman: Console, tmp_path: Path
) -> None:
    dragoman.make("One")
    dragoman.ask("backup", str(tmp_path / "hub.tar"))
    shutil.rmtree(dragoman.data / "keys")

    (found,) = [c for c in dragoman.ask("doctor", code=1)["checks"] if c["name"] == "keys"]
    for args in (("init",), ("init", "--new-keys"), ("verify",), ("task", "create", "Two")):
        refused = dragoman.ask(*args, code=1)
        assert refused["code"] == "bad_key"
        assert f"There are no keys in {dragoman.data / 'keys'}" in refused["detail"]
        assert found["advice"] in refused["detail"]
    assert "init --new-keys" in found["advice"]

    for command in re.findall("`((?:tar|chmod) [^`]+)`", found["advice"]):
        args = command.replace("BACKUP", str(tmp_path / "hub.tar")).split()
        subprocess.run(args, check=True)
    assert dragoman.ask("verify")["ok"]
    assert (dragoman.data / "keys").stat().st_mode & 0o077 == 0


@proves("KEYS-LOST", "CLI-INIT")
def test_new_keys_option_reports_its_consequences(dragoman: Console) -> None:
    dragoman.ask("task", "create", "One", "--key", "once")
    shutil.rmtree(dragoman.data / "keys")
    (dragoman.data / "checkpoints.jsonl").unlink()

    result = dragoman("init", "--new-keys")

    assert (result.code, "(made just now)" in result.out) == (0, True)
    assert "refused as key_reused" in result.out
    again = dragoman.ask("init", "--new-keys")
    assert (again["keysMade"], again["key"] in result.out) == (False, True)
    assert again["keysReplaced"] is False
    repeated = dragoman.ask("task", "create", "One", "--key", "once", code=1)
    assert repeated["code"] == "key_reused"
    assert "while the hub had other keys" in repeated["detail"]


@proves("KEYS-LOST", "CLI-INIT")
def test_existing_keys_are_not_reported_as_replaced(dragoman: Console) -> None:
    made = dragoman.ask("init", "--new-keys")
    assert (made["keysMade"], made["keysReplaced"]) == (True, False)

    result = dragoman("init", "--new-keys")

    assert (result.code, "(were there)" in result.out) == (0, True)
    assert "nothing was replaced" in result.out
    assert "key_reused" not in result.out


@proves("KEYS-LOST", "CLI-INIT")
def test_new_keys_option_beside_a_running_hub_is_refused(dragoman: Console) -> None:
    dragoman.make("One")
    shutil.rmtree(dragoman.data / "keys")
    with HubLock.acquire(dragoman.data, "dragoman up"):
        refused = dragoman.ask("init", "--new-keys", code=1)
    assert refused["code"] == "hub_running"
    assert "stop it first" in refused["detail"]
    assert not (dragoman.data / "keys").exists()
    detail = dragoman.ask("init", "--new-keys", code=1)["detail"]
    assert "checkpoints.jsonl (while it is there, no keys are made)" in detail
