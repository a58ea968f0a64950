"""Pages of letters: as long as is wanted and no longer, and no end that is none."""

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.engine.operation import Operation
from dragoman.engine.ports import Listed, ListQuery
from dragoman.engine.reads import mailbox
from dragoman.engine.reads.mailbox import MOST_BYTES, page_of
from dragoman.protocols import agentmail
from dragoman.protocols.agentmail import reading
from tests.engine.lab import ALICE, BOB, OpenStore
from tests.engine.letters import post
from tests.protocols.agentmail.office import BEAD, Office, letter
from tests.requirements import proves

pytestmark = proves("MAIL-PAGES")

NOTE = {"to": ["bob"], "subject": "Lunch", "body_md": "At noon?", "thread_id": "t"}


def inbox() -> Operation:
    """The operation that looks into a box."""
    return next(one for one in agentmail.dialect().operations if one.name == "mail.inbox")


def pages(office: Office, operation: str, asked: dict[str, Any], way: str) -> Iterator[list[str]]:
    """The ids on each page, from the first to the last."""
    at: dict[str, int] = {}
    while True:
        reply = office.ask(operation, asked | at, BOB)
        yield [row["id"] for row in reply["messages"]]
        if not reply["more"]:
            return
        at = {way: reply["cursor"]}


def test_a_page_on_which_nothing_fits_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "MOST_LOOKED_AT", 3)
    office = Office()
    for _ in range(4):
        office.send(ALICE, NOTE)
    last = office.send(ALICE, letter("PROGRESS", to=["bob"]))["id"]
    asked = {"type": "PROGRESS"}
    first = office.ask("mail.inbox", asked, BOB)
    assert (first["messages"], first["more"]) == ([], True)
    is_empty = inbox().is_empty
    assert is_empty is not None
    assert not is_empty(first), "whoever waits goes on with the next page instead"
    second = office.ask("mail.inbox", asked | {"after": first["cursor"]}, BOB)
    assert ([row["id"] for row in second["messages"]], second["more"]) == ([last], False)
    nothing = office.ask("mail.inbox", asked | {"after": second["cursor"]}, BOB)
    assert is_empty(nothing)


@proves("MAIL-LOST-CURSOR")
@pytest.mark.parametrize(
    ("operation", "asked"), [("mail.inbox", {}), ("mail.thread", {"thread_id": "t"})]
)
def test_a_cursor_beyond_the_end_is_brought_back_and_told(
    operation: str, asked: dict[str, Any]
) -> None:
    office = Office()
    office.send(ALICE, NOTE)
    end = office.store.head()
    level = office.ask(operation, asked | {"after": end}, BOB)
    assert (level["cursor"], "gap" in level) == (end, False)
    lost = office.ask(operation, asked | {"after": end + 1}, BOB)
    assert (lost["messages"], lost["cursor"], lost["more"]) == ([], end, False)
    assert lost["gap"] == {"after": end + 1, "until": end}
    is_empty = inbox().is_empty
    assert is_empty is not None
    assert not is_empty(lost), "nobody waits for letters from a place that there is not"
    next_one = office.send(ALICE, NOTE)["id"]
    found = office.ask(operation, asked | {"after": lost["cursor"]}, BOB)["messages"]
    assert [row["id"] for row in found] == [next_one]


@pytest.mark.parametrize(
    ("operation", "asked", "way"),
    [
        ("mail.inbox", {}, "after"),
        ("mail.inbox", {"before": 0}, "before"),
        ("mail.thread", {"thread_id": "t"}, "after"),
        ("mail.search", {"query": "noon"}, "before"),
    ],
)
def test_pages_together_are_the_whole(operation: str, asked: dict[str, Any], way: str) -> None:
    office = Office()
    sent = [office.send(ALICE, NOTE)["id"] for _ in range(4)]
    in_order = sent if way == "after" else sent[::-1]
    found = list(pages(office, operation, asked | {"limit": 2}, way))
    assert found == [in_order[:2], in_order[2:]], "and no empty one behind the last"


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("mail.inbox", {"limit": 500}),
        ("mail.thread", {"thread_id": "t", "limit": 500}),
        ("mail.search", {"query": "noon", "limit": 500}),
    ],
)
def test_a_page_has_an_end_in_bytes(operation: str, asked: dict[str, Any]) -> None:
    office = Office()
    size = 199_000
    for _ in range(MOST_BYTES // size + 3):
        office.send(ALICE, NOTE | {"body_md": "noon " + "x" * size})
    reply = office.ask(operation, asked, BOB)
    assert len(reply["messages"]) == MOST_BYTES // size + 1
    assert reply["more"]


def test_a_summary_is_of_the_last_letters_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SUMMED_UP", 2)
    office = Office()
    office.send(ALICE, letter("PROGRESS", "Step: one", to=["bob"]))
    whole = office.ask("mail.summary", {"thread_id": BEAD}, BOB)
    assert (whole["messages"], whole["more"]) == (1, False)
    nothing = office.ask("mail.summary", {"thread_id": "nobody"}, BOB)
    assert (nothing["messages"], nothing["more"], nothing["cursor"]) == (0, False, 0)
    for step in ("two", "three"):
        office.send(ALICE, letter("PROGRESS", f"Status: {step}", to=["bob"]))
    last = office.ask("mail.summary", {"thread_id": BEAD}, BOB)
    assert (last["messages"], last["last_status"], last["more"]) == (2, "three", True)
    older = office.ask("mail.summary", {"thread_id": BEAD, "before": last["cursor"]}, BOB)
    assert (older["messages"], older["more"]) == (1, False)


class Counting(OpenStore):
    """A store that knows how many rows were read from its lists."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_read = 0

    def listed(self, query: ListQuery) -> list[Listed]:
        """The page, counted."""
        found = super().listed(query)
        self.rows_read += len(found)
        return found


def test_a_short_page_reads_no_more_than_it_shows_and_the_one_behind_it() -> None:
    store = Counting()
    for number in range(30):
        post(store, str(number))
    page = page_of(store, ListQuery("in:bob", limit=1))
    assert (len(page.letters), page.more, store.rows_read) == (1, True, 2)
