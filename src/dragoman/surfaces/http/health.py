"""Whether the hub lives, whether it can do its work, and its figures."""

from msgspec import Struct
from starlette.responses import Response

from dragoman.core.errors import StoreError
from dragoman.engine.identity import Principal
from dragoman.surfaces.http.checkup import OK
from dragoman.surfaces.http.endpoint import Endpoint, respond
from dragoman.surfaces.http.guard import shown_token
from dragoman.surfaces.http.metrics import MEDIA
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.stays import VIA

_IN_TROUBLE = "in trouble"


class Alive(Struct, frozen=True):
    """The process answers."""

    ok: bool = True


class Readiness(Struct, frozen=True):
    """Readiness of the hub and of each of its parts: "ok", or in short what is wrong.

    The trouble of a duty is shown to callers with a valid token; to others, that it is "in
    trouble".
    """

    ready: bool
    store: str
    ledger: str
    duties: dict[str, str]


async def healthz(_: Call) -> Alive:
    """Report that the process is alive."""
    return Alive()


async def readyz(call: Call) -> Response:
    """Report whether the hub can read and write, its ledger is intact and its services work."""
    office = call.office
    found = await office.checkup.result()
    troubles = office.door.duties()
    # It may name files, servers and tasks, which callers without a token must not learn.
    knows = any(wrong.words for wrong in troubles.values()) and await _is_let_in(call)
    duties = {
        name: OK if not wrong.words else wrong.words if knows else _IN_TROUBLE
        for name, wrong in troubles.items()
    }
    # Trouble with one task or message is shown, but must not take a hub out of service.
    is_stopped = any(wrong.words and not wrong.is_partial for wrong in troubles.values())
    ready = found.store == found.ledger == OK and not is_stopped
    answer = Readiness(ready, found.store, found.ledger, duties)
    return respond(call.request.scope, answer, 200 if ready else 503)


async def _is_let_in(call: Call) -> bool:
    """Return whether the caller shows a valid token; the route answers without one, too."""
    token = shown_token(call.request.scope["by_name"])
    try:
        return bool(token) and isinstance(
            await call.office.door.identity.who_soon(token, VIA), Principal
        )
    except StoreError:
        return False


async def metrics(call: Call) -> Response:
    """Report metrics for Prometheus."""
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
        "Report liveness",
        healthz,
        Alive,
        is_open=True,
        is_free=True,
    ),
    Endpoint(
        "GET",
        "/readyz",
        "Report readiness",
        readyz,
        Readiness,
        others={503: "It is not ready; the response says what is wrong."},
        is_open=True,
    ),
    Endpoint("GET", "/metrics", "Metrics for Prometheus", metrics, media="text/plain"),
)
