"""Inclusion proofs: a leaf's place in the tree, shown by its siblings alone."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.ledger.tree import EMPTY_TREE, extend_tree, inclusion_path, root_from_path, tree_root
from tests.requirements import proves

pytestmark = proves("LEDGER-PROOF")


@given(st.integers(1, 40), st.data())
def test_path_of_every_leaf_leads_to_the_root(size: int, data: st.DataObject) -> None:
    leaves = [f"{number}".encode() for number in range(size)]
    index = data.draw(st.integers(0, size - 1))
    path = inclusion_path(leaves, index)
    expected = tree_root(extend_tree(EMPTY_TREE, leaves))

    assert root_from_path(leaves[index], index, size, path) == expected
    assert root_from_path(b"another", index, size, path) != expected
    assert root_from_path(leaves[index], index, size, (*path, bytes(32))) is None
    for cut in range(len(path)):
        assert root_from_path(leaves[index], index, size, path[:cut]) != expected
    changed = [bytes(32), *path[1:]]
    if path:
        assert root_from_path(leaves[index], index, size, changed) != expected


def test_index_outside_the_tree_has_no_root() -> None:
    assert root_from_path(b"x", 1, 1, ()) is None
    assert root_from_path(b"x", -1, 1, ()) is None
