"""Tools of the MCP surface: tasks, inbox, dialect operations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, field

from dragoman.core.agent import AgentRecord
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.base import Outcome, Role, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.handoff.state import HandoffStatus
from dragoman.core.mail import Mail
from dragoman.core.read import Receipt
from dragoman.core.task_state import UpdateTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.lint import explain_unrecognized
from dragoman.engine.operation import Dialect, Operation, QueryOperation
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries import handoffs
from dragoman.engine.queries.mail import Letter, mail_page
from dragoman.engine.queries.tasks import (
    TaskFilter,
    TaskView,
    find_task_stream,
    page_of_tasks,
    tasks_offered_to,
)
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.schemas.handoffs import handoff_summary
from dragoman.engine.schemas.tasks import task_detail, task_summary
from dragoman.ledger.entry import Entry, read_line
from dragoman.surfaces.mcp.context import HubContext
from dragoman.surfaces.mcp.tool import (
    Arguments,
    DialectRefused,
    Tool,
    ToolCall,
    argument_schema,
    make_tool,
    run_handler,
)

# --- reading: inbox, read ---------------------------------------------------------------------

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
        "cc": mail.cc + mail.auto_copied,
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


# --- working: claim, update, complete, heartbeat, ask -----------------------------------------

_MINUTE_MS = 60_000

_NO_NOTIFICATIONS = (
    "nobody is told of the question, because this hub has no notifications of blocked tasks "
    "([notify]): it waits until somebody looks"
)

TaskName = Annotated[str, Meta(description="Any name of the task")]

Fence = Annotated[int | None, Meta(description="`fence` of your claim: guards against old work")]

Texts = tuple[str, ...]


class ClaimArguments(Arguments, frozen=True):
    """The task to claim, and for how long."""

    task: Annotated[str, Meta(description="Its name; else the next that is ready for you")] = ""
    minutes: Annotated[
        int, Meta(ge=0, le=10_080, description="Lease: how long you may be silent; 0: default")
    ] = 0
    session: Annotated[str, Meta(description="Name of your session")] = ""


def claim_task(context: HubContext, arguments: ClaimArguments) -> dict[str, Any]:
    """Claim a task."""
    ttl_ms = arguments.minutes * _MINUTE_MS or context.settings.leases.ttl_ms
    receipt = context.submit(
        ClaimTask(arguments.task, context.actor.name, arguments.session, ttl_ms)
    )
    view = context.find_task(receipt.task)
    return _lease_status(receipt) | {
        "agent": context.actor.name,
        "about": task_brief(view, context.now, body=True),
    }


class UpdateArguments(Arguments, frozen=True):
    """Progress of a task, or another status."""

    task: TaskName
    status: Annotated[
        Status | None, Meta(description="`ready` gives it back, `blocked` stops it")
    ] = None
    progress: str = ""
    notes: str = ""
    blockers: Texts = ()
    fence: Fence = None


def update_task(context: HubContext, arguments: UpdateArguments) -> dict[str, Any]:
    """Report progress, which renews the lease, or change the status."""
    receipt = context.submit(
        UpdateTask(
            arguments.task,
            arguments.status,
            arguments.progress,
            arguments.notes,
            arguments.blockers,
            fence=arguments.fence,
        )
    )
    lease = context.find_task(receipt.task).lease
    return _lease_status(receipt) | ({"expiresAt": to_rfc3339(lease.expires_at)} if lease else {})


class CompleteArguments(Arguments, frozen=True):
    """The outcome of an attempt."""

    task: TaskName
    outcome: Outcome = "done"
    notes: Annotated[str, Meta(description="What you did, how you checked it, what is left")] = ""
    blockers: Annotated[Texts, Meta(description="What it waits for; required if blocked")] = ()
    details: Annotated[
        dict[str, Any], Meta(description="For programs; a number `cost` counts for your budget")
    ] = field(default_factory=dict[str, Any])
    fence: Fence = None


def complete_task(context: HubContext, arguments: CompleteArguments) -> dict[str, Any]:
    """Report an outcome, which takes effect at once."""
    report = ReportOutcome(
        arguments.task,
        arguments.outcome,
        arguments.notes,
        arguments.blockers,
        arguments.details,
        arguments.fence,
        apply=True,
        backoff=context.settings.retry,
    )
    return _lease_status(context.submit(report))


class HeartbeatArguments(Arguments, frozen=True):
    """A heartbeat of the holder."""

    task: TaskName
    fence: Fence = None


def renew_lease(context: HubContext, arguments: HeartbeatArguments) -> dict[str, Any]:
    """Renew the lease."""
    return _lease_status(context.submit(RenewLease(arguments.task, arguments.fence)))


class AskArguments(Arguments, frozen=True):
    """A question, and the task that it is about."""

    task: TaskName
    question: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="With the choices that you see")
    ]
    fence: Fence = None


def ask_people(context: HubContext, arguments: AskArguments) -> dict[str, Any]:
    """Block the task until somebody has answered."""
    command = UpdateTask(
        arguments.task, "blocked", blockers=(arguments.question,), fence=arguments.fence
    )
    status = _lease_status(context.submit(command))
    if not context.settings.notify.notifies_on("blocked"):
        context.warnings.append(_NO_NOTIFICATIONS)
    return status


def _lease_status(receipt: Receipt) -> dict[str, Any]:
    """Show the status of the task, and its lease."""
    status: dict[str, Any] = {"task": receipt.task, "status": receipt.status}
    if receipt.expires_at:
        status |= {
            "attempt": receipt.attempt,
            "fence": receipt.fence,
            "expiresAt": to_rfc3339(receipt.expires_at),
        }
    return status


WORK_TOOLS = (
    make_tool(
        "claim",
        "Take a task to work on; returns its text, its `fence` and when your lease ends. "
        "`nothing_ready` means: no work now, try later. Begin here.",
        ClaimArguments,
        claim_task,
    ),
    make_tool(
        "update",
        "Log progress on a task that you hold (this renews the lease), or change its status.",
        UpdateArguments,
        update_task,
    ),
    make_tool(
        "complete",
        "End your work on a task. `partial` and `needs_review` hand it to a reviewer, `failed` "
        "lets it be tried again. Do not go on with it afterwards.",
        CompleteArguments,
        complete_task,
    ),
    make_tool(
        "heartbeat",
        "Renew your lease before `expiresAt`, e.g. before a long command. "
        "`lease_lost` means: stop, somebody else has the task.",
        HeartbeatArguments,
        renew_lease,
    ),
    make_tool(
        "ask",
        "Ask people a question that you cannot answer yourself: the task is blocked until somebody "
        "answers, and a warning tells you if nobody is told of it. Stop working on it. The answer "
        "is in its history when it is ready again. To go on working meanwhile, `send` a "
        "HELP_REQUEST letter instead.",
        AskArguments,
        ask_people,
    ),
)


# --- dialects: send, and a tool for each operation --------------------------------------------


class SendArguments(Arguments, frozen=True):
    """A message."""

    message: Annotated[
        dict[str, Any] | str, Meta(description="The message, as an object or as text")
    ]


def send_message(context: HubContext, arguments: SendArguments) -> dict[str, Any]:
    """Send a message, in whatever dialect it is."""
    reply = context.router.send(arguments.message, speaker=context.actor)
    if reply is None:
        error = explain_unrecognized(arguments.message, context.router.dialects)
        raise Refused(Refusal(error.code, error.detail, path=error.path))
    answer = _accepted_or_raise(reply, context)
    shown = {"dialect": answer.dialect, "type": answer.kind, "reply": answer.reply}
    return shown | ({"repeated": True} if answer.repeated else {})


def dialect_tools(dialects: Sequence[Dialect]) -> Iterator[Tool]:
    """Yield the tool for messages, and one for every operation with a summary."""
    names = ", ".join(dialect.name for dialect in dialects)
    yield make_tool(
        "send",
        f"Send a whole message in one of the dialects that are spoken here ({names}), e.g. to "
        "hand a task on, to answer an offer, or a letter. You must be its sender.",
        SendArguments,
        send_message,
    )
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.summary:
                yield _operation_tool(dialect, operation)


def _operation_tool(dialect: Dialect, operation: Operation) -> Tool:
    reads = isinstance(operation, QueryOperation)

    async def run(call: ToolCall) -> Any:
        return await run_handler(
            call, lambda context: _call_operation(context, operation.name, call), reads=reads
        )

    schema = argument_schema(operation.input)
    # Some clients accept only letters, digits, _ and - in the name of a tool.
    name = operation.name.replace(".", "_")
    return Tool(name, operation.summary, schema, run, dialect.name, reads)


def _call_operation(context: HubContext, name: str, call: ToolCall) -> dict[str, Any]:
    outcome = context.router.call(name, call.arguments, context.actor)
    answer = _accepted_or_raise(outcome, context)
    reply = answer.reply
    return cast(dict[str, Any], reply) if isinstance(reply, dict) else {"reply": reply}


def _accepted_or_raise(answer: Reply, context: HubContext) -> Accepted:
    """Return an accepted outcome; raise a rejected one."""
    if isinstance(answer, Rejected):
        raise DialectRefused(Refusal(answer.code, answer.detail, path=answer.path), answer.reply)
    context.warnings.extend(answer.warnings)
    return answer


# --- all tools --------------------------------------------------------------------------------


def build_tools(dialects: Sequence[Dialect], extra: Sequence[Tool] = ()) -> dict[str, Tool]:
    """Return every tool by its name, in the order in which they are listed; names are unique."""
    tools = (*WORK_TOOLS, *READ_TOOLS, *dialect_tools(dialects), *extra)
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools):
        raise ValueError(f"two tools have one name among {', '.join(tool.name for tool in tools)}")
    return by_name


# --- selection --------------------------------------------------------------------------------

CORE_GROUP = "core"

ToolsByName = Mapping[str, Tool]


def visible_tools(tools: ToolsByName, role: Role, agent: AgentRecord | None) -> ToolsByName:
    """Return the tools that an agent is shown: by its role, and the dialects that it speaks."""
    if role == "observer":
        return {name: tool for name, tool in tools.items() if tool.is_read_only}
    if agent is None or not agent.speaks:
        return tools
    groups = {CORE_GROUP, *agent.speaks}
    return {name: tool for name, tool in tools.items() if tool.group in groups}
