"""Spans of a trace whose times are in shape, and are none that OpenTelemetry has."""

import pytest

from dragoman.protocols.saop.otlp import Subject, document
from tests.protocols.saop.desk import event, invoked, turn
from tests.requirements import proves


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize(
    ("at", "nanoseconds"),
    [
        ("0000-02-29T00:00:00Z", "0"),
        ("1969-12-31T23:59:59Z", "0"),
        ("2026-02-21T10:00:00.1234567890123Z", "1771668000123000000"),
    ],
)
def test_any_time_of_a_message_becomes_one_of_a_span(at: str, nanoseconds: str) -> None:
    turns = [turn(metadata={"timestamp": at})]
    events = [event(1, {**invoked("c"), "timestamp": at})]
    (resource,) = document(Subject("l", "T", "t", "1"), turns, events)["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    assert [span["startTimeUnixNano"] for span in spans] == [nanoseconds] * 3
