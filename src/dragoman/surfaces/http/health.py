"""Whether the hub lives, whether it can do its work, and its figures."""

from msgspec import Struct
from starlette.responses import Response

from dragoman.surfaces.http.checkup import OK
from dragoman.surfaces.http.endpoint import Endpoint, respond
from dragoman.surfaces.http.metrics import MEDIA
from dragoman.surfaces.http.office import Call


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
    """The hub can read and write, its ledger holds, its duties are done."""
    office = call.office
    found = await office.checkup.result()
    troubles = office.door.duties()
    duties = {name: wrong.words or OK for name, wrong in troubles.items()}
    # What holds up one task or message is told, but must not take a hub out of everybody's service.
    is_stopped = any(wrong.words and not wrong.is_partial for wrong in troubles.values())
    ready = found.store == found.ledger == OK and not is_stopped
    answer = Readiness(ready, found.store, found.ledger, duties)
    return respond(call.request.scope, answer, 200 if ready else 503)


async def metrics(call: Call) -> Response:
    """Figures for Prometheus."""
    office = call.office
    head, tasks = await office.read(lambda store: (store.head(), store.counts()))
    text = office.metrics.text(
        waiting=office.feed.seats, head=head, tasks=tasks, duties=office.door.duties()
    )
    return Response(text, media_type=MEDIA)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/healthz",
        "Whether the process lives",
        healthz,
        Alive,
        is_open=True,
        is_free=True,
    ),
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
