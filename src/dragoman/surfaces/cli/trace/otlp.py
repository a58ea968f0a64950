"""`dragoman otlp`: a task's trace as OpenTelemetry spans, printed or sent to a collector."""

from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import msgspec
import typer

import dragoman
from dragoman.config import environment
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import TaskArgument
from dragoman.surfaces.cli.reading import endpoint_at
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.system.fetch import Endpoint

_SECONDS = 30.0
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
    """Give a task's turns and events to OpenTelemetry.

    They become spans of its GenAI conventions.

    Without --to the spans are printed as OTLP/JSON, on one line. With it they are posted (OTLP over
    HTTP, JSON); OTEL_EXPORTER_OTLP_HEADERS holds headers as NAME=VALUE,NAME=VALUE.

    \b
    Examples:
      dragoman otlp TASK-2026-02-09-001 > spans.json
      dragoman otlp TASK-2026-02-09-001 --to http://localhost:4318/v1/traces
    """
    from dragoman.engine.reads.traces import attempts_of
    from dragoman.protocols.saop.otlp import Subject, document
    from dragoman.surfaces.cli.trace.reading import each_event, each_turn

    # Whoever types an address means it, a local one too.
    collector = endpoint_at(to, "--to", (_host_of(to),), _SECONDS) if to else None
    with call.looking() as look:
        seen, store = look_at(look, task).task, look.store
        about = Subject(store.ledger_id(), seen.id, seen.title, dragoman.__version__)
        turns = (
            {**turn.envelope, **turn.place}
            for attempt in attempts_of(store, seen.id)
            for turn in each_turn(store, seen.id, attempt)
        )
        spans = document(about, turns, list(each_event(store, seen.id)))
    if collector is None:
        call.out.json(spans)
        return None
    count = len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"])
    _post(collector, _host_of(to), msgspec.json.encode(spans))
    return Answer(
        {"task": seen.id, "spans": count, "to": to},
        lambda screen: screen.line(f"{count} spans of {seen.id} were sent"),
    )


class NotDelivered(DragomanError):
    """What was to be sent was not taken; the detail says by whom and why."""

    code = "not_delivered"


def _post(endpoint: "Endpoint", host: str, body: bytes) -> None:
    try:
        status = endpoint.post({"Content-Type": "application/json", **_headers()}, body)
    except OSError as error:
        raise NotDelivered(f"the collector at {host} was not reached: {error}") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the collector at {host} answered {status}, and has kept nothing")


def _host_of(url: str) -> str:
    """The host in an address; empty: there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _headers() -> dict[str, str]:
    """Those of the environment, as OpenTelemetry writes them."""
    pairs = (part.partition("=") for part in environment().get(_HEADERS, "").split(",") if part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


VERBS = (Verb("otlp", otlp, speaks=False),)
