"""verify: sound ledgers pass, and whatever was done to one is found and named."""

import shutil
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.tampering import change

pytestmark = proves("CLI-VERIFY")

FLIPPED = """CAST(replace(CAST(line AS TEXT), '"at":1', '"at":2') AS BLOB)"""
"""The line with one character of its time changed: still an entry that can be read."""


FORGED = """UPDATE streams SET state = CAST(replace(CAST(state AS TEXT), 'One', 'Won') AS BLOB)
            WHERE name = 'task:T-1'"""
"""A state with another title."""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what `sound` is a copy of: it takes longer to make than any test of it."""
    dragoman = Console(tmp_path_factory.mktemp("ledger") / "hub")
    dragoman.make("One", "--id", "T-1", "--ready", "--alias", "bead:b-1", "--now", NOON)
    dragoman.make("Two", "--id", "T-2", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ben", "--now", NOON, code=1)
    dragoman.ask("task", "log", "T-1", "half of it", "--now", NOON)
    dragoman.ask("task", "log", "T-2", "not yet", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "review", "--as", "ada", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "done", "--now", NOON)
    return dragoman.data


@pytest.fixture
def sound(dragoman: Console, ledger: Path) -> Console:
    """Give a ledger of eight entries in three streams, signed to its end."""
    shutil.copytree(ledger, dragoman.data)
    return dragoman


def tamper(dragoman: Console, *statements: str) -> None:
    change(dragoman.data / "dragoman.db", *statements)


def found_at(dragoman: Console, *words: str) -> int | None:
    """The first bad position that verify names."""
    return dragoman.ask("verify", *words, code=1)["firstBadPosition"]


def test_a_sound_ledger_is_all_good(sound: Console) -> None:
    said = sound("verify")

    assert said.code == 0
    assert said.out.endswith(" checkpoints: all good\n")
    where = f"{sound.data}, ledger {sound.ask('verify')['ledger']}: "
    assert said.out.startswith(f"{where}8 entries, ")
    for words in ((), ("--hashes",)):
        verdict = sound.ask("verify", *words)
        assert (verdict["entries"], verdict["checkpoints"]) == (8, 8)
        assert verdict["streams"] >= 3
        assert (verdict["findings"], verdict["firstBadPosition"]) == ([], None)


def test_an_empty_ledger_is_all_good(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("verify").out.endswith(": 0 entries, 0 streams, 0 checkpoints: all good\n")


@proves("VERIFY-UNSIGNED")
def test_one_that_nothing_signed_covers_is_not_called_good(dragoman: Console) -> None:
    dragoman.make("One")
    assert dragoman("verify").out.endswith(": 1 entry, 2 streams, 1 checkpoint: all good\n")
    (dragoman.data / "checkpoints.jsonl").unlink()

    said = dragoman("verify")

    assert (said.code, "good" in said.out) == (0, False)
    assert "nothing that was signed covers them" in said.out
    for words in ((), ("--hashes",)):
        (warning,) = dragoman.ask("verify", *words)["warnings"]
        assert warning in said.out.replace("\n", " ")
    dragoman.ask("tick")
    assert dragoman.ask("verify")["warnings"] == []
    assert "all good" in dragoman("verify").out


@proves("VERIFY-HASHES")
@pytest.mark.parametrize("position", range(1, 9))
def test_a_flipped_byte_is_found_at_its_position(sound: Console, position: int) -> None:
    flip = f"UPDATE entries SET line = {FLIPPED}"  # noqa: S608  our own words
    tamper(sound, f"{flip} WHERE position = {position}")

    for words in ((), ("--hashes",)):
        assert found_at(sound, *words) == position
    said = sound("verify")
    assert said.code == 1
    assert f"NOT good; the first bad position is {position}; " in said.out


@proves("VERIFY-HASHES")
@pytest.mark.parametrize(
    "column",
    [
        "line = x'7b7d'",
        "line = x'ff'",
        "event = 'task.created'",
        "version = 77",
        "stream = 2",
        "hash = zeroblob(32)",
        "previous = zeroblob(32)",
    ],
)
def test_any_changed_column_of_an_entry_is_found(sound: Console, column: str) -> None:
    tamper(sound, f"UPDATE entries SET {column} WHERE position = 5")  # noqa: S608  our own words

    first = found_at(sound)
    assert first is not None
    assert first <= 5


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("position", range(1, 9))
def test_a_removed_entry_is_found_at_its_position(sound: Console, position: int) -> None:
    tamper(sound, f"DELETE FROM entries WHERE position = {position}")  # noqa: S608  our own words

    assert found_at(sound) == position
    assert found_at(sound, "--hashes") == position


@proves("VERIFY-REMOVED")
def test_a_swapped_order_is_found(sound: Console) -> None:
    # 5 and 6 belong to two streams, so that each chain alone still holds.
    tamper(
        sound,
        "UPDATE entries SET position = 99 WHERE position = 5",
        "UPDATE entries SET position = 5 WHERE position = 6",
        "UPDATE entries SET position = 6 WHERE position = 99",
    )

    found = sound.ask("verify", "--hashes", code=1)
    assert found["firstBadPosition"] == 5
    assert found["code"] == "ledger_broken"
    assert "swapped" in found["findings"][0]["problem"]


@proves("VERIFY-CUT-TAIL", "LEDGER-CHECKPOINT")
@pytest.mark.parametrize("kept", [0, 1, 4, 7])
def test_a_cut_tail_is_found_even_when_every_row_was_made_to_fit(sound: Console, kept: int) -> None:
    tamper(
        sound,
        f"DELETE FROM entries WHERE position > {kept}",  # noqa: S608  our own words
        "DELETE FROM leases",
        "DELETE FROM streams WHERE number NOT IN (SELECT stream FROM entries)",
        """UPDATE streams SET
             version = (SELECT max(version) FROM entries e WHERE e.stream = number),
             hash = (SELECT e.hash FROM entries e WHERE e.stream = number
                     ORDER BY version DESC LIMIT 1)""",
    )

    assert found_at(sound, "--hashes") == kept + 1
    problems = [finding["problem"] for finding in sound.ask("verify", code=1)["findings"]]
    assert any("its tail was cut" in problem for problem in problems)


@proves("VERIFY-VIEWS")
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (FORGED,
         "the stored state differs"),
        ("UPDATE streams SET status = 'review' WHERE name = 'task:T-1'", "the indexes differ"),
        ("UPDATE streams SET rank = 0 WHERE name = 'task:T-2'", "the indexes differ"),
        ("DELETE FROM names WHERE name = 'b-1'", "the alias bead:b-1 is missing"),
        ("INSERT INTO names VALUES ('evil', 'bead', 1)", "gave it the alias bead:evil"),
        ("INSERT INTO leases VALUES (1, 'eve', 9, '', 1, 1, 1, 1)", "the lease does not belong"),
    ],
    ids=["state", "status", "rank", "alias removed", "alias added", "lease"],
)  # fmt: skip
def test_a_view_that_the_ledger_did_not_make_is_found(
    sound: Console, statement: str, problem: str
) -> None:
    tamper(sound, statement)

    found = sound.ask("verify", code=1)
    assert any(problem in finding["problem"] for finding in found["findings"]), found
    assert found["firstBadPosition"] is None
    assert "beside" in found["detail"]
    assert "beside the ledger" in sound("verify").out
    assert sound("verify", "--hashes").code == 0


@proves("LEDGER-CHECKPOINT")
def test_a_forged_checkpoint_is_a_finding_and_the_ledger_is_still_looked_at(
    sound: Console,
) -> None:
    file = sound.data / "checkpoints.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"size":4', b'"size":5')
    file.write_bytes(b"".join(lines))

    found = sound.ask("verify", code=1)
    assert found["checkpoints"] == 3
    assert found["entries"] == 8
    assert found["findings"][0]["problem"].startswith("checkpoints.jsonl: ")


@proves("LEDGER-CHECKPOINT")
def test_checkpoints_of_other_keys_are_a_finding(sound: Console, tmp_path: Path) -> None:
    other = Console(tmp_path / "other")
    other.make("One")
    (sound.data / "checkpoints.jsonl").write_bytes((other.data / "checkpoints.jsonl").read_bytes())

    assert "names the key" in sound.ask("verify", code=1)["findings"][0]["problem"]


def test_findings_are_bounded_and_counted(dragoman: Console) -> None:
    for number in range(36):
        dragoman.make(f"{number}")
    tamper(dragoman, "UPDATE entries SET hash = zeroblob(32), previous = zeroblob(31)")

    found = dragoman.ask("verify", "--hashes", code=1)
    assert len(found["findings"]) == 100
    assert found["found"] > 100
    assert found["firstBadPosition"] == 1
    lines = dragoman("verify", "--hashes").out.splitlines()
    assert lines[-1] == f"  … and {found['found'] - 100} more"
    assert lines[1].startswith("  position 1, task:")


@proves("LEDGER-CHECKPOINT", "CLI-EXIT")
def test_a_command_that_writes_behind_a_cut_tail_says_so(sound: Console) -> None:
    tamper(sound, "DELETE FROM entries WHERE position > 2")

    refused = sound.ask("task", "create", "Three", code=1)
    assert refused["code"] in ("ledger_broken", "store_conflict", "store_corrupt")


@pytest.mark.parametrize("words", [(), ("--hashes",)])
def test_nothing_is_proven_by_keys_that_are_lost_or_of_another_hub(
    sound: Console, tmp_path: Path, words: tuple[str, ...]
) -> None:
    other = Console(tmp_path / "other")
    other.ask("init")
    shutil.rmtree(sound.data / "keys")
    assert sound.ask("verify", *words, code=1)["code"] == "bad_key"
    shutil.copytree(other.data / "keys", sound.data / "keys")
    found = sound.ask("verify", *words, code=1)
    assert (found["code"], "secret" in found["detail"]) == ("bad_key", True)
    assert other("verify", *words, "--data", str(tmp_path / "nowhere")).code == 1
