"""`dragoman otlp`: a task's trace as OpenTelemetry spans, printed or sent to a collector."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

import msgspec
import typer

import dragoman
from dragoman.config import environment
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import TaskArgument
from dragoman.surfaces.cli.tasks import look_at
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.engine.ports import Store

_SECONDS = 30.0
_PAGE = 500
_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


def otlp(
    call: Call,
    task: TaskArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            show_default=False,
            help="Send it to this collector, e.g. http://localhost:4318/v1/traces.",
        ),
    ] = "",
) -> Answer | None:
    """Give a task's turns and events to OpenTelemetry, as spans of its GenAI conventions.

    Without --to the spans are printed as OTLP/JSON, on one line. With it they are posted (OTLP over
    HTTP, JSON); OTEL_EXPORTER_OTLP_HEADERS holds headers as NAME=VALUE,NAME=VALUE.

    \b
    Examples:
      dragoman otlp TASK-2026-02-09-001 > spans.json
      dragoman otlp TASK-2026-02-09-001 --to http://localhost:4318/v1/traces
    """
    from dragoman.protocols.saop.otlp import Subject, document

    with call.reading() as place:
        seen, store = look_at(place, task).task, place.hub.store
        about = Subject(store.ledger_id(), seen.id, seen.title, dragoman.__version__)
        turns = _turns(store, seen.id, seen.attempts)
        spans = document(about, turns, list(_events(store, seen.id)))
    if not to:
        call.out.json(spans)
        return None
    count = len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"])
    _post(to, msgspec.json.encode(spans))
    return Answer(
        {"task": seen.id, "spans": count, "to": to},
        lambda screen: screen.line(f"{count} spans of {seen.id} were sent"),
    )


class NotDelivered(DragomanError):
    """What was to be sent was not taken; the detail says by whom and why."""

    code = "not_delivered"


def _turns(store: "Store", task: str, attempts: int) -> Iterator[dict[str, Any]]:
    from dragoman.engine.traces import turns_of

    for attempt in range(attempts + 1):
        after = -1
        while page := turns_of(store, task, attempt, after, _PAGE).turns:
            yield from ({**turn.envelope, "attempt": attempt} for turn in page)
            after = page[-1].turn_index


def _events(store: "Store", task: str) -> Iterator[dict[str, Any]]:
    from dragoman.engine.traces import events_of

    after = 0
    while page := (found := events_of(store, task=task, after=after, limit=_PAGE)).events:
        yield from (one.event for one in page)
        after = found.next


def _post(url: str, body: bytes) -> None:
    from dragoman.system.fetch import Endpoint

    # Whoever types an address means it, a local one too.
    host = urlsplit(url).hostname or ""
    endpoint = Endpoint(url, "--to", (host,), seconds=_SECONDS)
    try:
        status = endpoint.post({"Content-Type": "application/json", **_headers()}, body)
    except OSError as error:
        raise NotDelivered(f"the collector at {host} was not reached: {error}") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the collector at {host} answered {status}, and has kept nothing")


def _headers() -> dict[str, str]:
    """Those of the environment, as OpenTelemetry writes them."""
    pairs = (part.partition("=") for part in environment().get(_HEADERS, "").split(",") if part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


VERBS = (Verb("otlp", otlp, speaks=False),)
