"""Mail over MCP: send, inbox, threads, reservations, refusals."""

import json
from typing import Any

import pytest
from mcp import types
from mcp.client import Client

from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.mcp.clients import call_once, protocol_error, refusal_of_call, run_with_client

pytestmark = proves("MAIL-MCP")


def send(server: HubServer, to: str = "bob", by: str = "ada", **fields: Any) -> str:
    """Send a message; return its id."""
    arguments = {"to": [to], "subject": "Hello", "body_md": "How are you?", **fields}
    return call_once(server, by, "mail_send", **arguments)["id"]


def test_mail_stays_in_the_inbox_until_acked(server: HubServer) -> None:
    server.add_agent("rita")
    id = send(server, "rita", ack_required=True, body_md="x" * 1_001)
    (message,) = call_once(server, "rita", "inbox")["letters"]
    assert (message["id"], message["from"], message["wants"]) == (id, "ada", "ack")
    assert message["text"] == "x" * 1_000 + "…"
    assert call_once(server, "rita", "mail_show", id=id)["body_md"] == "x" * 1_001
    call_once(server, "rita", "mail_ack", id=id)
    assert call_once(server, "rita", "inbox")["letters"] == []
    assert [row["id"] for row in call_once(server, "rita", "mail_inbox")["messages"]] == [id]


@proves("MCP-DIALECTS")
def test_mail_can_be_sent_as_a_message(server: HubServer) -> None:
    message = {"from": "ada", "to": ["bob"], "subject": "[m-1] PROGRESS", "body_md": "Step: 1"}
    sent = call_once(server, "ada", "send_message", message=message)
    assert (sent["dialect"], sent["type"]) == ("agentmail", "PROGRESS")
    assert sent["reply"]["thread_id"] == "m-1"
    assert refusal_of_call(server, "bob", "send_message", message=message) == "identity_mismatch"


@proves("MCP-RESOURCES")
def test_thread_is_a_resource(server: HubServer) -> None:
    ids = [send(server, thread_id="t-7"), send(server, thread_id="t-7", cc=["carol"])]

    async def read(client: Client) -> Any:
        (content,) = (await client.read_resource("dragoman://threads/t-7")).contents
        assert isinstance(content, types.TextResourceContents)
        return json.loads(content.text)

    messages = run_with_client(server, "olga", read)
    assert [message["id"] for message in messages] == ids
    assert messages[1]["cc"] == ["carol"]
    assert messages[0]["text"] == "How are you?"


@proves("MCP-RESOURCES")
def test_thread_is_found_by_any_name_of_its_task(server: HubServer) -> None:
    server.submit(CreateTask("Nine", "T9", aliases=("bead:t-9", "intent:i-9")))
    server.submit(PostMail(("bob",), "", "", id="t9-0", thread="t-9"))

    async def read(client: Client) -> list[Any]:
        uris = (f"dragoman://threads/{name}" for name in ("t-9", "intent%3Ai-9", "T9"))
        return [(await client.read_resource(uri)).contents[0] for uri in uris]

    for content in run_with_client(server, "olga", read):
        assert isinstance(content, types.TextResourceContents)
        assert [one["id"] for one in json.loads(content.text)] == ["t9-0"]


@proves("MCP-RESOURCES", "MAIL-PAGES")
def test_resource_of_a_long_thread_is_its_end(server: HubServer) -> None:
    server.submit(*(PostMail(("bob",), "", "", id=f"t8-{n}", thread="t-8") for n in range(51)))

    async def read(client: Client) -> Any:
        (content,) = (await client.read_resource("dragoman://threads/t-8")).contents
        assert isinstance(content, types.TextResourceContents)
        return json.loads(content.text)

    shown_ids = [one["id"] for one in run_with_client(server, "olga", read)]
    assert shown_ids == [f"t8-{n}" for n in range(1, 51)]


@proves("MCP-REFUSALS")
@pytest.mark.parametrize("thread", ["nowhere", "a%2Fb", "%E2%80%AE"])
def test_missing_thread_is_an_error(server: HubServer, thread: str) -> None:
    uri = f"dragoman://threads/{thread}"
    error = protocol_error(server, "ada", lambda client: client.read_resource(uri))
    assert (error.code, error.data) == (types.INVALID_PARAMS, {"uri": uri})
    assert error.message.isascii()


@proves("MAIL-HOSTILE", "MCP-REFUSALS")
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("mail_ack", {"id": "nowhere"}, "mail_not_found"),
        ("mail_show", {"id": "../x"}, "invalid_id"),
        ("mail_inbox", {"limit": 0}, "invalid_field"),
        ("mail_inbox", {"after": -1}, "invalid_field"),
        ("mail_thread", {"thread_id": "a/b"}, "invalid_id"),
        (
            "mail_send",
            {"to": ["bob"], "subject": "a", "body_md": "x" * 300_000},
            "message_too_large",
        ),
        ("mail_send", {"to": ["b b"], "subject": "a", "body_md": ""}, "invalid_id"),
    ],
)
def test_invalid_mail_call_is_refused(
    server: HubServer, tool: str, arguments: dict[str, Any], code: str
) -> None:
    assert refusal_of_call(server, "ada", tool, **arguments) == code


@proves("MAIL-HOSTILE")
def test_mail_cannot_be_acked_by_others(server: HubServer) -> None:
    id = send(server)
    assert refusal_of_call(server, "ada", "mail_ack", id=id) == "not_authorized"
    assert refusal_of_call(server, "ada", "mail_read", id=id) == "not_authorized"


@proves("REDACT-REQUESTS")
def test_masked_secret_is_reported(server: HubServer) -> None:
    arguments = {"to": ["bob"], "subject": "Hello", "body_md": "password=Xk39fjQpz81a"}
    warnings = call_once(server, "ada", "mail_send", **arguments)["warnings"]
    assert any(one.startswith("a secret was masked: body (") for one in warnings)
    fine = call_once(server, "ada", "mail_send", **arguments | {"body_md": "Fine."})
    assert not any("secret" in one for one in fine.get("warnings", []))


@proves("RESERVE-TAKE")
def test_reservation_is_taken_listed_extended_and_released(server: HubServer) -> None:
    reservation = call_once(server, "ada", "reserve_take", patterns=["mcp/a.py"], ttl_ms=60_000)
    (listed,) = call_once(server, "bob", "reserve_list", patterns=["mcp/"])["reservations"]
    assert (listed["id"], listed["holder"]) == (reservation["id"], "ada")
    longer = call_once(server, "ada", "reserve_take", patterns=["mcp/a.py"])
    assert longer["until"] > reservation["until"]
    call_once(server, "ada", "reserve_release")
    assert call_once(server, "bob", "reserve_list", patterns=["mcp/"])["reservations"] == []
    assert call_once(server, "owner", "wave_list")["waves"] == []
