"""From where to where a number of the settings may be."""

from dragoman.core.limits import ATTEMPTS, KEPT, PRICE, TRIES, TTL_MS, WAIT_MS

_LONGEST_REST = 365 * 86_400_000
_A_DAY_MS = 86_400_000
_MANY = 10**12
RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("tasks", "max_attempts"): (1, ATTEMPTS),
    ("leases", "ttl_ms"): TTL_MS,
    ("agentmail", "ttl_ms"): TTL_MS,
    ("agentmail", "ack_within_ms"): WAIT_MS,
    ("agentmail", "spawn_within_ms"): WAIT_MS,
    ("handoffs", "ttl_ms"): TTL_MS,
    ("handoffs", "proposed_ms"): WAIT_MS,
    ("handoffs", "validating_ms"): WAIT_MS,
    ("handoffs", "accepted_ms"): WAIT_MS,
    ("handoffs", "activated_ms"): WAIT_MS,
    ("handoffs", "artifact_bytes"): (0, _MANY),
    ("handoffs", "artifacts_bytes"): (0, _MANY),
    ("ccos", "tries"): (1, TRIES),
    ("ccos", "request_ms"): WAIT_MS,
    ("ccos", "payload_bytes"): (0, KEPT),
    ("ccos.policy", "cost_ceiling"): (0, PRICE),
    ("saop", "ttl_ms"): TTL_MS,
    ("saop", "turn_bytes"): (1_024, 2**30),
    ("entropy", "window"): (2, 1_000),
    ("entropy", "least"): (2, 1_000),
    ("entropy", "fall"): (0, 1),
    ("entropy", "settle"): (-1, 1),
    ("entropy", "repeats"): (2, 1_000),
    ("entropy", "cycles"): (2, 100),
    ("retry", "base_ms"): (0, _LONGEST_REST),
    ("retry", "cap_ms"): (0, _LONGEST_REST),
    ("http", "port"): (0, 65_535),
    ("http", "rate_per_second"): (0, _MANY),
    ("http", "burst"): (1, _MANY),
    ("http", "max_body"): (1_024, 2**31),
    ("hub", "grace_ms"): (0, _A_DAY_MS),
    ("hub", "keep_ms"): TTL_MS,
    ("dispatch", "concurrency"): (1, 10_000),
    ("dispatch", "poll_ms"): (10, _A_DAY_MS),
    ("dispatch", "stop_ms"): (0, _A_DAY_MS),
    ("dispatch", "leave_ms"): (0, _A_DAY_MS),
    ("agents", "concurrency"): (1, 10_000),
    ("agents", "attempt_ms"): (0, _LONGEST_REST),
    ("agents", "output_bytes"): (0, _MANY),
    ("agents", "trace_lines"): (0, 1_000_000),
    ("agents", "attempts_per_day"): (0, _MANY),
    ("agents", "minutes_per_day"): (0, _MANY),
    ("agents", "output_per_day"): (0, _MANY),
    ("agents", "cost_per_day"): (0, _MANY),
}
"""Section (or kind of table) and key -> smallest and largest value of a number."""
