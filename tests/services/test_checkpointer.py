"""The checkpointer: one signed line when the ledger has grown, and an error when it has shrunk."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.errors import CheckpointsMissing, LedgerError
from dragoman.core.task_state import CreateTask
from dragoman.engine.service_health import problem_from_error
from dragoman.engine.verify import check_ledger, check_tail
from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    BadCheckpoint,
    Checkpoint,
    extend_tree,
    read_checkpoint_lines,
    tree_root,
)
from dragoman.services.checkpointer import Checkpointer
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.keys import load_or_create_keys
from tests.engine.lab import HUMAN, START, Lab, OpenStore, findings
from tests.requirements import proves

pytestmark = proves("LEDGER-CHECKPOINT")


class CheckpointLab:
    """A hub, and the file in which its ledger is signed."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab()
        self.log = CheckpointFile(folder / "checkpoints.jsonl", load_or_create_keys(folder))
        self.checkpointer = Checkpointer(self.lab.hub, self.log)

    def add_entries(self, count: int) -> None:
        """Add entries, one for each task."""
        for _ in range(count):
            self.lab.do(HUMAN, CreateTask("t"))

    def run(self) -> int:
        """Run the service once."""
        return self.checkpointer.run_once(self.lab.clock.now())

    def read_checkpoints(self) -> list[Checkpoint]:
        """Read every checkpoint and verify its signature."""
        valid, spoiled = read_checkpoint_lines(self.log.lines(), self.log.public)
        assert spoiled == []
        return valid


@pytest.fixture
def checkpoint_lab(tmp_path: Path) -> CheckpointLab:
    return CheckpointLab(tmp_path)


def test_new_entries_are_signed_and_counted(checkpoint_lab: CheckpointLab) -> None:
    checkpoint_lab.add_entries(3)
    assert checkpoint_lab.run() == 3
    (signed,) = checkpoint_lab.read_checkpoints()
    hashes = [entry.hash for entry in checkpoint_lab.lab.store.entries(0, 10)]
    assert (signed.ledger, signed.size) == ("lab", 3)
    assert signed.root == tree_root(extend_tree(EMPTY_TREE, hashes)).hex()
    assert signed.at == "2026-02-09T14:30:00.000Z"
    assert checkpoint_lab.lab.clock.now() == START


def test_each_checkpoint_extends_the_last_and_all_verify(checkpoint_lab: CheckpointLab) -> None:
    sizes: list[int] = []
    for count in (1, 2, 4, 1, 9):
        checkpoint_lab.add_entries(count)
        assert checkpoint_lab.run() == count
        sizes.append((sizes[-1] if sizes else 0) + count)
    assert [signed.size for signed in checkpoint_lab.read_checkpoints()] == sizes
    assert findings(checkpoint_lab.lab.store, checkpoint_lab.read_checkpoints()) == []


def test_no_new_entries_add_no_checkpoint(checkpoint_lab: CheckpointLab) -> None:
    assert checkpoint_lab.run() == 0
    assert checkpoint_lab.read_checkpoints() == []
    checkpoint_lab.add_entries(2)
    checkpoint_lab.run()
    before = checkpoint_lab.log.path.read_bytes()
    assert checkpoint_lab.run() == 0
    assert checkpoint_lab.log.path.read_bytes() == before


def test_only_new_entries_are_read(
    checkpoint_lab: CheckpointLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_lab.add_entries(5)
    checkpoint_lab.run()
    checkpoint_lab.add_entries(1)
    positions: list[int] = []
    entries = OpenStore.entries

    def recording_entries(
        self: OpenStore, after: int, limit: int, *, until: int | None = None
    ) -> object:
        positions.append(after)
        return entries(self, after, limit, until=until)

    monkeypatch.setattr(OpenStore, "entries", recording_entries)
    assert checkpoint_lab.run() == 1
    assert min(positions) == 5


@proves("VERIFY-CUT-TAIL")
@pytest.mark.parametrize("remaining", range(5))
def test_truncated_ledger_is_refused_and_never_signed(
    checkpoint_lab: CheckpointLab, remaining: int
) -> None:
    checkpoint_lab.add_entries(5)
    checkpoint_lab.run()
    signed = checkpoint_lab.log.path.read_bytes()
    del checkpoint_lab.lab.store.tables.entries[remaining:]
    with pytest.raises(LedgerError, match=f"ends at {remaining}, but 5 entries were signed"):
        checkpoint_lab.run()
    assert checkpoint_lab.log.path.read_bytes() == signed
    assert (
        next(check_tail(checkpoint_lab.lab.store, checkpoint_lab.read_checkpoints()[-1])).position
        == remaining + 1
    )


@proves("VERIFY-CUT-TAIL")
def test_checkpoints_of_another_ledger_are_not_extended(checkpoint_lab: CheckpointLab) -> None:
    checkpoint_lab.add_entries(2)
    checkpoint_lab.run()
    signed = checkpoint_lab.log.path.read_bytes()
    other = Lab(OpenStore("another"))
    for _ in range(9):
        other.do(HUMAN, CreateTask("t"))
    with pytest.raises(LedgerError, match="the checkpoints are of ledger lab, not of another"):
        Checkpointer(other.hub, checkpoint_lab.log).run_once(START)
    assert checkpoint_lab.log.path.read_bytes() == signed


@proves("VERIFY-HASHES")
def test_forgery_without_the_key_is_detected(checkpoint_lab: CheckpointLab) -> None:
    checkpoint_lab.add_entries(4)
    checkpoint_lab.run()
    entries = checkpoint_lab.lab.store.tables.entries
    entries[0], entries[1] = (
        replace(entries[1], position=1),
        replace(entries[0], position=2),
    )
    (found,) = check_ledger(
        checkpoint_lab.lab.store, checkpoint_lab.read_checkpoints(), lambda _: None
    )
    assert found.position == 4
    line = checkpoint_lab.log.path.read_text().replace('"size":4', '"size":3')
    checkpoint_lab.log.path.write_text(line)
    with pytest.raises(BadCheckpoint):
        checkpoint_lab.run()


def rewrite(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))


@proves("CHECKPOINT-REMOVED")
@pytest.mark.parametrize("kept", [[], [0], [0, 1], [1, 2], [0, 2], [1], [0, 1, 1], [0, 0, 1, 2]])
def test_removed_checkpoints_stop_signing_until_they_are_accepted(
    checkpoint_lab: CheckpointLab, kept: list[int]
) -> None:
    for _ in range(3):
        checkpoint_lab.add_entries(1)
        checkpoint_lab.run()
    lines = checkpoint_lab.log.lines()
    rewrite(checkpoint_lab.log.path, [lines[number] for number in kept])
    changed = checkpoint_lab.log.path.read_bytes()
    checkpoint_lab.add_entries(1)

    for _ in range(2):
        with pytest.raises(CheckpointsMissing, match="checkpoints accept"):
            checkpoint_lab.run()
    assert checkpoint_lab.log.path.read_bytes() == changed

    assert checkpoint_lab.checkpointer.accept(START) > 0
    checkpoint_lab.add_entries(1)
    assert checkpoint_lab.run() == 1
    assert checkpoint_lab.read_checkpoints()[-1].size == 5
    rewrite(checkpoint_lab.log.path, [])
    with pytest.raises(CheckpointsMissing, match="checkpoints were issued"):
        checkpoint_lab.run()


@proves("CHECKPOINT-REMOVED")
def test_deleted_file_stops_signing(checkpoint_lab: CheckpointLab) -> None:
    checkpoint_lab.add_entries(2)
    checkpoint_lab.run()
    checkpoint_lab.log.path.unlink()
    with pytest.raises(CheckpointsMissing, match="has no line, but 1 checkpoints were issued"):
        checkpoint_lab.run()
    assert not checkpoint_lab.log.path.exists()
    assert checkpoint_lab.checkpointer.accept(START) == 2


@proves("CHECKPOINT-REMOVED")
def test_file_that_came_back_is_signed_again(checkpoint_lab: CheckpointLab) -> None:
    checkpoint_lab.add_entries(2)
    checkpoint_lab.run()
    whole = checkpoint_lab.log.path.read_bytes()
    checkpoint_lab.log.path.unlink()
    checkpoint_lab.checkpointer.accept(START)
    checkpoint_lab.log.path.write_bytes(whole)
    checkpoint_lab.add_entries(1)
    assert checkpoint_lab.run() == 1


@proves("CHECKPOINT-REMOVED")
def test_line_that_the_store_does_not_know_yet_is_no_removal(checkpoint_lab: CheckpointLab) -> None:
    """A process may be killed between the line and the store."""
    known: list[dict[str, str]] = []
    for _ in range(3):
        checkpoint_lab.add_entries(1)
        checkpoint_lab.run()
        known.append(dict(checkpoint_lab.lab.store.issued_checkpoints()))
    for issued in ({}, *known):
        assert checkpoint_lab.log.find_removal(issued) == ""
        assert checkpoint_lab.log.measure(issued) == next(iter(known[-1].items()))


@proves("CHECKPOINT-REMOVED")
def test_missing_checkpoints_leave_the_hub_ready() -> None:
    assert problem_from_error(CheckpointsMissing("gone")).is_partial
    assert not problem_from_error(LedgerError("broken")).is_partial
