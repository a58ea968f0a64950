"""CCOS 019: an intent goes to an agent as a TaskRequest, and comes back as a TaskResult.

>>> request = TaskRequest(intent_id="i-1", agent_id="ada", goal="Sum up the report")
>>> as_json(succeeded(request, {"pages": 3}))
b'{"intent_id":"i-1","agent_id":"ada","success":true,"output":{"pages":3}}'
"""

from dragoman.protocols.ccos.operations import dialect
from dragoman.protocols.ccos.settings import Choices
from dragoman.protocols.ccos.task_request import request_for_task, request_of
from dragoman.protocols.ccos.wire import (
    MAX_RESULT_BYTES,
    TaskRequest,
    TaskResult,
    TaskUpdate,
    as_cbor,
    as_json,
    failed,
    read,
    succeeded,
)

__all__ = [
    "MAX_RESULT_BYTES",
    "Choices",
    "TaskRequest",
    "TaskResult",
    "TaskUpdate",
    "as_cbor",
    "as_json",
    "dialect",
    "failed",
    "read",
    "request_for_task",
    "request_of",
    "succeeded",
]
