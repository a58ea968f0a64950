"""`dragoman otlp`: a task's trace as OpenTelemetry spans, printed or sent to a collector."""

import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

import dragoman
from dragoman.config import environment
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.commands.task import load_task
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    make_endpoint,
    raise_usage_error,
)

if TYPE_CHECKING:
    from dragoman.system.http_client import SafeHttpClient

_TIMEOUT_SECONDS = 30.0
_HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
_HEADER_PATTERN = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): [\x20-\x7e]*")
"""An HTTP header: a token as its name, printable ASCII as its value."""
_MAX_REPLY_BYTES = 16_384
_MAX_REASON = 200


def otlp(
    context: CommandContext,
    task: TaskArgument,
    to: Annotated[
        str,
        option("--to", "URL", "Send it to this collector, e.g. http://localhost:4318/v1/traces."),
    ] = "",
) -> CommandResult | None:
    """Export a task's turns and events to OpenTelemetry.

    They become spans of its GenAI conventions.

    Without --to the spans are printed as OTLP/JSON, on one line. With it they are posted (OTLP over
    HTTP, JSON); OTEL_EXPORTER_OTLP_HEADERS holds headers as NAME=VALUE,NAME=VALUE.

    \b
    Examples:
      dragoman otlp TASK-2026-02-09-001 > spans.json
      dragoman otlp TASK-2026-02-09-001 --to http://localhost:4318/v1/traces
    """
    from dragoman.engine.queries.traces import attempts_with_turns
    from dragoman.protocols.saop.otlp_export import TraceSubject, trace_document
    from dragoman.surfaces.cli.commands.trace import iterate_events, iterate_turns

    # A typed URL is meant, also a local one.
    collector = make_endpoint(to, "--to", (_host_of(to),), _TIMEOUT_SECONDS) if to else None
    headers = _parse_headers() if to else {}
    with context.open_readonly() as directory:
        shown, store = load_task(directory, task).task, directory.store
        subject = TraceSubject(store.ledger_id(), shown.id, shown.title, dragoman.__version__)
        turns = (
            {**turn.envelope, **turn.attempt_fields}
            for attempt in attempts_with_turns(store, shown.id)
            for turn in iterate_turns(store, shown.id, attempt)
        )
        spans = trace_document(subject, turns, list(iterate_events(store, shown.id)))
    if collector is None:
        context.out.json(spans)
        return None
    count = len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"])
    partial = _post_spans(collector, _host_of(to), headers, msgspec.json.encode(spans))
    if partial.rejected:
        raise DeliveryFailed(
            f"the collector at {_host_of(to)} turned down {partial.rejected} of {count} spans: "
            f"{partial.why[:_MAX_REASON] or 'it does not say why'}"
        )
    return CommandResult(
        {"task": shown.id, "spans": count, "to": to},
        lambda screen: screen.line(f"{count} spans of {shown.id} were sent"),
    )


class DeliveryFailed(DragomanError):
    """The collector did not take the spans; the detail says why."""

    code = "not_delivered"


class _PartialSuccess(
    Struct, frozen=True, rename={"rejected": "rejectedSpans", "why": "errorMessage"}
):
    """Partial success of an OTLP response: spans that the collector rejected, and why."""

    rejected: int = 0
    why: str = ""


class _ExportReply(Struct, frozen=True, rename="camel"):
    """Body of an OTLP response."""

    partial_success: _PartialSuccess = _PartialSuccess()


def _post_spans(
    endpoint: "SafeHttpClient", host: str, headers: dict[str, str], body: bytes
) -> _PartialSuccess:
    request_headers = {"Content-Type": "application/json", **headers}
    try:
        status, reply = endpoint.post_and_read(request_headers, body, _MAX_REPLY_BYTES)
    except OSError as error:
        raise DeliveryFailed(f"the collector at {host} was not reached: {error}") from error
    if not 200 <= status < 300:
        raise DeliveryFailed(f"the collector at {host} answered {status}, and has kept nothing")
    try:
        # Integers are strings in OTLP/JSON.
        return msgspec.json.decode(reply, type=_ExportReply, strict=False).partial_success
    except msgspec.DecodeError:
        return _PartialSuccess()


def _host_of(url: str) -> str:
    """Host of a URL; empty: none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _parse_headers() -> dict[str, str]:
    """Headers from OTEL_EXPORTER_OTLP_HEADERS; a value may be a secret."""
    headers = dict[str, str]()
    parts = (part for part in environment().get(_HEADERS_VARIABLE, "").split(",") if part)
    for number, part in enumerate(parts, 1):
        name, equals, value = part.partition("=")
        headers[name.strip()] = header_value = unquote(value.strip())
        if not equals or not _HEADER_PATTERN.fullmatch(f"{name.strip()}: {header_value}"):
            raise_usage_error(
                f"{_HEADERS_VARIABLE}: part {number} is no header: write NAME=VALUE in ASCII"
            )
    return headers


COMMANDS = (CliCommand("otlp", otlp, takes_as=False),)
