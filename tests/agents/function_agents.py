"""Agents that live in the hub's own process, for tests: functions that take and give messages."""

import json
import threading
from typing import Any

requests: list[dict[str, Any]] = []
"""Every request that was handed to one of them."""

has_started, may_return = threading.Event(), threading.Event()
"""Whether one that hangs has begun, and whether it may go on."""


def _answer(request: dict[str, Any], **fields: Any) -> bytes:
    answer = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
    return json.dumps(answer | fields).encode()


def answer_in_capitals(data: bytes) -> bytes:
    """Give the goal in capitals."""
    request = json.loads(data)
    requests.append(request)
    return _answer(request, success=True, output=request["goal"].upper())


async def answer_in_capitals_async(data: bytes) -> bytes:
    """The same, as a coroutine."""
    return answer_in_capitals(data)


def raise_error(data: bytes) -> bytes:
    """Do not even answer."""
    requests.append(json.loads(data))
    raise RuntimeError("out of ink")


def answer_no_result(data: bytes) -> bytes:
    """Answer with something that is no result."""
    del data
    return b"well"


def answer_no_bytes(data: bytes) -> Any:
    """Give the result as it is, and not as bytes."""
    return json.loads(data)


def exit_process(data: bytes) -> bytes:
    """Try to end the whole process."""
    raise SystemExit(len(data))


def block(data: bytes) -> bytes:
    """Do not come back by itself."""
    has_started.set()
    may_return.wait()
    return data
