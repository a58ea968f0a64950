"""HTTP errors: problem documents (RFC 9457) with stable codes, and the status of each code."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from dragoman.core.errors import FAULTS, REFUSALS, DragomanError, Refusal
from dragoman.engine.request import Rejected
from dragoman.text.strict_json import StrictJsonError

PROBLEM_MEDIA_TYPE = "application/problem+json"

HTTP_CODES: dict[str, str] = {
    "invalid_request": "the request cannot be understood",
    "not_found": "there is nothing at this address",
    "method_not_allowed": "this address does not take that method",
    "unsupported_media_type": "the body is not of a type that is taken here",
    "request_timeout": "the request did not arrive in time",
    "unknown_host": "the request was made for another host",
    "foreign_origin": "the request comes from a web page of another origin",
    "rate_limited": "the caller asks more often than it may",
    "too_many_waiting": "the caller has too many streams and waits open",
    "not_by_proxy": "the request came past the proxy that ends TLS",
    "not_recognized": "the message is of no dialect that is spoken here",
    "stopping": "the hub is about to stop",
    "internal_error": "the hub has failed; its log says how",
}
"""Code -> meaning, for errors that only the HTTP surface detects."""

STATUS_BY_CODE: dict[str, int] = {
    "invalid_json": 400,
    "invalid_request": 400,
    "unauthenticated": 401,
    "token_expired": 401,
    "token_revoked": 401,
    "not_authorized": 403,
    "unauthorized_agent": 403,
    "identity_mismatch": 403,
    "foreign_origin": 403,
    "not_by_proxy": 403,
    "not_found": 404,
    "task_not_found": 404,
    "parent_not_found": 404,
    "agent_not_found": 404,
    "token_not_found": 404,
    "mail_not_found": 404,
    "wave_not_found": 404,
    "handoff_not_found": 404,
    "work_item_not_found": 404,
    "intent_not_found": 404,
    "reservation_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "ambiguous_name": 409,
    "already_exists": 409,
    "replayed": 409,
    "invalid_transition": 409,
    "claim_required": 409,
    "unassigned_task": 409,
    "lease_lost": 409,
    "already_claimed": 409,
    "not_ready": 409,
    "reserved_for_other": 409,
    "files_reserved": 409,
    "blocked_by_dependency": 409,
    "nothing_ready": 409,
    "link_cycle": 409,
    "already_linked": 409,
    "nested_delegation": 409,
    "nothing_changed": 409,
    "ownership_conflict": 409,
    "anomaly": 409,
    "approval_required": 409,
    "conflict_retry": 409,
    "message_too_large": 413,
    "unsupported_media_type": 415,
    "unknown_host": 421,
    "invalid_id": 422,
    "invalid_field": 422,
    "invalid_envelope": 422,
    "unknown_type": 422,
    "taskId_mismatch": 422,
    "hash_mismatch": 422,
    "missing_artifact": 422,
    "schema_invalid": 422,
    "policy_violation": 422,
    "key_reused": 422,
    "not_recognized": 422,
    "rate_limited": 429,
    "too_many_waiting": 429,
    "internal_error": 500,
    "store_corrupt": 500,
    "ledger_broken": 500,
    "overloaded": 503,
    "stopping": 503,
    "store_unavailable": 503,
    "store_conflict": 503,
}
"""Code -> HTTP status."""

_DEFAULT_STATUS = 422
_DIALECT_CODES = {"approval_required": "a person has to approve it first"}
_TITLES = REFUSALS | FAULTS | HTTP_CODES | _DIALECT_CODES
_STATUS_HEADERS: dict[int, dict[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    503: {"retry-after": "1"},
}
"""Status -> headers that go with it."""

encode = msgspec.json.Encoder().encode

ErrorFormat = Callable[[Refusal], Mapping[str, Any]]
"""Formats a refusal in the form of a dialect."""


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error: `code` is for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    path: str = ""
    """Path in the message, if it is about one field."""
    reply: Any = None
    """The same in the form of the message's dialect, if that has one for it."""


class HttpProblem(Exception):
    """A problem that ends the handling of a request."""

    def __init__(
        self,
        problem: Problem,
        headers: Mapping[str, str] | None = None,
        *,
        dialect_reply: Any = None,
    ) -> None:
        """`dialect_reply`: sent instead of the problem, in the form of a dialect."""
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = {**_STATUS_HEADERS.get(problem.status, {}), **(headers or {})}
        self._dialect_reply = dialect_reply

    def response(self, error_format: ErrorFormat | None = None) -> Response:
        """Build the response; `error_format`: of the dialect at whose path it happened, whose
        fields are added to those of every problem."""
        if self._dialect_reply is not None:
            body, media = encode(self._dialect_reply), "application/json"
        elif error_format is not None:
            formatted = error_format(Refusal(self.problem.code, self.problem.detail))
            body, media = (
                encode({**msgspec.to_builtins(self.problem), **formatted}),
                PROBLEM_MEDIA_TYPE,
            )
        else:
            body, media = encode(self.problem), PROBLEM_MEDIA_TYPE
        return Response(body, self.problem.status, self.headers, media_type=media)


def problem(code: str, detail: str, path: str = "") -> Problem:
    """Build the problem of a code; a code that only a dialect knows is an error in the message."""
    status = STATUS_BY_CODE.get(code, _DEFAULT_STATUS)
    title = _TITLES.get(code, "the message was refused")
    return Problem(f"urn:dragoman:problem:{code}", title, status, detail, code, path)


def problem_error(code: str, detail: str, path: str = "", **headers: str) -> HttpProblem:
    """Build the problem as an exception; names of headers are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpProblem(problem(code, detail, path), named)


def problem_from_refusal(refusal: Refusal | Rejected) -> Problem:
    """Build the problem of a refusal, of the hub or of a dialect."""
    found = problem(refusal.code, refusal.detail, getattr(refusal, "path", ""))
    dialect_reply = getattr(refusal, "reply", None)
    return found if dialect_reply is None else replace(found, reply=dialect_reply)


def problem_from_error(error: DragomanError) -> Problem:
    """Build the problem of an error of the hub, without details that belong only in its log."""
    if STATUS_BY_CODE.get(error.code) is None:
        return problem("internal_error", HTTP_CODES["internal_error"])
    return problem(error.code, error.detail)


def problem_from_json_error(error: StrictJsonError) -> Problem:
    """Build the problem of malformed JSON."""
    return problem(
        "message_too_large" if error.too_large else "invalid_json", str(error), error.path
    )
