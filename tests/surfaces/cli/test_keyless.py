"""Reading needs no keys: what only reads answers the same without them, and the rest says why not.

One rule for all commands, whichever way they open the data directory.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.test_handoff import offer

pytestmark = proves("KEYS-READING")

READING = (
    ("task", "list"),
    ("task", "show", "T-1"),
    ("task", "log", "T-1"),
    ("events",),
    ("watch", "T-1"),
    ("otlp", "T-1"),
    ("rewind", "T-1", "--to", "1"),
    ("agent", "list"),
    ("agent", "show", "ada"),
    ("agent", "rank", "Write the tests"),
    ("intent", "list"),
    ("intent", "show", "i-1"),
    ("intent", "actions"),
    ("why", "i-1"),
    ("mail", "inbox", "--agent", "bob"),
    ("mail", "show", "m1", "--peek"),
    ("mail", "thread", "t-1"),
    ("mail", "search", "noon"),
    ("mail", "summarize", "t-1"),
    ("handoff", "list"),
    ("handoff", "show", "h1"),
    ("handoff", "timeline", "h1"),
    ("handoff", "verify", "h1"),
    ("handoff", "diagnose", "h1"),
    ("handoff", "validate", "d1", "--as", "ada"),
    ("wave", "list"),
    ("wave", "show", "w1"),
    ("reserve", "list"),
)

KEYED = (
    ("task", "create", "Three"),
    ("task", "log", "T-1", "half of it"),
    ("rewind", "T-1", "--to", "1", "--apply"),
    ("mail", "send", "--to", "bob", "--body", "Hi"),
    ("mail", "show", "m1"),
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
"""What writes, signs, checks what was signed, or carries the keys."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what `lived` is a copy of."""
    dragoman = Console(tmp_path_factory.mktemp("story") / "hub")
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "t1", "--ready", "--now", NOON)
    dragoman.ask("agent", "add", "ada", "--skill", "tests", "--now", NOON)
    dragoman.ask("delegate", "Run the tests", "--id", "i-1", "--now", NOON)
    letter = ("--to", "bob", "--body", "At noon?", "--thread", "t-1", "--id", "m1", "--as", "ada")
    dragoman.ask("mail", "send", *letter, "--now", NOON)
    offer(dragoman, "--now", NOON)
    draft = dragoman.data.parent / "draft.json"
    draft.write_text('{"context": {"summary": "s"}}')
    words = (str(draft), "--id", "d1", "--to", "bob", "--as", "ada")
    dragoman.ask("handoff", "draft", *words, "--now", NOON)
    dragoman.ask("wave", "start", "a=src/x.py", "--parallel", "1", "--id", "w1", "--now", NOON)
    dragoman.ask("tick", "--now", NOON)
    return dragoman.data


@pytest.fixture
def lived(dragoman: Console, story: Path) -> Console:
    """Give a directory in which there is something to read everywhere."""
    shutil.copytree(story, dragoman.data)
    return dragoman


def test_what_only_reads_answers_the_same_without_keys(lived: Console) -> None:
    before = {words: lived(*words, "--json", "--now", NOON) for words in READING}
    failed = [w for w, said in before.items() if said.code != (w[1:2] == ("validate",))]
    assert not failed, before[failed[0]]
    shutil.rmtree(lived.data / "keys")

    after = {words: lived(*words, "--json", "--now", NOON) for words in READING}

    assert after == before


def test_what_needs_keys_is_refused_with_the_remedy_and_changes_nothing(
    lived: Console, tmp_path: Path
) -> None:
    shutil.rmtree(lived.data / "keys")
    entries = lived("events", "--json").out

    for words in KEYED:
        said = [word.replace("{beside}", str(tmp_path)) for word in words]
        refused = lived.ask(*said, code=1)

        assert refused["code"] == "bad_key", words
        assert "There are no keys in" in refused["detail"]
        assert "Take them out of a backup" in refused["detail"]
    assert lived("events", "--json").out == entries
    assert [path.name for path in tmp_path.iterdir()] == [lived.data.name]


def test_the_public_key_alone_is_enough_to_check_what_was_signed(
    lived: Console, tmp_path: Path
) -> None:
    for name in ("ledger.key", "secret"):
        (lived.data / "keys" / name).unlink()

    for words in ((), ("--hashes",)):
        verified = lived.ask("verify", *words)
        (caution,) = verified["warnings"]
        assert (verified["found"], "compare keys/ledger.pub with one" in caution) == (0, True)
    lived.ask("export", str(tmp_path / "hub.tar"))
    Console(tmp_path / "other").ask("import", str(tmp_path / "hub.tar"))
    assert lived.ask("backup", str(tmp_path / "hub.backup"), code=1)["code"] == "bad_key"
    signed = lived.data / "checkpoints.jsonl"
    signed.write_bytes(signed.read_bytes().replace(b'"size":', b'"size":1', 1))
    assert lived.ask("verify", code=1)["code"] == "ledger_broken"


def _without_secret(keys: Path, _: Path) -> None:
    (keys / "secret").unlink()


def _open_to_others(keys: Path, _: Path) -> None:
    for name in ("secret", "ledger.key"):
        (keys / name).chmod(0o644)


def _no_key(keys: Path, _: Path) -> None:
    (keys / "ledger.key").write_text("none")


def _of_another_hub(keys: Path, others: Path) -> None:
    shutil.rmtree(keys)
    shutil.copytree(others, keys)


def _with_another_half(keys: Path, others: Path) -> None:
    shutil.copy(others / "ledger.pub", keys / "ledger.pub")


@pytest.mark.parametrize("harm", [_without_secret, _open_to_others, _no_key])
def test_whatever_became_of_the_others_the_public_key_is_enough(
    lived: Console, tmp_path: Path, harm: Callable[[Path, Path], None]
) -> None:
    harm(lived.data / "keys", tmp_path)

    verified = lived.ask("verify")

    assert (verified["found"], len(verified["warnings"])) == (0, 1)
    lived.ask("export", str(tmp_path / "hub.tar"))
    for words in (("task", "create", "Three"), ("backup", str(tmp_path / "b.tar"))):
        assert lived.ask(*words, code=1)["code"] == "bad_key", words


@pytest.mark.parametrize("harm", [_of_another_hub, _with_another_half])
def test_keys_that_do_not_belong_here_are_as_good_as_none(
    lived: Console, tmp_path: Path, harm: Callable[[Path, Path], None]
) -> None:
    other = Console(tmp_path / "other")
    other.ask("init")
    harm(lived.data / "keys", other.data / "keys")

    assert lived.ask("mail", "inbox", "--agent", "bob")["messages"]
    for words in (("verify",), ("task", "create", "Three"), ("backup", str(tmp_path / "b.tar"))):
        assert lived.ask(*words, code=1)["code"] == "bad_key", words
