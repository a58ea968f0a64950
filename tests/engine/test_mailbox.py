"""Reading letters from lists, page by page, and nothing but letters."""

import pytest

from dragoman.core.commands import PostMail, RegisterAgent
from dragoman.engine import mailbox
from dragoman.engine.ask import entries
from dragoman.engine.mailbox import whole_list
from dragoman.engine.shown import told_of
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves


@proves("MAIL-PAGES")
def test_a_whole_list_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "_PAGE", 2)
    lab = Lab()
    for number in range(5):
        lab.do(ALICE, PostMail(("bob",), "x", "y", id=f"m-{number}"))
    found = [letter.mail.id for letter in whole_list(lab.store, "in:bob")]
    assert found == [f"m-{number}" for number in range(5)]


@proves("MAIL-PAGES")
def test_what_is_no_letter_is_left_out_of_a_list_of_letters() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"))
    assert [*whole_list(lab.store, "role:agent")] == []


@proves("MAIL-HTTP")
def test_an_entry_says_to_whom_it_is_addressed() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(ALICE, PostMail(("bob",), "x", "y", cc=("carol",), copied=("dave",)))
    assert [told_of(entry) for entry in entries(lab.store)] == [(), ("bob", "carol", "dave")]
