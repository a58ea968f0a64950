"""Tools of the MCP surface: tasks, inbox, dialect operations."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from dragoman.core.agent import AgentRecord
from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.base import Priority, Role, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.handoff.state import HandoffStatus
from dragoman.core.limits import (
    MAX_BODY,
    MAX_LINKS,
    MAX_REASON,
    MAX_RECIPIENTS,
    MAX_SUBJECT,
    MAX_TITLE,
)
from dragoman.core.mail import AckMail, Mail, PostMail
from dragoman.core.question_state import AskQuestion
from dragoman.core.read import Receipt
from dragoman.core.task_state import CreateTask, UpdateTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.lint import explain_unrecognized
from dragoman.engine.operation import Dialect, Operation, QueryOperation
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries import handoffs
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.briefing import find_briefing
from dragoman.engine.queries.mail import Letter, find_thread, mail_page
from dragoman.engine.queries.questions import find_question
from dragoman.engine.queries.status import find_status
from dragoman.engine.queries.tasks import (
    TaskFilter,
    TaskView,
    find_task_stream,
    page_of_tasks,
    tasks_offered_to,
)
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.schemas.briefing import briefing_resource
from dragoman.engine.schemas.handoffs import handoff_summary
from dragoman.engine.schemas.status import status_resource
from dragoman.engine.schemas.task_diff import BranchName
from dragoman.engine.schemas.tasks import EntryResource, shown_resource, task_detail, task_summary
from dragoman.engine.task_actions import (
    TASK_ACTIONS,
    ActionSettings,
    arguments_shape,
    summarize,
)
from dragoman.surfaces.mcp.context import HubContext
from dragoman.surfaces.mcp.tool import (
    Arguments,
    DialectRefused,
    Pending,
    Tool,
    ToolCall,
    ToolError,
    ToolResult,
    argument_schema,
    make_tool,
    run_handler,
)
from dragoman.text.strict_json import get_field

# --- reading: inbox, read ---------------------------------------------------------------------

_MAX_ENTRIES = 200

_TOOL_PAGE_SIZE = 20

Texts = tuple[str, ...]

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
    limit: Annotated[int, Meta(ge=1, le=100, description="List: so many")] = _TOOL_PAGE_SIZE
    cursor: Annotated[int | None, Meta(description="List: `next` of the page before")] = None


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
    """Letters that the caller has dealt with."""

    done: Annotated[
        Texts,
        Meta(
            max_length=_TOOL_PAGE_SIZE,
            description="Ids of letters that you have dealt with: they are shown no more",
        ),
    ] = ()


def show_inbox(context: HubContext, arguments: InboxArguments) -> dict[str, Any]:
    """Show the tasks of the caller (held, ready, free, offered, blocked, in review), its handoffs
    and letters, without those that it has dealt with."""
    name, store = context.actor.name, context.hub.store
    if arguments.done:
        context.submit(*map(AckMail, arguments.done))

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
    source = EntrySource(store, context.settings.teamspaces)
    page = source.history(stream, max(0, newest - limit), limit)
    return [_entry_brief(shown_resource(*entry, context.reader)) for entry in page]


def _entry_brief(entry: EntryResource) -> dict[str, Any]:
    body = _drop_empty(msgspec.json.decode(entry.body))
    shown = {"at": entry.at, "actor": entry.actor, "type": entry.type}
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


class StatusArguments(Arguments, frozen=True):
    """No arguments: the status is that of the whole hub."""


def show_status(context: HubContext, _: StatusArguments) -> dict[str, Any]:
    """Show the whole hub at one moment."""
    store, now, settings = context.hub.store, context.now, context.settings
    attention = find_attention(
        store,
        now,
        served=settings.served_names,
        reader=context.reader,
        limit=_TOOL_PAGE_SIZE,
    )
    status = find_status(store, now, attention, _TOOL_PAGE_SIZE)
    return _drop_empty(msgspec.to_builtins(status_resource(status)))


READ_TOOLS = (
    make_tool(
        "read",
        "Read one task with its text and questions, or list tasks.",
        ReadArguments,
        read_tasks,
        reads=True,
    ),
    make_tool(
        "status",
        "The whole hub: who works on what, what waits and for whom, what needs a person.",
        StatusArguments,
        show_status,
        reads=True,
    ),
    make_tool(
        "inbox",
        "What concerns you: tasks that you hold, ready for you, `free` for anybody, offered to "
        "you, blocked or in review, `handoffs` to you, unread letters. Look here after a restart.",
        InboxArguments,
        show_inbox,
    ),
)


# --- working: claim, create, update, complete, release, ask ------------------------------------

_MINUTE_MS = 60_000

_NO_NOTIFICATIONS = (
    "nobody is told of the question, because the settings of this hub ([notify]) have turned that "
    "off: it waits until somebody looks"
)

TaskName = Annotated[str, Meta(description="Any name of the task")]

Fence = Annotated[int | None, Meta(description="`fence` of your claim")]


MAX_WAIT_S: Final = 300

WaitSeconds = Annotated[int, Meta(ge=0, le=MAX_WAIT_S, description="Seconds to wait")]


class ClaimArguments(Arguments, frozen=True):
    """The task to claim, and for how long."""

    task: Annotated[str, Meta(description="Its name; else the next that is ready for you")] = ""
    minutes: Annotated[
        int,
        Meta(ge=0, le=10_080, description="Lease, if you may be cut off for long"),
    ] = 0
    session: Annotated[str, Meta(description="Your session, if your dialect ends them")] = ""
    wait: WaitSeconds = 0


def claim_task(context: HubContext, arguments: ClaimArguments) -> dict[str, Any]:
    """Claim a task."""
    ttl_ms = arguments.minutes * _MINUTE_MS or context.settings.leases.ttl_ms
    is_repeat = context.leases.has_claimed(context.hub.store, arguments.task)
    claim = ClaimTask(arguments.task, context.actor.name, arguments.session, ttl_ms)
    receipt = context.submit(replace(claim, renew_if_held=is_repeat))
    view = context.find_task(receipt.task)
    briefing = find_briefing(context.hub.store, view.task)
    about = task_brief(view, context.now, body=True)
    told: dict[str, Any] = msgspec.to_builtins(briefing_resource(briefing)) or {}
    return _lease_status(receipt) | {
        "agent": context.actor.name,
        "about": {key: part for key, part in about.items() if key not in told},
        **({"briefing": _drop_empty(told)} if told else {}),
    }


class CreateArguments(Arguments, frozen=True, kw_only=True):
    """A task to create."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE, description="One line")]
    body: Annotated[
        str, Meta(max_length=MAX_BODY, description="All that whoever does it needs to know")
    ] = ""
    ready: Annotated[bool, Meta(description="false: keep it in the backlog")] = True
    assignee: Annotated[str, Meta(description="The only agent that may take it; else any")] = ""
    priority: Annotated[Priority, Meta(description="What is urgent is taken first")] = "normal"
    blocked_by: Annotated[
        Texts, Meta(max_length=MAX_LINKS, description="Tasks that have to be done before")
    ] = ()
    parent: Annotated[str, Meta(description="Task that it is a part of")] = ""
    discovered_from: Annotated[str, Meta(description="Task on which you found it")] = ""


def create_task(context: HubContext, arguments: CreateArguments) -> dict[str, Any]:
    """Create a task."""
    defaults = context.settings.tasks
    receipt = context.submit(
        CreateTask(
            arguments.title,
            body=arguments.body,
            ready=arguments.ready,
            assignee=arguments.assignee,
            parent=arguments.parent,
            review_required=defaults.review_required,
            may_skip_review=defaults.may_skip_review,
            priority=arguments.priority,
            blocked_by=arguments.blocked_by,
            discovered_from=arguments.discovered_from,
            max_attempts=defaults.max_attempts,
        )
    )
    return _lease_status(receipt)


class UpdateArguments(Arguments, frozen=True):
    """Progress of a task, or another status."""

    task: TaskName
    progress: Annotated[
        str, Meta(description="What you have done since, or why the status changes")
    ] = ""
    status: Annotated[Status | None, Meta(description="Its new status")] = None
    fence: Fence = None


def update_task(context: HubContext, arguments: UpdateArguments) -> dict[str, Any]:
    """Report progress, which renews the lease, or change the status."""
    if arguments.status is None and not arguments.progress:
        raise Refused(Refusal("invalid_field", "update: progress or status is needed"))
    receipt = context.submit(
        UpdateTask(arguments.task, arguments.status, arguments.progress, fence=arguments.fence)
    )
    _check_effect(receipt)
    lease = context.find_task(receipt.task).lease
    return _lease_status(receipt) | ({"expiresAt": to_rfc3339(lease.expires_at)} if lease else {})


def act_on_task(context: HubContext, arguments: Any) -> dict[str, Any]:
    """Run an action of the table on the task that its arguments name."""
    known = context.settings
    settings = ActionSettings(known.retry, known.attempts.pauses_limited)
    commands = arguments.commands(arguments.task, context.actor, settings)
    receipt = context.submit(*commands)
    if isinstance(commands[-1], UpdateTask):
        _check_effect(receipt)
    checked = {"checks": _CHECKS_RUN} if context.find_task(receipt.task).task.awaits_checks else {}
    return _lease_status(receipt) | checked


_CHECKS_RUN = "the hub runs the checks of this task now; `read` shows their results"


def _check_effect(receipt: Receipt) -> None:
    """Refuse what an update could not do: the core remarks it, and keeps the text that it has."""
    if receipt.warning:
        raise Refused(Refusal("invalid_transition", receipt.warning))


class HeartbeatArguments(Arguments, frozen=True):
    """A heartbeat of the holder."""

    task: TaskName
    fence: Fence = None


def renew_lease(context: HubContext, arguments: HeartbeatArguments) -> dict[str, Any]:
    """Renew the lease."""
    return _lease_status(context.submit(RenewLease(arguments.task, arguments.fence)))


class AskArguments(Arguments, frozen=True, kw_only=True):
    """A question, and the task that it is about."""

    task: TaskName
    question: Annotated[
        str, Meta(min_length=1, max_length=MAX_REASON, description="With the choices that you see")
    ]
    go_on: Annotated[bool, Meta(description="true: you keep the task and work on meanwhile")] = (
        False
    )
    wait: WaitSeconds = 0
    fence: Fence = None


def ask_people(context: HubContext, arguments: AskArguments) -> dict[str, Any]:
    """Ask a question; the task is blocked until somebody has answered, unless its agent goes on."""
    task, question, fence = arguments.task, arguments.question, arguments.fence
    if arguments.go_on or arguments.wait:
        receipt = context.submit(AskQuestion(task, question, fence))
        return _lease_status(receipt) | {"question": receipt.question}
    receipt = context.submit(UpdateTask(task, "blocked", blockers=(question,), fence=fence))
    _check_effect(receipt)
    notify = context.settings.notify
    if not (notify.tells_owner_of("question") or notify.notifies_on("blocked")):
        context.warnings.append(_NO_NOTIFICATIONS)
    return _lease_status(receipt)


RunTool = Callable[[ToolCall], Awaitable[Any]]


async def claim_or_wait(claim: RunTool, call: ToolCall) -> ToolResult | ToolError | Pending:
    """Claim a task; if none is ready, wait for one if that is wanted."""
    claimed = await claim(call)
    if not (isinstance(claimed, ToolError) and claimed.code == "nothing_ready"):
        return claimed
    seconds = _wanted_wait(call)
    return Pending(claimed, seconds, partial(claim_or_wait, claim)) if seconds else claimed


async def ask_and_wait(ask: RunTool, call: ToolCall) -> ToolResult | ToolError | Pending:
    """Ask, and wait for the answer if that is wanted."""
    asked = await ask(call)
    if not (isinstance(asked, ToolResult) and "question" in asked.data):
        return asked
    task, question, seconds = asked.data["task"], asked.data["question"], _wanted_wait(call)

    def read_answer(context: HubContext) -> dict[str, Any]:
        found = find_question(context.hub.store, task, question)
        if isinstance(found, Refusal):
            raise Refused(found)
        answer = {"answer": found.question.answer} if found.state == "answered" else {}
        return {**asked.data, "state": found.state, **answer}

    async def look(call: ToolCall) -> ToolResult | ToolError | Pending:
        shown = await run_handler(call, read_answer, reads=True)
        is_open = isinstance(shown, ToolResult) and shown.data["state"] == "open"
        return Pending(shown, seconds, look) if is_open and seconds else shown

    return await look(call)


def _wanted_wait(call: ToolCall) -> float:
    return float(call.arguments.get("wait") or 0)


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


def _with_wait(tool: Tool, run: Callable[[RunTool, ToolCall], Awaitable[Any]]) -> Tool:
    """Let the calls of a tool wait."""
    return replace(tool, run=partial(run, tool.run))


WORK_TOOLS = (
    _with_wait(
        make_tool(
            "claim",
            "Take a task. Begin here: returns its text, your `fence`, and a `briefing` of answers "
            "and earlier work. `nothing_ready` means: no work now.",
            ClaimArguments,
            claim_task,
        ),
        claim_or_wait,
    ),
    make_tool(
        "create",
        "Create a task, e.g. for work that you found and that is not yours to do now.",
        CreateArguments,
        create_task,
    ),
    make_tool(
        "update",
        "Log progress on a task that you hold, or change its status.",
        UpdateArguments,
        update_task,
    ),
    make_tool(
        "complete",
        "End your work on a task. `partial` and `needs_review` hand it to a reviewer, `failed` "
        "lets it be tried again, `limited`: your usage limit. Stop work on it then.",
        arguments_shape("complete"),
        act_on_task,
    ),
    make_tool(
        "release",
        "Give a task back that you hold and do not want to go on with; that is no failure.",
        arguments_shape("release"),
        act_on_task,
    ),
    _with_wait(
        make_tool(
            "ask",
            "Ask people what you cannot decide yourself. The task is blocked until somebody "
            "answers: stop working on it; the next claim has the answer. With `wait` you keep the "
            "task.",
            AskArguments,
            ask_people,
        ),
        ask_and_wait,
    ),
)

HEARTBEAT_TOOL = make_tool(
    "heartbeat",
    "Renew your lease before `expiresAt`. `lease_lost` means: stop, somebody else has the task.",
    HeartbeatArguments,
    renew_lease,
    is_listed=False,
)


ACTION_TOOLS = tuple(
    make_tool(f"task_{name}", summarize(shape), arguments_shape(name), act_on_task, is_listed=False)
    for name, shape in TASK_ACTIONS.items()
)
"""Actions of the table, by their names; models are shown the few tools of daily work instead."""


# --- branches: diff, merge ---------------------------------------------------------------------


class BranchArguments(Arguments, frozen=True):
    """A task, and the branch that its own is compared with or merged into."""

    task: TaskName
    into: BranchName = ""


def show_diff(context: HubContext, arguments: BranchArguments) -> dict[str, Any]:
    """Show what the work on a task has changed in its repository."""
    found = context.branches.diff(arguments.task, arguments.into, context.actor)
    return msgspec.to_builtins(found)


def merge_branch(context: HubContext, arguments: BranchArguments) -> dict[str, Any]:
    """Merge the branch of a task, and record the commit."""
    merged = context.branches.merge(arguments.task, arguments.into, context.actor)
    return msgspec.to_builtins(merged)


BRANCH_TOOLS = (
    make_tool(
        "task_diff",
        "Show what the work on a task has changed in its repository",
        BranchArguments,
        show_diff,
        reads=True,
        is_listed=False,
    ),
    make_tool(
        "task_merge",
        "Merge the branch of a task; for people and orchestrators",
        BranchArguments,
        merge_branch,
        is_listed=False,
    ),
)


# --- letters ----------------------------------------------------------------------------------


class SendArguments(Arguments, frozen=True, kw_only=True):
    """A letter."""

    to: Annotated[
        Texts, Meta(min_length=1, max_length=MAX_RECIPIENTS, description="Names of agents, people")
    ]
    subject: Annotated[str, Meta(max_length=MAX_SUBJECT, description="One line")]
    text: Annotated[str, Meta(max_length=MAX_BODY, description="The letter, in Markdown")]
    task: Annotated[str, Meta(description="Task that it is about: it joins its thread")] = ""
    reply_to: Annotated[str, Meta(description="Id of the letter that it answers")] = ""


def send_letter(context: HubContext, arguments: SendArguments) -> dict[str, Any]:
    """Send a letter, which has no effect on a task whatever its subject says."""
    thread = ""
    if arguments.task:
        context.find_task(arguments.task)
        found = find_thread(arguments.task, context.hub.store)
        thread = found if isinstance(found, str) else ""
    receipt = context.submit(
        PostMail(
            arguments.to,
            arguments.subject,
            arguments.text,
            thread=thread,
            reply_to=arguments.reply_to,
        )
    )
    return {"id": receipt.stream.partition(":")[2], "thread": receipt.thread}


SEND_TOOL = make_tool(
    "send",
    "Send a letter to agents or people; it is shown in their `inbox`. To answer a letter, name it "
    "in `reply_to`.",
    SendArguments,
    send_letter,
)


# --- dialects: messages, and a tool for each operation ----------------------------------------


class MessageArguments(Arguments, frozen=True):
    """A message."""

    message: Annotated[
        dict[str, Any] | str, Meta(description="The message, as an object or as text")
    ]


def send_message(context: HubContext, arguments: MessageArguments) -> dict[str, Any]:
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
        "send_message",
        f"Send a whole message in one of the dialects that are spoken here ({names}), e.g. to "
        "hand a task on or to answer an offer. You must be its sender.",
        MessageArguments,
        send_message,
        is_listed=False,
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
    context.note(answer.receipts)
    declined = _declined_effect(answer.reply)
    if declined is not None:
        raise DialectRefused(declined, answer.reply)
    context.warnings.extend(answer.warnings)
    return answer


def _declined_effect(reply: Any) -> Refusal | None:
    """Refusal of the effect of a message that itself was taken, as its dialect's reply has it."""
    found = get_field(reply, "effect")
    refusal = get_field(reply, "reason") if found is None else found
    if get_field(reply if found is None else found, "applied") is not False:
        return None
    code, detail = get_field(refusal, "code"), get_field(refusal, "detail")
    return Refusal(code, f"the message was taken, its effect refused: {detail}") if code else None


# --- all tools --------------------------------------------------------------------------------


def build_tools(dialects: Sequence[Dialect], extra: Sequence[Tool] = ()) -> dict[str, Tool]:
    """Return every tool by its name, in the order in which they are listed; names are unique."""
    tools = (
        *WORK_TOOLS,
        *READ_TOOLS,
        SEND_TOOL,
        *dialect_tools(dialects),
        *extra,
        HEARTBEAT_TOOL,
        *ACTION_TOOLS,
        *BRANCH_TOOLS,
    )
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools):
        raise ValueError(f"two tools have one name among {', '.join(tool.name for tool in tools)}")
    return by_name


# --- selection --------------------------------------------------------------------------------

CORE_GROUP = "core"
MESSAGE_TOOL = "send_message"

ToolsByName = Mapping[str, Tool]


def callable_tools(tools: ToolsByName, role: Role, agent: AgentRecord | None) -> ToolsByName:
    """Return the tools that an agent can call: by its role, and the dialects that it speaks."""
    if role == "observer":
        return {name: tool for name, tool in tools.items() if tool.is_read_only}
    groups = _spoken_groups(agent)
    return {name: tool for name, tool in tools.items() if not groups or tool.group in groups}


def listed_tools(tools: ToolsByName, role: Role, agent: AgentRecord | None) -> ToolsByName:
    """Return those that an agent is shown, because a model reads the whole list at its start: the
    few of daily work, and those of the dialects that it speaks."""
    spoken = _spoken_groups(agent)
    groups = {CORE_GROUP} | spoken
    return {
        name: tool
        for name, tool in callable_tools(tools, role, agent).items()
        if tool.group in groups and (tool.is_listed or (spoken and name == MESSAGE_TOOL))
    }


def _spoken_groups(agent: AgentRecord | None) -> set[str]:
    """Groups of an agent that speaks dialects; none if it has named none."""
    return {CORE_GROUP, *agent.dialects} if agent is not None and agent.speaks else set()
