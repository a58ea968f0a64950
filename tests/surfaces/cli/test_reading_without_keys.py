"""Commands that only read answer the same without keys; all others are refused with a remedy."""

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
    ("rewind", "T-1", "--to", "1"),
    ("agent", "list"),
    ("agent", "show", "ada"),
    ("agent", "rank", "Write the tests"),
    ("intent", "list"),
    ("intent", "show", "i-1"),
    ("why", "i-1"),
    ("mail", "inbox", "--agent", "bob"),
    ("mail", "show", "m1"),
    ("mail", "thread", "t-1"),
    ("mail", "search", "noon"),
    ("mail", "summarize", "t-1"),
    ("handoff", "list"),
    ("handoff", "show", "h1"),
    ("handoff", "timeline", "h1"),
    ("handoff", "verify", "h1"),
    ("handoff", "diagnose", "h1"),
    ("wave", "list"),
    ("wave", "show", "w1"),
    ("reserve", "list"),
)

KEYED_COMMANDS = (
    ("task", "create", "Three"),
    ("task", "log", "T-1", "half of it"),
    ("rewind", "T-1", "--to", "1", "--apply"),
    ("mail", "send", "--to", "bob", "--body", "Hi"),
    ("mail", "read", "m1"),
    ("handoff", "accept", "h1", "--as", "bob"),
    ("tick",),
    ("init",),
    ("up", "--port", "0"),
    ("verify",),
    ("verify", "--hashes"),
    ("why", "i-1", "--export", "{beside}/i-1.chain"),
    ("export", "{beside}/hub.tar"),
    ("backup", "{beside}/hub.backup"),
)
"""Commands that write, sign, check signatures, or carry the keys."""


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


def test_public_key_is_enough_to_verify_signatures(populated: Console, tmp_path: Path) -> None:
    for name in ("ledger.key", "secret"):
        (populated.data / "keys" / name).unlink()

    for args in ((), ("--hashes",)):
        verified = populated.ask("verify", *args)
        (warning,) = verified["warnings"]
        assert (verified["found"], "compare keys/ledger.pub with an earlier copy" in warning) == (
            0,
            True,
        )
    populated.ask("export", str(tmp_path / "hub.tar"))
    Console(tmp_path / "other").ask("import", str(tmp_path / "hub.tar"))
    assert populated.ask("backup", str(tmp_path / "hub.backup"), code=1)["code"] == "bad_key"
    signed = populated.data / "checkpoints.jsonl"
    signed.write_bytes(signed.read_bytes().replace(b'"size":', b'"size":1', 1))
    assert populated.ask("verify", code=1)["code"] == "ledger_broken"


def _remove_secret(keys: Path, _: Path) -> None:
    (keys / "secret").unlink()


def _make_readable(keys: Path, _: Path) -> None:
    for name in ("secret", "ledger.key"):
        (keys / name).chmod(0o644)


def _overwrite_key(keys: Path, _: Path) -> None:
    (keys / "ledger.key").write_text("none")


def _replace_keys(keys: Path, others: Path) -> None:
    shutil.rmtree(keys)
    shutil.copytree(others, keys)


def _replace_public_key(keys: Path, others: Path) -> None:
    shutil.copy(others / "ledger.pub", keys / "ledger.pub")


@pytest.mark.parametrize("damage", [_remove_secret, _make_readable, _overwrite_key])
def test_broken_private_keys_do_not_stop_verify(
    populated: Console, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    damage(populated.data / "keys", tmp_path)

    verified = populated.ask("verify")

    assert (verified["found"], len(verified["warnings"])) == (0, 1)
    populated.ask("export", str(tmp_path / "hub.tar"))
    for args in (("task", "create", "Three"), ("backup", str(tmp_path / "b.tar"))):
        assert populated.ask(*args, code=1)["code"] == "bad_key", args


@pytest.mark.parametrize("replace", [_replace_keys, _replace_public_key])
def test_keys_of_another_hub_are_refused(
    populated: Console, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    other = Console(tmp_path / "other")
    other.ask("init")
    replace(populated.data / "keys", other.data / "keys")

    assert populated.ask("mail", "inbox", "--agent", "bob")["messages"]
    for args in (("verify",), ("task", "create", "Three"), ("backup", str(tmp_path / "b.tar"))):
        assert populated.ask(*args, code=1)["code"] == "bad_key", args
