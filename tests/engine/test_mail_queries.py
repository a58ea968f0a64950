"""Queries for letters on lists, in pages."""

import pytest

from dragoman.core.agent import RegisterAgent
from dragoman.core.mail import PostMail
from dragoman.engine.queries import mail
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.mail import all_mail
from dragoman.engine.schemas.tasks import addressees
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves


@proves("MAIL-PAGES")
def test_whole_list_is_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "LIST_PAGE", 2)
    lab = Lab()
    for number in range(5):
        lab.do(ALICE, PostMail(("bob",), "x", "y", id=f"m-{number}"))
    found = [letter.mail.id for letter in all_mail(lab.store, "in:bob")]
    assert found == [f"m-{number}" for number in range(5)]


@proves("MAIL-PAGES")
def test_list_of_letters_leaves_out_other_streams() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"))
    assert [*all_mail(lab.store, "role:agent")] == []


@proves("MAIL-HTTP")
def test_addressees_of_an_entry_are_its_recipients() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(ALICE, PostMail(("bob",), "x", "y", cc=("carol",), auto_copied=("dave",)))
    assert [addressees(entry) for entry in all_entries(lab.store)] == [(), ("bob", "carol", "dave")]


@proves("MAIL-UNKNOWN-NAME")
def test_sender_is_told_of_recipients_that_nobody_is_known_as() -> None:
    lab = Lab()
    letter = PostMail(("bbo", "bob", "alice"), "lunch?", "", cc=("carla",))
    lab.do(HUMAN, RegisterAgent("bob"))
    warning = "nobody is known as 'bbo', 'carla': the letter waits until somebody is"
    assert lab.do(ALICE, PostMail(("bob",), "I speak", "")).warning == ""
    assert lab.do(ALICE, letter).warning == warning, "it is not registered itself"
    lab.do(HUMAN, RegisterAgent("alice"))
    assert lab.do(ALICE, letter).warning == warning
    assert lab.do(ALICE, PostMail(("bob",), "lunch?", "")).warning == ""
