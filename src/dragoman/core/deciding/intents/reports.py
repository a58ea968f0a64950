"""What is reported of a task in any dialect, as an intent that it belongs to is told it."""

import re
from typing import Final

import msgspec

from dragoman.core.deciding.ending import Ending
from dragoman.core.deciding.intents.results import result_digest
from dragoman.core.events import IntentUpdated, TaskProgressed
from dragoman.core.limits import TEXT
from dragoman.core.states.intent import Intent, OpenRequest
from dragoman.core.states.task import Reported

FAILURE_TYPE: Final = "failure_type"
"""Key of a report's details that names the type of failure."""
_PERCENT: Final = re.compile(r"\s*(100|[0-9]{1,2}(?:\.[0-9]+)?) ?%\s*")
_NOTHING: Final[tuple[object, ...]] = ("", None, (), [], {})


def success_of(report: Reported | None, kept_bytes: int) -> Ending:
    """Outcome of successful work: the output is everything that the report says about it."""
    output = None if report is None else _output(report)
    if output is None:
        return Ending(True)
    encoded = msgspec.json.encode(output, order="deterministic")
    digest = result_digest(True, msgspec.Raw(encoded), "")
    if len(encoded) > kept_bytes:
        return Ending(True, digest=digest, left_out=len(encoded))
    return Ending(True, digest=digest, output=output)


def _output(report: Reported) -> dict[str, object] | None:
    said = report.details | {"notes": report.notes}
    return {name: value for name, value in said.items() if value not in _NOTHING} or None


def failure_of(report: Reported) -> Ending:
    """Outcome of failed work: the failure type, the blockers and the notes."""
    said = "; ".join(filter(None, (*report.blockers, report.notes)))
    kind = report.details.get(FAILURE_TYPE)
    if isinstance(kind, str) and kind and not said.startswith(kind):
        said = f"{kind}: {said}" if said else kind
    return Ending(False, said or "reported without blockers or notes")


def update_of(intent: Intent, request: OpenRequest, event: TaskProgressed) -> IntentUpdated:
    """Progress of a task as an update of its request; a percentage only if one is stated."""
    share = _PERCENT.fullmatch(event.progress)
    progress = None if share is None else float(share[1])
    said = "; ".join(filter(None, (event.progress, event.notes, *event.blockers)))
    return IntentUpdated(intent.id, request.id, request.agent, progress, said[:TEXT])
