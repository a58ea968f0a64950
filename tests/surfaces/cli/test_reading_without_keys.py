"""Commands that read the store alone need no keys; all others are refused with a remedy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.test_handoff import offer

pytestmark = proves("KEYS-READING")

READ_COMMANDS = (
    ("task", "list"),
    ("task", "show", "T-1"),
    ("task", "log", "T-1"),
    ("events",),
    ("watch", "T-1"),
    ("agent", "list"),
    ("agent", "show", "ada"),
)
"""Commands that read the store alone."""

KEYED_COMMANDS = (
    ("task", "create", "Three"),
    ("task", "log", "T-1", "half of it"),
    ("rewind", "T-1", "--to", "1"),
    ("mail", "inbox", "--agent", "bob"),
    ("handoff", "show", "h1"),
    ("why", "i-1"),
    ("mail", "send", "--to", "bob", "--body", "Hi"),
    ("mail", "read", "m1"),
    ("handoff", "accept", "h1", "--as", "bob"),
    ("tick",),
    ("init",),
    ("up", "--port", "0"),
    ("verify",),
    ("verify", "--hashes"),
    ("export", "{beside}/hub.tar"),
    ("backup", "{beside}/hub.backup"),
)
"""Some of all the others."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the template of `populated`."""
    dragoman = Console(tmp_path_factory.mktemp("story") / "hub")
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "t1", "--ready", "--now", NOON)
    dragoman.ask("agent", "add", "ada", "--skill", "tests", "--now", NOON)
    dragoman.ask("delegate", "Run the tests", "--id", "i-1", "--now", NOON)
    mail = ("--to", "bob", "--body", "At noon?", "--thread", "t-1", "--id", "m1", "--as", "ada")
    dragoman.ask("mail", "send", *mail, "--now", NOON)
    offer(dragoman, "--now", NOON)
    dragoman.ask("wave", "start", "a=src/x.py", "--parallel", "1", "--id", "w1", "--now", NOON)
    dragoman.ask("tick", "--now", NOON)
    return dragoman.data


@pytest.fixture
def populated(dragoman: Console, template: Path) -> Console:
    """Give a directory with something to read for every command."""
    shutil.copytree(template, dragoman.data)
    return dragoman


def test_read_commands_answer_the_same_without_keys(populated: Console) -> None:
    before = {args: populated(*args, "--json", "--now", NOON) for args in READ_COMMANDS}
    failed = [w for w, result in before.items() if result.code != 0]
    assert not failed, before[failed[0]]
    shutil.rmtree(populated.data / "keys")

    after = {args: populated(*args, "--json", "--now", NOON) for args in READ_COMMANDS}

    assert after == before


def test_commands_that_need_keys_are_refused_and_change_nothing(
    populated: Console, tmp_path: Path
) -> None:
    shutil.rmtree(populated.data / "keys")
    entries = populated("events", "--json").out

    for args in KEYED_COMMANDS:
        formatted = [word.replace("{beside}", str(tmp_path)) for word in args]
        refused = populated.ask(*formatted, code=1)

        assert refused["code"] == "bad_key", args
        assert "There are no keys in" in refused["detail"]
        assert "Take them out of a backup" in refused["detail"]
    assert populated("events", "--json").out == entries
    assert [path.name for path in tmp_path.iterdir()] == [populated.data.name]


def _replace_keys(keys: Path, others: Path) -> None:
    shutil.rmtree(keys)
    shutil.copytree(others, keys)


def _replace_public_key(keys: Path, others: Path) -> None:
    shutil.copy(others / "ledger.pub", keys / "ledger.pub")


@pytest.mark.parametrize("replace", [_replace_keys, _replace_public_key])
def test_keys_of_another_hub_are_refused(
    populated: Console, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    other = Console(tmp_path / "other")
    other.ask("init")
    replace(populated.data / "keys", other.data / "keys")

    for args in (("verify",), ("task", "create", "Three"), ("backup", str(tmp_path / "b.tar"))):
        assert populated.ask(*args, code=1)["code"] == "bad_key", args
