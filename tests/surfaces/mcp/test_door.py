"""/mcp is behind the guard, keeps sessions apart, and lets the hub stop."""

import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from typing import Any

import pytest

from dragoman.config import HttpSettings
from dragoman.core.commands import RevokeToken
from dragoman.surfaces.mcp.http import SESSIONS_OF_ONE
from tests.requirements import proves
from tests.surfaces.http.house import Answer, House, serving
from tests.surfaces.mcp.clients import INITIALIZE, MALFORMED
from tests.surfaces.mcp.stand import furnish

pytestmark = proves("MCP-DOOR")

ACCEPT = {"Accept": "application/json, text/event-stream"}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def begin(house: House, by: str) -> dict[str, str]:
    """Begin a session; the headers of every later request."""
    answer = house.ask("POST", "/mcp", INITIALIZE, by=by, headers=ACCEPT)
    assert answer.status == 200
    session = {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"]}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert house.ask("POST", "/mcp", done, by=by, headers=session).status == 202
    return session


def test_nobody_comes_in_without_a_token_or_from_elsewhere(house: House) -> None:
    assert house.ask("POST", "/mcp", INITIALIZE, by="", headers=ACCEPT).code == "unauthenticated"
    for header, code in (
        ({"Host": "evil.example"}, "unknown_host"),
        ({"Origin": "https://evil.example"}, "foreign_origin"),
    ):
        answer = house.ask("POST", "/mcp", INITIALIZE, by="ada", headers={**ACCEPT, **header})
        assert answer.code == code


def test_an_address_of_no_profile_leads_nowhere(house: House) -> None:
    answer = house.ask("POST", "/mcp/nobody", INITIALIZE, by="ada", headers=ACCEPT)

    assert answer.code == "not_found"
    assert "known: eve, night" in answer.json["detail"]


@proves("MCP-IDENTITY")
def test_a_session_belongs_to_whoever_began_it(house: House) -> None:
    session = begin(house, "ada")

    def listed(by: str) -> Answer:
        return house.ask("POST", "/mcp", LIST, by=by, headers=session)

    assert listed("ada").status == 200
    assert listed("bob").status == 404
    assert listed("owner").status == 404
    assert house.ask("DELETE", "/mcp", by="bob", headers=session).status == 404
    assert house.ask("DELETE", "/mcp", by="ada", headers=session).status == 200
    assert listed("ada").status == 404


def test_what_is_too_large_is_not_read() -> None:
    small = HttpSettings(port=0, rate_per_second=0, max_body=2_000)
    with serving(furnish(House(http=small))) as house:
        large = LIST | {"params": {"padding": "x" * 2_000}}
        answer = house.ask("POST", "/mcp", large, headers=ACCEPT)

    assert answer.code == "message_too_large"


@proves("MCP-MALFORMED")
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}])
@pytest.mark.parametrize(
    ("body", "code", "words"), [*MALFORMED, (b"", -32700, "there is nothing in it")]
)
def test_what_is_no_message_is_refused(
    house: House, version: dict[str, str], body: bytes, code: int, words: str
) -> None:
    answer = house.ask("POST", "/mcp", body, by="ada", headers={**ACCEPT, **version})

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.json.keys() == {"jsonrpc", "id", "error"}
    assert (answer.json["id"], answer.json["error"]["code"]) == (None, code)
    assert words in answer.json["error"]["message"]


@proves("MCP-MALFORMED")
def test_a_body_of_another_type_is_refused_by_a_problem_document(house: House) -> None:
    of_text = {**ACCEPT, "Content-Type": "text/plain"}
    answer = house.ask("POST", "/mcp", b"{}", by="ada", headers=of_text)

    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert answer.headers["content-type"] == "application/problem+json"


def test_blanks_around_a_header_are_no_part_of_it(house: House) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call: dict[str, Any] = {"name": "inbox", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}).encode()
    head = house.head(
        "POST",
        "/mcp",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version:  2026-07-28 ",
        "Mcp-Method: \ttools/call ",
        "Mcp-Name:   inbox\t",
        by="ada",
    )
    with house.dial() as line:
        line.sendall(head + body)
        answer = HTTPResponse(line)
        answer.begin()
        result = json.loads(answer.read())["result"]

    assert result["structuredContent"]["agent"] == "ada"


@contextmanager
def _listening(house: House, by: str) -> Generator[HTTPResponse]:
    lines = [f"{name}: {value}" for name, value in begin(house, by).items()]
    with house.dial() as line:
        line.sendall(house.head("GET", "/mcp", *lines, by=by))
        answer = HTTPResponse(line)
        answer.begin()
        assert answer.status == 200
        yield answer


@proves("HTTP-STAYS")
def test_one_caller_cannot_take_the_sessions_of_all() -> None:
    house = furnish(House())
    with serving(house):
        for name in ("ada", "bob"):
            house.welcome(name)

        def opened(by: str) -> Answer:
            return house.ask("POST", "/mcp", INITIALIZE, by=by, headers=ACCEPT)

        sessions = [opened("ada").headers["mcp-session-id"] for _ in range(SESSIONS_OF_ONE)]
        assert opened("ada").status == 503
        assert opened("bob").status == 200
        assert opened("owner").status == 200
        ended = {**ACCEPT, "Mcp-Session-Id": sessions[0]}
        assert house.ask("DELETE", "/mcp", by="ada", headers=ended).status == 200
        assert opened("ada").status == 200


@proves("HTTP-STAYS")
def test_a_stream_ends_with_its_token() -> None:
    house = furnish(House())
    with serving(house):
        house.welcome("ada")
        with _listening(house, "ada") as answer:
            house.do(RevokeToken("ada"))
            # It does not end before that is seen, and ends as a whole answer does.
            assert answer.read() is not None
        assert house.ask("POST", "/mcp", LIST, by="ada", headers=ACCEPT).code == "token_revoked"


def test_streams_end_when_the_hub_stops() -> None:
    house = furnish(House())
    with ExitStack() as listening:
        with serving(house):
            answer = listening.enter_context(_listening(house, "owner"))
        # `serving` has come to its end, which it does not while somebody is still listening.
        assert answer.read() is not None
