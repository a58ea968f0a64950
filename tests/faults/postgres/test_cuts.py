"""Connections to PostgreSQL cut at any byte: nothing acknowledged is lost, nothing is doubled."""

import os
import random

import pytest
from msgspec.structs import replace

from dragoman.core.commands import CreateTask
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.conftest import LONG_RUN
from tests.faults.postgres.proxy import cuts, proxy_before, url_through
from tests.faults.postgres.storm import BOARD, Storm, faults
from tests.requirements import proves

CUTS = 100
CALLERS = 6
STALLS = 2
IMPATIENT_MS = 200
"""A fifth of a second without a word, and the server or the store takes the other for gone."""

SEEDS = [random.randrange(1 << 32) for _ in range(100)] if os.environ.get(LONG_RUN) else [716]


@proves("PG-CUTS", "IDEM-REPEAT", "STORE-ATOMIC")
@pytest.mark.parametrize("seed", SEEDS)
def test_cut_at_random_bytes_nothing_is_lost_and_nothing_doubled(
    postgres_server: str, postgres_url: str, seed: int
) -> None:
    direct = PostgresStore.open(postgres_url, new_id)
    Hub(direct, HandClock(NOW)).do(ANN, CreateTask("for everyone", BOARD))
    schema = postgres_url.partition("&schema=")[2]
    with proxy_before(postgres_server, cuts(seed, stalls=STALLS)) as proxy:
        address = replace(parse_url(url_through(proxy, schema)), idle_timeout_ms=IMPATIENT_MS)
        cut_off = PostgresStore(address)
        storm = Storm(cut_off)
        storm.rage(CALLERS, lambda: len(proxy.made) >= CUTS)
        cut_off.close()

    assert faults(direct, storm) == []
    direct.close()
