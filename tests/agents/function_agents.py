"""Agents that run in the process of the hub, for tests: functions from request to result."""

import json
import threading
from typing import Any

requests: list[dict[str, Any]] = []
"""Every request that one of them received."""

has_started, may_return = threading.Event(), threading.Event()
"""Events of `block`: set when it has started, and waited for before it returns."""


def _answer(request: dict[str, Any], **fields: Any) -> bytes:
    answer = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
    return json.dumps(answer | fields).encode()


def answer_in_capitals(data: bytes) -> bytes:
    """Return the goal in capitals."""
    request = json.loads(data)
    requests.append(request)
    return _answer(request, success=True, output=request["goal"].upper())


async def answer_in_capitals_async(data: bytes) -> bytes:
    """Return the goal in capitals, as a coroutine."""
    return answer_in_capitals(data)


def raise_error(data: bytes) -> bytes:
    """Raise instead of answering."""
    requests.append(json.loads(data))
    raise RuntimeError("out of ink")


def answer_no_result(data: bytes) -> bytes:
    """Answer with bytes that are no result."""
    del data
    return b"well"


def answer_no_bytes(data: bytes) -> Any:
    """Return an object instead of bytes."""
    return json.loads(data)


def exit_process(data: bytes) -> bytes:
    """Try to exit the whole process."""
    raise SystemExit(len(data))


def block(data: bytes) -> bytes:
    """Block until `may_return` is set."""
    has_started.set()
    may_return.wait()
    return data
