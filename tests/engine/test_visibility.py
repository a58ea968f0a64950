"""Visibility of letters and entries in teamspaces with members."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import AcceptHandoff
from dragoman.core.mail import Mail, PostMail
from dragoman.engine.queries import visibility
from dragoman.engine.queries.mail import find_letter, last_in_thread
from dragoman.engine.queries.visibility import (
    NO_TEAMS,
    OWNER,
    Audience,
    EntrySource,
    find_reader,
    visible_to,
)
from dragoman.protocols.acp import Teamspace
from tests.engine.handoffs import make, offer
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, Lab
from tests.requirements import proves

TEAMS = {"red": Teamspace(frozenset({"alice", "bob"}))}


@proves("ACP-CLOSED-LETTERS")
def test_mail_about_a_handoff_in_a_closed_teamspace_is_visible_to_members_only() -> None:
    lab = Lab()
    make(lab)
    offer(lab, teamspace="red")
    make(lab, "t2")
    offer(lab, "h2", "t2")
    for number, body in enumerate(('{"handoff_id":"h1"}', '{"handoff_id":"h2"}', "{}", "hello")):
        lab.do(ALICE, PostMail(("dan",), "x", body, id=f"m-{number}", thread="th"))

    def shown_to(reader: Actor, teams: dict[str, Teamspace] = TEAMS) -> list[str]:
        shown = visible_to(find_reader(reader, teams), lab.store)
        return [
            letter.mail.id for letter in last_in_thread(lab.store, "th", 9, matches=shown).letters
        ]

    others = ["m-1", "m-2", "m-3"]
    assert shown_to(CAROL) == others
    assert shown_to(CAROL, {}) == shown_to(BOB) == shown_to(HUMAN) == ["m-0", *others]
    assert shown_to(Actor("agent", "dan")) == ["m-0", *others], "it was sent to him"
    hidden = find_letter(lab.store, "m-0", visible_to(find_reader(CAROL, TEAMS), lab.store))
    assert isinstance(hidden, Refusal)
    assert hidden.code == "mail_not_found"
    assert find_reader(CAROL, NO_TEAMS) == OWNER
    assert isinstance(find_letter(lab.store, "m-0", visible_to(OWNER, lab.store)), Mail)


@proves("ACP-CLOSED-LETTERS")
def test_what_is_not_about_a_handoff_is_for_everybody() -> None:
    lab = Lab()
    make(lab)
    bodies = ("hello", "{}", '{"handoff_id":"h9"}', '{"handoff_id":"no id"}', '{"handoff_id":7}')
    for number, body in enumerate(bodies):
        lab.do(ALICE, PostMail(("dan",), "x", body, id=f"m-{number}", thread="th"))
    shown = visible_to(find_reader(CAROL, TEAMS), lab.store)
    assert len(last_in_thread(lab.store, "th", 9, matches=shown).letters) == len(bodies)
    assert {audience for _, audience in EntrySource(lab.store, TEAMS).page(0, 100)} == {None}


@proves("ACP-CLOSED-ENTRIES")
def test_entries_of_a_closed_teamspace_have_its_members_as_their_audience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visibility, "_MAX_KNOWN", 1)
    lab = Lab()
    make(lab)
    offer(lab, teamspace="red")
    make(lab, "t2")
    offer(lab, "h2", "t2")
    assert lab.code(CAROL, AcceptHandoff("h1", "")) == "not_authorized"
    source, carol = EntrySource(lab.store, TEAMS), find_reader(CAROL, TEAMS)
    entries = lab.store.entries(0, 100)
    assert source.needs_lookup(entries)
    hidden = [entry for entry, audience in source.page(0, 100) if not carol.may_read(audience)]
    letter = next(entry.stream for entry in entries if entry.stream.startswith("mail:"))
    assert {entry.stream for entry in hidden} == {"handoff:h1", letter}
    assert [audience for _, audience in source.history("handoff:h1", 0, 9)] == [
        Audience("red", ("alice", "bob"))
    ]
    (refusal,) = [pair for pair in source.page(0, 100) if pair[0].event == "command.refused"]
    assert carol.may_read(refusal[1]), "it is her own"
    assert not find_reader(Actor("agent", "dan"), TEAMS).may_read(refusal[1])
    for reader in (find_reader(BOB, TEAMS), find_reader(HUMAN, TEAMS), OWNER):
        assert all(reader.may_read(audience) for _, audience in source.page(0, 100))
    open_source = EntrySource(lab.store, {"red": Teamspace(frozenset())})
    assert not open_source.needs_lookup(entries)
    assert {audience for _, audience in open_source.page(0, 100)} == {None}
