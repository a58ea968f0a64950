"""Connections to PostgreSQL cut at any byte: nothing acknowledged is lost, nothing is doubled."""

import os
import random

import pytest
from msgspec.structs import replace

from dragoman.core.task_state import CreateTask
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.system.clock import ManualClock, new_id
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.conftest import LONG_RUN
from tests.faults.postgres.proxy import plan_cuts, proxy_url, run_proxy
from tests.faults.postgres.workload import BOARD, Workload, find_violations
from tests.requirements import proves

CUTS = 100
CALLERS = 6
STALLS = 2
IDLE_TIMEOUT_MS = 200
"""Silence after which the server and the store give up a connection."""

SEEDS = [random.randrange(1 << 32) for _ in range(100)] if os.environ.get(LONG_RUN) else [716]


@proves("PG-CUTS", "IDEM-REPEAT", "STORE-ATOMIC")
@pytest.mark.parametrize("seed", SEEDS)
def test_connections_cut_at_random_bytes_lose_and_double_nothing(
    postgres_server: str, postgres_url: str, seed: int
) -> None:
    direct = PostgresStore.open(postgres_url, new_id)
    Hub(direct, ManualClock(NOW)).do(ANN, CreateTask("for everyone", BOARD))
    schema = postgres_url.partition("&schema=")[2]
    with run_proxy(postgres_server, plan_cuts(seed, stalls=STALLS)) as proxy:
        address = replace(parse_url(proxy_url(proxy, schema)), idle_timeout_ms=IDLE_TIMEOUT_MS)
        cut_off = PostgresStore(address)
        workload = Workload(cut_off)
        workload.run(CALLERS, lambda: len(proxy.made) >= CUTS)
        cut_off.close()

    assert find_violations(direct, workload) == []
    direct.close()
