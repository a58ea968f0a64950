"""Visibility of letters in teamspaces with members."""

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.mail import Mail, PostMail
from dragoman.engine.queries.handoffs import NO_TEAMS
from dragoman.engine.queries.mail import find_letter, last_in_thread, mail_visible_to
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

    def visible_to(reader: Actor, teams: dict[str, Teamspace] = TEAMS) -> list[str]:
        shown = mail_visible_to(reader, teams, lab.store)
        return [
            letter.mail.id for letter in last_in_thread(lab.store, "th", 9, matches=shown).letters
        ]

    others = ["m-1", "m-2", "m-3"]
    assert visible_to(CAROL) == others
    assert visible_to(CAROL, {}) == visible_to(BOB) == visible_to(HUMAN) == ["m-0", *others]
    assert visible_to(Actor("agent", "dan")) == ["m-0", *others], "it was sent to him"
    hidden = find_letter(lab.store, "m-0", mail_visible_to(CAROL, TEAMS, lab.store))
    assert isinstance(hidden, Refusal)
    assert hidden.code == "mail_not_found"
    assert isinstance(
        find_letter(lab.store, "m-0", mail_visible_to(CAROL, NO_TEAMS, lab.store)), Mail
    )
