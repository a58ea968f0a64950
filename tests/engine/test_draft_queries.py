"""Queries for drafts of handoffs."""

from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import DraftHandoff
from dragoman.engine.queries.handoffs import HandoffFilter, HandoffPage, handoff_page
from tests.engine.lab import ALICE, Lab
from tests.requirements import proves


@proves("ACP-CONTEXT")
def test_owner_of_the_hub_lists_drafts_by_their_sender() -> None:
    lab = Lab()
    lab.do(ALICE, DraftHandoff({"context": {}}, "d1"))
    found = handoff_page(lab.store, HandoffFilter("draft", sender="alice"))
    assert isinstance(found, HandoffPage)
    assert [draft.id for draft in found.handoffs] == ["d1"]
    refusal = handoff_page(lab.store, HandoffFilter("draft"))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "listed by sender" in refusal.detail) == ("invalid_field", True)
