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
from dragoman.engine.reads.ask import TaskView, find_stream, tasks_offered
from dragoman.engine.reads.mailbox import Letter, page_of
from dragoman.engine.reads.pages import Wanted, page_now
from dragoman.engine.shown.handoffs import handoff_summary
from dragoman.engine.shown.tasks import task_summary, whole_task
from dragoman.ledger.entry import Entry, read_line
from dragoman.surfaces.mcp.desk import Desk
from dragoman.surfaces.mcp.tool import Arguments, tool

_MOST_ENTRIES = 200
_IN_A_LIST = 20
_OF_A_LETTER = 1_000
"""Characters of a letter that are shown in a list."""
_OF_A_HANDOFF = ("handoff_id", "status", "task_id", "from_agent", "title", "due_by", "escalated")
"""Fields of a handoff that are shown in a list."""
_UNDER_WAY: tuple[HandoffStatus, ...] = ("proposed", "validating", "accepted", "activated")

_EMPTY: tuple[Any, ...] = (None, "", (), [], {})
_OF_NO_USE = frozenset({"attempt", "fence", "notes", "failures", "warnings", "delegationDepth"})
"""Counters that are left out while they are 0."""


class Read(Arguments, frozen=True):
    """One task, or the filters of a list."""

    task: Annotated[str, Meta(description="Any name of one task; else a list")] = ""
    history: Annotated[
        int, Meta(ge=0, le=_MOST_ENTRIES, description="Show so many of its last entries")
    ] = 0
    status: Annotated[Status | None, Meta(description="List: only in this status")] = None
    assignee: Annotated[str, Meta(description="List: only this agent's")] = ""
    ready: Annotated[bool, Meta(description="List: only what can be claimed now")] = False
    limit: Annotated[int, Meta(ge=1, le=100)] = _IN_A_LIST
    cursor: Annotated[int | None, Meta(description="`next` of the list before")] = None


def read(desk: Desk, asked: Read) -> dict[str, Any]:
    """Read one task, or a page of tasks."""
    if not asked.task:
        return _page(desk, asked)
    shown = brief(desk.task(asked.task), desk.now, body=True)
    if asked.history:
        shown["history"] = last_entries(desk, asked.task, asked.history)
    return shown


def _page(desk: Desk, asked: Read) -> dict[str, Any]:
    if asked.ready and asked.status not in (None, "ready"):
        raise Refused(
            Refusal("invalid_field", f"ready and status {asked.status} exclude each other")
        )
    status = "ready" if asked.ready else asked.status
    wanted = Wanted(status, asked.assignee, asked.ready, asked.cursor, asked.limit)
    page = page_now(desk.hub.store, wanted, desk.now)
    listed: dict[str, Any] = {"tasks": [brief(view, desk.now) for view in page.tasks]}
    return listed if page.next is None else listed | {"next": page.next}


class Inbox(Arguments, frozen=True):
    """No arguments: the inbox is the caller's."""


def inbox(desk: Desk, _: Inbox) -> dict[str, Any]:
    """Show the tasks of the caller (held, ready, free, offered, blocked, in review), its handoffs
    and letters."""
    name, store = desk.actor.name, desk.hub.store

    def page(wanted: Wanted) -> list[dict[str, Any]]:
        return [brief(view, desk.now) for view in page_now(store, wanted, desk.now).tasks]

    def of(status: Status, *, claimable: bool = False) -> list[dict[str, Any]]:
        return page(Wanted(status, name, claimable, limit=_IN_A_LIST))

    return {
        "agent": name,
        "holding": of("in-progress"),
        "ready": of("ready", claimable=True),
        "free": page(Wanted("ready", is_claimable=True, is_free=True, limit=_IN_A_LIST)),
        "offered": [brief(view, desk.now) for view in tasks_offered(store, name, _IN_A_LIST)],
        "handoffs": handoffs_to(store, name),
        "blocked": of("blocked"),
        "review": of("review"),
        "letters": unread_letters(store, name),
    }


def handoffs_to(store: Store, name: str) -> list[dict[str, Any]]:
    """List open handoffs to this recipient: what is to be answered before what is under way, the
    newest of a status first."""
    found = list[dict[str, Any]]()
    for status in _UNDER_WAY:
        page = handoffs.page_of(store, handoffs.Wanted(status, recipient=name, limit=_IN_A_LIST))
        assert not isinstance(page, Refusal), "the agent's name is valid"
        shown = (msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs)
        found += ({key: one[key] for key in _OF_A_HANDOFF if one[key]} for one in shown)
    return found


def unread_letters(store: Store, name: str) -> list[dict[str, Any]]:
    """List the oldest unread letters of an agent; long ones are cut."""
    page = page_of(store, ListQuery(f"unread:{name}", limit=_IN_A_LIST))
    return [_filled(_letter(letter.mail, name)) for letter in page.letters]


def _letter(mail: Mail, reader: str) -> dict[str, Any]:
    text = mail.body if len(mail.body) <= _OF_A_LETTER else mail.body[:_OF_A_LETTER] + "…"
    return {
        "id": mail.id,
        "from": mail.sender,
        "at": to_rfc3339(mail.posted_at),
        "thread": mail.thread,
        "subject": mail.subject,
        "text": text,
        "importance": "" if mail.importance == "normal" else mail.importance,
        "wants": "ack" if reader in mail.waits_for else "",
    }


def whole_letter(letter: Letter) -> dict[str, Any]:
    """Show everything about a letter."""
    mail = letter.mail
    shown = _letter(mail, "") | {
        "text": mail.body,
        "type": mail.kind,
        "bead": mail.bead,
        "to": mail.to,
        "cc": mail.cc + mail.copied,
        "replyTo": mail.reply_to,
        "attachments": mail.attachments,
        "readBy": mail.read_by,
        "ackedBy": mail.acked_by,
        "waitsFor": mail.waits_for,
        "answer": mail.answer,
    }
    return _filled(shown)


def brief(view: TaskView, now: int, *, body: bool = False) -> dict[str, Any]:
    """Show a task without empty fields, because a model pays for every word."""
    shown = (whole_task if body else task_summary)(view.task, view.lease, now)
    return _filled(msgspec.to_builtins(shown))


def last_entries(desk: Desk, name: str, most: int) -> list[dict[str, Any]]:
    """Read the last entries of a task's history, oldest first."""
    store = desk.hub.store
    stream = find_stream(store, name)
    if isinstance(stream, Refusal):
        raise Refused(stream)
    row = store.stream(stream)
    newest = 0 if row is None else row.version
    return [_entry(entry) for entry in store.history(stream, max(0, newest - most), most)]


def _entry(entry: Entry) -> dict[str, Any]:
    line = read_line(entry.line)
    body = _filled(msgspec.json.decode(line.body))
    shown = {"at": to_rfc3339(line.at), "actor": line.actor, "type": line.event}
    return shown | ({"body": body} if body else {})


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {key: _filled(part) for key, part in cast(dict[str, Any], value).items()}
    return {
        key: part
        for key, part in parts.items()
        if part not in _EMPTY and not (part == 0 and key in _OF_NO_USE)
    }


TOOLS = (
    tool(
        "inbox",
        "What concerns you: tasks that you hold, that are ready for you, that are `free` for "
        "anybody to claim, that you are offered, that are blocked or in review, `handoffs` to you, "
        "and unread letters. Answer with `send`, or with a tool for it where you have one. Look "
        "here after a restart.",
        Inbox,
        inbox,
        reads=True,
    ),
    tool("read", "Read one task, with its history if asked, or a list.", Read, read, reads=True),
)
