"""Agents that live in the hub's own process, for tests: functions that take and give messages."""

import json
import threading
from typing import Any

seen: list[dict[str, Any]] = []
"""Every request that was handed to one of them."""

begun, gate = threading.Event(), threading.Event()
"""Whether one that hangs has begun, and whether it may go on."""


def _answer(request: dict[str, Any], **said: Any) -> bytes:
    answer = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
    return json.dumps(answer | said).encode()


def works(data: bytes) -> bytes:
    """Give the goal in capitals."""
    request = json.loads(data)
    seen.append(request)
    return _answer(request, success=True, output=request["goal"].upper())


async def works_later(data: bytes) -> bytes:
    """The same, as a coroutine."""
    return works(data)


def breaks(data: bytes) -> bytes:
    """Do not even answer."""
    seen.append(json.loads(data))
    raise RuntimeError("out of ink")


def mumbles(data: bytes) -> bytes:
    """Answer with something that is no result."""
    del data
    return b"well"


def forgets(data: bytes) -> Any:
    """Give the result as it is, and not as bytes."""
    return json.loads(data)


def leaves(data: bytes) -> bytes:
    """Try to end the whole process."""
    raise SystemExit(len(data))


def hangs(data: bytes) -> bytes:
    """Do not come back by itself."""
    begun.set()
    gate.wait()
    return data
