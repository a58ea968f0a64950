"""Mail over HTTP: idempotency keys, long polls of the inbox, streams of an agent."""

from typing import Any

import pytest

from dragoman.core.task_state import CreateTask
from tests.requirements import proves
from tests.surfaces.http.background_requests import request_in_background, wait_for_waiters
from tests.surfaces.http.hub_server import HubServer, Response
from tests.surfaces.http.reader import follow_stream

SEND, INBOX = "/v1/agentmail/mail.send", "/v1/agentmail/mail.inbox"


def send(server: HubServer, to: str = "bob", by: str = "ada", **fields: Any) -> str:
    """Send a message; return its id."""
    message = {"to": [to], "subject": "Hello", "body_md": "How are you?", **fields}
    return server.post(SEND, message, by=by)["id"]


def message_ids(response: Response) -> list[str]:
    """Return the ids of the messages in a response."""
    assert response.status == 200, response
    return [row["id"] for row in response.json["messages"]]


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_inbox_long_poll_returns_when_mail_arrives(server: HubServer) -> None:
    thread, received = request_in_background(
        server, "POST", f"{INBOX}?wait=60000", {"unread": True}, by="bob"
    )
    wait_for_waiters(server, 1)
    server.submit(CreateTask("Not a letter"))
    send(server, "carol")
    id = send(server)
    thread.join()
    assert message_ids(received[0]) == [id]
    assert received[0].json["cursor"] == server.store.head()


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_inbox_cursor_returns_each_message_once(server: HubServer) -> None:
    first = send(server)
    page = server.post(INBOX, {}, by="bob")
    thread, received = request_in_background(
        server, "POST", f"{INBOX}?wait=60000", {"after": page["cursor"]}, by="bob"
    )
    wait_for_waiters(server, 1)
    second = send(server)
    thread.join()
    assert ([row["id"] for row in page["messages"]], message_ids(received[0])) == (
        [first],
        [second],
    )


@proves("MAIL-LOST-CURSOR")
def test_inbox_cursor_beyond_the_end_returns_a_gap_at_once(server: HubServer) -> None:
    send(server)
    page = server.post(f"{INBOX}?wait=60000", {"after": 1_000_000}, by="bob")
    end = server.store.head()
    assert (page["messages"], page["cursor"]) == ([], end)
    assert page["gap"] == {"after": 1_000_000, "until": end}


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_inbox_long_poll_returns_at_once_or_times_out(server: HubServer) -> None:
    id = send(server)
    assert message_ids(server.request("POST", f"{INBOX}?wait=60000", {}, by="bob")) == [id]
    assert message_ids(server.request("POST", f"{INBOX}?wait=20", {}, by="ada")) == []
    refused = server.request("POST", f"{INBOX}?wait=60000", {"agent": "b b"}, by="ada")
    assert (refused.status, refused.code) == (422, "invalid_id")


@proves("MAIL-HTTP", "HTTP-WAIT")
@pytest.mark.parametrize(
    ("path", "field"),
    [(f"{INBOX}?wait=60001", "wait"), (f"{INBOX}?wait=-1", "wait"), (f"{SEND}?wait=1", "wait")],
)
def test_invalid_wait_is_refused(server: HubServer, path: str, field: str) -> None:
    response = server.request("POST", path, {}, by="bob")
    assert (response.status, response.code, response.json["path"]) == (
        400,
        "invalid_request",
        field,
    )


@proves("MAIL-HTTP", "HTTP-WAIT")
def test_disconnect_ends_an_inbox_long_poll(server: HubServer) -> None:
    with server.connect() as sock:
        body_headers = ("Content-Type: application/json", "Content-Length: 2")
        sock.sendall(
            server.request_head("POST", f"{INBOX}?wait=60000", *body_headers, by="bob") + b"{}"
        )
        wait_for_waiters(server, 1)
    wait_for_waiters(server, 0)


@proves("MAIL-HTTP", "HTTP-KEYS")
def test_repeated_key_sends_one_message(server: HubServer) -> None:
    row = {"to": ["bob"], "subject": "Hello", "body_md": "How are you?"}
    key = {"Idempotency-Key": "k1"}
    first = server.request("POST", SEND, row, by="ada", headers=key)
    head = server.store.head()
    assert server.request("POST", SEND, row, by="ada", headers=key).json == first.json
    assert server.store.head() == head
    other = server.request("POST", SEND, row | {"body_md": "!"}, by="ada", headers=key)
    assert (other.status, other.code) == (422, "key_reused")
    assert len(server.post(INBOX, {}, by="bob")["messages"]) == 1


@proves("MAIL-HTTP", "HTTP-STREAM")
def test_stream_of_an_agent_has_mail_from_and_to_it(server: HubServer) -> None:
    after = server.store.head()
    to_bob = send(server, "bob")
    send(server, "carol")
    copied_to_bob = send(server, "carol", cc=["bob"])
    by_bob = send(server, "ada", by="bob")
    with follow_stream(server, f"?agent=bob&type=mail&after={after}") as reader:
        streamed = [event.data["body"]["id"] for event in reader.take(3)]
    assert streamed == [to_bob, copied_to_bob, by_bob]
    page = server.get(f"/v1/events?agent=bob&type=mail.posted&after={after}")
    assert [event["body"]["id"] for event in page["events"]] == streamed


@proves("MAIL-HOSTILE")
@pytest.mark.parametrize(
    ("operation", "body", "status", "code"),
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
def test_invalid_mail_request_is_refused_with_reason(
    server: HubServer, operation: str, body: dict[str, Any], status: int, code: str | None
) -> None:
    response = server.request("POST", f"/v1/agentmail/{operation}", body, by="ada")
    assert (response.status, response.code) == (status, code or "message_too_large"), response
    assert response.json["detail"]
    assert response.body.isascii()


@proves("MAIL-HOSTILE")
def test_mail_cannot_be_acked_or_read_by_others(server: HubServer) -> None:
    id = send(server)
    for operation in ("mail.ack", "mail.read"):
        response = server.request("POST", f"/v1/agentmail/{operation}", {"id": id}, by="ada")
        assert (response.status, response.code) == (403, "not_authorized")
    row = server.post("/v1/agentmail/mail.show", {"id": id}, by="ada")
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
def test_masked_secret_is_reported_in_a_header(
    server: HubServer, path: str, body: dict[str, Any], field: str
) -> None:
    server.submit(CreateTask("One", "T-1"))

    def post_text(text: str) -> Response:
        filled = {name: text if value == "{}" else value for name, value in body.items()}
        return server.request("POST", path, filled, by="ada")

    response = post_text("password=Xk39fjQpz81a")
    assert response.status in (200, 201)
    assert response.headers["dragoman-warning"].startswith(f"a secret was masked: {field} (")
    assert "dragoman-warning" not in post_text("nothing secret").headers
