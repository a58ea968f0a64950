"""`dragoman mail`: send, list, show, search, acknowledge and summarize letters."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from dragoman.core.limits import MAX_PAGE
from dragoman.core.timestamps import parse_duration
from dragoman.engine.ports import Gap
from dragoman.engine.sentences import fill
from dragoman.protocols.agentmail import compose
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from dragoman.surfaces.cli.command import CliCommand, LimitOption, option, parse_text
from dragoman.surfaces.cli.context import (
    STANDARD_INPUT,
    CommandContext,
    CommandResult,
    call_operation,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.event_text import gap_warning, resolve_start, retry_while_unavailable
from dragoman.surfaces.cli.generated import (
    Field,
    OperationCommand,
    Typed,
    make_commands,
    print_rows,
)
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.engine.request import Accepted

Letter = Mapping[str, Any]
"""A letter as operations return it."""

# --- send -------------------------------------------------------------------------------------


def send(
    context: CommandContext,
    *,
    to: Annotated[list[str] | None, option("--to", "NAME", "The recipient; repeatable.")] = None,
    cc: Annotated[list[str] | None, option("--cc", "NAME", "Who gets a copy; repeatable.")] = None,
    subject: Annotated[str, option("--subject", "TEXT", "What it is about.")] = "",
    body: Annotated[str, option("--body", "TEXT|-", "Its text; `-`: standard input.")] = "",
    type: Annotated[str, option("--type", "TYPE", "A letter of this type, e.g. PROGRESS.")] = "",
    bead: Annotated[str, option("--bead", "ID", "The bead that it is about.")] = "",
    field: Annotated[
        list[str] | None, option("--field", "NAME=VALUE", "A field of its type; repeatable.")
    ] = None,
    thread: Annotated[str, option("--thread", "ID", "Its thread; else the bead's.")] = "",
    reply_to: Annotated[str, option("--reply-to", "ID", "The letter that it replies to.")] = "",
    importance: Annotated[
        Literal["low", "normal", "high", "urgent"],
        option("--importance", "", "How important it is.", show_default=True),
    ] = "normal",
    ack: Annotated[bool | None, option("--ack/--no-ack", "", "Whether an ack is wanted.")] = None,
    ack_within: Annotated[
        int | None,
        option(
            "--ack-within",
            "TIME",
            "How long an ack may take, e.g. 10m; asks for one.",
            parser=parse_duration,
        ),
    ] = None,
    attach: Annotated[list[str] | None, option("--attach", "PATH", "A file, by reference.")] = None,
    id: Annotated[
        str, option("--id", "ID", "An id of your own, by which a repeated letter is recognized.")
    ] = "",
) -> CommandResult:
    """Send a letter.

    With --type the text is written from --field NAME=VALUE, or taken from --body as it is; the
    subject names the type, and goes on with --subject. Without --to it goes to the usual recipients
    of its type. `dragoman send FILE` sends a letter from a file.

    \b
    Examples:
      dragoman mail send --as ada --to bob --subject Lunch --body "At noon?"
      dragoman mail send --as ada --type PROGRESS --bead ol-527.1 --field step="Step 4" \\
        --field status="writing tests" --field context_usage=40
    """
    if ack_within is not None:
        if ack is False:
            raise_usage_error("--ack-within is about an ack: leave out --no-ack")
        ack = True
    letter: dict[str, Any] = {
        "to": to or [],
        "cc": cc or [],
        "thread_id": thread,
        "reply_to": reply_to,
        "attachments": attach or [],
        **({} if ack is None else {"ack_required": ack}),
        **({} if ack_within is None else {"ack_within_ms": ack_within}),
        **({"id": id} if id else {}),
        **({"importance": importance} if importance != "normal" else {}),
    }
    letter |= _subject_and_body(type, bead, tuple(field or ()), subject, body)
    with context.open_for_writing(create_missing=True) as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = call_operation(directory, "mail.send", letter, actor)
    reply = {**answer.reply, "warnings": answer.warnings, "repeated": answer.repeated}
    return CommandResult(reply, lambda screen: _print_sent(answer, screen))


def _subject_and_body(
    type: str, bead: str, fields: tuple[str, ...], subject: str, body: str
) -> dict[str, str]:
    """Subject and body from the options."""
    if body == STANDARD_INPUT:
        body = _read_body()
    if not type:
        if fields or bead:
            raise_usage_error("--field and --bead belong to a type: add --type TYPE")
        if not f"{subject}{body}".strip():
            raise_usage_error(
                "the letter says nothing: add --subject TEXT, --body TEXT or --type TYPE"
            )
        return {"subject": subject, "body_md": body}

    type = type.upper()
    if type not in MESSAGE_TYPES:
        raise_usage_error(f"{type!a} is not a type of letter; known: {', '.join(MESSAGE_TYPES)}")
    if body and fields:
        raise_usage_error("the text comes from --body or from --field: leave one of them out")
    place = f"[{bead}] {type}" if bead else type
    return {
        "subject": f"{place}: {subject}" if subject else place,
        "body_md": body or _compose_body(type, bead, fields),
    }


def _compose_body(type: str, bead: str, assignments: tuple[str, ...]) -> str:
    """Compose a body from its fields; ends the call if strict parsing would refuse it."""
    fields = dict[str, str]()
    for one in assignments:
        name, sign, value = one.partition("=")
        if not sign:
            raise_usage_error(f"--field {one[:60]!a} is not of the form NAME=VALUE")
        fields[name] = value
    try:
        return compose.render(compose.draft(type, bead, **fields)).body_md
    except ValueError as error:
        raise_usage_error(f"{error}")


def _read_body() -> str:
    from dragoman.text.strict_json import MAX_BYTES

    raw = read_source(STANDARD_INPUT, MAX_BYTES)
    try:
        return parse_text(raw.decode())
    except UnicodeDecodeError:
        raise_usage_error("what stands on standard input is not UTF-8")


def _print_sent(answer: "Accepted", screen: Screen) -> None:
    reply, again = answer.reply, ", sent before: nothing was added" if answer.repeated else ""
    kind = "" if reply["type"] == "UNKNOWN" else f"{reply['type']} "
    screen.line((reply["id"], "bold"), f" {kind}from {answer.actor}{again}")
    screen.line(f"  in the thread {reply['thread_id']}")
    for task, status in {one.task: one.status for one in answer.receipts if one.task}.items():
        screen.line(f"  {task} is {status}")
    for warning in answer.warnings:
        screen.line("  ", ("warning: ", "yellow"), warning)


# --- inbox ------------------------------------------------------------------------------------

_RECEIVED = "in"
"""Box of received letters, which their owner may have read."""


def inbox(
    context: CommandContext,
    *,
    agent: Annotated[str, option("--agent", "NAME", "Whose box; else your own.")] = "",
    unread: Annotated[bool, option("--unread", "", "Only unread ones.")] = False,
    pending: Annotated[bool, option("--pending", "", "Only those still to be acked.")] = False,
    box: Annotated[
        Literal["in", "sent", "overdue", "waiting"],
        option(
            "--box",
            "",
            "Which letters: received, sent, all whose ack or answer is late, or all to recipients "
            "who are not registered yet.",
            show_default=True,
        ),
    ] = "in",
    type: Annotated[str, option("--type", "TYPE", "Only of this type, e.g. HELP_REQUEST.")] = "",
    bead: Annotated[str, option("--bead", "ID", "Only about this bead.")] = "",
    thread: Annotated[str, option("--thread", "ID", "Only of this thread.")] = "",
    sender: Annotated[str, option("--from", "NAME", "Only from this sender.")] = "",
    only: Annotated[
        Literal["all", "completions", "successes", "checked"],
        option(
            "--only",
            "",
            "Only those that end work, that end it well, or whose checks all pass, too.",
            show_default=True,
        ),
    ] = "all",
    after: Annotated[
        int, option("--after", "N", "`cursor` of the page before.", min=0, show_default=True)
    ] = 0,
    newest: Annotated[bool, option("--newest", "", "The newest first.")] = False,
    limit: LimitOption = 50,
    watch: Annotated[
        bool, option("--watch -w", "", "Keep printing new letters until Ctrl-C.")
    ] = False,
) -> CommandResult | None:
    """List the letters of a box, the oldest first.

    Without --as and --agent it is your own, the owner's. With --watch and --json each
    letter is an object on a line of its own.

    \b
    Examples:
      dragoman mail inbox --as boss --unread
      dragoman mail inbox --agent ada --type HELP_REQUEST --watch
    """
    filters: dict[str, Any] = {
        "agent": agent,
        "box": box,
        "unread": unread,
        "pending": pending,
        "type": type,
        "bead_id": bead,
        "thread_id": thread,
        "from": sender,
        "only": only,
        "limit": limit,
    }
    if watch and newest:
        raise_usage_error("--watch goes on with new letters: leave out --newest")
    if newest and after:
        raise_usage_error("--after goes on from older to newer: leave out --newest")
    with context.open_for_reading() as directory:
        if watch:
            _watch_inbox(context, directory, filters, after)
            return None
        start = {"before": 0} if newest else {"after": after}
        actor = context.actor(directory, context.acting_agent())
        reply = call_operation(directory, "mail.inbox", filters | start, actor).reply

    if gap := reply.get("gap"):
        context.err.line(("warning: ", "yellow"), gap_warning(Gap(**gap)))

    def show(screen: Screen) -> None:
        columns = _BOX_COLUMNS if box == _RECEIVED else _LETTER_COLUMNS
        print_rows(screen, columns, reply["messages"], _STYLES)
        if reply["more"]:
            older = "There may be older ones: give a greater --limit, or leave out --newest"
            screen.line(older if newest else f"There may be more: add --after {reply['cursor']}")

    return CommandResult(reply, show)


def _watch_inbox(
    context: CommandContext, directory: DataDirectory, filters: dict[str, Any], after: int
) -> None:
    """Print letters that exist and those that come; the box is read again when the ledger has
    grown."""
    actor, store = context.actor(directory, context.acting_agent()), directory.hub.store
    after, seen = resolve_start(context, store, after), set[str]()
    # These boxes grow at the end; the others also gain old letters.
    moves_cursor = filters["box"] in (_RECEIVED, "sent")
    columns = _BOX_COLUMNS if filters["box"] == _RECEIVED else _LETTER_COLUMNS
    while True:
        head, at, has_more = retry_while_unavailable(context, store, store.head), after, True
        while has_more:
            fetch = partial(call_operation, directory, "mail.inbox", filters | {"after": at}, actor)
            reply = retry_while_unavailable(context, store, fetch).reply
            for row in reply["messages"]:
                if row["id"] not in seen:
                    _print_new_letter(row, context, columns)
                if not moves_cursor:
                    seen.add(row["id"])
            at, has_more = reply["cursor"], reply["more"]
        after = at if moves_cursor else after
        while retry_while_unavailable(context, store, store.head) == head:
            if not context.wait():
                return


def _print_new_letter(row: Letter, context: CommandContext, columns: Mapping[str, str]) -> None:
    line = "  ".join(filter(None, (fill(template, row) for template in columns.values())))
    context.print_result(CommandResult(row, lambda screen: screen.line(line)))
    # A follower needs each letter when it comes, not when a buffer is full.
    context.out.flush()


# --- printing ---------------------------------------------------------------------------------

_LATE = "{?overdue}overdue|{!overdue}no ack of {waits_for}"

_LETTER_COLUMNS = {
    "ID": "{id}",
    "SENT": "{timestamp}",
    "FROM → TO": "{from} → {to}",
    "TYPE": "{kind}|{!kind}{!type=UNKNOWN}{type}",
    "SUBJECT": "{subject:60}",
    "STATE": _LATE,
}

_BOX_COLUMNS = _LETTER_COLUMNS | {
    "STATE": "{!read}unread|{!read}{?overdue}, |{!read}{!overdue}{?waits_for}, |" + _LATE
}
"""Columns of a box, whose owner may have read its letters."""

_STYLES = {
    "FAILED": "red",
    "HELP_REQUEST": "yellow",
    "DONE": "green",
    "OFFERING_READY": "green",
    "overdue": "red",
    "unread, overdue": "red",
}


# --- commands of operations -------------------------------------------------------------------

_HEADERS = (
    "{subject}|{!subject}(no subject)",
    "Id: {id}",
    "From: {from}",
    "To: {to}",
    "Cc: {cc}|{?cc}{?copied}, |{!cc}{?copied}Cc: |{copied}",
    "Sent: {timestamp}",
    "Type: {kind}|{!kind}Type: {type}",
    "Bead: {bead_id}",
    "Thread: {thread_id}",
    "Reply to: {reply_to}",
    "{?importance=low,high,urgent}Importance: {importance}",
    "Attached: {attachments}",
    "Read by: {read_by}",
    "Acked by: {acked_by}",
    "Waits for: {waits_for}|{?waits_for}{?overdue} (overdue)",
    "Answered by: {answer}",
    "Passed on: {extra_fields}",
)

_MARGIN = "  "


def _print_letter(screen: Screen, row: Letter) -> None:
    """Print all of a letter; a margin keeps its text from passing for ours."""
    for line in filter(None, (fill(template, row) for template in _HEADERS)):
        screen.line(line)
    screen.line("")
    screen.block(str(row["body_md"]).rstrip("\n"), _MARGIN)


def _print_thread(screen: Screen, reply: Any) -> None:
    for number, row in enumerate(reply["messages"]):
        if number:
            screen.line("")
        _print_letter(screen, row)
    if not reply["messages"]:
        screen.line(f"there are no letters in the thread {reply['thread_id']}")
    if reply["more"]:
        screen.line(f"There are more: add --after {reply['cursor']}")


def _join_words(_: CommandContext, arguments: dict[str, Any], typed: Typed) -> None:
    arguments["query"] = " ".join(typed["words"])


_ID = Field(
    "id",
    "",
    "ID",
    "The letter's id.",
    required=True,
)

_THREAD = Field("thread_id", "", "THREAD", "The thread: a bead's id, usually.", required=True)

_LIMIT = Field("limit", "--limit", "N", "How many at most.", range=(1, MAX_PAGE), default=50)

_TABLES = (
    OperationCommand(
        "show",
        "mail.show",
        """Show a letter as a whole.

    No letter is private: every reader may read every letter. `mail read` marks it as read.""",
        "dragoman mail show 019c4b3e-7a10-7c3e-9d52-0f6a8d1c2b3a",
        fields=(_ID,),
        writes=False,
        show=_print_letter,
    ),
    OperationCommand(
        "thread",
        "mail.thread",
        """Show the letters of a thread, from its beginning.

    That of a bead has every letter about it, wherever its sender put it.""",
        "dragoman mail thread ol-527.1",
        fields=(
            _THREAD,
            Field("after", "--after", "N", "`cursor` of the page before.", range=(0, None)),
            Field(
                "limit", "--limit", "N", "How many at most.", range=(1, MAX_PAGE), default=MAX_PAGE
            ),
        ),
        writes=False,
        show=_print_thread,
    ),
    OperationCommand(
        "search",
        "mail.search",
        """Find letters by their words, the newest first.

    A phrase stands in double quotes, which have to be quoted for the shell. All arguments together
    are one query, as mail.search takes it. Options stand before a word that begins with a dash.""",
        """dragoman mail search 'auth "token expired" OR login'""",
        fields=(
            Field(
                "",
                "",
                "WORDS",
                'All of them: auth, dep*, -draft, "a phrase", OR between alternatives.',
                many=True,
                required=True,
            ),
            Field("before", "--before", "N", "`cursor` of the page before.", range=(1, None)),
            _LIMIT,
        ),
        complete=_join_words,
        writes=False,
        columns=_LETTER_COLUMNS,
        styles=_STYLES,
    ),
    OperationCommand(
        "summarize",
        "mail.summary",
        """Summarize a thread.

    Counts, last status, open questions and acks, files, commits.""",
        "dragoman mail summarize ol-527.1",
        fields=(_THREAD,),
        writes=False,
    ),
    OperationCommand(
        "ack",
        "mail.ack",
        """Acknowledge a letter that was sent to you.

    A second time changes nothing.""",
        "dragoman mail ack 019c4b3e-7a10-7c3e-9d52-0f6a8d1c2b3a --as boss",
        fields=(_ID,),
        creates=False,
        headline=("{id} acknowledged",),
    ),
    OperationCommand(
        "read",
        "mail.read",
        "Mark a letter in your box as read, and show it.",
        "dragoman mail read 019c4b3e-7a10-7c3e-9d52-0f6a8d1c2b3a --as boss",
        fields=(_ID,),
        creates=False,
        shown_by="mail.show",
        show=_print_letter,
    ),
)

COMMANDS = (CliCommand("send", send), CliCommand("inbox", inbox), *make_commands(_TABLES))
