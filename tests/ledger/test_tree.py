"""Merkle tree of RFC 9162, continued from its peaks."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    Tree,
    extend_tree,
    inclusion_path,
    path_root,
    subtree_at,
    tree_root,
)
from tests.requirements import proves

pytestmark = proves("LEDGER-TREE")

# Leaves and roots that certificate transparency publishes as test data for RFC 6962.
KNOWN_LEAVES = [
    bytes.fromhex(leaf)
    for leaf in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
KNOWN_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

LEAVES = st.lists(st.binary(max_size=8), max_size=70)


def merkle_tree_hash(leaves: Sequence[bytes]) -> bytes:
    """Compute the definition of RFC 9162, section 2.1.1, literally."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = merkle_tree_hash(leaves[:split]), merkle_tree_hash(leaves[split:])
    return sha256(b"\x01" + left + right).digest()


def merkle_path(index: int, leaves: Sequence[bytes]) -> tuple[bytes, ...]:
    """Compute the definition of RFC 9162, section 2.1.3.1, literally."""
    if len(leaves) == 1:
        return ()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = leaves[:split], leaves[split:]
    if index < split:
        return (*merkle_path(index, left), merkle_tree_hash(right))
    return (*merkle_path(index - split, right), merkle_tree_hash(left))


@proves("LEDGER-INCLUSION")
@pytest.mark.parametrize("size", [*range(1, 40), 64, 100])
def test_path_of_every_leaf_is_that_of_the_definition(size: int) -> None:
    leaves = [str(number).encode() for number in range(size)]
    tree = extend_tree(EMPTY_TREE, leaves)
    for index, leaf in enumerate(leaves):
        first, count = subtree_at(size, index)
        path = inclusion_path(tree, index, leaves[first : first + count])
        assert path == merkle_path(index, leaves)
        assert path_root(leaf, index, size, path) == tree_root(tree)
        assert path_root(leaf + b"!", index, size, path) != tree_root(tree)


@proves("LEDGER-INCLUSION")
def test_path_does_not_lead_from_another_place() -> None:
    leaves = [b"same"] * 7
    tree = extend_tree(EMPTY_TREE, leaves)
    path = inclusion_path(tree, 6, leaves[6:])
    assert path_root(b"same", 6, 7, path) == tree_root(tree)
    assert path_root(b"same", 5, 7, path) != tree_root(tree)
    with pytest.raises(ValueError, match="7 leaves has none with the index 7"):
        subtree_at(7, 7)


@pytest.mark.parametrize("size", range(len(KNOWN_ROOTS)))
def test_published_roots_are_reproduced(size: int) -> None:
    assert tree_root(extend_tree(EMPTY_TREE, KNOWN_LEAVES[:size])).hex() == KNOWN_ROOTS[size]


@pytest.mark.parametrize("size", [*range(130), 255, 256, 257, 1000])
def test_every_size_gives_the_root_of_the_definition(size: int) -> None:
    leaves = [str(number).encode() for number in range(size)]
    tree = extend_tree(EMPTY_TREE, leaves)
    assert tree.size == size
    assert tree_root(tree) == merkle_tree_hash(leaves)


@given(LEAVES)
def test_any_leaves_give_the_root_of_the_definition(leaves: list[bytes]) -> None:
    assert tree_root(extend_tree(EMPTY_TREE, leaves)) == merkle_tree_hash(leaves)


@given(LEAVES)
def test_appending_equals_extending(leaves: list[bytes]) -> None:
    tree = EMPTY_TREE
    for leaf in leaves:
        tree = extend_tree(tree, (leaf,))
    assert tree == extend_tree(EMPTY_TREE, leaves)


@given(LEAVES, LEAVES)
def test_tree_continues_from_its_peaks_alone(before: list[bytes], after: list[bytes]) -> None:
    reached = extend_tree(EMPTY_TREE, before)
    assert extend_tree(Tree(reached.size, reached.peaks), iter(after)) == extend_tree(
        EMPTY_TREE, before + after
    )


@given(st.lists(st.binary(max_size=4), min_size=2, max_size=40, unique=True), st.data())
def test_swap_cut_or_change_gives_another_root(leaves: list[bytes], data: st.DataObject) -> None:
    true_root = tree_root(extend_tree(EMPTY_TREE, leaves))
    one = data.draw(st.integers(0, len(leaves) - 2))
    swapped = [*leaves[:one], leaves[one + 1], leaves[one], *leaves[one + 2 :]]
    changed = [*leaves[:one], leaves[one] + b"!", *leaves[one + 1 :]]
    for other in (swapped, changed, leaves[:-1], leaves[1:], [*leaves, leaves[-1]]):
        assert tree_root(extend_tree(EMPTY_TREE, other)) != true_root


def test_leaf_cannot_pass_for_a_node() -> None:
    left, right = extend_tree(EMPTY_TREE, [b"a"]), extend_tree(EMPTY_TREE, [b"b"])
    forged = extend_tree(EMPTY_TREE, [b"\x01" + tree_root(left) + tree_root(right)])
    assert tree_root(forged) != tree_root(extend_tree(EMPTY_TREE, [b"a", b"b"]))


@pytest.mark.parametrize(
    ("size", "peaks", "reason"),
    [
        (-1, (), "cannot have -1 leaves"),
        (0, (bytes(32),), "has 0 peaks, not 1"),
        (3, (bytes(32),), "has 2 peaks, not 1"),
        (4, (bytes(31),), "32 bytes"),
    ],
)
def test_invalid_peaks_are_refused(size: int, peaks: tuple[bytes, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Tree(size, peaks)
