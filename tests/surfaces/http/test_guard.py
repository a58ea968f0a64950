"""Every route: for which host, from which origin, by whom, with which method, how often."""

import re
from collections.abc import Generator

import pytest

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask, RevokeToken
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http import check_exposure
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.limits import MOST_BUCKETS, Rates
from tests.requirements import proves
from tests.surfaces.http.house import A_DAY, House, serving

ANYWHERE = "0.0.0.0"  # noqa: S104  nobody listens there: that is the point
ROUTES = House().app.endpoints
GUARDED = [endpoint for endpoint in ROUTES if not endpoint.is_open]


@pytest.fixture(scope="module")
def served() -> Generator[House]:
    """Give one house for all routes: nothing gets through to it."""
    with serving(House()) as house:
        house.welcome("ada")
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
    for path in ("/", "/v2/tasks", "/v1/tasks/", "/v1/aof/nothing", "/v1/nothing/at/all"):
        answer = served.ask("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")


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
        ({"tls_cert": "cert.pem"}, "belong together"),
        ({"host": "10.0.0.7", "tls_key": "key.pem"}, "belong together"),
    ],
)
def test_an_address_that_others_reach_needs_tls_or_a_proxy(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        check_exposure(HttpSettings(**given))  # type: ignore[arg-type]


@proves("HTTP-EXPOSURE")
@pytest.mark.parametrize(
    "settings",
    [
        HttpSettings(),
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
