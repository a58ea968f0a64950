"""Checkpoints: one signed line when the ledger has grown, and a loud word when it has shrunk."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.commands import CreateTask
from dragoman.core.errors import LedgerError
from dragoman.engine.verifying.verify import check_ledger, check_tail
from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, read_lines
from dragoman.ledger.tree import EMPTY, extend, root
from dragoman.services.checkpointer import Checkpointer
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.keys import load_or_create
from tests.engine.lab import HUMAN, START, Lab, OpenStore, findings
from tests.requirements import proves

pytestmark = proves("LEDGER-CHECKPOINT")


class Desk:
    """A hub, and the file in which its ledger is signed."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab()
        self.log = CheckpointFile(folder / "checkpoints.jsonl", load_or_create(folder))
        self.duty = Checkpointer(self.lab.hub, self.log)

    def grow(self, count: int) -> None:
        """Entries, one for each."""
        for _ in range(count):
            self.lab.do(HUMAN, CreateTask("t"))

    def run(self) -> int:
        """The duty once."""
        return self.duty.run_once(self.lab.clock.now())

    def all(self) -> list[Checkpoint]:
        """Every checkpoint, its signature checked."""
        holding, spoiled = read_lines(self.log.lines(), self.log.public)
        assert spoiled == []
        return holding


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a fresh one."""
    return Desk(tmp_path)


def test_what_was_added_is_signed_and_how_much_is_told(desk: Desk) -> None:
    desk.grow(3)
    assert desk.run() == 3
    (signed,) = desk.all()
    hashes = [entry.hash for entry in desk.lab.store.entries(0, 10)]
    assert (signed.ledger, signed.size) == ("lab", 3)
    assert signed.root == root(extend(EMPTY, hashes)).hex()
    assert signed.at == "2026-02-09T14:30:00.000Z"
    assert desk.lab.clock.now() == START


def test_each_goes_on_from_the_last_and_all_of_them_hold(desk: Desk) -> None:
    sizes: list[int] = []
    for count in (1, 2, 4, 1, 9):
        desk.grow(count)
        assert desk.run() == count
        sizes.append((sizes[-1] if sizes else 0) + count)
    assert [signed.size for signed in desk.all()] == sizes
    assert findings(desk.lab.store, desk.all()) == []


def test_nothing_new_means_no_line(desk: Desk) -> None:
    assert desk.run() == 0
    assert desk.all() == []
    desk.grow(2)
    desk.run()
    before = desk.log.path.read_bytes()
    assert desk.run() == 0
    assert desk.log.path.read_bytes() == before


def test_only_the_new_entries_are_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.grow(5)
    desk.run()
    desk.grow(1)
    asked: list[int] = []
    entries = OpenStore.entries

    def watched(self: OpenStore, after: int, limit: int, *, until: int | None = None) -> object:
        asked.append(after)
        return entries(self, after, limit, until=until)

    monkeypatch.setattr(OpenStore, "entries", watched)
    assert desk.run() == 1
    assert min(asked) == 5


@proves("VERIFY-CUT-TAIL")
@pytest.mark.parametrize("left", range(5))
def test_a_cut_tail_is_told_and_never_signed(desk: Desk, left: int) -> None:
    desk.grow(5)
    desk.run()
    signed = desk.log.path.read_bytes()
    del desk.lab.store.tables.entries[left:]
    with pytest.raises(LedgerError, match=f"ends at {left}, but 5 entries were signed"):
        desk.run()
    assert desk.log.path.read_bytes() == signed
    assert next(check_tail(desk.lab.store, desk.all()[-1])).position == left + 1


@proves("VERIFY-CUT-TAIL")
def test_the_checkpoints_of_another_ledger_are_not_gone_on_with(desk: Desk) -> None:
    desk.grow(2)
    desk.run()
    signed = desk.log.path.read_bytes()
    other = Lab(OpenStore("another"))
    for _ in range(9):
        other.do(HUMAN, CreateTask("t"))
    with pytest.raises(LedgerError, match="the checkpoints are of ledger lab, not of another"):
        Checkpointer(other.hub, desk.log).run_once(START)
    assert desk.log.path.read_bytes() == signed


@proves("VERIFY-HASHES")
def test_a_forger_with_the_database_but_not_the_key_is_found(desk: Desk) -> None:
    desk.grow(4)
    desk.run()
    entries = desk.lab.store.tables.entries
    entries[0], entries[1] = (
        replace(entries[1], position=1),
        replace(entries[0], position=2),
    )
    (found,) = check_ledger(desk.lab.store, desk.all(), lambda _: None)
    assert found.position == 4
    line = desk.log.path.read_text().replace('"size":4', '"size":3')
    desk.log.path.write_text(line)
    with pytest.raises(BadCheckpoint):
        desk.run()
