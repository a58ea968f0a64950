"""Export: a task's turns and events as OpenTelemetry spans, and their way to a collector."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

import dragoman
from dragoman.client import SyncHub
from dragoman.system.http_client import SafeHttpClient
from dragoman_traces.importer import read_turns
from dragoman_traces.spans import TraceSubject, trace_document

HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"
_TIMEOUT_SECONDS: Final = 30.0
_HEADER_PATTERN: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): [\x20-\x7e]*")
"""An HTTP header: a token as its name, printable ASCII as its value."""
_MAX_REPLY_BYTES: Final = 16_384
_MAX_REASON: Final = 200
_PAGE_SIZE: Final = 500


class DeliveryFailed(Exception):
    """The collector did not take the spans; the text says why."""


def read_spans(hub: SyncHub, name: str) -> dict[str, Any]:
    """Read the trace of a task from the hub, as OTLP/JSON."""
    task = hub.task(name)
    subject = TraceSubject(task.created_at, task.id, task.title, dragoman.__version__)
    return trace_document(subject, read_turns(hub, task.id), list(_read_events(hub, task.id)))


def _read_events(hub: SyncHub, task: str) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        query = {"task_id": task, "after": after, "limit": _PAGE_SIZE}
        page = hub.call("saop.events", query)
        yield from page["events"]
        if not page["events"]:
            return
        after = page["cursor"]


class _PartialSuccess(
    Struct, frozen=True, rename={"rejected": "rejectedSpans", "why": "errorMessage"}
):
    """Partial success of an OTLP response: spans that the collector rejected, and why."""

    rejected: int = 0
    why: str = ""


class _ExportReply(Struct, frozen=True, rename="camel"):
    """Body of an OTLP response."""

    partial_success: _PartialSuccess = _PartialSuccess()


def make_collector(url: str) -> SafeHttpClient:
    """Client for a collector; a typed URL is meant, also a local one."""
    return SafeHttpClient(url, "--to", (_host_of(url),), seconds=_TIMEOUT_SECONDS)


def post_spans(
    collector: SafeHttpClient, url: str, headers: Mapping[str, str], spans: dict[str, Any]
) -> int:
    """Post spans to a collector; their number."""
    count = len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"])
    host, request_headers = _host_of(url), {"Content-Type": "application/json", **headers}
    body = msgspec.json.encode(spans)
    try:
        status, reply = collector.post_and_read(request_headers, body, _MAX_REPLY_BYTES)
    except OSError as error:
        raise DeliveryFailed(f"the collector at {host} was not reached: {error}") from error
    if not 200 <= status < 300:
        raise DeliveryFailed(f"the collector at {host} answered {status}, and has kept nothing")
    try:
        # Integers are strings in OTLP/JSON.
        partial = msgspec.json.decode(reply, type=_ExportReply, strict=False).partial_success
    except msgspec.DecodeError:
        return count
    if partial.rejected:
        raise DeliveryFailed(
            f"the collector at {host} turned down {partial.rejected} of {count} spans: "
            f"{partial.why[:_MAX_REASON] or 'it does not say why'}"
        )
    return count


def _host_of(url: str) -> str:
    """Host of a URL; empty: none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def parse_headers(text: str) -> dict[str, str]:
    """Headers from OTEL_EXPORTER_OTLP_HEADERS; a value may be a secret, and is not quoted."""
    headers = dict[str, str]()
    for number, part in enumerate((part for part in text.split(",") if part), 1):
        name, equals, value = part.partition("=")
        headers[name.strip()] = header_value = unquote(value.strip())
        if not equals or not _HEADER_PATTERN.fullmatch(f"{name.strip()}: {header_value}"):
            raise ValueError(
                f"{HEADERS_VARIABLE}: part {number} is no header: write NAME=VALUE in ASCII"
            )
    return headers
