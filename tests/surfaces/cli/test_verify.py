"""`verify`: sound ledgers pass, and every change of one is found and named."""

import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from dragoman.ledger.entry import link_hash
from tests.requirements import proves
from tests.store.sqlite.files import hide_from_index
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.tampering import FORGET_CHECKPOINTS, change

pytestmark = proves("CLI-VERIFY")

FLIPPED = """CAST(replace(CAST(line AS TEXT), '"at":1', '"at":2') AS BLOB)"""
"""A line with one changed digit of its time, still a readable entry."""


FORGED = """UPDATE streams SET state = CAST(replace(CAST(state AS TEXT), 'One', 'Won') AS BLOB)
            WHERE name = 'task:T-1'"""
"""A stored state with another title."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the template of `sound`: creating it takes longer than any of its tests."""
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
def sound(dragoman: Console, template: Path) -> Console:
    """Give a ledger of eight entries in three streams, signed to its end."""
    shutil.copytree(template, dragoman.data)
    return dragoman


def tamper(dragoman: Console, *statements: str) -> None:
    change(dragoman.data / "dragoman.db", *statements)


def first_bad_position(dragoman: Console, *args: str) -> int | None:
    """First bad position that `verify` names."""
    return dragoman.ask("verify", *args, code=1)["firstBadPosition"]


def test_sound_ledger_is_all_good(sound: Console) -> None:
    result = sound("verify")

    assert result.code == 0
    assert result.out.endswith(" checkpoints: all good\n")
    where = f"{sound.data}, ledger {sound.ask('verify')['ledger']}: "
    assert result.out.startswith(f"{where}8 entries, ")
    for args in ((), ("--hashes",)):
        verdict = sound.ask("verify", *args)
        assert (verdict["entries"], verdict["checkpoints"]) == (8, 8)
        assert verdict["streams"] >= 3
        assert (verdict["findings"], verdict["firstBadPosition"]) == ([], None)


def test_empty_ledger_is_all_good(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("verify").out.endswith(": 0 entries, 0 streams, 0 checkpoints: all good\n")


@proves("VERIFY-UNSIGNED")
def test_unsigned_ledger_is_not_called_good(dragoman: Console) -> None:
    dragoman.make("One")
    assert dragoman("verify").out.endswith(": 1 entry, 2 streams, 1 checkpoint: all good\n")
    (dragoman.data / "checkpoints.jsonl").unlink()
    tamper(dragoman, FORGET_CHECKPOINTS)

    result = dragoman("verify")

    assert (result.code, "good" in result.out) == (0, False)
    assert "no signed checkpoint covers them" in result.out
    for args in ((), ("--hashes",)):
        (warning,) = dragoman.ask("verify", *args)["warnings"]
        assert warning in result.out.replace("\n", " ")
    dragoman.ask("tick")
    assert dragoman.ask("verify")["warnings"] == []
    assert "all good" in dragoman("verify").out


@proves("VERIFY-HASHES")
@pytest.mark.parametrize("position", range(1, 9))
def test_flipped_byte_is_found_at_its_position(sound: Console, position: int) -> None:
    flip = f"UPDATE entries SET line = {FLIPPED}"  # noqa: S608  our own words
    tamper(sound, f"{flip} WHERE position = {position}")

    for args in ((), ("--hashes",)):
        assert first_bad_position(sound, *args) == position
    result = sound("verify")
    assert result.code == 1
    assert f"NOT good; the first bad position is {position}; " in result.out


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
def test_changed_column_of_an_entry_is_found(sound: Console, column: str) -> None:
    tamper(sound, f"UPDATE entries SET {column} WHERE position = 5")  # noqa: S608  our own words

    first = first_bad_position(sound)
    assert first is not None
    assert first <= 5


@proves("VERIFY-REMOVED")
@pytest.mark.parametrize("position", range(1, 9))
def test_removed_entry_is_found_at_its_position(sound: Console, position: int) -> None:
    tamper(sound, f"DELETE FROM entries WHERE position = {position}")  # noqa: S608  our own words

    assert first_bad_position(sound) == position
    assert first_bad_position(sound, "--hashes") == position


@proves("VERIFY-REMOVED")
def test_swapped_order_is_found(sound: Console) -> None:
    # 5 and 6 belong to two streams, so each chain alone still holds.
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
def test_cut_tail_is_found_even_if_every_row_fits(sound: Console, kept: int) -> None:
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

    assert first_bad_position(sound, "--hashes") == kept + 1
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
        ("INSERT INTO leases VALUES (1, 'eve', 9, '', 1, 1, 1, 1, 1, 1, 0)",
         "the lease does not belong"),
    ],
    ids=["state", "status", "rank", "alias removed", "alias added", "lease"],
)  # fmt: skip
def test_view_that_differs_from_the_ledger_is_found(
    sound: Console, statement: str, problem: str
) -> None:
    tamper(sound, statement)

    found = sound.ask("verify", code=1)
    assert any(problem in finding["problem"] for finding in found["findings"]), found
    assert found["firstBadPosition"] is None
    assert "beside" in found["detail"]
    assert "beside the ledger" in sound("verify").out
    assert sound("verify", "--hashes").code == 0


def corrupt_checkpoints(dragoman: Console, *numbers: int) -> None:
    """Change signed lines of the checkpoints, counted from 1."""
    file = dragoman.data / "checkpoints.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = lines[number - 1].replace(b'"at":"2026', b'"at":"2025')
    file.write_bytes(b"".join(lines))


@proves("LEDGER-CHECKPOINT", "VERIFY-EACH-LINE")
def test_broken_checkpoint_is_named_by_its_line_and_others_count(sound: Console) -> None:
    corrupt_checkpoints(sound, 1, 4)

    found = sound.ask("verify", code=1)
    assert (found["checkpoints"], found["entries"]) == (6, 8)
    problems = [finding["problem"] for finding in found["findings"]]
    *lines, removal = problems
    assert [problem.partition(": ")[0] for problem in lines] == [
        "checkpoints.jsonl, line 1",
        "checkpoints.jsonl, line 4",
    ]
    assert "is not a file that was issued for this ledger" in removal
    assert found["detail"] == (
        "the ledger is whole, but of checkpoints.jsonl 2 lines cannot be believed: keep a copy of "
        "that file, delete what is named here, and run `dragoman checkpoints accept`; its other "
        "lines still count"
    )


@proves("VERIFY-EACH-LINE")
def test_checkpoints_that_are_all_broken_are_to_be_restored(sound: Console) -> None:
    corrupt_checkpoints(sound, *range(1, 9))

    detail = sound.ask("verify", code=1)["detail"]
    assert "bring that file back from a copy, or, if you know why it is so, move it away" in detail
    assert "run `dragoman checkpoints accept`" in detail


@proves("CLI-VERIFY")
def test_differing_files_have_two_remedies(sound: Console) -> None:
    (events,) = (sound.data / "events").iterdir()
    events.write_bytes(events.read_bytes() + b"{}\n")

    detail = sound.ask("verify", code=1)["detail"]
    assert "`dragoman tick` applies what was edited in task files, or says beside them" in detail
    assert "`dragoman rebuild-files` writes all files anew" in detail


@proves("VERIFY-EACH-LINE")
@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (range(6, 9), "as it was signed up to position 5, and every hash behind it fits, but"),
        (range(1, 9), "every hash of the ledger fits, though no good signature covers it, but"),
    ],
    ids=["the last", "all"],
)
def test_ledger_is_called_whole_only_up_to_good_signatures(
    sound: Console, broken: range, expected: str
) -> None:
    corrupt_checkpoints(sound, *broken)

    for args in ((), ("--hashes",)):
        detail = sound.ask("verify", *args, code=1)["detail"]
        assert expected in detail
        assert "whole" not in detail


@proves("VERIFY-EACH-LINE")
def test_rewritten_ledger_is_found_by_checkpoints_after_a_broken_one(
    sound: Console,
) -> None:
    # The last entry of its stream gets a new hash: everything in the database fits it.
    line = "CAST(replace(CAST(line AS TEXT), 'not yet', 'not now') AS BLOB)"
    connection: Any = apsw.Connection(str(sound.data / "dragoman.db"))
    connection.create_scalar_function("link_hash", link_hash)
    connection.execute("DROP TRIGGER entries_are_not_changed")
    connection.execute(f"UPDATE entries SET line = {line} WHERE position = 6")  # noqa: S608  ours
    connection.execute("UPDATE entries SET hash = link_hash(previous, line) WHERE position = 6")
    connection.execute(
        "UPDATE streams SET hash = (SELECT hash FROM entries WHERE position = 6) "
        "WHERE number = (SELECT stream FROM entries WHERE position = 6)"
    )
    connection.close()
    corrupt_checkpoints(sound, 1)

    found = sound.ask("verify", "--hashes", code=1)
    assert (found["code"], found["firstBadPosition"]) == ("ledger_broken", 6)
    assert found["checkpoints"] == 7


@proves("STORE-INSPECT")
def test_index_without_a_task_is_found_and_a_restore_repairs_it(
    sound: Console, tmp_path: Path
) -> None:
    hide_from_index(sound.data / "dragoman.db", "streams_ready", "task:T-2")

    assert sound.ask("task", "claim", "--agent", "eva", code=1)["code"] == "nothing_ready"
    found = sound.ask("verify", code=1)
    assert found["code"] == "store_corrupt"
    assert "the ledger is whole" in found["detail"]
    assert "missing from index streams_ready" in found["findings"][0]["problem"]
    assert sound.ask("verify", "--hashes")["found"] == 0

    backup, new = str(tmp_path / "hub.tar"), Console(tmp_path / "new")
    sound.ask("backup", backup)
    new.ask("restore", backup)
    assert new.ask("verify")["found"] == 0
    assert new.ask("task", "claim", "--agent", "eva")["task"] == "T-2"


@proves("STORE-INSPECT")
def test_broken_checkpoint_beside_index_damage_is_reported_too(sound: Console) -> None:
    hide_from_index(sound.data / "dragoman.db", "streams_ready", "task:T-2")
    corrupt_checkpoints(sound, 2)

    found = sound.ask("verify", code=1)
    assert "the database is damaged" in found["detail"]
    assert any("checkpoints.jsonl, line 2" in one["problem"] for one in found["findings"])


@proves("STORE-INSPECT")
def test_damaged_ledger_and_index_need_an_earlier_backup(sound: Console) -> None:
    hide_from_index(sound.data / "dragoman.db", "streams_ready", "task:T-2")
    tamper(sound, "UPDATE entries SET hash = zeroblob(32) WHERE position = 3")

    found = sound.ask("verify", code=1)
    assert (found["code"], found["firstBadPosition"]) == ("ledger_broken", 3)
    assert "and the first bad position is 3: keep all files" in found["detail"]
    assert "if the backup is refused, restore an earlier one" in found["detail"]


@proves("STORE-TEXT")
@pytest.mark.parametrize(
    ("table", "column", "condition", "expected"),
    [
        ("entries", "event", "position = 5", "the first bad position is 5"),
        ("streams", "owner", "name = 'task:T-1'", "not all beside it holds"),
        ("names", "kind", "name = 'b-1'", "not all beside it holds"),
    ],
    ids=["entries", "streams", "names"],
)
def test_damaged_text_is_named_by_verify(
    sound: Console, table: str, column: str, condition: str, expected: str
) -> None:
    value = f"CAST(x'f4' || CAST({column} AS BLOB) AS TEXT)"
    tamper(sound, f"UPDATE {table} SET {column} = {value} WHERE {condition}")  # noqa: S608  ours

    found = sound.ask("verify", code=1)
    assert expected in found["detail"]
    assert any("can no longer be read (b'\\xf4" in one["problem"] for one in found["findings"])


@proves("STORE-TEXT")
def test_damaged_text_is_reported_with_a_remedy_by_other_commands(
    sound: Console, tmp_path: Path
) -> None:
    value = "CAST(x'f4' || CAST(event AS BLOB) AS TEXT)"
    tamper(sound, f"UPDATE entries SET event = {value} WHERE position = 5")  # noqa: S608  ours

    for args in (("events",), ("backup", str(tmp_path / "b.tar")), ("task", "log", "T-1")):
        reply = sound.ask(*args, code=1)
        assert reply["code"] == "store_corrupt"
        assert "dragoman restore FILE --data NEW" in reply["detail"]
    assert not (tmp_path / "b.tar").exists()


@proves("LEDGER-CHECKPOINT")
def test_checkpoints_of_other_keys_are_a_finding(sound: Console, tmp_path: Path) -> None:
    other = Console(tmp_path / "other")
    other.make("One")
    (sound.data / "checkpoints.jsonl").write_bytes((other.data / "checkpoints.jsonl").read_bytes())

    assert "names the key" in sound.ask("verify", code=1)["findings"][0]["problem"]


@proves("LEDGER-CHECKPOINT")
def test_checkpoints_of_another_ledger_are_not_called_a_cut_tail(
    dragoman: Console, tmp_path: Path
) -> None:
    dragoman("init")
    dragoman("--store", f"sqlite:///{tmp_path / 'elsewhere.db'}", "task", "create", "One")
    for args in (("verify",), ("doctor",)):
        result = dragoman(*args)
        assert result.code == 1
        assert "this data directory belongs to another store" in result.out
        assert "tail was cut" not in result.out


@proves("VERIFY-EACH-LINE")
def test_verify_names_the_last_signed_position(sound: Console) -> None:
    file = sound.data / "checkpoints.jsonl"
    assert sound("verify").out.endswith(": all good\n")
    file.write_bytes(file.read_bytes()[:-30])
    tamper(sound, FORGET_CHECKPOINTS)
    assert sound("verify").out.endswith(": all good; signatures reach to position 7\n")


def test_findings_are_limited_and_counted(dragoman: Console) -> None:
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
def test_write_behind_a_cut_tail_is_refused(sound: Console) -> None:
    tamper(sound, "DELETE FROM entries WHERE position > 2")

    refused = sound.ask("task", "create", "Three", code=1)
    assert refused["code"] in ("ledger_broken", "store_conflict", "store_corrupt")


@proves("CLI-EXIT")
@pytest.mark.parametrize("args", [("events",), ("task", "log", "T-1"), ("backup", "b.tar")])
def test_unreadable_line_is_reported_with_the_verify_command(
    sound: Console, args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tamper(sound, "UPDATE entries SET line = CAST('{' AS BLOB) WHERE position = 1")

    result = sound(*args)
    assert result.code == 1
    assert result.err.count("run `dragoman verify`") == 1
    assert result.err.startswith("ledger_broken: ")


@pytest.mark.parametrize("args", [(), ("--hashes",)])
def test_missing_or_foreign_keys_prove_nothing(
    sound: Console, tmp_path: Path, args: tuple[str, ...]
) -> None:
    other = Console(tmp_path / "other")
    other.ask("init")
    shutil.rmtree(sound.data / "keys")
    assert sound.ask("verify", *args, code=1)["code"] == "bad_key"
    shutil.copytree(other.data / "keys", sound.data / "keys")
    found = sound.ask("verify", *args, code=1)
    assert (found["code"], "secret" in found["detail"]) == ("bad_key", True)
    assert other("verify", *args, "--data", str(tmp_path / "nowhere")).code == 1


@proves("ADVICE-LEADS-ON")
def test_obstacle_among_the_files_does_not_stop_verify(sound: Console) -> None:
    lock = sound.data / "projection.lock"
    lock.unlink()
    lock.mkdir()

    (warning,) = sound.ask("verify")["warnings"]

    assert "the files were not compared with the ledger: projection.lock: Is a dir" in warning
    report = sound.ask("doctor", code=1)
    (files,) = [check for check in report["checks"] if check["name"] == "files"]
    assert (files["state"], files["advice"]) == ("bad", "move it away")
    lock.rmdir()
    assert sound.ask("verify")["warnings"] == []


@proves("ADVICE-LEADS-ON")
@pytest.mark.parametrize("args", [("backup",), ("export",)])
def test_copy_commands_name_the_same_position_as_verify(
    dragoman: Console, tmp_path: Path, args: tuple[str, ...]
) -> None:
    for number in range(7):
        dragoman.make(f"Task {number}")
    tamper(dragoman, "DELETE FROM entries WHERE position = 5")

    assert dragoman.ask("verify", code=1)["firstBadPosition"] == 5
    refused = dragoman.ask(*args, str(tmp_path / "x.tar"), code=1)
    assert "near position 5" in refused["detail"]
