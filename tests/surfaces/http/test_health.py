"""Whether the hub lives and can work, its figures, its description, and the page that shows it."""

import re
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import TypeVar

import pytest

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Inspection, Session
from dragoman.engine.trouble import NONE, Trouble
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http import Patience
from dragoman.surfaces.http.metrics import Metrics
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.letters import report

T = TypeVar("T")


class FailingStore(MemoryStore):
    """A store that can be told to fail, or to hold other bytes than were written."""

    def __init__(self) -> None:
        super().__init__("failing")
        self.takes_writes = True
        self.takes_reads = True
        self.is_whole = True
        self.damage: tuple[str, ...] = ()
        self.asked = 0

    def inspect(self, seconds: float | None = None) -> Inspection:
        assert seconds is not None
        return Inspection(self.damage)

    def transact(self, work: Callable[[Session], T]) -> T:
        if not self.takes_writes:
            raise StoreUnavailable("the disk is full")
        return super().transact(work)

    def head(self) -> int:
        self.asked += 1
        if not self.takes_reads:
            raise StoreUnavailable("the disk has gone")
        return super().head()

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        found = super().entries(after, limit, until=until)
        if self.is_whole:
            return found
        return [
            Entry(e.position, e.stream, e.version, e.event, e.line + b" ", e.previous, e.hash)
            for e in found
        ]


@proves("HTTP-HEALTH")
def test_readiness_tells_the_truth_about_store_and_ledger() -> None:
    store = FailingStore()
    with serving(House(store, patience=Patience(checkup=0))) as house:
        house.do(CreateTask("One"))
        ready = house.ask("GET", "/readyz", by="")
        assert ready.json == {"ready": True, "store": "ok", "ledger": "ok", "duties": {}}

        store.takes_writes = False
        failed = house.ask("POST", "/v1/tasks", {"title": "Two"})
        assert (failed.status, failed.code) == (503, "store_unavailable")
        assert failed.headers["retry-after"] == "1"
        not_ready = house.ask("GET", "/readyz", by="")
        assert (not_ready.status, not_ready.json["store"]) == (503, "store_unavailable")
        store.takes_writes = True
        assert house.ask("POST", "/v1/tasks", {"title": "Two"}).status == 201
        assert house.ask("GET", "/readyz", by="").status == 200

        store.is_whole = False
        broken = house.ask("GET", "/readyz", by="")
        assert (broken.status, broken.json["ledger"]) == (503, "ledger_broken")
        store.is_whole = True

        store.takes_reads = False
        gone = house.ask("GET", "/readyz", by="").json
        assert (gone["ready"], gone["store"]) == (False, "store_unavailable")
        assert house.ask("GET", "/healthz", by="").json == {"ok": True}


@proves("HTTP-HEALTH", "STORE-INSPECT")
def test_readiness_asks_the_database_for_damage_now_and_then() -> None:
    store, now = FailingStore(), [0.0]
    with serving(House(store, monotonic=lambda: now[0])) as house:
        assert house.ask("GET", "/readyz", by="").status == 200
        store.damage = ("row 11 missing from index streams_ready",)
        now[0] += 599.0
        assert house.ask("GET", "/readyz", by="").status == 200
        now[0] += 1.0
        damaged = house.ask("GET", "/readyz", by="")
        assert (damaged.status, damaged.json["store"]) == (503, "store_corrupt")
        assert damaged.json["ledger"] == "ok"
        store.damage = ()
        now[0] += 6_000.0
        assert house.ask("GET", "/readyz", by="").status == 503


@proves("HTTP-HEALTH")
def test_readiness_tries_a_write_when_there_was_none_for_a_while() -> None:
    store, now = FailingStore(), [0.0]
    with serving(House(store, monotonic=lambda: now[0])) as house:
        house.do(CreateTask("One"))
        head = store.head()
        assert house.ask("GET", "/readyz", by="").status == 200
        store.takes_writes = False
        now[0] += 4.0
        assert house.ask("GET", "/readyz", by="").status == 200
        now[0] += 1.0
        failed = house.ask("GET", "/readyz", by="")
        assert (failed.status, failed.json["store"]) == (503, "store_unavailable")
        store.takes_writes = True
        now[0] += 1.0
        assert house.ask("GET", "/readyz", by="").status == 200
        assert store.head() == head


@proves("HTTP-HEALTH")
def test_readiness_is_looked_at_once_however_often_it_is_asked_for() -> None:
    store, now = FailingStore(), [0.0]
    http = HttpSettings(port=0, rate_per_second=1, burst=50)
    with serving(House(store, http=http, monotonic=lambda: now[0])) as house:
        assert house.ask("GET", "/readyz", by="").status == 200
        before = store.asked
        assert [house.ask("GET", "/readyz", by="").status for _ in range(20)] == [200] * 20
        assert store.asked == before
        now[0] += 1.0
        assert house.ask("GET", "/readyz", by="").status == 200
        assert store.asked > before
        # Whoever asks without a token is slowed down like every caller.
        asked = [house.ask("GET", "/readyz", by="").status for _ in range(60)]
        assert asked[-1] == 429
        assert house.ask("GET", "/docs", by="").code == "rate_limited"
        assert house.ask("GET", "/healthz", by="").status == 200


@proves("HTTP-HEALTH")
def test_readiness_and_figures_tell_which_duty_is_not_done() -> None:
    duties = {"recovery": NONE, "projection": Trouble("OSError")}
    with serving(House(duties=lambda: duties)) as house:
        answer = house.ask("GET", "/readyz")
        assert answer.status == 503
        assert answer.json["duties"] == {"recovery": "ok", "projection": "OSError"}
        figures = house.ask("GET", "/metrics").body.decode()
    assert 'dragoman_duty_ok{duty="recovery"} 1' in figures
    assert 'dragoman_duty_ok{duty="projection"} 0' in figures


@proves("HUB-TROUBLE")
def test_what_one_task_holds_up_is_told_and_leaves_the_hub_in_service() -> None:
    of_one = Trouble("the files of a task (task:T-1)", is_partial=True)
    with serving(House(duties=lambda: {"recovery": NONE, "projection": of_one})) as house:
        answer = house.ask("GET", "/readyz")
        assert (answer.status, answer.json["ready"]) == (200, True)
        assert answer.json["duties"] == {"recovery": "ok", "projection": of_one.words}
        assert 'dragoman_duty_ok{duty="projection"} 0' in house.ask("GET", "/metrics").body.decode()


@proves("HTTP-HEALTH")
def test_figures_are_counted_in_the_format_of_prometheus(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {"session": "s-1"}, by="ada")
    house.post("/v1/messages", report(task), by="ada")
    house.post("/v1/messages", report(task), by="ada")
    house.ask("POST", "/v1/messages", report(task, outcome="no"), by="ada")
    answer = house.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.body.decode()
    for line in (
        'dragoman_http_requests_total{route="/v1/messages",method="POST",status="200"} 2',
        'dragoman_http_requests_total{route="/v1/tasks/{name}/claim",method="POST",status="200"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="taken"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="repeated"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="invalid_envelope"} 1',
        f"dragoman_ledger_position {house.store.head()}",
        'dragoman_tasks{status="in-progress"} 1',
        'dragoman_tasks{status="ready"} 0',
    ):
        assert f"{line}\n" in text
    sample = re.compile(r"[a-z_]+(\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\})? [0-9.e+-]+")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line
    types = re.findall(r"# TYPE (\S+)", text)
    assert len(types) == len(set(types)), "each family stands in one place"


@proves("HTTP-HEALTH")
def test_a_large_figure_has_all_its_digits() -> None:
    figures = Metrics()
    figures.request("/v1/tasks", "GET", 200, 1_234_567.875)
    head = 2**53 - 1
    lines = figures.text(waiting=0, head=head, tasks={"ready": 1_234_567}, duties={}).splitlines()
    assert f"dragoman_ledger_position {head}" in lines
    assert 'dragoman_tasks{status="ready"} 1234567' in lines
    assert "dragoman_http_request_seconds_sum 1234567.875" in lines


@proves("HTTP-OPENAPI")
def test_no_header_of_the_page_comes_twice(house: House) -> None:
    with closing(HTTPConnection("127.0.0.1", house.port, timeout=30)) as connection:
        connection.request("GET", "/docs")
        names = [name.lower() for name, _ in connection.getresponse().getheaders()]
    assert "x-content-type-options" in names
    assert sorted(names) == sorted(set(names))


@proves("HTTP-OPENAPI")
def test_the_page_needs_nothing_from_elsewhere(house: House) -> None:
    answer = house.ask("GET", "/docs", by="")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.body.decode()
    assert not re.search(r"(?:https?:)?//(?!\s)[a-z]", page.replace("// Everything", ""))
    assert "innerHTML" not in page
    assert "it.security" in page, "where no token is needed is told as the description has it"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


@proves("HTTP-OPENAPI")
@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/healthz", "/readyz"])
def test_what_says_nothing_about_anybody_needs_no_token(house: House, path: str) -> None:
    assert house.ask("GET", path, by="").status == 200


@proves("HTTP-READY-PRIVATE")
@pytest.mark.parametrize("shown", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "x"}])
def test_why_a_duty_is_not_done_is_not_told_to_anybody(shown: dict[str, str]) -> None:
    duties = {"recovery": NONE, "projection": Trouble("PostgreSQL at /var/run:5432 is away")}
    with serving(House(duties=lambda: duties)) as house:
        answer = house.ask("GET", "/readyz", by="", headers=shown)
        assert answer.status == 503
        assert answer.json["duties"] == {"recovery": "ok", "projection": "in trouble"}
