"""The checkpointer: one signed line when the ledger has grown, and an error when it has shrunk."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.errors import LedgerError
from dragoman.core.task_state import CreateTask
from dragoman.engine.verify import check_ledger, check_tail
from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, read_checkpoint_lines
from dragoman.ledger.tree import EMPTY_TREE, extend_tree, tree_root
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
