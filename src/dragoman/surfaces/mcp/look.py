"""Tools that change nothing: read (one task, or a list) and inbox (what concerns the caller)."""

from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import HandoffStatus, Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads import handoffs
from dragoman.engine.reads.ask import TaskView, find_task_stream, tasks_offered_to
from dragoman.engine.reads.mailbox import Letter, mail_page
from dragoman.engine.reads.pages import TaskFilter, page_of_tasks
from dragoman.engine.shown.handoffs import handoff_summary
from dragoman.engine.shown.tasks import task_detail, task_summary
from dragoman.ledger.entry import Entry, read_line
from dragoman.surfaces.mcp.desk import HubContext
from dragoman.surfaces.mcp.tool import Arguments, make_tool

_MAX_ENTRIES = 200
_TOOL_PAGE_SIZE = 20
_LETTER_EXCERPT = 1_000
"""Characters of a letter that are shown in a list."""
_HANDOFF_FIELDS = ("handoff_id", "status", "task_id", "from_agent", "title", "due_by", "escalated")
"""Fields of a handoff that are shown in a list."""
_OPEN_STATUSES: tuple[HandoffStatus, ...] = ("proposed", "validating", "accepted", "activated")

_EMPTY: tuple[Any, ...] = (None, "", (), [], {})
_HIDDEN_ZEROS = frozenset({"attempt", "fence", "notes", "failures", "warnings", "delegationDepth"})
"""Counters that are left out while they are 0."""


class ReadArguments(Arguments, frozen=True):
    """One task, or the filters of a list."""

    task: Annotated[str, Meta(description="Any name of one task; else a list")] = ""
    history: Annotated[
        int, Meta(ge=0, le=_MAX_ENTRIES, description="Show so many of its last entries")
    ] = 0
    status: Annotated[Status | None, Meta(description="List: only in this status")] = None
    assignee: Annotated[str, Meta(description="List: only this agent's")] = ""
    ready: Annotated[bool, Meta(description="List: only what can be claimed now")] = False
    limit: Annotated[int, Meta(ge=1, le=100)] = _TOOL_PAGE_SIZE
    cursor: Annotated[int | None, Meta(description="`next` of the list before")] = None


def read_tasks(context: HubContext, arguments: ReadArguments) -> dict[str, Any]:
    """Read one task, or a page of tasks."""
    if not arguments.task:
        return _read_page(context, arguments)
    result = task_brief(context.find_task(arguments.task), context.now, body=True)
    if arguments.history:
        result["history"] = read_last_entries(context, arguments.task, arguments.history)
    return result


def _read_page(context: HubContext, arguments: ReadArguments) -> dict[str, Any]:
    if arguments.ready and arguments.status not in (None, "ready"):
        raise Refused(
            Refusal("invalid_field", f"ready and status {arguments.status} exclude each other")
        )
    status = "ready" if arguments.ready else arguments.status
    wanted = TaskFilter(
        status, arguments.assignee, arguments.ready, arguments.cursor, arguments.limit
    )
    page = page_of_tasks(context.hub.store, wanted, context.now)
    result: dict[str, Any] = {"tasks": [task_brief(view, context.now) for view in page.tasks]}
    return result if page.next is None else result | {"next": page.next}


class InboxArguments(Arguments, frozen=True):
    """No arguments: the inbox is the caller's."""


def show_inbox(context: HubContext, _: InboxArguments) -> dict[str, Any]:
    """Show the tasks of the caller (held, ready, free, offered, blocked, in review), its handoffs
    and letters."""
    name, store = context.actor.name, context.hub.store

    def page(wanted: TaskFilter) -> list[dict[str, Any]]:
        return [
            task_brief(view, context.now)
            for view in page_of_tasks(store, wanted, context.now).tasks
        ]

    def in_status(status: Status, *, claimable: bool = False) -> list[dict[str, Any]]:
        return page(TaskFilter(status, name, claimable, limit=_TOOL_PAGE_SIZE))

    return {
        "agent": name,
        "holding": in_status("in-progress"),
        "ready": in_status("ready", claimable=True),
        "free": page(
            TaskFilter("ready", is_claimable=True, is_unassigned=True, limit=_TOOL_PAGE_SIZE)
        ),
        "offered": [
            task_brief(view, context.now) for view in tasks_offered_to(store, name, _TOOL_PAGE_SIZE)
        ],
        "handoffs": open_handoffs_to(store, name),
        "blocked": in_status("blocked"),
        "review": in_status("review"),
        "letters": unread_letters(store, name),
    }


def open_handoffs_to(store: Store, name: str) -> list[dict[str, Any]]:
    """List open handoffs to this recipient: what is to be answered before what is under way, the
    newest of a status first."""
    found = list[dict[str, Any]]()
    for status in _OPEN_STATUSES:
        page = handoffs.handoff_page(
            store, handoffs.HandoffFilter(status, recipient=name, limit=_TOOL_PAGE_SIZE)
        )
        assert not isinstance(page, Refusal), "the agent's name is valid"
        shown = (msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs)
        found += ({key: one[key] for key in _HANDOFF_FIELDS if one[key]} for one in shown)
    return found


def unread_letters(store: Store, name: str) -> list[dict[str, Any]]:
    """List the oldest unread letters of an agent; long ones are cut."""
    page = mail_page(store, ListQuery(f"unread:{name}", limit=_TOOL_PAGE_SIZE))
    return [_drop_empty(_letter_excerpt(letter.mail, name)) for letter in page.letters]


def _letter_excerpt(mail: Mail, reader: str) -> dict[str, Any]:
    text = mail.body if len(mail.body) <= _LETTER_EXCERPT else mail.body[:_LETTER_EXCERPT] + "…"
    return {
        "id": mail.id,
        "from": mail.sender,
        "at": to_rfc3339(mail.posted_at),
        "thread": mail.thread,
        "subject": mail.subject,
        "text": text,
        "importance": "" if mail.importance == "normal" else mail.importance,
        "wants": "ack" if reader in mail.awaited_acks else "",
    }


def full_letter(letter: Letter) -> dict[str, Any]:
    """Show everything about a letter."""
    mail = letter.mail
    shown = _letter_excerpt(mail, "") | {
        "text": mail.body,
        "type": mail.kind,
        "bead": mail.bead,
        "to": mail.to,
        "cc": mail.cc + mail.copied,
        "replyTo": mail.reply_to,
        "attachments": mail.attachments,
        "readBy": mail.read_by,
        "ackedBy": mail.acked_by,
        "waitsFor": mail.awaited_acks,
        "answer": mail.answer,
    }
    return _drop_empty(shown)


def task_brief(view: TaskView, now: int, *, body: bool = False) -> dict[str, Any]:
    """Show a task without empty fields, because a model pays for every word."""
    shown = (task_detail if body else task_summary)(view.task, view.lease, now)
    return _drop_empty(msgspec.to_builtins(shown))


def read_last_entries(context: HubContext, name: str, limit: int) -> list[dict[str, Any]]:
    """Read the last entries of a task's history, oldest first."""
    store = context.hub.store
    stream = find_task_stream(store, name)
    if isinstance(stream, Refusal):
        raise Refused(stream)
    row = store.stream(stream)
    newest = 0 if row is None else row.version
    return [_entry_brief(entry) for entry in store.history(stream, max(0, newest - limit), limit)]


def _entry_brief(entry: Entry) -> dict[str, Any]:
    line = read_line(entry.line)
    body = _drop_empty(msgspec.json.decode(line.body))
    shown = {"at": to_rfc3339(line.at), "actor": line.actor, "type": line.event}
    return shown | ({"body": body} if body else {})


def _drop_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {key: _drop_empty(part) for key, part in cast(dict[str, Any], value).items()}
    return {
        key: part
        for key, part in parts.items()
        if part not in _EMPTY and not (part == 0 and key in _HIDDEN_ZEROS)
    }


READ_TOOLS = (
    make_tool(
        "inbox",
        "What concerns you: tasks that you hold, that are ready for you, that are `free` for "
        "anybody to claim, that you are offered, that are blocked or in review, `handoffs` to you, "
        "and unread letters. Answer with `send`, or with a tool for it where you have one. Look "
        "here after a restart.",
        InboxArguments,
        show_inbox,
        reads=True,
    ),
    make_tool(
        "read",
        "Read one task, with its history if asked, or a list.",
        ReadArguments,
        read_tasks,
        reads=True,
    ),
)
