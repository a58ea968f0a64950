"""Browser sessions: one-time links, cookies, and the pages that may use them."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from dragoman.core.agent import RevokeToken
from dragoman.core.errors import Refusal
from dragoman.surfaces.http.sessions import LINK_MS, SESSION_S, OpenedSession, Sessions
from tests.requirements import proves
from tests.surfaces.http.hub_server import SECRET, HubServer, Response
from tests.surfaces.http.reader import Reader

PAGE = {"Dragoman-Page": "1", "Sec-Fetch-Site": "same-origin"}


def sign_in(server: HubServer, **credential: str) -> Response:
    """Sign in by a code or a token."""
    return server.request("POST", "/v1/sign-in", credential, by="")


def cookie_of(response: Response) -> str:
    """Cookie that a response sets, as it is sent back."""
    assert response.status == 200, response
    return response.headers["set-cookie"].partition(";")[0]


def make_code(server: HubServer, by: str = "owner") -> str:
    """Code of a new one-time link for this caller."""
    link = server.post("/v1/sign-in/links", {}, by=by)
    path, _, code = link["path"].partition("#")
    assert path == "/sign-in"
    return code


@proves("HTTP-SESSION")
def test_link_signs_its_maker_in(server: HubServer) -> None:
    response = sign_in(server, code=make_code(server))
    set_cookie = response.headers["set-cookie"]
    assert {part.strip().lower() for part in set_cookie.split(";")[1:]} == {
        "httponly",
        f"max-age={SESSION_S}",
        "path=/",
        "samesite=strict",
    }
    assert server.tokens["owner"] not in set_cookie
    session = server.get("/v1/session", by="", headers={"Cookie": cookie_of(response)})
    assert session == response.json
    assert (session["role"], session["owner"], session["may"]["answer"]) == ("human", True, True)


@proves("HTTP-SESSION")
def test_link_works_once(server: HubServer) -> None:
    code = make_code(server)
    assert sign_in(server, code=code).status == 200
    again = sign_in(server, code=code)
    assert (again.status, again.code) == (401, "unauthenticated")


@proves("HTTP-SESSION")
def test_stolen_link_signs_in_only_one_of_many_who_use_it_at_once(server: HubServer) -> None:
    code = make_code(server)
    with ThreadPoolExecutor(16) as thieves:
        answers = [thieves.submit(sign_in, server, code=code) for _ in range(16)]
    assert sorted(one.result().status for one in answers) == [200, *[401] * 15]


def count_readers(server: HubServer) -> int:
    """Number of streams that are open."""
    found = re.search(
        rb"^dragoman_stream_readers (\d+)", server.request("GET", "/metrics").body, re.MULTILINE
    )
    assert found is not None
    return int(found[1])


@proves("HTTP-SESSION")
def test_fifty_tabs_follow_the_ledger_and_leave_nothing_behind(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    host = f"127.0.0.1:{server.port}"
    head = f"GET /v1/stream HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode()
    with ExitStack() as stack:
        tabs = list[Reader]()
        for _ in range(50):
            sock = server.connect()
            sock.sendall(head)
            tabs.append(stack.enter_context(closing(Reader(sock))))
        made = server.post("/v1/tasks", {"title": "All tabs see it", "ready": True})
        for tab in tabs:
            (event,) = tab.take(1)
            assert (tab.status, event.data["stream"]) == (200, f"task:{made['id']}")
        assert count_readers(server) == 50
    while count_readers(server):  # until each tab that was closed is noticed
        server.get("/v1/status")


@proves("HTTP-SESSION")
def test_link_ends_after_a_minute(server: HubServer) -> None:
    code = make_code(server)
    server.clock.advance(LINK_MS)
    assert sign_in(server, code=code).status == 401


@proves("HTTP-SESSION")
def test_no_more_than_a_thousand_links_wait(server: HubServer) -> None:
    first, second = make_code(server), make_code(server)
    for _ in range(999):
        server.deps.sessions.add_link(server.tokens["owner"])
    assert sign_in(server, code=first).status == 401
    assert sign_in(server, code=second).status == 200


@proves("HTTP-SESSION")
def test_token_is_exchanged_for_a_session_of_its_role(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, token=server.tokens["olga"]))
    session = server.get("/v1/session", by="", headers={"Cookie": cookie})
    assert (session["name"], session["role"], session["owner"]) == ("olga", "observer", False)
    assert not any(session["may"].values())
    refused = server.request(
        "POST", "/v1/tasks", {"title": "no"}, by="", headers={"Cookie": cookie, **PAGE}
    )
    assert (refused.status, refused.code) == (403, "not_authorized")


@proves("HTTP-SESSION")
@pytest.mark.parametrize("credential", [{}, {"code": "a", "token": "b"}])
def test_sign_in_needs_one_credential(server: HubServer, credential: dict[str, str]) -> None:
    response = sign_in(server, **credential)
    assert (response.status, response.code) == (422, "invalid_field")


@proves("HTTP-SESSION")
def test_unknown_token_signs_nobody_in(server: HubServer) -> None:
    response = sign_in(server, token="drgo_somebody-else")
    assert (response.status, response.code) == (401, "unauthenticated")
    assert "set-cookie" not in response.headers


@proves("HTTP-SESSION")
def test_session_ends_after_twelve_hours(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    server.clock.advance((SESSION_S + 1) * 1_000)
    ended = server.request("GET", "/v1/session", by="", headers={"Cookie": cookie})
    assert (ended.status, ended.code) == (401, "token_expired")


@proves("HTTP-SESSION")
def test_session_ends_with_its_token(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, token=server.tokens["ada"]))
    server.submit(RevokeToken("ada"))
    ended = server.request("GET", "/v1/session", by="", headers={"Cookie": cookie})
    assert (ended.status, ended.code) == (401, "token_revoked")


@proves("HTTP-SESSION")
def test_session_outlives_a_restart_and_not_another_secret(server: HubServer) -> None:
    sealed = server.deps.sessions.seal("a token")
    opened = Sessions(SECRET, server.clock).open(sealed)
    assert isinstance(opened, OpenedSession)
    assert opened.token == "a token"
    assert isinstance(Sessions(b"x" * 32, server.clock).open(sealed), Refusal)


@proves("HTTP-SESSION")
@pytest.mark.parametrize("value", ["", "nonsense", "gAAAAA==", '"', "\\"])
def test_malformed_cookie_signs_nobody_in(server: HubServer, value: str) -> None:
    headers = {"Cookie": f"dragoman_{server.port}={value}"}
    response = server.request("GET", "/v1/session", by="", headers=headers)
    assert response.status == 401


@proves("HTTP-SESSION")
def test_sign_out_takes_the_cookie_back(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    response = server.request("DELETE", "/v1/session", by="", headers={"Cookie": cookie, **PAGE})
    assert response.status == 204
    assert "Max-Age=0" in response.headers["set-cookie"]


@proves("HTTP-SESSION")
def test_stream_ends_with_its_session(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    server.clock.advance(SESSION_S * 1_000 - 50)
    with server.connect() as sock:
        host = f"127.0.0.1:{server.port}"
        sock.sendall(
            f"GET /v1/stream HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode()
        )
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            part = sock.recv(65_536)
            assert part, received
            received += part
    assert b"text/event-stream" in received


@proves("HTTP-SESSION-ORIGIN")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_cookie_is_refused_to_pages_of_others(server: HubServer, site: str) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    headers = {"Cookie": cookie, "Sec-Fetch-Site": site}
    response = server.request("GET", "/v1/status", by="", headers=headers)
    assert (response.status, response.code) == (403, "foreign_origin")


@proves("HTTP-SESSION-ORIGIN")
def test_cookie_alone_changes_nothing(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    body, headers = {"title": "planted"}, {"Cookie": cookie}
    refused = server.request("POST", "/v1/tasks", body, by="", headers=headers)
    assert (refused.status, refused.code) == (403, "foreign_origin")
    assert server.get("/v1/tasks")["tasks"] == []
    made = server.request("POST", "/v1/tasks", body, by="", headers=headers | PAGE)
    assert made.status == 201


@proves("HTTP-SESSION-ORIGIN")
def test_token_goes_before_a_cookie(server: HubServer) -> None:
    cookie = cookie_of(sign_in(server, code=make_code(server)))
    session = server.get("/v1/session", by="ada", headers={"Cookie": cookie})
    assert (session["name"], session["expiresAt"]) == ("ada", None)
