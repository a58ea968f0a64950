"""Liveness, readiness, metrics, and the page of the API's description."""

import re
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import TypeVar

import pytest

from dragoman.config import HttpSettings
from dragoman.core.errors import StoreUnavailable
from dragoman.core.task_state import CreateTask
from dragoman.engine.ports import IntegrityReport, Transaction
from dragoman.engine.service_health import HEALTHY, HealthProblem
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http import Timeouts
from dragoman.surfaces.http.metrics import Metrics
from tests.requirements import proves
from tests.surfaces.http.aof_messages import report
from tests.surfaces.http.hub_server import HubServer, serving

T = TypeVar("T")


class FailingStore(MemoryStore):
    """Store that can be made to fail, or to return other bytes than were written."""

    def __init__(self) -> None:
        super().__init__("failing")
        self.accepts_writes = True
        self.accepts_reads = True
        self.is_intact = True
        self.damage: tuple[str, ...] = ()
        self.reads = 0

    def inspect(self, seconds: float | None = None) -> IntegrityReport:
        assert seconds is not None
        return IntegrityReport(self.damage)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        if not self.accepts_writes:
            raise StoreUnavailable("the disk is full")
        return super().transact(work)

    def head(self) -> int:
        self.reads += 1
        if not self.accepts_reads:
            raise StoreUnavailable("the disk has gone")
        return super().head()

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        page = super().entries(after, limit, until=until)
        if self.is_intact:
            return page
        return [
            Entry(e.position, e.stream, e.version, e.event, e.line + b" ", e.previous, e.hash)
            for e in page
        ]


@proves("HTTP-HEALTH")
def test_readiness_reports_store_and_ledger() -> None:
    store = FailingStore()
    with serving(HubServer(store, timeouts=Timeouts(readiness_cache=0))) as server:
        server.submit(CreateTask("One"))
        ready = server.request("GET", "/readyz", by="")
        assert ready.json == {"ready": True, "store": "ok", "ledger": "ok", "services": {}}

        store.accepts_writes = False
        failed = server.request("POST", "/v1/tasks", {"title": "Two"})
        assert (failed.status, failed.code) == (503, "store_unavailable")
        assert failed.headers["retry-after"] == "1"
        not_ready = server.request("GET", "/readyz", by="")
        assert (not_ready.status, not_ready.json["store"]) == (503, "store_unavailable")
        store.accepts_writes = True
        assert server.request("POST", "/v1/tasks", {"title": "Two"}).status == 201
        assert server.request("GET", "/readyz", by="").status == 200

        store.is_intact = False
        broken = server.request("GET", "/readyz", by="")
        assert (broken.status, broken.json["ledger"]) == (503, "ledger_broken")
        store.is_intact = True

        store.accepts_reads = False
        unavailable = server.request("GET", "/readyz", by="").json
        assert (unavailable["ready"], unavailable["store"]) == (False, "store_unavailable")
        assert server.request("GET", "/healthz", by="").json == {"ok": True}


@proves("HTTP-HEALTH", "STORE-INSPECT")
def test_readiness_inspects_store_for_damage_periodically() -> None:
    store, now = FailingStore(), [0.0]
    with serving(HubServer(store, monotonic=lambda: now[0])) as server:
        assert server.request("GET", "/readyz", by="").status == 200
        store.damage = ("row 11 missing from index streams_ready",)
        now[0] += 599.0
        assert server.request("GET", "/readyz", by="").status == 200
        now[0] += 1.0
        damaged = server.request("GET", "/readyz", by="")
        assert (damaged.status, damaged.json["store"]) == (503, "store_corrupt")
        assert damaged.json["ledger"] == "ok"
        store.damage = ()
        now[0] += 6_000.0
        assert server.request("GET", "/readyz", by="").status == 503


@proves("HTTP-HEALTH")
def test_readiness_probes_a_write() -> None:
    store, now = FailingStore(), [0.0]
    with serving(HubServer(store, monotonic=lambda: now[0])) as server:
        server.submit(CreateTask("One"))
        head = store.head()
        assert server.request("GET", "/readyz", by="").status == 200
        store.accepts_writes = False
        now[0] += 1.0
        failed = server.request("GET", "/readyz", by="")
        assert (failed.status, failed.json["store"]) == (503, "store_unavailable")
        store.accepts_writes = True
        now[0] += 1.0
        assert server.request("GET", "/readyz", by="").status == 200
        assert store.head() == head


@proves("HTTP-HEALTH")
def test_readiness_check_is_cached_and_rate_limited() -> None:
    store, now = FailingStore(), [0.0]
    http = HttpSettings(port=0, rate_per_second=1, burst=50)
    with serving(HubServer(store, http=http, monotonic=lambda: now[0])) as server:
        assert server.request("GET", "/readyz", by="").status == 200
        before = store.reads
        assert [server.request("GET", "/readyz", by="").status for _ in range(20)] == [200] * 20
        assert store.reads == before
        now[0] += 1.0
        assert server.request("GET", "/readyz", by="").status == 200
        assert store.reads > before
        # Requests without a token are rate-limited too.
        statuses = [server.request("GET", "/readyz", by="").status for _ in range(60)]
        assert statuses[-1] == 429
        assert server.request("GET", "/docs", by="").code == "rate_limited"
        assert server.request("GET", "/healthz", by="").status == 200


@proves("HTTP-HEALTH")
def test_readiness_and_metrics_name_failing_service() -> None:
    service_health = {"lease-expiry": HEALTHY, "projection": HealthProblem("OSError")}
    with serving(HubServer(service_health=lambda: service_health)) as server:
        response = server.request("GET", "/readyz")
        assert response.status == 503
        assert response.json["services"] == {"lease-expiry": "ok", "projection": "OSError"}
        metrics = server.request("GET", "/metrics").body.decode()
    assert 'dragoman_service_ok{service="lease-expiry"} 1' in metrics
    assert 'dragoman_service_ok{service="projection"} 0' in metrics


@proves("HUB-TROUBLE")
def test_partial_trouble_is_reported_but_hub_stays_ready() -> None:
    partial = HealthProblem("the files of a task (task:T-1)", is_partial=True)
    with serving(
        HubServer(service_health=lambda: {"lease-expiry": HEALTHY, "projection": partial})
    ) as server:
        response = server.request("GET", "/readyz")
        assert (response.status, response.json["ready"]) == (200, True)
        assert response.json["services"] == {"lease-expiry": "ok", "projection": partial.message}
        assert (
            'dragoman_service_ok{service="projection"} 0'
            in server.request("GET", "/metrics").body.decode()
        )


@proves("HTTP-HEALTH")
def test_metrics_have_prometheus_format(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {"session": "s-1"}, by="ada")
    server.post("/v1/messages", report(task), by="ada")
    server.post("/v1/messages", report(task), by="ada")
    server.request("POST", "/v1/messages", report(task, outcome="no"), by="ada")
    response = server.request("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = response.body.decode()
    for line in (
        'dragoman_http_requests_total{route="/v1/messages",method="POST",status="200"} 2',
        'dragoman_http_requests_total{route="/v1/tasks/{name}/claim",method="POST",status="200"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="accepted"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="repeated"} 1',
        'dragoman_http_messages_total{dialect="aof",outcome="invalid_envelope"} 1',
        f"dragoman_ledger_position {server.store.head()}",
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
def test_large_numbers_are_written_in_full() -> None:
    metrics = Metrics()
    metrics.record_request("/v1/tasks", "GET", 200, 1_234_567.875)
    head = 2**53 - 1
    lines = metrics.render(
        waiting=0, head=head, tasks={"ready": 1_234_567}, services={}
    ).splitlines()
    assert f"dragoman_ledger_position {head}" in lines
    assert 'dragoman_tasks{status="ready"} 1234567' in lines
    assert "dragoman_http_request_seconds_sum 1234567.875" in lines


@proves("HTTP-OPENAPI")
def test_docs_page_repeats_no_header(server: HubServer) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("GET", "/docs")
        names = [name.lower() for name, _ in connection.getresponse().getheaders()]
    assert "x-content-type-options" in names
    assert sorted(names) == sorted(set(names))


@proves("HTTP-OPENAPI")
def test_docs_page_is_self_contained(server: HubServer) -> None:
    response = server.request("GET", "/docs", by="")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = response.body.decode()
    assert not re.search(r"(?:https?:)?//(?!\s)[a-z]", page.replace("// Everything", ""))
    assert "innerHTML" not in page
    assert "it.security" in page, "where no token is needed is told as the description has it"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


@proves("HTTP-OPENAPI")
@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/healthz", "/readyz"])
def test_public_endpoints_need_no_token(server: HubServer, path: str) -> None:
    assert server.request("GET", path, by="").status == 200


@proves("HTTP-READY-PRIVATE")
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "x"}])
def test_reason_of_failing_service_needs_a_valid_token(headers: dict[str, str]) -> None:
    service_health = {
        "lease-expiry": HEALTHY,
        "projection": HealthProblem("PostgreSQL at /var/run:5432 is away"),
    }
    with serving(HubServer(service_health=lambda: service_health)) as server:
        response = server.request("GET", "/readyz", by="", headers=headers)
        assert response.status == 503
        assert response.json["services"] == {"lease-expiry": "ok", "projection": "degraded"}
