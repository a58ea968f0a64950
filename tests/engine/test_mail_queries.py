"""Queries for letters on lists, in pages."""

import pytest

from dragoman.core.agent import RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.mail import PostMail
from dragoman.engine.queries import mail
from dragoman.engine.queries.mail import all_mail, find_letter
from dragoman.engine.queries.streams import all_entries
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


@proves("MAIL-SHORT-IDS")
def test_unambiguous_id_prefix_finds_a_letter() -> None:
    lab = Lab()
    for id in ("019c-aa1", "019c-aa2", "019c-b", "019c-b-more"):
        lab.do(ALICE, PostMail(("bob",), "x", "y", id=id))

    def found(id: str) -> str:
        letter = find_letter(lab.store, id)
        return f"{letter.code}: {letter.detail}" if isinstance(letter, Refusal) else letter.id

    assert found("019c-aa1") == "019c-aa1"
    assert found("019c-b-") == "019c-b-more"
    assert found("019c-b") == "019c-b"  # A complete id is not a prefix.
    assert found("019c-a") == (
        "ambiguous_name: several letters have an id that begins with 019c-a: 019c-aa1, 019c-aa2; "
        "write more characters"
    )
    assert found("019") == (
        "mail_not_found: there is no letter 019: a prefix of an id needs at least 4 characters"
    )
    assert found("019C-AA1") == "019c-aa1"
    assert found("019C-B-M") == "019c-b-more"
    lab.do(ALICE, PostMail(("bob",), "x", "y", id="019C-AA1"))
    assert found("019C-AA1") == "019C-AA1"  # An exact match comes first.
    assert found("019d") == "mail_not_found: there is no letter 019d: see `dragoman mail inbox`"
    for number in range(9):
        lab.do(ALICE, PostMail(("bob",), "x", "y", id=f"many-{number}"))
    assert found("many-").endswith("many-4 and others; write more characters")
