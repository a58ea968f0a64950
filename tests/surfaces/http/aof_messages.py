"""AOF messages as agents send them."""

from typing import Any


def report(task: str, agent: str = "ada", **payload: Any) -> dict[str, Any]:
    """Build a completion report."""
    return _envelope(
        task,
        agent,
        "completion.report",
        {
            "outcome": "done",
            "summaryRef": "outputs/summary.md",
            "tests": {"total": 1, "passed": 1, "failed": 0},
            "notes": "",
            **payload,
        },
    )


def update(task: str, agent: str = "ada", **payload: Any) -> dict[str, Any]:
    """Build a status update."""
    fields = {"taskId": task, "agentId": agent, "progress": "half", **payload}
    return _envelope(task, agent, "status.update", fields)


def _envelope(task: str, agent: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": task,
        "fromAgent": agent,
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T21:00:00.000Z",
        "payload": payload,
    }
