"""Pages of letters: limits, cursors and the end of the list."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman.engine.operation import QueryOperation
from dragoman.engine.ports import ListItem, ListQuery
from dragoman.engine.queries import mail
from dragoman.engine.queries.entries import MAX_PAGE_BYTES
from dragoman.engine.queries.mail import mail_page
from dragoman.protocols import agentmail
from dragoman.protocols.agentmail import queries
from tests.engine.lab import ALICE, BOB, OpenStore
from tests.engine.letters import post
from tests.protocols.agentmail.hub import BEAD, MailHub, letter
from tests.requirements import proves

pytestmark = proves("MAIL-PAGES")

NOTE = {"to": ["bob"], "subject": "Lunch", "body_md": "At noon?", "thread_id": "t"}


def is_empty_inbox() -> Callable[[Any], bool]:
    """Return the check by which a long poll of the inbox goes on waiting."""
    inbox = next(one for one in agentmail.dialect().operations if one.name == "mail.inbox")
    assert isinstance(inbox, QueryOperation)
    assert inbox.wait is not None
    return inbox.wait.is_empty


def iter_pages(
    hub: MailHub, operation: str, arguments: dict[str, Any], cursor_field: str
) -> Iterator[list[str]]:
    """Yield the ids of each page, from the first to the last."""
    at: dict[str, int] = {}
    while True:
        reply = hub.ask(operation, arguments | at, BOB)
        yield [row["id"] for row in reply["messages"]]
        if not reply["more"]:
            return
        at = {cursor_field: reply["cursor"]}


def test_page_without_matches_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "MAX_SCANNED", 3)
    hub = MailHub()
    for _ in range(4):
        hub.send(ALICE, NOTE)
    last = hub.send(ALICE, letter("PROGRESS", to=["bob"]))["id"]
    arguments = {"type": "PROGRESS"}
    first = hub.ask("mail.inbox", arguments, BOB)
    assert (first["messages"], first["more"]) == ([], True)
    is_empty = is_empty_inbox()
    assert not is_empty(first), "whoever waits goes on with the next page instead"
    second = hub.ask("mail.inbox", arguments | {"after": first["cursor"]}, BOB)
    assert ([row["id"] for row in second["messages"]], second["more"]) == ([last], False)
    nothing = hub.ask("mail.inbox", arguments | {"after": second["cursor"]}, BOB)
    assert is_empty(nothing)


@proves("MAIL-LOST-CURSOR")
@pytest.mark.parametrize(
    ("operation", "arguments"), [("mail.inbox", {}), ("mail.thread", {"thread_id": "t"})]
)
def test_cursor_beyond_the_end_is_reset_with_a_gap(
    operation: str, arguments: dict[str, Any]
) -> None:
    hub = MailHub()
    hub.send(ALICE, NOTE)
    end = hub.store.head()
    level = hub.ask(operation, arguments | {"after": end}, BOB)
    assert (level["cursor"], "gap" in level) == (end, False)
    lost = hub.ask(operation, arguments | {"after": end + 1}, BOB)
    assert (lost["messages"], lost["cursor"], lost["more"]) == ([], end, False)
    assert lost["gap"] == {"after": end + 1, "until": end}
    is_empty = is_empty_inbox()
    assert not is_empty(lost), "nobody waits for letters from a place that there is not"
    next_one = hub.send(ALICE, NOTE)["id"]
    found = hub.ask(operation, arguments | {"after": lost["cursor"]}, BOB)["messages"]
    assert [row["id"] for row in found] == [next_one]


@pytest.mark.parametrize(
    ("operation", "arguments", "cursor_field"),
    [
        ("mail.inbox", {}, "after"),
        ("mail.inbox", {"before": 0}, "before"),
        ("mail.thread", {"thread_id": "t"}, "after"),
        ("mail.search", {"query": "noon"}, "before"),
    ],
)
def test_pages_together_are_complete(
    operation: str, arguments: dict[str, Any], cursor_field: str
) -> None:
    hub = MailHub()
    sent = [hub.send(ALICE, NOTE)["id"] for _ in range(4)]
    in_order = sent if cursor_field == "after" else sent[::-1]
    found = list(iter_pages(hub, operation, arguments | {"limit": 2}, cursor_field))
    assert found == [in_order[:2], in_order[2:]], "and no empty one behind the last"


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("mail.inbox", {"limit": 500}),
        ("mail.thread", {"thread_id": "t", "limit": 500}),
        ("mail.search", {"query": "noon", "limit": 500}),
    ],
)
def test_page_is_limited_in_bytes(operation: str, arguments: dict[str, Any]) -> None:
    hub = MailHub()
    size = 199_000
    for _ in range(MAX_PAGE_BYTES // size + 3):
        hub.send(ALICE, NOTE | {"body_md": "noon " + "x" * size})
    reply = hub.ask(operation, arguments, BOB)
    assert len(reply["messages"]) == MAX_PAGE_BYTES // size + 1
    assert reply["more"]


def test_summary_covers_the_latest_letters_and_has_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_MAX_SUMMARIZED", 2)
    hub = MailHub()
    hub.send(ALICE, letter("PROGRESS", "Step: one", to=["bob"]))
    whole = hub.ask("mail.summary", {"thread_id": BEAD}, BOB)
    assert (whole["messages"], whole["more"]) == (1, False)
    nothing = hub.ask("mail.summary", {"thread_id": "nobody"}, BOB)
    assert (nothing["messages"], nothing["more"], nothing["cursor"]) == (0, False, 0)
    for step in ("two", "three"):
        hub.send(ALICE, letter("PROGRESS", f"Status: {step}", to=["bob"]))
    last = hub.ask("mail.summary", {"thread_id": BEAD}, BOB)
    assert (last["messages"], last["last_status"], last["more"]) == (2, "three", True)
    older = hub.ask("mail.summary", {"thread_id": BEAD, "before": last["cursor"]}, BOB)
    assert (older["messages"], older["more"]) == (1, False)


class CountingStore(OpenStore):
    """Store that counts the rows read from its lists."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_read = 0

    def list_page(self, query: ListQuery) -> list[ListItem]:
        """Read a page and count its rows."""
        found = super().list_page(query)
        self.rows_read += len(found)
        return found


def test_short_page_reads_one_row_more_than_it_shows() -> None:
    store = CountingStore()
    for number in range(30):
        post(store, str(number))
    page = mail_page(store, ListQuery("in:bob", limit=1))
    assert (len(page.letters), page.more, store.rows_read) == (1, True, 2)
