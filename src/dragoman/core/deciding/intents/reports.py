"""What is reported of a task in any dialect, as an intent that it belongs to is told it."""

import re
from typing import Final

import msgspec

from dragoman.core.deciding.ending import RequestOutcome
from dragoman.core.deciding.intents.results import result_digest
from dragoman.core.events import IntentUpdated, TaskProgressed
from dragoman.core.limits import MAX_TEXT
from dragoman.core.states.intent import Intent, OpenRequest
from dragoman.core.states.task import Report

FAILURE_TYPE_KEY: Final = "failure_type"
"""Key of a report's details that names the type of failure."""
_PERCENT: Final = re.compile(r"\s*(100|[0-9]{1,2}(?:\.[0-9]+)?) ?%\s*")
_EMPTY_VALUES: Final[tuple[object, ...]] = ("", None, (), [], {})


def success_outcome(report: Report | None, kept_bytes: int) -> RequestOutcome:
    """Outcome of successful work: the output is everything that the report says about it."""
    output = None if report is None else _report_output(report)
    if output is None:
        return RequestOutcome(True)
    encoded = msgspec.json.encode(output, order="deterministic")
    digest = result_digest(True, msgspec.Raw(encoded), "")
    if len(encoded) > kept_bytes:
        return RequestOutcome(True, digest=digest, left_out=len(encoded))
    return RequestOutcome(True, digest=digest, output=output)


def _report_output(report: Report) -> dict[str, object] | None:
    fields = report.details | {"notes": report.notes}
    return {name: value for name, value in fields.items() if value not in _EMPTY_VALUES} or None


def failure_outcome(report: Report) -> RequestOutcome:
    """Outcome of failed work: the failure type, the blockers and the notes."""
    error = "; ".join(filter(None, (*report.blockers, report.notes)))
    kind = report.details.get(FAILURE_TYPE_KEY)
    if isinstance(kind, str) and kind and not error.startswith(kind):
        error = f"{kind}: {error}" if error else kind
    return RequestOutcome(False, error or "reported without blockers or notes")


def progress_update(intent: Intent, request: OpenRequest, event: TaskProgressed) -> IntentUpdated:
    """Progress of a task as an update of its request; a percentage only if one is stated."""
    share = _PERCENT.fullmatch(event.progress)
    progress = None if share is None else float(share[1])
    message = "; ".join(filter(None, (event.progress, event.notes, *event.blockers)))
    return IntentUpdated(intent.id, request.id, request.agent, progress, message[:MAX_TEXT])
