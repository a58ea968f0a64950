"""Health over HTTP: liveness, readiness, metrics."""

from msgspec import Struct
from starlette.responses import Response

from dragoman.core.errors import StoreError
from dragoman.engine.auth import Principal
from dragoman.surfaces.http.auth import bearer_token
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, respond
from dragoman.surfaces.http.limits import VIA
from dragoman.surfaces.http.metrics import PROMETHEUS_MEDIA_TYPE
from dragoman.surfaces.http.readiness import OK

_DETAIL_WITHHELD = "degraded"


class Liveness(Struct, frozen=True):
    """The process answers."""

    ok: bool = True


class Readiness(Struct, frozen=True):
    """Readiness of the hub and of each of its parts: "ok", or in short what is wrong.

    The problem of a service is shown to callers with a valid token; to others, that it is
    "degraded".
    """

    ready: bool
    store: str
    ledger: str
    services: dict[str, str]


async def show_liveness(_: Call) -> Liveness:
    """Report that the process is alive."""
    return Liveness()


async def show_readiness(call: Call) -> Response:
    """Report whether the hub can read and write, its ledger is intact and its services work."""
    context = call.context
    found = await context.readiness.result()
    troubles = context.deps.service_health()
    # It may name files, servers and tasks, which callers without a token must not learn.
    may_see_details = any(
        trouble.message for trouble in troubles.values()
    ) and await _has_valid_token(call)
    services = {
        name: OK if not wrong.message else wrong.message if may_see_details else _DETAIL_WITHHELD
        for name, wrong in troubles.items()
    }
    # Trouble with one task or message is shown, but must not take a hub out of service.
    is_stopped = any(wrong.message and not wrong.is_partial for wrong in troubles.values())
    ready = found.store == found.ledger == OK and not is_stopped
    readiness = Readiness(ready, found.store, found.ledger, services)
    return respond(readiness, 200 if ready else 503)


async def _has_valid_token(call: Call) -> bool:
    """Return whether the caller shows a valid token; the route answers without one, too."""
    token = bearer_token(call.request.scope["by_name"])
    try:
        return bool(token) and isinstance(
            await call.context.deps.identity.authenticate_async(token, VIA), Principal
        )
    except StoreError:
        return False


async def show_metrics(call: Call) -> Response:
    """Report metrics for Prometheus."""
    context = call.context
    head, tasks = await context.read(lambda store: (store.head(), store.status_counts()))
    text = context.metrics.render(
        waiting=context.feed.waiter_count,
        head=head,
        tasks=tasks,
        services=context.deps.service_health(),
    )
    return Response(text, media_type=PROMETHEUS_MEDIA_TYPE)


ENDPOINTS = (
    Endpoint("GET", "/healthz", show_liveness, Liveness, is_open=True, is_unmetered=True),
    Endpoint(
        "GET",
        "/readyz",
        show_readiness,
        Readiness,
        other_statuses={503: "It is not ready; the response says what is wrong."},
        is_open=True,
    ),
    Endpoint("GET", "/metrics", show_metrics, media_type="text/plain"),
)
