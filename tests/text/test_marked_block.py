"""A block between markers in a file of others."""

import pytest

from dragoman.text.marked_block import MarkedBlock, MarkedBlockError
from tests.requirements import proves

pytestmark = proves("CONNECT-UNTOUCHED")

BLOCK = MarkedBlock("<!-- ours: begin -->", "<!-- ours: end -->")


@pytest.mark.parametrize(
    "text", ["", "# Rules\n", "# Rules\n\n", "a\r\nb\r\n", "one\n\n\n", "# Rules", "a\r\nb"]
)
def test_block_is_added_replaced_and_removed_again(text: str) -> None:
    added = BLOCK.put(text, "first\nsecond")
    found = BLOCK.find(added)
    assert found is not None
    assert found.split() == [*BLOCK.begin.split(), "first", "second", *BLOCK.end.split()]
    assert BLOCK.put(added, "first\nsecond") == added
    assert "third" in BLOCK.put(added, "third")
    assert "second" not in BLOCK.put(added, "third")
    assert BLOCK.remove(added) == text
    assert ("\r\n" in added) == ("\r\n" in text)
    assert added.count("\n") == added.count("\r\n") or "\r\n" not in text


def test_text_around_a_block_stays() -> None:
    text = BLOCK.put("before\n", "x") + "after\n"
    assert BLOCK.remove(text) == "before\nafter\n"
    assert BLOCK.remove("nothing\n") == "nothing\n"
    assert BLOCK.find("nothing\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "<!-- ours: begin -->\n",
        "<!-- ours: end -->\n",
        "<!-- ours: end -->\n<!-- ours: begin -->\n",
        "<!-- ours: begin -->\n<!-- ours: begin -->\n<!-- ours: end -->\n",
    ],
)
def test_broken_markers_are_refused(text: str) -> None:
    with pytest.raises(MarkedBlockError, match="have to stand once each"):
        BLOCK.put(text, "x")
