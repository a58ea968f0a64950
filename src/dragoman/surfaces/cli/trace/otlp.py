"""`dragoman otlp`: a task's trace as OpenTelemetry spans, printed or sent to a collector."""

import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import msgspec
import typer
from msgspec import Struct

import dragoman
from dragoman.config import environment
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.options import TaskArgument
from dragoman.surfaces.cli.reading import endpoint_at
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.system.fetch import Endpoint

_SECONDS = 30.0
_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): [\x20-\x7e]*")
"""An HTTP header: a token as its name, printable ASCII as its value."""
_MOST_SAID = 16_384
_MOST_WHY = 200


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
    """Export a task's turns and events to OpenTelemetry.

    They become spans of its GenAI conventions.

    Without --to the spans are printed as OTLP/JSON, on one line. With it they are posted (OTLP over
    HTTP, JSON); OTEL_EXPORTER_OTLP_HEADERS holds headers as NAME=VALUE,NAME=VALUE.

    \b
    Examples:
      dragoman otlp TASK-2026-02-09-001 > spans.json
      dragoman otlp TASK-2026-02-09-001 --to http://localhost:4318/v1/traces
    """
    from dragoman.engine.reads.turns import attempts_of
    from dragoman.protocols.saop.otlp import Subject, document
    from dragoman.surfaces.cli.trace.reading import each_event, each_turn

    # A typed URL is meant, also a local one.
    collector = endpoint_at(to, "--to", (_host_of(to),), _SECONDS) if to else None
    headers = _headers() if to else {}
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
    kept = _post(collector, _host_of(to), headers, msgspec.json.encode(spans))
    if kept.rejected:
        raise NotDelivered(
            f"the collector at {_host_of(to)} turned down {kept.rejected} of {count} spans: "
            f"{kept.why[:_MOST_WHY] or 'it does not say why'}"
        )
    return Answer(
        {"task": seen.id, "spans": count, "to": to},
        lambda screen: screen.line(f"{count} spans of {seen.id} were sent"),
    )


class NotDelivered(DragomanError):
    """The collector did not take the spans; the detail says why."""

    code = "not_delivered"


class _Kept(Struct, frozen=True, rename={"rejected": "rejectedSpans", "why": "errorMessage"}):
    """Partial success of an OTLP response: spans that the collector rejected, and why."""

    rejected: int = 0
    why: str = ""


class _Said(Struct, frozen=True, rename="camel"):
    """Body of an OTLP response."""

    partial_success: _Kept = _Kept()


def _post(endpoint: "Endpoint", host: str, headers: dict[str, str], body: bytes) -> _Kept:
    about = {"Content-Type": "application/json", **headers}
    try:
        status, said = endpoint.exchange(about, body, _MOST_SAID)
    except OSError as error:
        raise NotDelivered(f"the collector at {host} was not reached: {error}") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the collector at {host} answered {status}, and has kept nothing")
    try:
        # Integers are strings in OTLP/JSON.
        return msgspec.json.decode(said, type=_Said, strict=False).partial_success
    except msgspec.DecodeError:
        return _Kept()


def _host_of(url: str) -> str:
    """Host of a URL; empty: none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _headers() -> dict[str, str]:
    """Headers from OTEL_EXPORTER_OTLP_HEADERS; a value may be a secret."""
    headers = dict[str, str]()
    parts = (part for part in environment().get(_HEADERS, "").split(",") if part)
    for number, part in enumerate(parts, 1):
        name, equals, value = part.partition("=")
        headers[name.strip()] = said = unquote(value.strip())
        if not equals or not _HEADER.fullmatch(f"{name.strip()}: {said}"):
            wrong_usage(f"{_HEADERS}: part {number} is no header: write NAME=VALUE in ASCII")
    return headers


VERBS = (Verb("otlp", otlp, speaks=False),)
