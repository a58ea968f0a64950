"""Metrics of the hub in the text format of Prometheus, served at /metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from dragoman.core.base import Status
from dragoman.engine.service_health import HealthProblem

PROMETHEUS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds of the durations of requests, in seconds."""

_HELP: dict[str, tuple[str, str]] = {
    "dragoman_http_requests_total": ("counter", "Requests, by route, method and status."),
    "dragoman_http_request_seconds": ("histogram", "Times of requests, streams left out."),
    "dragoman_http_messages_total": ("counter", "Messages of dialects, by dialect and outcome."),
    "dragoman_stream_readers": ("gauge", "Readers of streams that are connected."),
    "dragoman_stream_gaps_total": ("counter", "Gaps sent to readers that were too slow."),
    "dragoman_waiters": ("gauge", "Callers that wait for work or for events, streams included."),
    "dragoman_ledger_position": ("gauge", "The last position of the ledger."),
    "dragoman_tasks": ("gauge", "Tasks, by status."),
    "dragoman_service_ok": (
        "gauge",
        "1 while a service of the hub works, 0 while it is degraded, by name.",
    ),
}
"""Name -> type and meaning. The names are stable."""

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


class Metrics:
    """Counters of the running hub."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._messages: Counter[tuple[str, str]] = Counter()
        self._bucket_counts = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self.readers = 0
        self.gaps = 0

    def record_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[route, method, status] += 1
        self._seconds += seconds
        for index, bound in enumerate(BUCKETS):
            if seconds <= bound:
                self._bucket_counts[index] += 1
                return
        self._bucket_counts[-1] += 1

    def record_message(self, dialect: str, outcome: str) -> None:
        """Count a message: "accepted", "repeated", or the code of its refusal."""
        self._messages[dialect, outcome] += 1

    def render(
        self,
        *,
        waiting: int,
        head: int,
        tasks: Mapping[str, int],
        services: Mapping[str, HealthProblem],
    ) -> str:
        """Render all metrics, counters and current values."""
        samples = [
            *self._counters(),
            ("dragoman_stream_readers", (), self.readers),
            ("dragoman_stream_gaps_total", (), self.gaps),
            ("dragoman_waiters", (), waiting),
            ("dragoman_ledger_position", (), head),
            *(
                # A status without any tasks is included: it would seem to be unknown.
                ("dragoman_tasks", (("status", name),), tasks.get(name, 0))
                for name in get_args(Status)
            ),
            *(
                ("dragoman_service_ok", (("service", name),), 0 if trouble.message else 1)
                for name, trouble in services.items()
            ),
        ]
        return "\n".join(_format_samples(samples)) + "\n"

    def _counters(self) -> Iterator[Sample]:
        for (route, method, status), count in self._requests.items():
            labels = (("route", route), ("method", method), ("status", str(status)))
            yield "dragoman_http_requests_total", labels, count
        for (dialect, outcome), count in self._messages.items():
            labels = (("dialect", dialect), ("outcome", outcome))
            yield "dragoman_http_messages_total", labels, count
        name, cumulative = "dragoman_http_request_seconds", 0
        for bound, count in zip((*BUCKETS, "+Inf"), self._bucket_counts, strict=True):
            cumulative += count
            yield f"{name}_bucket", (("le", str(bound)),), cumulative
        yield f"{name}_sum", (), self._seconds
        yield f"{name}_count", (), cumulative


def _format_samples(samples: Iterable[Sample]) -> Iterator[str]:
    last_family = ""
    for name, labels, value in samples:
        family = next(known for known in _HELP if name.startswith(known))
        if family != last_family:
            kind, meaning = _HELP[family]
            yield f"# HELP {family} {meaning}"
            yield f"# TYPE {family} {kind}"
            last_family = family
        formatted = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
        # All digits: a rounded counter would stand still, and then jump.
        yield f"{name}{{{formatted}}} {value!r}" if formatted else f"{name} {value!r}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
