"""Letters through MCP: sent, seen in the inbox, read by thread, and refused with a reason."""

import json
from typing import Any

import pytest
from mcp import types
from mcp.client import Client

from dragoman.core.commands import CreateTask, PostMail
from tests.requirements import proves
from tests.surfaces.http.house import House
from tests.surfaces.mcp.clients import fault, once, refused, talk

pytestmark = proves("MAIL-MCP")


def send(house: House, to: str = "bob", by: str = "ada", **more: Any) -> str:
    """A letter; its id."""
    row = {"to": [to], "subject": "Hello", "body_md": "How are you?", **more}
    return once(house, by, "mail_send", **row)["id"]


def test_a_letter_lies_in_the_inbox_until_it_is_read(house: House) -> None:
    house.welcome("rita")
    id = send(house, "rita", ack_required=True, body_md="x" * 1_001)
    (letter,) = once(house, "rita", "inbox")["letters"]
    assert (letter["id"], letter["from"], letter["wants"]) == (id, "ada", "ack")
    assert letter["text"] == "x" * 1_000 + "…"
    assert once(house, "rita", "mail_show", id=id)["body_md"] == "x" * 1_001
    once(house, "rita", "mail_ack", id=id)
    assert once(house, "rita", "inbox")["letters"] == []
    assert [row["id"] for row in once(house, "rita", "mail_inbox")["messages"]] == [id]


@proves("MCP-DIALECTS")
def test_a_letter_is_a_message_like_any_other(house: House) -> None:
    row = {"from": "ada", "to": ["bob"], "subject": "[m-1] PROGRESS", "body_md": "Step: 1"}
    told = once(house, "ada", "send", message=row)
    assert (told["dialect"], told["type"]) == ("agentmail", "PROGRESS")
    assert told["reply"]["thread_id"] == "m-1"
    assert refused(house, "bob", "send", message=row) == "identity_mismatch"


@proves("MCP-RESOURCES")
def test_a_thread_is_a_resource(house: House) -> None:
    ids = [send(house, thread_id="t-7"), send(house, thread_id="t-7", cc=["carol"])]

    async def read(client: Client) -> Any:
        (content,) = (await client.read_resource("dragoman://threads/t-7")).contents
        assert isinstance(content, types.TextResourceContents)
        return json.loads(content.text)

    letters = talk(house, "olga", read)
    assert [letter["id"] for letter in letters] == ids
    assert letters[1]["cc"] == ["carol"]
    assert letters[0]["text"] == "How are you?"


@proves("MCP-RESOURCES")
def test_a_thread_is_called_by_any_name_of_its_task(house: House) -> None:
    house.do(CreateTask("Nine", "T9", aliases=("bead:t-9", "intent:i-9")))
    house.do(PostMail(("bob",), "", "", id="t9-0", thread="t-9"))

    async def read(client: Client) -> list[Any]:
        uris = (f"dragoman://threads/{name}" for name in ("t-9", "intent%3Ai-9", "T9"))
        return [(await client.read_resource(uri)).contents[0] for uri in uris]

    for content in talk(house, "olga", read):
        assert isinstance(content, types.TextResourceContents)
        assert [one["id"] for one in json.loads(content.text)] == ["t9-0"]


@proves("MCP-RESOURCES", "MAIL-PAGES")
def test_of_a_long_thread_the_resource_is_the_end(house: House) -> None:
    house.do(*(PostMail(("bob",), "", "", id=f"t8-{n}", thread="t-8") for n in range(51)))

    async def read(client: Client) -> Any:
        (content,) = (await client.read_resource("dragoman://threads/t-8")).contents
        assert isinstance(content, types.TextResourceContents)
        return json.loads(content.text)

    shown = [one["id"] for one in talk(house, "olga", read)]
    assert shown == [f"t8-{n}" for n in range(1, 51)]


@proves("MCP-REFUSALS")
@pytest.mark.parametrize("thread", ["nowhere", "a%2Fb", "%E2%80%AE"])
def test_a_thread_that_is_not_there_is_an_error(house: House, thread: str) -> None:
    uri = f"dragoman://threads/{thread}"
    error = fault(house, "ada", lambda client: client.read_resource(uri))
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
def test_what_cannot_be_is_refused(
    house: House, tool: str, arguments: dict[str, Any], code: str
) -> None:
    assert refused(house, "ada", tool, **arguments) == code


@proves("MAIL-HOSTILE")
def test_nobody_acks_what_is_not_its_own(house: House) -> None:
    id = send(house)
    assert refused(house, "ada", "mail_ack", id=id) == "not_authorized"
    assert refused(house, "ada", "mail_read", id=id) == "not_authorized"


@proves("REDACT-REQUESTS")
def test_who_sends_a_secret_is_told(house: House) -> None:
    row = {"to": ["bob"], "subject": "Hello", "body_md": "password=Xk39fjQpz81a"}
    (warning,) = once(house, "ada", "mail_send", **row)["warnings"]
    assert warning.startswith("a secret was masked: body (")
    assert "warnings" not in once(house, "ada", "mail_send", **row | {"body_md": "Fine."})


@proves("RESERVE-TAKE")
def test_files_are_reserved_seen_kept_and_given_back(house: House) -> None:
    taken = once(house, "ada", "reserve_take", patterns=["mcp/a.py"], ttl_ms=60_000)
    (seen,) = once(house, "bob", "reserve_list", patterns=["mcp/"])["reservations"]
    assert (seen["id"], seen["holder"]) == (taken["id"], "ada")
    assert once(house, "ada", "reserve_renew", names=[taken["id"]])["until"] > taken["until"]
    once(house, "ada", "reserve_release")
    assert once(house, "bob", "reserve_list", patterns=["mcp/"])["reservations"] == []
    assert once(house, "owner", "wave_list")["waves"] == []
