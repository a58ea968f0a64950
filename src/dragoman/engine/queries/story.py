"""The story of a task: everything about it over all its streams, in the order of the ledger.

Its own history, letters, handoffs, its intent, turns and events of traces, its work items.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct, UnsetType
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.attempt_state import (
    AttemptEscalated,
    AttemptQuiet,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.base import Event, Status
from dragoman.core.check_state import CheckResult, TaskChecked
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    Handoff,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
)
from dragoman.core.ids import (
    bare_name,
    intent_stream,
    is_task_name,
    task_stream,
    turns_stream,
    workq_stream,
)
from dragoman.core.intent.state import IntentCompleted, IntentCreated, IntentUpdated
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.core.mail import MailAcked, MailAnswered, MailPosted, MailRead
from dragoman.core.question_state import QuestionAnswered, QuestionAsked, QuestionWithdrawn
from dragoman.core.task_state import (
    INTENT_ALIAS_KIND,
    Task,
    TaskCreated,
    TaskEdited,
    TaskNoted,
    TaskProgressed,
    TaskTransitioned,
    TaskWarned,
    status_change_of,
)
from dragoman.core.trace import EntropyEscalated, TraceAnomaly, TraceRecorded, TurnRecorded
from dragoman.engine.event_sentences import describe_event
from dragoman.engine.operation import Dialect, RawMessage
from dragoman.engine.ports import ListQuery, Store, StreamRow
from dragoman.engine.queries.entries import (
    LIST_PAGE,
    decode_event,
    find_by_id,
    stream_entries,
    stream_state,
    version_at,
    walk_list,
)
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.queries.visibility import OWNER, Reader, visible_to
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.ledger.stream_state import aliases_bound_by
from dragoman.text.safe_text import safe_text

# --- items ------------------------------------------------------------------------------------

StoryKind = Literal[
    "task",
    "attempt",
    "question",
    "delegation",
    "letter",
    "handoff",
    "intent",
    "turn",
    "thought",
    "tool",
    "terminal",
    "trace",
    "work_item",
]


class StoryItem(Struct, frozen=True, kw_only=True):
    """One entry of the ledger about a task."""

    position: int
    at: int
    kind: StoryKind
    type: str
    """Name of the event."""
    dialect: str
    """The dialect in which it was said; empty: in none, or by the hub."""
    actor: str
    via: str
    title: str
    """The event as the rest of a sentence that its actor begins; on one harmless line."""
    text: str
    """The words of its author; they may hold anything."""
    status: Status | None
    """The status of the task from then on, if this changed it."""
    attempt: int
    """The attempt that the task was in; 0: none yet."""
    cause: str
    """The id of the request: all items of one request share it."""
    duration_ms: int | None
    """Duration of what ends with it: an attempt, a stay in a status, an open question, a tool."""
    stream: str
    original: Raw | UnsetType
    """The message as it was received, on the first entry of its request."""


class Story(Struct, frozen=True):
    """A page of a story; `next` is the cursor of the next page, None after the last one."""

    task: TaskView
    items: tuple[StoryItem, ...]
    next: int | None


_KINDS_BY_FAMILY: Final[dict[str, StoryKind]] = {
    "attempt": "attempt",
    "question": "question",
    "delegation": "delegation",
    "mail": "letter",
    "handoff": "handoff",
    "intent": "intent",
    "turn": "turn",
    "workq": "work_item",
    "trace": "trace",
    "entropy": "trace",
}
"""First word of an event's name -> kind of its item; others are about the task itself."""

_KINDS_BY_TRACE_TYPE: Final[dict[str, StoryKind]] = {
    "THOUGHT_STREAM": "thought",
    "TOOL_LIFECYCLE_INVOKED": "tool",
    "TOOL_LIFECYCLE_COMPLETED": "tool",
    "SANDBOX_PULSE": "terminal",
}

_ATTEMPT_EVENTS: Final = (
    TaskClaimed,
    TaskReported,
    TaskRequeued,
    TaskCheckpointed,
    AttemptQuiet,
    AttemptEscalated,
)


def _kind_of(event: Event, name: str) -> StoryKind:
    if isinstance(event, _ATTEMPT_EVENTS):
        return "attempt"
    if isinstance(event, TraceRecorded):
        return _KINDS_BY_TRACE_TYPE.get(event.type, "trace")
    return _KINDS_BY_FAMILY.get(name.partition(".")[0], "task")


# --- words ------------------------------------------------------------------------------------


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _turn_text(event: TurnRecorded) -> str:
    content: Any = event.envelope.get("content", {})
    return _paragraphs(*(f"{name}: {content[name]}" for name in content if content[name]))


def _trace_text(event: TraceRecorded) -> str:
    payload: Any = event.envelope.get("payload", {})
    arguments = payload.get("arguments")
    said = payload.get("chunk") or payload.get("line") or ""
    return said or (msgspec.json.encode(arguments).decode() if arguments else "")


def _result_text(event: IntentCompleted) -> str:
    if event.error or event.output is None:
        return event.error
    is_text = isinstance(event.output, str)
    return str(event.output) if is_text else msgspec.json.encode(event.output).decode()


def _package_text(event: HandoffProposed) -> str:
    task: Any = event.package.get("task", {})
    context: Any = event.package.get("context", {})
    return _paragraphs(task.get("objective", ""), context.get("summary", ""))


def _check_text(result: CheckResult) -> str:
    facts = (
        "passed" if result.has_passed else "failed",
        result.problem,
        "" if result.exit_code is None else f"exit code {result.exit_code}",
        result.output_sha256 and f"SHA-256 of its output {result.output_sha256}",
    )
    return _paragraphs(f"{result.command}: {', '.join(filter(None, facts))}", result.output)


_TEXTS: Final[dict[type[Event], Callable[[Any], str]]] = {
    TaskCreated: lambda event: event.body,
    TaskEdited: lambda event: event.body or "",
    TaskChecked: lambda event: _paragraphs(*map(_check_text, event.results)),
    TaskNoted: lambda event: event.text,
    TaskProgressed: lambda event: _paragraphs(event.progress, event.notes, *event.blockers),
    TaskTransitioned: lambda event: event.other_text,
    TaskWarned: lambda event: event.detail,
    TaskReported: lambda event: _paragraphs(event.notes, *event.blockers),
    TaskCheckpointed: lambda event: _paragraphs(event.description, event.next_steps),
    QuestionAsked: lambda event: event.text,
    QuestionAnswered: lambda event: event.text,
    MailPosted: lambda event: event.body,
    HandoffProposed: _package_text,
    HandoffNoted: lambda event: event.text,
    HandoffRejected: lambda event: _paragraphs(event.detail, event.suggested_fix),
    IntentCreated: lambda event: event.goal,
    IntentUpdated: lambda event: event.message,
    IntentCompleted: _result_text,
    TurnRecorded: _turn_text,
    TraceRecorded: _trace_text,
    TraceAnomaly: lambda event: event.detail,
    EntropyEscalated: lambda event: event.detail,
}
"""Event -> the words of its author, if it has some."""


# --- durations --------------------------------------------------------------------------------


class _Stopwatch:
    """Measures what has begun with an entry and ends with a later one of the same stream."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, str], int] = {}

    def measure(self, stream: str, event: Event, at: int) -> int | None:
        """The duration of what ends with this event, if something does; it may begin another."""
        if isinstance(event, IntentCompleted):
            return event.duration_ms
        if isinstance(event, TraceRecorded):
            payload: Any = event.envelope.get("payload", {})
            stated = payload.get("duration_ms")
            return None if stated is None else round(stated)
        ends = _ENDS.get(type(event))
        started = None if ends is None else self._started.get((stream, ends(event)))
        begins = _BEGINS.get(type(event))
        for name in () if begins is None else begins(event):
            self._started[stream, name] = at
        return None if started is None else max(0, at - started)


_STATUS, _ATTEMPT, _POSTED = "status", "attempt", "posted"

_BEGINS: Final[dict[type[Event], Callable[[Any], tuple[str, ...]]]] = {
    TaskCreated: lambda _: (_STATUS,),
    TaskClaimed: lambda _: (_STATUS, _ATTEMPT),
    TaskTransitioned: lambda _: (_STATUS,),
    TaskRequeued: lambda _: (_STATUS,),
    QuestionAsked: lambda event: (event.id,),
    MailPosted: lambda _: (_POSTED,),
    HandoffProposed: lambda _: (_STATUS,),
    HandoffTransitioned: lambda _: (_STATUS,),
}

_ENDS: Final[dict[type[Event], Callable[[Any], str]]] = {
    TaskClaimed: lambda _: _STATUS,
    TaskTransitioned: lambda _: _STATUS,
    TaskRequeued: lambda _: _STATUS,
    TaskReported: lambda _: _ATTEMPT,
    QuestionAnswered: lambda event: event.id,
    QuestionWithdrawn: lambda event: event.id,
    MailRead: lambda _: _POSTED,
    MailAcked: lambda _: _POSTED,
    MailAnswered: lambda _: _POSTED,
    HandoffTransitioned: lambda _: _STATUS,
}


# --- dialects ---------------------------------------------------------------------------------


def dialect_of_message(dialects: Sequence[Dialect], text: bytes) -> str:
    """The dialect of a message as it was received; empty: none recognises it."""
    raw = RawMessage(text)
    return next((one.name for one in dialects if one.parse(raw) is not None), "")


def _native_dialect(dialects: Sequence[Dialect], event: Event) -> str:
    """The dialect that an event outside of the task's own history belongs to: of those that it
    concerns, the one that is concerned with the fewest."""
    concerned = [one for one in dialects if type(event) in one.events]
    return min(concerned, key=lambda one: len(one.events)).name if concerned else ""


# --- streams of a task ------------------------------------------------------------------------


def _related_streams(store: Store, task: Task, reader: Reader) -> Iterator[str]:
    """Streams of what belongs to a task, as far as the reader may see it."""
    names = dict.fromkeys((task.mail_name, task.id))
    lists = [f"handoffs.task:{task.id}"]
    lists += [f"{kind}:{name}" for name in names for kind in ("thread", "bead")]
    rows: dict[str, StreamRow] = {}
    for name in lists:
        rows |= {
            one.row.name: one.row for one in walk_list(store, ListQuery(name, limit=LIST_PAGE))
        }
    is_visible = visible_to(reader, store)
    for row in rows.values():
        if is_visible(stream_state(store, row)):
            yield row.name
    for alias in task.aliases:
        if alias.startswith(f"{INTENT_ALIAS_KIND}:"):
            yield intent_stream(bare_name(alias))
        if alias.startswith(_WORKQ_PREFIX):
            yield alias


_WORKQ_PREFIX: Final = workq_stream("")

_PAGE: Final = 200


def _trace_events_after(store: Store, task: str, position: int) -> Iterator[Entry]:
    while page := store.trace_events(task, position, _PAGE):
        yield from page
        position = page[-1].position


# --- task of an entry -------------------------------------------------------------------------


def task_of_entry(store: Store, entry: Entry) -> str:
    """The id of the task that an entry of a letter, a handoff or a work item is about; empty: none.

    A letter names a task, which may get that name only later: then the letter is about none, and so
    is what happened to a work item before a task had its name.
    """
    kind, _, id = entry.stream.partition(":")
    if kind == "handoff":
        found = find_by_id(store, id, Handoff)
        return "" if isinstance(found, Refusal) else found.task
    if kind == "workq":
        return _task_named_before(store, entry.stream, entry)
    if kind != "mail":
        return ""
    (first,) = store.history(entry.stream, 0, 1)
    posted = decode_event(first)
    assert isinstance(posted, MailPosted), "a letter begins when it is posted"
    return _task_named_before(store, posted.bead, first)


def _task_named_before(store: Store, name: str, entry: Entry) -> str:
    """The id of the task that had this name before an entry, or got it by the same request."""
    view = find_task(store, name) if is_task_name(name) else not_found.task("")
    if isinstance(view, Refusal):
        return ""
    named = _naming_entry(store, view.task, bare_name(name))
    is_known = named.position < entry.position
    is_known = is_known or read_line(named.line).cause == read_line(entry.line).cause
    return view.task.id if is_known else ""


def _naming_entry(store: Store, task: Task, name: str) -> Entry:
    """The entry by which a task got this name."""
    names = (
        (entry, _names_given_by(entry)) for entry in stream_entries(store, task_stream(task.id))
    )
    return next(entry for entry, given in names if name in given)


def _names_given_by(entry: Entry) -> tuple[str, ...]:
    event = decode_event(entry)
    own = (event.id,) if isinstance(event, TaskCreated) else ()
    return own + tuple(name for name, _ in aliases_bound_by(event))


# --- story ------------------------------------------------------------------------------------


def read_story(
    store: Store,
    name: str,
    dialects: Sequence[Dialect] = (),
    *,
    after: int = 0,
    limit: int = 200,
    reader: Reader = OWNER,
) -> Story | Refusal:
    """Read a page of the story of the task with this name, after a position of the ledger.

    A page does not end within a request; it may so become a little longer than its limit.
    """
    view = find_task(store, name)
    if isinstance(view, Refusal):
        return view
    items = _items(store, view.task, dialects, after, reader)
    page, size = list[StoryItem](), 0
    for item in items:
        is_full = len(page) >= limit or size >= MAX_PAGE_BYTES
        if is_full and item.cause != page[-1].cause:
            return Story(view, tuple(page), page[-1].position)
        page.append(item)
        size += len(item.text) + (0 if isinstance(item.original, UnsetType) else len(item.original))
    return Story(view, tuple(page), None)


def whole_story(story: Story, read_after: Callable[[int], Story | Refusal]) -> Iterator[StoryItem]:
    """The items of a page and of all pages after it."""
    page: Story | Refusal = story
    while not isinstance(page, Refusal):
        yield from page.items
        if page.next is None:
            return
        page = read_after(page.next)


def _items(
    store: Store, task: Task, dialects: Sequence[Dialect], after: int, reader: Reader
) -> Iterator[StoryItem]:
    turns = turns_stream(task.id)
    small = (task_stream(task.id), *dict.fromkeys(_related_streams(store, task, reader)))
    # Short streams are read from their beginning, as durations are counted from there.
    streams = [
        *(stream_entries(store, stream, page=_PAGE) for stream in small),
        stream_entries(store, turns, version_at(store, turns, after), page=_PAGE),
        _trace_events_after(store, task.id, after),
    ]
    stopwatch, attempt, passed = _Stopwatch(), 0, 0
    cause, spoken = "", ""
    for entry in merge(*streams, key=lambda one: one.position):
        event, line = decode_event(entry), read_line(entry.line)
        duration = stopwatch.measure(entry.stream, event, line.at)
        if isinstance(event, TaskClaimed):
            attempt, passed = event.attempt, 0
        if isinstance(event, TaskChecked):
            passed = len(event.results) if event.passed else 0
        if entry.position <= after:
            continue
        if line.cause != cause:
            cause, spoken = line.cause, ""
        if not isinstance(line.original_text, UnsetType):
            spoken = dialect_of_message(dialects, bytes(line.original_text))
        is_own = entry.stream.startswith("task:")
        dialect = spoken or ("" if is_own else _native_dialect(dialects, event))
        proof = _describe_proof(passed) if attempt and _status_after(event) == "done" else ""
        item = _item(entry, line, event, dialect, attempt, duration)
        yield replace(item, title=item.title + proof)


def _describe_proof(passed: int) -> str:
    """Describe the evidence of work that is done, by the number of checks that it passed."""
    if not passed:
        return " (a claim: no checks)"
    return f" (proven: {passed} check{'' if passed == 1 else 's'} passed)"


def _item(
    entry: Entry,
    line: Line[Raw],
    event: Event,
    dialect: str,
    attempt: int,
    duration: int | None,
) -> StoryItem:
    text_of = _TEXTS.get(type(event))
    stated = getattr(event, "attempt", 0) or attempt
    return StoryItem(
        position=entry.position,
        at=line.at,
        kind=_kind_of(event, entry.event),
        type=entry.event,
        dialect=dialect,
        actor=line.actor,
        via=line.via,
        title=safe_text(describe_event(entry.event, msgspec.json.decode(line.body)), one_line=True),
        text="" if text_of is None else text_of(event),
        status=_status_after(event),
        attempt=max(0, stated),
        cause=line.cause,
        duration_ms=duration,
        stream=entry.stream,
        original=line.original_text,
    )


def _status_after(event: Event) -> Status | None:
    if isinstance(event, TaskCreated):
        return event.status
    move = status_change_of(event)
    return None if move is None else move.to
