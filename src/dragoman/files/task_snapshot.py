"""Snapshot of a task: the content of all its files at one version.

The documents (run.json, heartbeat, result, delegation, intent) have the form that the AOF guide
shows.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.attempt_state import Lease, Report, grant_lease
from dragoman.core.base import Event, Status
from dragoman.core.errors import Refusal
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import intent_stream, is_aof_id, task_stream
from dragoman.core.intent.state import Intent, IntentCompleted
from dragoman.core.task_state import Delegation, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.queries.briefing import Briefing, build_briefing
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.intents import find_intent_of_task
from dragoman.engine.queries.story import task_of_entry
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.schemas.briefing import briefing_sections
from dragoman.files.attempt_history import Attempt, TaskHistory, build_history
from dragoman.files.layout import run_folder_path, task_folder_path
from dragoman.files.markdown import escape_markup
from dragoman.files.task_file import TaskFile, TaskFileLease
from dragoman.files.work_log import visible_tail
from dragoman.ledger.entry import CODEC, Entry, read_line
from dragoman.ledger.stream_state import FOLD_VERSION, State, fold, load_state
from dragoman.text.safe_text import harmless_json, safe_text

# --- documents --------------------------------------------------------------------------------

_WIDTH: Final = 80

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode

_BLOCK_START: Final = re.compile(r"^(\s*(?:[0-9]{1,9}(?=[.)])|(?=[#>+*~`=<|-])))")
"""Beginning of a block in Markdown; a backslash there makes it plain text."""

_NO_TESTS: Final = {"total": 0, "passed": 0, "failed": 0}


def format_json(document: Mapping[str, Any]) -> bytes:
    """Format a document, indented by two; a list is on one line where it fits."""
    return (_format_value(document, "", 0) + "\n").encode()


def _format_value(value: Any, indent: str, used: int) -> str:
    if isinstance(value, Mapping) and value:
        lines = [
            f"{indent}  {_format_flat(key)}: "
            f"{_format_value(inner, indent + '  ', len(indent) + len(key) + 6)}"
            for key, inner in cast(Mapping[str, Any], value).items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    flat = _format_flat(value)
    if isinstance(value, list | tuple) and value and used + len(flat) + 1 > _WIDTH:
        items = cast(Sequence[Any], value)
        lines = [
            f"{indent}  {_format_value(item, indent + '  ', len(indent) + 2)}" for item in items
        ]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return flat


def _format_flat(value: Any) -> str:
    return harmless_json(_encode(value))


def render_run(task_id: str, attempt: Attempt) -> bytes:
    """run.json: the attempt, written when its lease is taken."""
    document: dict[str, Any] = {
        "taskId": task_id,
        "agentId": attempt.agent,
        "startedAt": to_rfc3339(attempt.started_at),
        "status": attempt.status,
        "artifactPaths": {"inputs": "inputs/", "work": "work/", "output": "output/"},
        "metadata": {},
    }
    if attempt.status == "expired":
        document["expiredAt"] = to_rfc3339(attempt.ended_at)
    if attempt.reason:
        document["reason"] = attempt.reason
    if attempt.unreported is not None:
        document["notes"] = attempt.unreported.notes
    return format_json(document)


def render_heartbeat(task_id: str, lease: Lease) -> bytes:
    """run_heartbeat.json: the holder's last heartbeat."""
    return format_json(
        {
            "taskId": task_id,
            "agentId": lease.holder,
            "lastHeartbeat": to_rfc3339(lease.last_heartbeat),
            "beatCount": lease.heartbeats,
            "expiresAt": to_rfc3339(lease.expires_at),
        }
    )


def render_result(task_id: str, report: Report) -> bytes:
    """run_result.json: the result of the attempt, in its agent's words.

    The details of a report in another dialect may hold anything. Only fields in the form of AOF/1
    are written, so that readers need not check them; the event line has all of it.
    """
    details = report.details
    is_failed = report.outcome == "failed"  # AOF has no such outcome
    output = details.get("output")
    said = report.notes or ("" if output is None else _encode(output))
    deliverables, tests = details.get("deliverables"), details.get("tests")
    return format_json(
        {
            "taskId": task_id,
            "agentId": report.agent,
            "completedAt": to_rfc3339(report.at),
            "outcome": "blocked" if is_failed else report.outcome,
            "summaryRef": _relative_path_or_empty(details.get("summaryRef"))
            or "outputs/summary.md",
            "handoffRef": _relative_path_or_empty(details.get("handoffRef"))
            or "outputs/handoff.md",
            "deliverables": list(filter(_relative_path_or_empty, _as_list(deliverables))),
            "tests": tests if _is_test_counts(tests) else _NO_TESTS,
            "blockers": report.blockers or ((said or "failed",) if is_failed else ()),
            "notes": said,
        }
    )


def _relative_path_or_empty(path: Any) -> str:
    """The path if it leads downwards, else empty.

    Its other properties were checked on receipt. A placeholder of redaction may have replaced parts
    of it since; it is harmless.
    """
    is_path = isinstance(path, str) and not path.startswith("/") and "\\" not in path
    return path if is_path and ".." not in path.split("/") else ""


def _as_list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _is_test_counts(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    counts = cast(Mapping[str, Any], value)
    return counts.keys() == _NO_TESTS.keys() and all(
        type(count) is int and count >= 0 for count in counts.values()
    )


def render_delegation(task_id: str, parent_id: str, delegation: Delegation) -> bytes:
    """inputs/handoff.json: the delegation; this file is authoritative."""
    return format_json(
        {
            "taskId": task_id,
            "parentTaskId": parent_id,
            "fromAgent": delegation.from_agent,
            "toAgent": delegation.to_agent,
            "acceptanceCriteria": delegation.acceptance_criteria,
            "expectedOutputs": delegation.expected_outputs,
            "contextRefs": delegation.context_refs,
            "constraints": delegation.constraints,
            "dueBy": to_rfc3339(delegation.due_by),
        }
    )


def render_intent_request(task_id: str, intent: Intent) -> bytes:
    """inputs/request.json: the delegated intent, for agents that do not speak CCOS."""
    return format_json(
        {
            "taskId": task_id,
            "intentId": intent.id,
            "fromAgent": intent.by,
            "goal": intent.goal,
            "params": intent.params,
            "constraints": intent.constraints,
            **({"passedOn": intent.extra_fields} if intent.extra_fields else {}),
        }
    )


def render_delegation_page(delegation: Delegation) -> bytes:
    """inputs/handoff.md: the delegation for a reader; no text in it can make a line or heading."""
    sections = (
        ("Acceptance Criteria", delegation.acceptance_criteria),
        ("Expected Outputs", delegation.expected_outputs),
        ("Context References", delegation.context_refs),
        ("Constraints", delegation.constraints),
    )
    lines = [
        "# Handoff Request",
        "",
        f"**From:** {delegation.from_agent}",
        f"**To:** {delegation.to_agent}",
        f"**Due By:** {to_rfc3339(delegation.due_by)}",
    ]
    for heading, items in sections:
        bullets = [f"- {_escape_item(item)}" for item in items] or ["None."]
        lines += ["", f"## {heading}", "", *bullets]
    return ("\n".join(lines) + "\n").encode()


def _escape_item(item: str) -> str:
    """Escape a text so that it stays on one line, and begins no heading or list."""
    return _BLOCK_START.sub(r"\1\\", escape_markup(safe_text(item, one_line=True)))


# --- snapshot ---------------------------------------------------------------------------------

ResolveAofId = Callable[[str], str]
"""Finds the AOF id of a task by its own name."""


class TaskSnapshot(Struct, frozen=True):
    """Content of all files of a task."""

    task: Task
    file: TaskFile
    history: TaskHistory
    current: dict[str, bytes]
    """Path -> content."""
    write_once: dict[str, bytes]
    """Files that are written if missing and then never changed: those of earlier attempts, and the
    heartbeat of an attempt whose lease is gone, of which only the claim is known."""
    intent: str = ""
    """Stream of its intent, whose entries change the files too; empty: it has none."""


def build_snapshot(
    task: Task,
    version: int,
    events: Sequence[tuple[int, Event]],
    lease: Lease | None,
    aof_id_of: ResolveAofId,
    intent: Intent | None = None,
) -> TaskSnapshot:
    """Build the files of a task in its present state, from its events and the results of its
    intent, whose outputs the reports of attempts do not repeat.
    """
    history = build_history(events)
    current, once = dict[str, bytes](), dict[str, bytes]()
    for attempt in history.attempts[:-1]:
        once |= _render_run_files(
            task.aof_id, attempt, run_folder_path(task.aof_id, attempt.number)
        )
    for attempt in history.attempts[-1:]:
        current |= _render_run_files(task.aof_id, attempt, run_folder_path(task.aof_id))
        once[heartbeat_path(task.aof_id)] = render_heartbeat(task.aof_id, _lease_at_claim(attempt))
    if lease is not None:
        current[heartbeat_path(task.aof_id)] = render_heartbeat(task.aof_id, lease)
    inputs = f"{task_folder_path(task.status, task.aof_id)}/inputs"
    if intent is not None:
        current[f"{inputs}/request.json"] = render_intent_request(task.aof_id, intent)
    if task.delegation is not None:
        parent = aof_id_of(task.delegation.parent)
        current[f"{inputs}/handoff.json"] = render_delegation(task.aof_id, parent, task.delegation)
        current[f"{inputs}/handoff.md"] = render_delegation_page(task.delegation)
    return TaskSnapshot(
        task,
        build_task_file(task, version, history, build_briefing(task, events), aof_id_of),
        history,
        current,
        once,
        "" if intent is None else intent_stream(intent.id),
    )


def heartbeat_path(task_id: str) -> str:
    """Path of the heartbeat file."""
    return f"{run_folder_path(task_id)}/run_heartbeat.json"


def result_path(task_id: str) -> str:
    """Path of the present attempt's result."""
    return f"{run_folder_path(task_id)}/run_result.json"


def _lease_at_claim(attempt: Attempt) -> Lease:
    return grant_lease(attempt.agent, attempt.fence, "", attempt.ttl_ms, attempt.started_at)


def _render_run_files(task_id: str, attempt: Attempt, folder: str) -> dict[str, bytes]:
    files = {f"{folder}/run.json": render_run(task_id, attempt)}
    if attempt.report is not None:
        files[f"{folder}/run_result.json"] = render_result(task_id, attempt.report)
    return files


def build_task_file(
    task: Task,
    version: int,
    history: TaskHistory,
    briefing: Briefing | None,
    aof_id_of: ResolveAofId,
) -> TaskFile:
    """Build the content of the task file."""
    log = visible_tail(history.log)
    last = history.attempts[-1] if history.attempts and task.status == "in-progress" else None
    return TaskFile(
        id=task.aof_id,
        title=task.title,
        status=task.status,
        created_at=task.created_at,
        updated_at=task.updated_at,
        moved_at=task.moved_at,
        priority=task.priority,
        assignee=task.assignee,
        parent_id=aof_id_of(task.parent) if task.parent else "",
        lease=TaskFileLease(last.agent, last.number, last.fence, last.started_at, last.ttl_ms)
        if last
        else None,
        review_required=task.review_required,
        depth=task.depth,
        aliases=task.aliases,
        primary_id=task.id if task.id != task.aof_id else "",
        body=task.body,
        # The lines of the log stand in its own section.
        briefing=tuple(briefing_sections(replace(briefing, log=()))) if briefing else (),
        log=log,
        unseen=len(history.log) - len(log),
        version=version,
    )


# --- reading from the store -------------------------------------------------------------------


_COMPLETED: Final = EVENT_NAMES[IntentCompleted]


class TaskSnapshots:
    """Builds snapshots of tasks from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self, stream: str) -> TaskSnapshot | None:
        """Build the snapshot of a task; None when the stream is not a task's."""
        row = self._store.stream(stream)
        return self.of_row(row) if row is not None else None

    def of_row(self, row: StreamRow) -> TaskSnapshot | None:
        """Build the snapshot of a row that was read before."""
        if not row.name.startswith(task_stream("")):
            return None
        lines = (
            ()
            if row.fold_version == FOLD_VERSION
            else (entry.line for entry in stream_entries(self._store, row.name))
        )
        task = load_state(row.name, row.fold_version, row.state, lines)
        if not isinstance(task, Task):
            return None
        events = list[tuple[int, Event]]()
        if task.attempts or task.notes:
            events = self._read_events(row.name, row.version)
        intent = find_intent_of_task(self._store, task)
        if intent is not None and task.reported is not None:
            events += ((0, result) for result in self._read_results(intent))
        return build_snapshot(task, row.version, events, row.lease, self.aof_id_of, intent)

    def _read_results(self, intent: Intent) -> list[IntentCompleted]:
        """Read the results of an intent's requests that have an output."""
        entries = stream_entries(self._store, intent_stream(intent.id))
        found = (decode_event(entry) for entry in entries if entry.event == _COMPLETED)
        return [one for one in found if isinstance(one, IntentCompleted) and one.output is not None]

    def status_of(self, stream: str) -> Status | None:
        """Present status of a task; None when there is no such task."""
        row = self._store.stream(stream)
        return row.index.status if row is not None else None

    def task_file_at(self, stream: str, version: int) -> TaskFile | None:
        """Task file at an earlier version; None when there was none."""
        events = self._read_events(stream, version)
        if not version or len(events) < version:
            return None
        state: State | None = None
        for at, event in events:
            state = fold(state, event, at)
        if not isinstance(state, Task):
            return None
        briefing = build_briefing(state, events)
        return build_task_file(state, version, build_history(events), briefing, self.aof_id_of)

    def aof_id_of(self, name: str) -> str:
        """AOF id of a task by any of its names; an unknown name is returned as it is."""
        if is_aof_id(name):
            return name
        found = find_task(self._store, name)
        return name if isinstance(found, Refusal) else found.task.aof_id

    def task_of(self, entry: Entry) -> str:
        """Id of the task that an entry of a letter or a handoff is about; empty: of none."""
        return task_of_entry(self._store, entry)

    def _read_events(self, stream: str, version: int) -> list[tuple[int, Event]]:
        events = list[tuple[int, Event]]()
        for entry in stream_entries(self._store, stream):
            if entry.version > version:
                break
            line = read_line(entry.line)
            events.append((line.at, CODEC.decode(line.event, line.v, line.body)))
        return events
