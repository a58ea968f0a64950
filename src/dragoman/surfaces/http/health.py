"""Whether the hub lives, whether it can do its work, and its figures."""

import asyncio

from msgspec import Struct
from starlette.responses import Response

from dragoman.core.errors import DragomanError
from dragoman.engine.ports import Store
from dragoman.ledger.chain import link_hash
from dragoman.surfaces.http.endpoint import Endpoint, respond
from dragoman.surfaces.http.metrics import MEDIA
from dragoman.surfaces.http.office import Call

OK = "ok"
_PATIENCE = 2.0
"""A store that does not answer a read within so many seconds is not ready."""


class Alive(Struct, frozen=True):
    """The process answers."""

    ok: bool = True


class Readiness(Struct, frozen=True):
    """Whether the hub can do its work, and each part of it: "ok", or in short what is wrong."""

    ready: bool
    store: str
    ledger: str
    duties: dict[str, str]


async def healthz(_: Call) -> Alive:
    """The process lives."""
    return Alive()


async def readyz(call: Call) -> Response:
    """The hub can read, its last write was taken, its ledger holds, its duties are done."""
    office = call.office
    store, ledger = await _looked(call)
    duties = {name: wrong or OK for name, wrong in office.door.duties().items()}
    ready = all(state == OK for state in (store, ledger, *duties.values()))
    answer = Readiness(ready, store, ledger, duties)
    return respond(call.request.scope, answer, 200 if ready else 503)


async def _looked(call: Call) -> tuple[str, str]:
    """What is true of the store and of the ledger's end."""
    office = call.office
    try:
        async with asyncio.timeout(_PATIENCE):
            holds = await office.read(_end_holds)
    except TimeoutError:
        return "no answer", "unknown"
    except DragomanError as error:
        return error.code, "unknown"
    return office.store_fault or OK, OK if holds else "ledger_broken"


def _end_holds(store: Store) -> bool:
    """Whether the last entry is there and is what was written."""
    head = store.head()
    last = store.entries(head - 1, 1) if head else []
    return not head or any(link_hash(one.previous, one.line) == one.hash for one in last)


async def metrics(call: Call) -> Response:
    """Figures for Prometheus."""
    office = call.office
    head, tasks = await office.read(lambda store: (store.head(), store.counts()))
    text = office.metrics.text(
        waiting=office.feed.seats, head=head, tasks=tasks, duties=office.door.duties()
    )
    return Response(text, media_type=MEDIA)


ENDPOINTS = (
    Endpoint("GET", "/healthz", "Whether the process lives", healthz, Alive, is_open=True),
    Endpoint(
        "GET",
        "/readyz",
        "Whether the hub can do its work",
        readyz,
        Readiness,
        others={503: "It cannot; the answer says what is wrong."},
        is_open=True,
    ),
    Endpoint("GET", "/metrics", "Figures for Prometheus", metrics, media="text/plain"),
)
