"""Queries for drafts of handoffs."""

from dragoman.core.commands import DraftHandoff
from dragoman.core.errors import Refusal
from dragoman.engine.reads.handoffs import Page, Wanted, page_of
from tests.engine.lab import ALICE, Lab
from tests.requirements import proves


@proves("ACP-CONTEXT")
def test_owner_of_the_hub_lists_drafts_by_their_sender() -> None:
    lab = Lab()
    lab.do(ALICE, DraftHandoff({"context": {}}, "d1"))
    found = page_of(lab.store, Wanted("draft", sender="alice"))
    assert isinstance(found, Page)
    assert [draft.id for draft in found.handoffs] == ["d1"]
    refusal = page_of(lab.store, Wanted("draft"))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "listed by sender" in refusal.detail) == ("invalid_field", True)
