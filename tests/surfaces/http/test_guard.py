"""Every route: for which host, from which origin, by whom, with which method, how often."""

import re
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask, RevokeToken
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http import check_exposure
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.exposure import Peers
from dragoman.surfaces.http.limits import MOST_BUCKETS, Rates
from tests.requirements import proves
from tests.surfaces.http.house import A_DAY, House, serving
from tests.surfaces.http.reader import reading

ANYWHERE = "0.0.0.0"  # noqa: S104  nobody listens there: that is the point
ROUTES = House().app.endpoints
GUARDED = [endpoint for endpoint in ROUTES if not endpoint.is_open]


@pytest.fixture(scope="module")
def served() -> Generator[House]:
    """Give one house for all routes: nothing gets through to it."""
    with serving(House()) as house:
        house.welcome("ada")
        yield house


@pytest.fixture(scope="module")
def cross() -> Generator[House]:
    """Give a house that pages of another origin may call."""
    http = HttpSettings(port=0, rate_per_second=0, allowed_origins=("https://desk.example",))
    with serving(House(http=http)) as house:
        yield house


def _address(endpoint: Endpoint) -> str:
    return re.sub(r"\{\w+\}", "TASK-2026-02-09-001", endpoint.path)


def _named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


@proves("HTTP-HOST")
@pytest.mark.parametrize("endpoint", ROUTES, ids=_named)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", ""]
)
def test_a_request_for_another_host_is_turned_away(
    served: House, endpoint: Endpoint, host: str
) -> None:
    headers = {"Host": host.format(port=served.port)}
    answer = served.ask(endpoint.method, _address(endpoint), headers=headers)
    assert (answer.status, answer.code) == (421, "unknown_host")


@proves("HTTP-ORIGIN")
@pytest.mark.parametrize("endpoint", ROUTES, ids=_named)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_origin_is_turned_away(
    served: House, endpoint: Endpoint, origin: str
) -> None:
    answer = served.ask(endpoint.method, _address(endpoint), headers={"Origin": origin})
    assert (answer.status, answer.code) == (403, "foreign_origin")


@proves("HTTP-IDENTITY")
@pytest.mark.parametrize("endpoint", GUARDED, ids=_named)
@pytest.mark.parametrize(
    "said",
    ["", "Bearer", "Bearer nonsense", "Basic dTpw", "Bearer drg_ada_000000000001_" + "x" * 43],
)
def test_without_a_good_token_nothing_is_answered(
    served: House, endpoint: Endpoint, said: str
) -> None:
    headers = {"Authorization": said} if said else {}
    answer = served.ask(endpoint.method, _address(endpoint), by="", headers=headers)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


@proves("HTTP-METHODS")
@pytest.mark.parametrize("path", sorted({endpoint.path for endpoint in ROUTES}))
def test_another_method_is_told_which_are_taken(served: House, path: str) -> None:
    taken = {endpoint.method for endpoint in ROUTES if endpoint.path == path}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - taken:
        answer = served.ask(method, re.sub(r"\{\w+\}", "x", path))
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert taken <= set(answer.headers["allow"].split(", "))


@proves("HTTP-METHODS")
def test_get_changes_nothing_on_any_route(served: House) -> None:
    before = served.store.head()
    for endpoint in ROUTES:
        if endpoint.method == "GET" and endpoint.path != "/v1/stream":
            served.ask("GET", _address(endpoint))
            served.ask("GET", _address(endpoint), by="ada")
    assert served.store.head() == before


@proves("HTTP-METHODS")
def test_an_unknown_address_is_a_problem_too(served: House) -> None:
    for path in ("/v2/tasks", "/v1/tasks/", "/v1/aof/nothing", "/v1/nothing/at/all"):
        answer = served.ask("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")


@proves("HTTP-OPENAPI")
def test_whoever_comes_with_a_browser_is_led_to_the_page(served: House) -> None:
    answer = served.ask("GET", "/", by="")
    assert (answer.status, answer.headers["location"], answer.body) == (307, "/docs", b"")
    assert served.ask("GET", "/docs", by="").headers["content-type"].startswith("text/html")


@proves("HTTP-HOST")
def test_a_target_that_names_a_host_names_the_one_of_the_header(served: House) -> None:
    own, other = f"127.0.0.1:{served.port}", f"localhost:{served.port}"
    statuses = {own: 200, other: 400, "evil.example": 400, f"evil.example@{own}": 400, "": 400}
    for host, status in statuses.items():
        with served.dial() as line:
            line.sendall(served.head("GET", f"http://{host}/v1/tasks"))
            assert line.recv(65_536).startswith(b"HTTP/1.1 %d" % status)
    with served.dial() as line:
        line.sendall(b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert line.recv(65_536).startswith(b"HTTP/1.1 421")


@proves("HTTP-HOST", "HTTP-ORIGIN")
def test_its_own_names_and_origins_are_welcome(served: House) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{served.port}"
        headers = {"Host": host, "Origin": f"http://{host.lower()}"}
        assert served.ask("GET", "/v1/tasks", headers=headers).status == 200


@proves("HTTP-HOST", "HTTP-ORIGIN")
def test_the_settings_name_more_hosts_and_origins() -> None:
    http = HttpSettings(
        port=0,
        allowed_hosts=("Hub.example", "other.example:444"),
        allowed_origins=("https://desk.example/",),
    )
    with serving(House(http=http)) as house:
        allowed = ("hub.example", f"hub.example:{house.port}", "other.example:444")
        for host in allowed:
            headers = {"Host": host, "Origin": "https://desk.example"}
            assert house.ask("GET", "/v1/tasks", headers=headers).status == 200
        answer = house.ask("GET", "/v1/tasks", headers={"Host": "other.example"})
        assert answer.code == "unknown_host"


@proves("HTTP-HOST", "HTTP-ORIGIN", "HTTP-IDENTITY")
@pytest.mark.parametrize(
    "twice",
    [
        ("Host: evil.example",),
        ("Origin: http://evil.example", "Origin: http://127.0.0.1:{port}"),
        ("Authorization: Bearer drg_other",),
        ("Idempotency-Key: a", "Idempotency-Key: b"),
    ],
)
def test_of_two_headers_none_counts(served: House, twice: tuple[str, ...]) -> None:
    with served.dial() as line:
        lines = [one.format(port=served.port) for one in twice]
        line.sendall(served.head("GET", "/v1/tasks", *lines))
        said = line.recv(65_536)
    assert said.startswith(b"HTTP/1.1 400")
    assert b"is given twice" in said


@proves("HTTP-HOST", "HTTP-KEYS", "HTTP-STREAM")
def test_white_space_around_a_header_is_none_of_it(house: House) -> None:
    with house.dial() as line:
        line.sendall(house.head("GET", "/v1/stream", "Last-Event-ID:  0 \t"))
        assert line.recv(65_536).startswith(b"HTTP/1.1 200")
    made = [
        house.ask("POST", "/v1/tasks", {"title": "One"}, headers={"Idempotency-Key": key}).json
        for key in ("k", "k ", "k\t")
    ]
    assert made[0] == made[1] == made[2]


@proves("HTTP-CORS")
@pytest.mark.parametrize("endpoint", GUARDED, ids=_named)
def test_a_browser_may_call_every_address_for_an_allowed_page(
    cross: House, endpoint: Endpoint
) -> None:
    asks = {
        "Origin": "https://desk.example",
        "Access-Control-Request-Method": endpoint.method,
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
    }
    answer = cross.ask("OPTIONS", _address(endpoint), by="", headers=asks)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "https://desk.example"
    assert endpoint.method in answer.headers["access-control-allow-methods"].split(", ")
    sent = set(answer.headers["access-control-allow-headers"].split(", "))
    assert {"authorization", "content-type", "idempotency-key", "last-event-id"} <= sent
    assert answer.headers["vary"] == "origin"


@proves("HTTP-CORS")
def test_an_allowed_page_can_read_answers_and_problems(cross: House) -> None:
    page = {"Origin": "https://desk.example"}
    for by, status in (("owner", 200), ("", 401)):
        answer = cross.ask("GET", "/v1/tasks", by=by, headers=page)
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://desk.example"
        shown = set(answer.headers["access-control-expose-headers"].split(", "))
        assert {"retry-after", "location", "dragoman-warning", "etag"} <= shown
    with reading(cross, "", "Origin: https://desk.example") as reader:
        assert reader.headers["access-control-allow-origin"] == "https://desk.example"


@proves("HTTP-CORS")
def test_a_foreign_page_is_told_nothing_that_lets_it_in(cross: House) -> None:
    foreign = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    for method in ("OPTIONS", "GET"):
        answer = cross.ask(method, "/v1/tasks", headers=foreign)
        assert (answer.status, answer.code) == (403, "foreign_origin")
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "vary" not in cross.ask("GET", "/v1/tasks").headers


@proves("HTTP-EXPOSURE", "HTTP-HOST")
def test_a_hub_that_listens_anywhere_is_called_by_its_own_names() -> None:
    http = HttpSettings(host=ANYWHERE, port=0, proxy=("10.0.0.9",), allowed_hosts=("hub.example",))
    with serving(House(http=http)) as house:
        assert house.ask("GET", "/v1/tasks").status == 200
        for origin in ("https://hub.example", "http://hub.example"):
            headers = {"Host": "hub.example", "Origin": origin}
            assert house.ask("GET", "/v1/tasks", headers=headers).status == 200
        answer = house.ask("GET", "/v1/tasks", headers={"Host": "127.0.0.1"})
        assert answer.code == "unknown_host"


@proves("HTTP-PROXY")
def test_only_the_proxy_and_this_machine_come_past_the_door() -> None:
    peers = Peers(HttpSettings(proxy=("10.0.0.9", "10.1.0.0/16", "fd00::1")))
    for peer in ("10.0.0.9", "10.1.2.3", "127.0.0.1", "::1", "::ffff:10.0.0.9", "fd00::1", "10.9"):
        assert peers.welcome(peer, "10.9"), peer
    for peer in ("10.0.0.8", "192.0.2.1", "::ffff:192.0.2.1", "", "fd00::2"):
        assert not peers.welcome(peer, "10.9"), peer
    for settings in (HttpSettings(), HttpSettings(proxy=("10.0.0.9",), tls_cert="c", tls_key="k")):
        assert Peers(settings).welcome("192.0.2.1", "10.9")


@proves("HTTP-PROXY")
def test_a_request_past_the_proxy_is_refused_before_anything_is_looked_at(house: House) -> None:
    class Nobody(Peers):
        def welcome(self, peer: str, own: str) -> bool:
            return False

    other = House()
    with serving(other, peers=Nobody(HttpSettings())):
        answer = other.ask("GET", "/v1/tasks")
    assert (answer.status, answer.code) == (403, "not_by_proxy")
    assert "http.proxy" in answer.json["detail"]
    assert house.ask("GET", "/v1/tasks").status == 200


@proves("HTTP-IDENTITY")
def test_a_token_that_was_taken_back_or_has_ended_is_told_apart(house: House) -> None:
    assert house.ask("GET", "/v1/tasks", by="ada").status == 200
    house.do(RevokeToken("ada"))
    assert house.ask("GET", "/v1/tasks", by="ada").code == "token_revoked"
    house.clock.advance(A_DAY)
    assert house.ask("GET", "/v1/tasks", by="bob").code == "token_expired"


@proves("HTTP-IDENTITY")
def test_an_attempt_s_token_speaks_for_its_task_only(house: House) -> None:
    mine, other = (
        house.do(CreateTask("Mine", ready=True)),
        house.do(CreateTask("Other", ready=True)),
    )
    claim = house.post(f"/v1/tasks/{mine}/claim", {}, by="ada")
    house.tokens["attempt"] = house.identity.attempt_token("ada", mine, claim["fence"], A_DAY)
    assert house.post(f"/v1/tasks/{mine}/note", {"text": "Begun."}, by="attempt")["notes"] == 1
    for path, body in (("note", {"text": "Mine too."}), ("claim", {})):
        answer = house.ask("POST", f"/v1/tasks/{other}/{path}", body, by="attempt")
        assert answer.status == 403


@proves("HTTP-IDENTITY")
def test_an_observer_reads_and_does_not_write(house: House) -> None:
    assert house.ask("GET", "/v1/tasks", by="olga").status == 200
    answer = house.ask("POST", "/v1/tasks", {"title": "One"}, by="olga")
    assert (answer.status, answer.code) == (403, "not_authorized")


@proves("HTTP-RATE")
def test_whoever_asks_too_often_is_told_when_to_come_back() -> None:
    now = [0.0]
    http = HttpSettings(port=0, rate_per_second=2, burst=3)
    with serving(House(http=http, monotonic=lambda: now[0])) as house:
        house.welcome("ada")
        house.welcome("bob")
        asked = [house.ask("GET", "/v1/tasks", by="ada") for _ in range(4)]
        assert [answer.status for answer in asked] == [200, 200, 200, 429]
        assert asked[-1].code == "rate_limited"
        assert asked[-1].headers["retry-after"] == "1"
        # Others are not concerned, nor is the person whose machine it is.
        assert house.ask("GET", "/v1/tasks", by="bob").status == 200
        assert {house.ask("GET", "/v1/tasks").status for _ in range(5)} == {200}
        now[0] += 0.5
        assert house.ask("GET", "/v1/tasks", by="ada").status == 200
        assert house.ask("GET", "/v1/tasks", by="ada").status == 429


@proves("HTTP-RATE")
def test_whoever_guesses_tokens_is_slowed_down() -> None:
    http = HttpSettings(port=0, rate_per_second=1, burst=2)
    with serving(House(http=http, monotonic=lambda: 0.0)) as house:
        asked = [house.ask("GET", "/v1/tasks", by="").status for _ in range(3)]
        assert asked == [401, 401, 429]


@proves("HTTP-RATE")
def test_a_batch_counts_as_many_as_it_has_lines_and_leaves_a_debt() -> None:
    now = [0.0]
    http = HttpSettings(port=0, rate_per_second=10, burst=5)
    with serving(House(http=http, monotonic=lambda: now[0])) as house:
        house.welcome("ada")
        lines = {"Content-Type": "application/x-ndjson"}
        assert (
            house.ask("POST", "/v1/messages", b"{}\n" * 25, by="ada", headers=lines).status == 200
        )
        now[0] += 1.5
        answer = house.ask("GET", "/v1/tasks", by="ada")
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        now[0] += 1.0
        assert house.ask("GET", "/v1/tasks", by="ada").status == 200


@proves("HTTP-RATE")
def test_many_callers_do_not_fill_the_memory() -> None:
    rates = Rates(1.0, 2, lambda: 0.0)
    for number in range(3 * MOST_BUCKETS):
        assert rates.take(f"{number}") == 0
    assert len(rates) <= MOST_BUCKETS


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"host": ANYWHERE}, "http.tls_cert"),
        ({"host": "10.0.0.7"}, "http.proxy"),
        ({"host": "hub.example"}, "127.0.0.1"),
        ({"host": "::"}, "http.tls_cert"),
        ({"host": ANYWHERE, "proxy": ("10.0.0.1",)}, "http.allowed_hosts"),
        ({"proxy": ("my-proxy",)}, "no address"),
        ({"tls_cert": "cert.pem"}, "belong together"),
        ({"host": "10.0.0.7", "tls_key": "key.pem"}, "belong together"),
    ],
)
def test_an_address_that_others_reach_needs_tls_or_a_proxy(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        check_exposure(HttpSettings(**given))


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        *(
            ({"allowed_hosts": (host,)}, f"http.allowed_hosts: {host!a} is no Host")
            for host in ("", "https://hub.example", "hub.example/x", '["hub.example"]', "::1", "*")
        ),
        *(
            ({"allowed_origins": (origin,)}, f"http.allowed_origins: {origin!a} is no Origin")
            for origin in ("", "desk.example", "https://desk.example/x", "https://", "*")
        ),
    ],
)
def test_a_name_that_no_request_can_come_under_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        check_exposure(HttpSettings(**given))


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    "settings",
    [
        HttpSettings(),
        HttpSettings(allowed_hosts=("hub.example", "Hub_1.example:8443", "[::1]", "[fe80::1]:1")),
        HttpSettings(allowed_origins=("https://Desk.example:8443/", "moz-extension://a-b", "null")),
        HttpSettings(host="::1"),
        HttpSettings(host="localhost"),
        HttpSettings(host="127.3.2.1"),
        HttpSettings(host="10.0.0.7", proxy=("10.0.0.1",)),
        HttpSettings(host=ANYWHERE, tls_cert="c", tls_key="k", allowed_hosts=("hub.example",)),
    ],
)
def test_this_machine_s_own_addresses_need_nothing(settings: HttpSettings) -> None:
    check_exposure(settings)


@proves("HTTP-EXPOSURE")
def test_an_address_that_is_taken_is_told_in_words(house: House) -> None:
    other = House(http=HttpSettings(port=house.port))
    with pytest.raises(SettingsError, match=r"another one running"), serving(other):
        pass
