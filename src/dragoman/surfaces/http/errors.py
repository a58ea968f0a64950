"""HTTP errors: problem documents (RFC 9457) with stable codes, and the status of each code."""

from collections.abc import Mapping
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

_CODES_BY_STATUS = {
    400: "invalid_json invalid_request",
    401: "unauthenticated token_expired token_revoked",
    403: "not_authorized unauthorized_agent identity_mismatch foreign_origin not_by_proxy",
    404: (
        "not_found task_not_found parent_not_found agent_not_found token_not_found "
        "mail_not_found wave_not_found handoff_not_found work_item_not_found intent_not_found "
        "reservation_not_found question_not_found"
    ),
    405: "method_not_allowed",
    408: "request_timeout",
    409: (
        "ambiguous_name already_exists already_answered replayed invalid_transition claim_required "
        "unassigned_task lease_lost already_claimed not_ready reserved_for_other "
        "files_reserved blocked_by_dependency nothing_ready link_cycle already_linked "
        "nested_delegation nothing_changed ownership_conflict anomaly approval_required "
        "conflict_retry"
    ),
    413: "message_too_large",
    415: "unsupported_media_type",
    421: "unknown_host",
    422: (
        "invalid_id invalid_field invalid_envelope unknown_type taskId_mismatch hash_mismatch "
        "not_expressible missing_artifact schema_invalid policy_violation key_reused not_recognized"
    ),
    429: "rate_limited too_many_waiting",
    500: "internal_error store_corrupt ledger_broken",
    503: "overloaded stopping store_unavailable store_conflict",
}

STATUS_BY_CODE = {
    code: status for status, codes in _CODES_BY_STATUS.items() for code in codes.split()
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

    def response(self) -> Response:
        """Build the response."""
        body, media = self.problem, PROBLEM_MEDIA_TYPE
        if self._dialect_reply is not None:
            body, media = self._dialect_reply, "application/json"
        return Response(encode(body), self.problem.status, self.headers, media_type=media)


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
