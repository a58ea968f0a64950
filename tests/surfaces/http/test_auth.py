"""Checks of every route: host, origin, token, method, rate; and the bind address."""

import re
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.config import HttpSettings
from dragoman.core.agent import RevokeToken
from dragoman.core.errors import SettingsError
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.http import check_host_settings
from dragoman.surfaces.http.auth import PeerPolicy
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.limits import MAX_BUCKETS, RateLimiter
from tests.requirements import proves
from tests.surfaces.http.hub_server import DAY_MS, HubServer, serving

ALL_INTERFACES = "0.0.0.0"  # noqa: S104  nothing is bound to it
ROUTES = HubServer().app.endpoints
GUARDED = [endpoint for endpoint in ROUTES if not endpoint.is_open]


@pytest.fixture(scope="module")
def shared_server() -> Generator[HubServer]:
    """Give one server for all routes: no request changes it."""
    with serving(HubServer()) as server:
        server.add_agent("ada")
        yield server


def _path_of(endpoint: Endpoint) -> str:
    return re.sub(r"\{\w+\}", "TASK-2026-02-09-001", endpoint.path)


def _endpoint_id(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


@proves("HTTP-HOST")
@pytest.mark.parametrize("endpoint", ROUTES, ids=_endpoint_id)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", ""]
)
def test_request_for_unknown_host_is_refused(
    shared_server: HubServer, endpoint: Endpoint, host: str
) -> None:
    headers = {"Host": host.format(port=shared_server.port)}
    response = shared_server.request(endpoint.method, _path_of(endpoint), headers=headers)
    assert (response.status, response.code) == (421, "unknown_host")


@proves("HTTP-ORIGIN")
@pytest.mark.parametrize("endpoint", ROUTES, ids=_endpoint_id)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_page_of_foreign_origin_is_refused(
    shared_server: HubServer, endpoint: Endpoint, origin: str
) -> None:
    response = shared_server.request(
        endpoint.method, _path_of(endpoint), headers={"Origin": origin}
    )
    assert (response.status, response.code) == (403, "foreign_origin")


@proves("HTTP-IDENTITY")
@pytest.mark.parametrize("endpoint", GUARDED, ids=_endpoint_id)
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer nonsense", "Basic dTpw", "Bearer drg_ada_000000000001_" + "x" * 43],
)
def test_request_without_valid_token_is_unauthenticated(
    shared_server: HubServer, endpoint: Endpoint, authorization: str
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    response = shared_server.request(endpoint.method, _path_of(endpoint), by="", headers=headers)
    assert (response.status, response.code) == (401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


@proves("HTTP-METHODS")
@pytest.mark.parametrize("path", sorted({endpoint.path for endpoint in ROUTES}))
def test_wrong_method_gets_the_allowed_ones(shared_server: HubServer, path: str) -> None:
    allowed = {endpoint.method for endpoint in ROUTES if endpoint.path == path}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - allowed:
        response = shared_server.request(method, re.sub(r"\{\w+\}", "x", path))
        assert (response.status, response.code) == (405, "method_not_allowed")
        assert allowed <= set(response.headers["allow"].split(", "))


@proves("HTTP-METHODS")
def test_get_changes_nothing_on_any_route(shared_server: HubServer) -> None:
    before = shared_server.store.head()
    for endpoint in ROUTES:
        if endpoint.method == "GET" and endpoint.path != "/v1/stream":
            shared_server.request("GET", _path_of(endpoint))
            shared_server.request("GET", _path_of(endpoint), by="ada")
    assert shared_server.store.head() == before


@proves("HTTP-METHODS")
def test_unknown_path_gets_a_problem_document(shared_server: HubServer) -> None:
    for path in ("/v2/tasks", "/v1/tasks/", "/v1/aof/nothing", "/v1/nothing/at/all"):
        response = shared_server.request("GET", path)
        assert (response.status, response.code) == (404, "not_found")


@proves("HTTP-HOST")
def test_absolute_target_does_not_replace_the_host_header(shared_server: HubServer) -> None:
    with shared_server.connect() as sock:
        target = f"http://127.0.0.1:{shared_server.port}/"
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())
        assert sock.recv(65_536).startswith(b"HTTP/1.1 421")


@proves("HTTP-HOST", "HTTP-ORIGIN")
def test_own_hosts_and_origins_are_allowed(shared_server: HubServer) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{shared_server.port}"
        headers = {"Host": host, "Origin": f"http://{host.lower()}"}
        assert shared_server.request("GET", "/v1/tasks", headers=headers).status == 200


@proves("HTTP-HOST", "HTTP-ORIGIN")
def test_settings_allow_more_hosts_and_their_origins() -> None:
    http = HttpSettings(port=0, allowed_hosts=("Hub.example", "other.example:444"))
    with serving(HubServer(http=http)) as server:
        allowed = ("hub.example", f"hub.example:{server.port}", "other.example:444")
        for host in allowed:
            headers = {"Host": host, "Origin": f"http://{host}"}
            assert server.request("GET", "/v1/tasks", headers=headers).status == 200
        response = server.request("GET", "/v1/tasks", headers={"Host": "other.example"})
        assert response.code == "unknown_host"


@proves("HTTP-HOST", "HTTP-ORIGIN", "HTTP-IDENTITY")
@pytest.mark.parametrize(
    "extra_headers",
    [
        ("Host: evil.example",),
        ("Origin: http://evil.example", "Origin: http://127.0.0.1:{port}"),
        ("Authorization: Bearer drg_other",),
        ("Idempotency-Key: a", "Idempotency-Key: b"),
    ],
)
def test_repeated_header_is_refused(
    shared_server: HubServer, extra_headers: tuple[str, ...]
) -> None:
    with shared_server.connect() as sock:
        lines = [header.format(port=shared_server.port) for header in extra_headers]
        sock.sendall(shared_server.request_head("GET", "/v1/tasks", *lines))
        received = sock.recv(65_536)
    assert received.startswith(b"HTTP/1.1 400")
    assert b"is given twice" in received


@proves("HTTP-HOST", "HTTP-KEYS", "HTTP-STREAM")
def test_whitespace_around_header_value_is_ignored(server: HubServer) -> None:
    with server.connect() as sock:
        sock.sendall(server.request_head("GET", "/v1/stream", "Last-Event-ID:  0 \t"))
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200")
    created = [
        server.request("POST", "/v1/tasks", {"title": "One"}, headers={"Idempotency-Key": key}).json
        for key in ("k", "k ", "k\t")
    ]
    assert created[0] == created[1] == created[2]


@proves("HTTP-EXPOSURE", "HTTP-HOST")
def test_hub_on_all_interfaces_accepts_configured_hosts() -> None:
    http = HttpSettings(
        host=ALL_INTERFACES, port=0, proxy=("10.0.0.9",), allowed_hosts=("hub.example",)
    )
    with serving(HubServer(http=http)) as server:
        assert server.request("GET", "/v1/tasks").status == 200
        for origin in ("https://hub.example", "http://hub.example"):
            headers = {"Host": "hub.example", "Origin": origin}
            assert server.request("GET", "/v1/tasks", headers=headers).status == 200
        response = server.request("GET", "/v1/tasks", headers={"Host": "127.0.0.1"})
        assert response.code == "unknown_host"


@proves("HTTP-PROXY")
def test_peers_are_limited_to_proxy_and_this_machine() -> None:
    peers = PeerPolicy(HttpSettings(proxy=("10.0.0.9", "10.1.0.0/16", "fd00::1")))
    for peer in ("10.0.0.9", "10.1.2.3", "127.0.0.1", "::1", "::ffff:10.0.0.9", "fd00::1", "10.9"):
        assert peers.is_allowed(peer, "10.9"), peer
    for peer in ("10.0.0.8", "192.0.2.1", "::ffff:192.0.2.1", "", "fd00::2"):
        assert not peers.is_allowed(peer, "10.9"), peer
    for settings in (HttpSettings(), HttpSettings(proxy=("10.0.0.9",), tls_cert="c", tls_key="k")):
        assert PeerPolicy(settings).is_allowed("192.0.2.1", "10.9")


@proves("HTTP-PROXY")
def test_request_that_bypasses_the_proxy_is_refused_first(server: HubServer) -> None:
    class NoPeers(PeerPolicy):
        def is_allowed(self, peer: str, local_address: str) -> bool:
            return False

    proxied_server = HubServer()
    with serving(proxied_server, peers=NoPeers(HttpSettings())):
        response = proxied_server.request("GET", "/v1/tasks")
    assert (response.status, response.code) == (403, "not_by_proxy")
    assert "http.proxy" in response.json["detail"]
    assert server.request("GET", "/v1/tasks").status == 200


@proves("HTTP-IDENTITY")
def test_revoked_and_expired_tokens_have_different_codes(server: HubServer) -> None:
    assert server.request("GET", "/v1/tasks", by="ada").status == 200
    server.submit(RevokeToken("ada"))
    assert server.request("GET", "/v1/tasks", by="ada").code == "token_revoked"
    server.clock.advance(DAY_MS)
    assert server.request("GET", "/v1/tasks", by="bob").code == "token_expired"


@proves("HTTP-IDENTITY")
def test_attempt_token_is_limited_to_its_task(server: HubServer) -> None:
    own_task, other_task = (
        server.submit(CreateTask("Mine", ready=True)),
        server.submit(CreateTask("Other", ready=True)),
    )
    claim = server.post(f"/v1/tasks/{own_task}/claim", {}, by="ada")
    server.tokens["attempt"] = server.identity.issue_attempt_token(
        "ada", own_task, claim["fence"], DAY_MS
    )
    assert server.post(f"/v1/tasks/{own_task}/note", {"text": "Begun."}, by="attempt")["notes"] == 1
    for path, body in (("note", {"text": "Mine too."}), ("claim", {})):
        response = server.request("POST", f"/v1/tasks/{other_task}/{path}", body, by="attempt")
        assert response.status == 403


@proves("HTTP-IDENTITY")
def test_observer_can_read_but_not_write(server: HubServer) -> None:
    assert server.request("GET", "/v1/tasks", by="olga").status == 200
    response = server.request("POST", "/v1/tasks", {"title": "One"}, by="olga")
    assert (response.status, response.code) == (403, "not_authorized")


@proves("HTTP-RATE")
def test_rate_limited_caller_gets_retry_after() -> None:
    now = [0.0]
    http = HttpSettings(port=0, rate_per_second=2, burst=3)
    with serving(HubServer(http=http, monotonic=lambda: now[0])) as server:
        server.add_agent("ada")
        server.add_agent("bob")
        responses = [server.request("GET", "/v1/tasks", by="ada") for _ in range(4)]
        assert [response.status for response in responses] == [200, 200, 200, 429]
        assert responses[-1].code == "rate_limited"
        assert responses[-1].headers["retry-after"] == "1"
        # Other callers are not limited, nor is the owner.
        assert server.request("GET", "/v1/tasks", by="bob").status == 200
        assert {server.request("GET", "/v1/tasks").status for _ in range(5)} == {200}
        now[0] += 0.5
        assert server.request("GET", "/v1/tasks", by="ada").status == 200
        assert server.request("GET", "/v1/tasks", by="ada").status == 429


@proves("HTTP-RATE")
def test_guessing_tokens_is_rate_limited() -> None:
    http = HttpSettings(port=0, rate_per_second=1, burst=2)
    with serving(HubServer(http=http, monotonic=lambda: 0.0)) as server:
        statuses = [server.request("GET", "/v1/tasks", by="").status for _ in range(3)]
        assert statuses == [401, 401, 429]


@proves("HTTP-RATE")
def test_batch_costs_one_request_per_line() -> None:
    now = [0.0]
    http = HttpSettings(port=0, rate_per_second=10, burst=5)
    with serving(HubServer(http=http, monotonic=lambda: now[0])) as server:
        server.add_agent("ada")
        json_lines = {"Content-Type": "application/x-ndjson"}
        assert (
            server.request(
                "POST", "/v1/messages", b"{}\n" * 25, by="ada", headers=json_lines
            ).status
            == 200
        )
        now[0] += 1.5
        response = server.request("GET", "/v1/tasks", by="ada")
        assert (response.status, response.headers["retry-after"]) == (429, "1")
        now[0] += 1.0
        assert server.request("GET", "/v1/tasks", by="ada").status == 200


@proves("HTTP-RATE")
def test_number_of_rate_buckets_is_bounded() -> None:
    rates = RateLimiter(1.0, 2, lambda: 0.0)
    for number in range(3 * MAX_BUCKETS):
        assert rates.acquire(f"{number}") == 0
    assert len(rates) <= MAX_BUCKETS


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"host": ALL_INTERFACES}, "http.tls_cert"),
        ({"host": "10.0.0.7"}, "http.proxy"),
        ({"host": "hub.example"}, "127.0.0.1"),
        ({"host": "::"}, "http.tls_cert"),
        ({"host": ALL_INTERFACES, "proxy": ("10.0.0.1",)}, "http.allowed_hosts"),
        ({"proxy": ("my-proxy",)}, "no address"),
        ({"tls_cert": "cert.pem"}, "belong together"),
        ({"host": "10.0.0.7", "tls_key": "key.pem"}, "belong together"),
    ],
)
def test_reachable_bind_address_needs_tls_or_proxy(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_host_settings(HttpSettings(**settings))


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"allowed_hosts": (host,)}, f"http.allowed_hosts: {host!a} is no Host")
            for host in ("", "https://hub.example", "hub.example/x", '["hub.example"]', "::1", "*")
        ),
    ],
)
def test_impossible_host_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        check_host_settings(HttpSettings(**settings))


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    "settings",
    [
        HttpSettings(),
        HttpSettings(allowed_hosts=("hub.example", "Hub_1.example:8443", "[::1]", "[fe80::1]:1")),
        HttpSettings(host="::1"),
        HttpSettings(host="localhost"),
        HttpSettings(host="127.3.2.1"),
        HttpSettings(host="10.0.0.7", proxy=("10.0.0.1",)),
        HttpSettings(
            host=ALL_INTERFACES, tls_cert="c", tls_key="k", allowed_hosts=("hub.example",)
        ),
    ],
)
def test_valid_bind_addresses_are_accepted(settings: HttpSettings) -> None:
    check_host_settings(settings)


@proves("HTTP-EXPOSURE")
def test_port_in_use_is_reported(server: HubServer) -> None:
    second_server = HubServer(http=HttpSettings(port=server.port))
    with pytest.raises(SettingsError, match=r"another one running"), serving(second_server):
        pass
