"""Proof that an entry is among those that a checkpoint has signed."""

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.ledger.checkpoint import (
    Checkpoint,
    checkpoint_tree,
    inclusion_path,
    path_root,
    subtree_at,
)
from dragoman.ledger.entry import link_hash

_PAGE = 1_000


class Inclusion(Struct, frozen=True):
    """The path from an entry to the root of a checkpoint."""

    path: tuple[bytes, ...]
    is_verified: bool
    """The line gives the hash of the entry, and the path leads to the root that was signed."""


def find_entry_hash(store: Store, position: int) -> bytes | None:
    """The hash of an entry; None if the ledger has none there."""
    return next((entry.hash for entry in store.entries(position - 1, 1, until=position)), None)


def prove_inclusion(store: Store, position: int, checkpoint: Checkpoint) -> Inclusion:
    """Prove an entry by its complete subtree; entries around it that are missing prove nothing."""
    tree, index = checkpoint_tree(checkpoint), position - 1
    first, count = subtree_at(tree.size, index)
    hashes, is_own_hash = list[bytes](), False
    for start in range(first, first + count, _PAGE):
        until = min(start + _PAGE, first + count)
        for at, *_, line, previous, link in store.entry_columns(start, until, until - start):
            hashes.append(link)
            if at == position:
                is_own_hash = link == link_hash(previous, line)
    if len(hashes) < count or checkpoint.ledger != store.ledger_id():
        return Inclusion((), is_verified=False)
    path = inclusion_path(tree, index, hashes)
    root = path_root(hashes[index - first], index, tree.size, path)
    return Inclusion(path, is_verified=is_own_hash and root.hex() == checkpoint.root)
