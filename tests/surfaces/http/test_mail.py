"""Letters over HTTP: sent once under a key, waited for, streamed to whom they are addressed."""

from typing import Any

import pytest

from dragoman.core.commands import CreateTask
from tests.requirements import proves
from tests.surfaces.http.house import Answer, House
from tests.surfaces.http.reader import reading
from tests.surfaces.http.waiting import asking, until_seats

SEND, INBOX = "/v1/agentmail/mail.send", "/v1/agentmail/mail.inbox"


def send(house: House, to: str = "bob", by: str = "ada", **more: Any) -> str:
    """A letter; its id."""
    row = {"to": [to], "subject": "Hello", "body_md": "How are you?", **more}
    return house.post(SEND, row, by=by)["id"]


def ids(answer: Answer) -> list[str]:
    """The ids of the letters in an answer."""
    assert answer.status == 200, answer
    return [row["id"] for row in answer.json["messages"]]


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_a_letter_is_waited_for_and_comes_when_it_is_sent(house: House) -> None:
    thread, got = asking(house, "POST", f"{INBOX}?wait=60000", {"unread": True}, by="bob")
    until_seats(house, 1)
    house.do(CreateTask("Not a letter"))
    send(house, "carol")
    id = send(house)
    thread.join()
    assert ids(got[0]) == [id]
    assert got[0].json["cursor"] == house.store.head()


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_whoever_goes_on_from_a_cursor_gets_each_letter_once(house: House) -> None:
    first = send(house)
    page = house.post(INBOX, {}, by="bob")
    thread, got = asking(house, "POST", f"{INBOX}?wait=60000", {"after": page["cursor"]}, by="bob")
    until_seats(house, 1)
    second = send(house)
    thread.join()
    assert ([row["id"] for row in page["messages"]], ids(got[0])) == ([first], [second])


@proves("MAIL-LOST-CURSOR")
def test_whoever_waits_beyond_the_end_is_brought_back_at_once(house: House) -> None:
    send(house)
    got = house.post(f"{INBOX}?wait=60000", {"after": 1_000_000}, by="bob")
    end = house.store.head()
    assert (got["messages"], got["cursor"]) == ([], end)
    assert got["gap"] == {"after": 1_000_000, "until": end}


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_a_wait_is_over_at_once_when_there_is_something_and_in_time_when_not(house: House) -> None:
    id = send(house)
    assert ids(house.ask("POST", f"{INBOX}?wait=60000", {}, by="bob")) == [id]
    assert ids(house.ask("POST", f"{INBOX}?wait=20", {}, by="ada")) == []
    refused = house.ask("POST", f"{INBOX}?wait=60000", {"agent": "b b"}, by="ada")
    assert (refused.status, refused.code) == (422, "invalid_id")


@proves("MAIL-HTTP", "HTTP-WAIT")
@pytest.mark.parametrize(
    ("path", "named"),
    [(f"{INBOX}?wait=60001", "wait"), (f"{INBOX}?wait=-1", "wait"), (f"{SEND}?wait=1", "wait")],
)
def test_a_wait_that_cannot_be_is_refused(house: House, path: str, named: str) -> None:
    answer = house.ask("POST", path, {}, by="bob")
    assert (answer.status, answer.code, answer.json["path"]) == (400, "invalid_request", named)


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_a_caller_that_has_gone_is_not_waited_with(house: House) -> None:
    with house.dial() as line:
        declared = ("Content-Type: application/json", "Content-Length: 2")
        line.sendall(house.head("POST", f"{INBOX}?wait=60000", *declared, by="bob") + b"{}")
        until_seats(house, 1)
    until_seats(house, 0)


@proves("MAIL-HTTP", "HTTP-KEYS")
def test_a_letter_that_is_sent_again_under_its_key_is_one_letter(house: House) -> None:
    row = {"to": ["bob"], "subject": "Hello", "body_md": "How are you?"}
    key = {"Idempotency-Key": "k1"}
    first = house.ask("POST", SEND, row, by="ada", headers=key)
    head = house.store.head()
    assert house.ask("POST", SEND, row, by="ada", headers=key).json == first.json
    assert house.store.head() == head
    other = house.ask("POST", SEND, row | {"body_md": "!"}, by="ada", headers=key)
    assert (other.status, other.code) == (422, "key_reused")
    assert len(house.post(INBOX, {}, by="bob")["messages"]) == 1


@proves("MAIL-HTTP", "HTTP-STREAM")
def test_an_agent_is_streamed_what_it_does_and_what_is_addressed_to_it(house: House) -> None:
    after = house.store.head()
    to_bob = send(house, "bob")
    send(house, "carol")
    copied = send(house, "carol", cc=["bob"])
    by_bob = send(house, "ada", by="bob")
    with reading(house, f"?agent=bob&type=mail&after={after}") as reader:
        streamed = [event.data["body"]["id"] for event in reader.take(3)]
    assert streamed == [to_bob, copied, by_bob]
    page = house.get(f"/v1/events?agent=bob&type=mail.posted&after={after}")
    assert [event["body"]["id"] for event in page["events"]] == streamed


@proves("MAIL-HOSTILE")
@pytest.mark.parametrize(
    ("operation", "asked", "status", "code"),
    [
        ("mail.send", {"to": ["b ob"], "subject": "a", "body_md": ""}, 422, "invalid_id"),
        ("mail.send", {"to": [], "subject": "Hi", "body_md": ""}, 422, "invalid_field"),
        ("mail.send", {"to": ["bob"], "subject": "a", "body_md": 7}, 422, "invalid_field"),
        ("mail.send", {"to": ["@crowd"], "subject": "a", "body_md": ""}, 422, "invalid_field"),
        (
            "mail.send",
            {"to": ["bob"], "from": "carol", "subject": "a", "body_md": ""},
            403,
            "identity_mismatch",
        ),
        (
            "mail.send",
            {"to": ["bob"], "subject": "a", "body_md": "", "reply_to": "nowhere"},
            404,
            "mail_not_found",
        ),
        ("mail.send", {"to": ["bob"], "subject": "a", "body_md": "x" * 300_000}, 413, None),
        ("mail.ack", {"id": "nowhere"}, 404, "mail_not_found"),
        ("mail.ack", {"id": "../x"}, 422, "invalid_id"),
        ("mail.read", {"id": ""}, 422, "invalid_id"),
        ("mail.show", {"id": "nowhere"}, 404, "mail_not_found"),
        ("mail.show", {"id": 7}, 422, "invalid_field"),
        ("mail.inbox", {"box": "attic"}, 422, "invalid_field"),
        ("mail.inbox", {"limit": 0}, 422, "invalid_field"),
        ("mail.inbox", {"limit": 1_001}, 422, "invalid_field"),
        ("mail.inbox", {"after": -1}, 422, "invalid_field"),
        ("mail.inbox", {"after": "abc"}, 422, "invalid_field"),
        ("mail.inbox", {"only": "nothing"}, 422, "invalid_field"),
        ("mail.thread", {"thread_id": "a/b"}, 422, "invalid_id"),
        ("mail.thread", {}, 422, "invalid_field"),
        ("mail.search", {"query": "x" * 1_001}, 422, "invalid_field"),
        ("mail.summary", {"thread_id": "\u202e"}, 422, "invalid_id"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    house: House, operation: str, asked: dict[str, Any], status: int, code: str | None
) -> None:
    answer = house.ask("POST", f"/v1/agentmail/{operation}", asked, by="ada")
    assert (answer.status, answer.code) == (status, code or "message_too_large"), answer
    assert answer.json["detail"]
    assert answer.body.isascii()


@proves("MAIL-HOSTILE")
def test_nobody_acks_or_reads_what_is_not_addressed_to_it(house: House) -> None:
    id = send(house)
    for operation in ("mail.ack", "mail.read"):
        answer = house.ask("POST", f"/v1/agentmail/{operation}", {"id": id}, by="ada")
        assert (answer.status, answer.code) == (403, "not_authorized")
    row = house.post("/v1/agentmail/mail.show", {"id": id}, by="ada")
    assert (row["read_by"], row["acked_by"]) == ([], [])


@proves("REDACT-REQUESTS")
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (SEND, {"to": ["bob"], "subject": "S", "body_md": "{}"}, "body"),
        ("/v1/tasks/T-1/note", {"text": "{}"}, "text"),
        ("/v1/tasks", {"title": "x", "body": "{}"}, "body"),
    ],
)
def test_who_sends_a_secret_is_told_in_a_header(
    house: House, path: str, body: dict[str, Any], field: str
) -> None:
    house.do(CreateTask("One", "T-1"))

    def ask(text: str) -> Answer:
        words = {name: text if value == "{}" else value for name, value in body.items()}
        return house.ask("POST", path, words, by="ada")

    told = ask("password=Xk39fjQpz81a")
    assert told.status in (200, 201)
    assert told.headers["dragoman-warning"].startswith(f"a secret was masked: {field} (")
    assert "dragoman-warning" not in ask("nothing secret").headers
