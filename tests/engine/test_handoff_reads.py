"""Reading handoffs: whose drafts are listed."""

from dragoman.core.commands import DraftHandoff
from dragoman.core.errors import Refusal
from dragoman.engine.reads.handoffs import Page, Wanted, page_of
from tests.engine.lab import ALICE, Lab
from tests.requirements import proves


@proves("ACP-CONTEXT")
def test_the_owner_of_the_hub_lists_drafts_by_who_made_them() -> None:
    lab = Lab()
    lab.do(ALICE, DraftHandoff({"context": {}}, "d1"))
    found = page_of(lab.store, Wanted("draft", sender="alice"))
    assert isinstance(found, Page)
    assert [draft.id for draft in found.handoffs] == ["d1"]
    whose = page_of(lab.store, Wanted("draft"))
    assert isinstance(whose, Refusal)
    assert (whose.code, "say whose" in whose.detail) == ("invalid_field", True)
