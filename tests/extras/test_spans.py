"""Spans of a trace: times outside the range of OpenTelemetry, and turns with equal indexes."""

import pytest

from dragoman_traces.spans import TraceSubject, trace_document
from tests.protocols.saop.hub import event, invoked, turn
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
def test_timestamps_are_clamped_to_span_times(at: str, nanoseconds: str) -> None:
    turns = [turn(metadata={"timestamp": at})]
    events = [event(1, {**invoked("c"), "timestamp": at})]
    (resource,) = trace_document(TraceSubject("l", "T", "t", "1"), turns, events)["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    assert [span["startTimeUnixNano"] for span in spans] == [nanoseconds] * 3


@proves("CAPTURE-OTLP")
def test_turn_spans_have_attempt_and_reviewer_attributes() -> None:
    origins = (
        {"attempt": 1, "by": "", "after_attempt": None},
        {"attempt": -1, "by": "rita", "after_attempt": 1},
        {"attempt": -2, "by": "rita", "after_attempt": 0},
    )
    turns = [{**turn(0), **origin} for origin in origins]
    (resource,) = trace_document(TraceSubject("l", "T", "t", "1"), turns, [])["resourceSpans"]
    attributes = [
        {
            one["key"].removeprefix("dragoman.turn."): next(iter(one["value"].values()))
            for one in span["attributes"]
            if one["key"].startswith("dragoman.turn.")
        }
        for span in resource["scopeSpans"][0]["spans"][1:]
    ]
    assert attributes == [
        {"index": "0", "attempt": "1", "confidence": 0.9},
        {"index": "0", "attempt": "-1", "by": "rita", "after_attempt": "1", "confidence": 0.9},
        {"index": "0", "attempt": "-2", "by": "rita", "after_attempt": "0", "confidence": 0.9},
    ]
