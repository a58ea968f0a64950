"""Missing checkpoints: told by every command that looks, until a person accepts it."""

import shutil
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CHECKPOINT-REMOVED")


@pytest.fixture
def signed(dragoman: Console) -> Console:
    """Give a directory with three checkpoints."""
    for title in ("One", "Two", "Three"):
        dragoman.make(title)
    return dragoman


def remove_checkpoints(console: Console, keep: int = 0) -> bytes:
    """Remove all but some lines; returns the file as it was."""
    path = console.data / "checkpoints.jsonl"
    whole = path.read_bytes()
    if keep:
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[:keep]))
    else:
        path.unlink()
    return whole


def ledger_check(console: Console) -> dict[str, str]:
    (found,) = [c for c in console.ask("doctor", code=1)["checks"] if c["name"] == "ledger"]
    return found


@pytest.mark.parametrize("keep", [0, 1])
def test_removal_is_told_by_all_and_writes_go_on(signed: Console, keep: int) -> None:
    remove_checkpoints(signed, keep)

    made = signed("task", "create", "Four", "--json")
    assert made.code == 0
    assert "done, but not signed" in made.err
    assert "dragoman checkpoints accept" in made.err

    failed = signed.ask("tick", code=1)["failed"]["checkpoint"]
    assert "3 checkpoints were issued" in failed["detail"]
    verified = signed.ask("verify", code=1)
    assert "checkpoints that were issued are missing" in verified["detail"]
    assert "3 checkpoints were issued" in verified["findings"][0]["problem"]
    check = ledger_check(signed)
    assert (check["state"], "3 checkpoints were issued" in check["found"]) == ("bad", True)
    assert len((signed.data / "dragoman.db").read_bytes()) > 0
    lines = signed.data / "checkpoints.jsonl"
    assert (len(lines.read_bytes().splitlines()) if lines.exists() else 0) == keep


def test_accepting_signs_again(signed: Console) -> None:
    remove_checkpoints(signed)
    assert signed.ask("checkpoints", "accept") == {"ok": True, "accepted": True, "signed": 3}
    assert signed.ask("verify")["warnings"] == []
    assert signed.ask("doctor")["ok"] is True
    assert "checkpoint" not in signed("task", "create", "Four").err


def test_nothing_missing_is_nothing_to_accept(signed: Console) -> None:
    lines = signed("checkpoints", "accept").out.splitlines()
    assert lines == ["nothing was missing", "signed: 0 entries"]


def test_file_that_is_brought_back_is_as_before(signed: Console) -> None:
    whole = remove_checkpoints(signed)
    signed.ask("tick", code=1)
    (signed.data / "checkpoints.jsonl").write_bytes(whole)
    assert signed.ask("tick")["ok"] is True
    assert signed.ask("verify")["ok"] is True


def test_rewritten_ledger_is_not_accepted_with_the_old_checkpoints(signed: Console) -> None:
    """Accepting says nothing about entries: those that were signed must still be there."""
    first = remove_checkpoints(signed, keep=1).splitlines(keepends=True)[0]
    other = Console(signed.data.with_name("other"))
    other.make("Another one")
    (signed.data / "checkpoints.jsonl").write_bytes(
        (other.data / "checkpoints.jsonl").read_bytes() + first
    )
    assert signed.ask("verify", code=1)["code"] == "ledger_broken"


def test_new_keys_count_as_accepted(signed: Console, tmp_path: Path) -> None:
    shutil.move(signed.data / "checkpoints.jsonl", tmp_path / "checkpoints.jsonl")
    shutil.rmtree(signed.data / "keys")
    signed.ask("init", "--new-keys")
    assert signed.ask("doctor")["ok"] is True
    assert signed.ask("verify")["ok"] is True


def test_further_directory_on_a_store_is_accepted_once(signed: Console, tmp_path: Path) -> None:
    further = Console(tmp_path / "further")
    shutil.copytree(signed.data / "keys", further.data / "keys")
    store = f"sqlite:///{signed.data / 'dragoman.db'}"
    assert "checkpoints accept" in further("init", "--store", store).err
    further.ask("checkpoints", "accept")
    for console in (further, signed, further):
        assert "checkpoint" not in console("task", "create", "More").err
        assert console.ask("verify")["ok"] is True
