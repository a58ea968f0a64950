"""Proof that an entry is among those that a checkpoint has signed."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from dragoman.core.task_state import CreateTask
from dragoman.engine.inclusion import find_entry_hash, prove_inclusion
from dragoman.engine.queries.entries import all_entries
from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    Checkpoint,
    extend_tree,
    make_checkpoint,
    path_root,
)
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("LEDGER-INCLUSION")

PUBLIC = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()


def sign(lab: Lab, *added: bytes) -> Checkpoint:
    """Make the checkpoint of a ledger, with further leaves after its entries."""
    leaves = [*(entry.hash for entry in all_entries(lab.store)), *added]
    return make_checkpoint(lab.store.ledger_id(), extend_tree(EMPTY_TREE, leaves), 0, PUBLIC)


def fill(count: int) -> Lab:
    """Make a ledger."""
    lab = Lab()
    for number in range(count):
        lab.ask(HUMAN, CreateTask(f"task {number}"))
    return lab


def test_every_entry_is_proven() -> None:
    lab = fill(5)
    checkpoint = sign(lab)
    for entry in all_entries(lab.store):
        proof = prove_inclusion(lab.store, entry.position, checkpoint)
        assert proof.is_verified
        assert find_entry_hash(lab.store, entry.position) == entry.hash
        root = path_root(entry.hash, entry.position - 1, checkpoint.size, proof.path)
        assert root.hex() == checkpoint.root
    assert find_entry_hash(lab.store, checkpoint.size + 1) is None


def test_what_was_not_signed_is_not_proven() -> None:
    lab = fill(3)
    cut = prove_inclusion(lab.store, 2, sign(lab, *[b"gone"] * 60))
    assert (cut.is_verified, cut.path) == (False, ())
    foreign = prove_inclusion(lab.store, 2, replace(sign(lab), ledger="another"))
    assert (foreign.is_verified, foreign.path) == (False, ())
    other = extend_tree(EMPTY_TREE, [b"x"] * lab.store.head())
    forged = make_checkpoint(lab.store.ledger_id(), other, 0, PUBLIC)
    assert not prove_inclusion(lab.store, 2, forged).is_verified
