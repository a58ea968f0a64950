"""`dragoman mail`: send, list, show, search, acknowledge and summarize letters."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from dragoman.core.errors import Refused
from dragoman.core.limits import MAX_PAGE
from dragoman.core.timestamps import parse_duration
from dragoman.engine.ports import Gap
from dragoman.protocols.agentmail import Checks, Draft, MessageType, Rendered, compose
from dragoman.protocols.agentmail.grammar import NO_BEAD_NEEDED
from dragoman.protocols.agentmail.parse import is_reply, parse_subject
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument, option, parse_text
from dragoman.surfaces.cli.context import (
    STANDARD_INPUT,
    CommandContext,
    CommandResult,
    call_operation,
    query_operation,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.event_text import gap_warning, resolve_start, retry_while_unavailable
from dragoman.surfaces.cli.render import Column, Screen, StyledText, truncate

if TYPE_CHECKING:
    from dragoman.engine.request import Accepted

Letter = Mapping[str, Any]
"""A letter as operations return it."""

LetterArgument = Annotated[
    str,
    argument(
        "ID",
        "The letter's id, or enough of its beginning: at least 4 characters; 13, such as "
        "019c4b3e-7a10, where several came within a minute.",
    ),
]

ThreadArgument = Annotated[str, argument("THREAD", "The thread: a bead's id, usually.")]


# --- send -------------------------------------------------------------------------------------


def send(
    context: CommandContext,
    source: Annotated[str, argument("FILE|-", "A letter as a JSON object; `-`: stdin.")] = "",
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

    From a file, or from options. With --type the text is written from --field NAME=VALUE, or taken
    from --body as it is; the subject names the type, and goes on with --subject. Without --to it
    goes to the usual recipients of its type.

    \b
    Examples:
      dragoman mail send letter.json --as ada
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
    text = {"subject": subject, "body_md": body}
    is_typed = any((*letter.values(), *text.values(), type, bead, field)) or ack is not None
    if source and is_typed:
        raise_usage_error("a letter comes from a file or from options: leave one of them out")
    if is_typed:
        return _submit_letter(
            context, letter | _subject_and_body(type, bead, tuple(field or ()), text), ""
        )
    from dragoman.text.strict_json import MAX_BYTES

    row = read_source(source or STANDARD_INPUT, MAX_BYTES)
    return _submit_letter(context, row, _named_sender(row))


def _subject_and_body(
    type: str, bead: str, fields: tuple[str, ...], text: dict[str, str]
) -> dict[str, str]:
    """Subject and body from the options."""
    body = text["body_md"]
    if body == STANDARD_INPUT:
        body = _read_body()
    if not type:
        if fields or bead:
            raise_usage_error("--field and --bead belong to a type: add --type TYPE")
        if not f"{text['subject']}{body}".strip():
            raise_usage_error(
                "the letter says nothing: add --subject TEXT, --body TEXT or --type TYPE"
            )
        return {"subject": text["subject"], "body_md": body}

    if type.upper() not in LETTER_TYPES:
        raise_usage_error(f"{type!a} is not a type of letter; known: {', '.join(LETTER_TYPES)}")
    if body and fields:
        raise_usage_error("the text comes from --body or from --field: leave one of them out")
    subject = make_subject(type.upper(), bead, text["subject"])
    return {
        "subject": subject,
        "body_md": body or compose_letter(type.upper(), bead, fields).body_md,
    }


def _read_body() -> str:
    from dragoman.text.strict_json import MAX_BYTES

    raw = read_source(STANDARD_INPUT, MAX_BYTES)
    try:
        return parse_text(raw.decode())
    except UnicodeDecodeError:
        raise_usage_error("what stands on standard input is not UTF-8")


def _named_sender(row: bytes) -> str:
    """Sender that a row names, if it is a valid agent name."""
    from dragoman.core.ids import check_agent
    from dragoman.engine.raw_message import RawMessage
    from dragoman.protocols.agentmail.parse import FOREIGN_FIELD_NAMES
    from dragoman.text.strict_json import get_field

    value = RawMessage(row).value
    named = get_field(value, "from") or get_field(value, FOREIGN_FIELD_NAMES["from"])
    return named if isinstance(named, str) and check_agent(named) is None else ""


def _submit_letter(
    context: CommandContext, letter: "bytes | dict[str, Any]", sender: str
) -> CommandResult:
    """Submit a letter as --as, else as the sender that it names, else as the person."""
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent() or sender)
        answer = call_operation(directory, "mail.send", letter, actor)
    reply = {**answer.reply, "warnings": answer.warnings, "repeated": answer.repeated}
    return CommandResult(reply, lambda screen: _print_sent(answer, screen))


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
    sent: Annotated[bool, option("--sent", "", "Those that were sent, not received.")] = False,
    overdue: Annotated[bool, option("--overdue", "", "All whose ack or answer is late.")] = False,
    waiting: Annotated[
        bool, option("--waiting", "", "All to recipients who are not registered yet.")
    ] = False,
    type: Annotated[str, option("--type", "TYPE", "Only of this type, e.g. HELP_REQUEST.")] = "",
    bead: Annotated[str, option("--bead", "ID", "Only about this bead.")] = "",
    thread: Annotated[str, option("--thread", "ID", "Only of this thread.")] = "",
    sender: Annotated[str, option("--from", "NAME", "Only from this sender.")] = "",
    completions: Annotated[bool, option("--completions", "", "Only those that end work.")] = False,
    successes: Annotated[bool, option("--successes", "", "Only those that end it well.")] = False,
    checked: Annotated[bool, option("--checked", "", "Successes whose checks all pass.")] = False,
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

    Without --as and --agent it is your own, under your login name. With --watch and --json each
    letter is an object on a line of its own.

    \b
    Examples:
      dragoman mail inbox --as boss --unread
      dragoman mail inbox --agent ada --type HELP_REQUEST --watch
    """
    box = _choose_one(_RECEIVED, sent=sent, overdue=overdue, waiting=waiting)
    only = _choose_one("all", completions=completions, successes=successes, checked=checked)
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
        reply = _fetch_page(
            context, directory, filters, {"before": 0} if newest else {"after": after}
        )

    if gap := reply.get("gap"):
        context.err.line(("warning: ", "yellow"), gap_warning(Gap(**gap)))

    def show(screen: Screen) -> None:
        print_letters(
            reply["messages"], screen, "there are no such letters", is_box=box == _RECEIVED
        )
        if reply["more"]:
            older = "There may be older ones: give a greater --limit, or leave out --newest"
            screen.line(older if newest else f"There may be more: add --after {reply['cursor']}")

    return CommandResult(reply, show)


def _fetch_page(
    context: CommandContext,
    directory: DataDirectory,
    filters: dict[str, Any],
    start: dict[str, int],
) -> Any:
    """Fetch as many letters as are wanted, also where matching letters are far apart."""
    actor, ((direction, cursor),) = context.actor(directory, context.acting_agent()), start.items()
    rows: list[Letter] = []
    while True:
        page = {"limit": filters["limit"] - len(rows), direction: cursor}
        reply = call_operation(directory, "mail.inbox", filters | page, actor).reply
        rows += reply["messages"]
        cursor = reply["cursor"]
        if not reply["more"] or len(rows) == filters["limit"]:
            return reply | {"messages": rows}


def _choose_one(default: str, **flags: bool) -> str:
    chosen = [name for name, is_on in flags.items() if is_on]
    if len(chosen) > 1:
        raise_usage_error(f"--{chosen[0]} and --{chosen[1]} exclude each other: give one of them")
    return chosen[0] if chosen else default


def _watch_inbox(
    context: CommandContext, directory: DataDirectory, filters: dict[str, Any], after: int
) -> None:
    """Print letters that exist and those that come; the box is read again when the ledger has
    grown."""
    actor, store, seen = (
        context.actor(directory, context.acting_agent()),
        directory.hub.store,
        set[str](),
    )
    after = resolve_start(context, store, after)
    # These boxes grow at the end; the others also gain old letters.
    moves_cursor = filters["box"] in ("in", "sent")
    while True:
        head, at = retry_while_unavailable(context, store, store.head), after
        while True:
            fetch = partial(call_operation, directory, "mail.inbox", filters | {"after": at}, actor)
            reply = retry_while_unavailable(context, store, fetch).reply
            for row in reply["messages"]:
                if row["id"] not in seen:
                    _print_new_letter(row, context, is_box=filters["box"] == _RECEIVED)
                if not moves_cursor:
                    seen.add(row["id"])
            at = reply["cursor"]
            if not reply["more"]:
                break
        after = at if moves_cursor else after
        while retry_while_unavailable(context, store, store.head) == head:
            if not context.wait():
                return


def _print_new_letter(row: Letter, context: CommandContext, *, is_box: bool) -> None:
    context.print_result(
        CommandResult(row, lambda screen: print_letter_line(row, screen, is_box=is_box))
    )
    # A follower needs each letter when it comes, not when a buffer is full.
    context.out.flush()


# --- show, thread, search, summarize ----------------------------------------------------------


def show(
    context: CommandContext,
    id: LetterArgument,
    peek: Annotated[bool, option("--peek", "", "Do not mark it as read.")] = False,
) -> CommandResult:
    """Show a letter as a whole; one in your box is marked as read.

    No letter is private: every reader may read every letter. --as NAME says in whose box it is
    marked as read.

    \b
    Examples:
      dragoman mail show 019c4b3e-7a10
      dragoman mail show 019c4b3e-7a10 --as boss --peek
    """
    if peek:
        row = query_operation(context, "mail.show", id=id)
    else:
        with context.open_for_writing(create_missing=False) as directory:
            actor = context.actor(directory, context.acting_agent())
            row = call_operation(directory, "mail.show", {"id": id}, actor).reply
            if actor.name in (*row["to"], *row["cc"], *row["copied"]) and not row["read"]:
                call_operation(directory, "mail.read", {"id": row["id"]}, actor)
                row = call_operation(directory, "mail.show", {"id": row["id"]}, actor).reply
    return CommandResult(row, lambda screen: print_letter(row, screen))


def thread(context: CommandContext, thread: ThreadArgument) -> CommandResult:
    """Show all letters of a thread, from its beginning.

    That of a bead has every letter about it, wherever its sender put it.

    \b
    Example:
      dragoman mail thread ol-527.1
    """
    rows: list[Letter] = []
    reply: dict[str, Any] = {"cursor": 0, "more": True}
    while reply["more"]:
        reply = query_operation(
            context, "mail.thread", thread_id=thread, after=reply["cursor"], limit=MAX_PAGE
        )
        rows += reply["messages"]

    def print_thread(screen: Screen) -> None:
        for number, row in enumerate(rows):
            if number:
                screen.line("")
            print_letter(row, screen)
        if not rows:
            screen.line(f"there are no letters in the thread {thread}")

    return CommandResult(reply | {"messages": rows}, print_thread)


def search(
    context: CommandContext,
    words: Annotated[
        list[str],
        argument("WORDS", 'All of them: auth, dep*, -draft, "a phrase", OR between alternatives.'),
    ],
    before: Annotated[
        int | None, option("--before", "N", "`cursor` of the page before.", min=1)
    ] = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """Find letters by their words, the newest first.

    A phrase stands in double quotes, which have to be quoted for the shell. All arguments together
    are one query, as mail.search takes it. Options stand before a word that begins with a dash.

    \b
    Examples:
      dragoman mail search 'auth "token expired" OR login'
      dragoman mail search --limit 5 -- deploy -draft
    """
    query = " ".join(words)
    more = {} if before is None else {"before": before}
    reply = query_operation(context, "mail.search", query=query, limit=limit, **more)
    nothing = "no letter has these words"

    def show_found(screen: Screen) -> None:
        print_letters(reply["messages"], screen, nothing)
        if reply["more"]:
            screen.line(f"There may be more: add --before {reply['cursor']}")

    return CommandResult(reply, show_found)


def summarize(
    context: CommandContext,
    thread: ThreadArgument,
) -> CommandResult:
    """Summarize a thread.

    Counts, last status, open questions and acks, files, commits.

    \b
    Example:
      dragoman mail summarize ol-527.1
    """
    summary = query_operation(context, "mail.summary", thread_id=thread)
    return CommandResult(summary, lambda screen: _print_summary(summary, screen))


def _print_summary(summary: dict[str, Any], screen: Screen) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in summary["counts"].items())
    letter_count = summary["messages"]
    letters = "1 letter" if letter_count == 1 else f"{letter_count} letters"
    screen.line((letters, "bold"), f": {counts}" if counts else "")
    if summary["more"]:
        screen.line("older ones are left out of this: `dragoman mail thread` shows them all")
    if summary["last_type"]:
        last = dict.fromkeys((summary["last_type"], summary["last_status"]))
        screen.line(f"last: {', '.join(last)}")
    for one in summary["open_questions"]:
        screen.line(("open question ", "yellow"), f"{one['id']} of {one['sender']}:")
        screen.block(one["question"] or "(it says no more)", "  ")
    for one in summary["open_acks"]:
        screen.line(("no ack yet ", "yellow"), f"for {one['id']}, {one['type']} of {one['sender']}")
    for name in ("files", "commits"):
        if summary[name]:
            screen.line(f"{name}: {', '.join(summary[name])}")


# --- ack, read --------------------------------------------------------------------------------

LettersArgument = Annotated[list[str], argument("ID", "Their ids, or enough of the beginnings.")]


def ack(context: CommandContext, ids: LettersArgument) -> CommandResult:
    """Acknowledge letters that were sent to you.

    A second time changes nothing.

    \b
    Example:
      dragoman mail ack 019c4b3e-7a10 --as boss
    """
    return _mark_letters(context, "mail.ack", ids, "acknowledged")


def read(context: CommandContext, ids: LettersArgument) -> CommandResult:
    """Mark letters in your box as read.

    \b
    Example:
      dragoman mail read 019c4b3e-7a10 --as boss
    """
    return _mark_letters(context, "mail.read", ids, "read")


def _mark_letters(
    context: CommandContext, operation: str, ids: list[str], done: str
) -> CommandResult:
    """Mark each letter separately: a refusal of one does not stop the others."""
    marked: list[dict[str, Any]] = []
    with context.open_for_writing(create_missing=False) as directory:
        actor = context.actor(directory, context.acting_agent())
        for id in ids:
            try:
                reply = call_operation(directory, operation, {"id": id}, actor).reply
                marked.append({"id": reply["id"], done: True})
            except Refused as refusal:
                marked.append({"id": id, "code": refusal.code, "detail": refusal.detail})
    refused_letters = [one for one in marked if "code" in one]
    data: dict[str, Any] = {"letters": marked}
    if refused_letters:
        # The first refusal becomes the refusal of the command.
        data |= {"code": refused_letters[0]["code"], "detail": refused_letters[0]["detail"]}

    def show(screen: Screen) -> None:
        for one in marked:
            if "code" not in one:
                screen.line((one["id"], "bold"), f" {done}")
        for one in refused_letters:
            context.err.line((f"{one['code']}: ", "bold red"), one["detail"])

    return CommandResult(data, show, is_ok=not refused_letters)


# --- printing ---------------------------------------------------------------------------------

_TYPE_STYLES = {
    "FAILED": "red",
    "HELP_REQUEST": "yellow",
    "DONE": "green",
    "OFFERING_READY": "green",
}

_OVERDUE = "overdue"

_LETTER_COLUMNS = (
    Column("ID", "bold"),
    Column("SENT"),
    Column("FROM"),
    Column("TO"),
    Column("TYPE", styles=_TYPE_STYLES),
    Column("SUBJECT"),
    Column("STATE", styles={_OVERDUE: "red", f"unread, {_OVERDUE}": "red"}),
)

_NO_TYPE = "UNKNOWN"

_MAX_SUBJECT = 60

_MARGIN = "  "


def print_letters(
    rows: Sequence[Letter], screen: Screen, nothing: str, *, is_box: bool = False
) -> None:
    """Print a line for each letter; in a box also whether its owner has read it."""
    if rows:
        screen.table(_LETTER_COLUMNS, [_letter_row(row, is_box=is_box) for row in rows])
    else:
        screen.line(nothing)


def print_letter_line(row: Letter, screen: Screen, *, is_box: bool) -> None:
    """Print a letter on a line of its own."""
    _, sent, sender, to, kind, subject, state = _letter_row(row, is_box=is_box)
    parts: list[StyledText] = [(str(row["id"]), "bold"), f"  {sent}  {sender} → {to}  "]
    screen.line(
        *parts, (f"{kind}  ", _TYPE_STYLES.get(kind, "")), subject, f"  {state}" if state else ""
    )


def print_letter(row: Letter, screen: Screen) -> None:
    """Print all of a letter; a margin keeps its text from passing for ours."""
    screen.line((str(row["subject"]) or "(no subject)", "bold"))
    for name, value in _letter_headers(row).items():
        if value:
            screen.line((f"{name}: ", "dim"), value)
    screen.line("")
    screen.block(str(row["body_md"]).rstrip("\n"), _MARGIN)


def _letter_type(row: Letter) -> str:
    """Type of a letter; empty for a plain one."""
    kind = str(row.get("kind") or row["type"])
    return "" if kind == _NO_TYPE else kind


def _letter_row(row: Letter, *, is_box: bool) -> tuple[str, ...]:
    return (
        str(row["id"]),
        str(row["timestamp"]),
        str(row["from"]),
        ", ".join(row["to"]),
        _letter_type(row),
        truncate(str(row["subject"]), _MAX_SUBJECT),
        _letter_state(row, is_box=is_box),
    )


def _letter_state(row: Letter, *, is_box: bool) -> str:
    """Unread, overdue, or the acks that it waits for."""
    unread = "unread" if is_box and not row["read"] else ""
    waits = f"no ack of {', '.join(row['waits_for'])}" if row["waits_for"] else ""
    return ", ".join(filter(None, (unread, _OVERDUE if row["overdue"] else waits)))


def _letter_headers(row: Letter) -> dict[str, str]:
    waits = ", ".join(row["waits_for"])
    return {
        "Id": str(row["id"]),
        "From": str(row["from"]),
        "To": ", ".join(row["to"]),
        "Cc": ", ".join((*row["cc"], *row["copied"])),
        "Sent": str(row["timestamp"]),
        "Type": _letter_type(row),
        "Bead": str(row["bead_id"]),
        "Thread": str(row["thread_id"]),
        "Reply to": str(row["reply_to"]),
        "Importance": "" if row["importance"] == "normal" else str(row["importance"]),
        "Attached": ", ".join(row["attachments"]),
        "Read by": ", ".join(row["read_by"]),
        "Acked by": ", ".join(row["acked_by"]),
        "Waits for": f"{waits} (overdue)" if waits and row["overdue"] else waits,
        "Answered by": str(row["answer"]),
        "Passed on": json.dumps(besides) if (besides := row.get("extra_fields")) else "",
    }


COMMANDS = (
    CliCommand("send", send),
    CliCommand("inbox", inbox),
    CliCommand("show", show),
    CliCommand("thread", thread),
    CliCommand("search", search),
    CliCommand("summarize", summarize),
    CliCommand("ack", ack),
    CliCommand("read", read),
)

# --- fields -----------------------------------------------------------------------------------

_TRUE: Final = frozenset({"pass", "true", "yes", "ok", "passed"})

_FALSE: Final = frozenset({"fail", "false", "no", "failed"})

Fields = Mapping[str, Any]


def _parse_number(text: str) -> int:
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"{text!a} is not a whole number")
    return int(digits)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


class FieldKind(Struct, frozen=True):
    """The way in which the value of a field is typed and parsed."""

    description: str
    parse: Callable[[str], Any]


def _choice_kind(yes: str, no: str) -> FieldKind:
    def parse(text: str) -> bool:
        word = text.lower()
        if word not in _TRUE | _FALSE:
            raise ValueError(f"{text!a} is neither {yes} nor {no}")
        return word in _TRUE

    return FieldKind(f"{yes} or {no}", parse)


_NUMBER: Final = FieldKind("a whole number", _parse_number)

_NAMES: Final = FieldKind("with commas between them", _parse_names)

_CHECK: Final = _choice_kind("PASS", "FAIL")

FIELD_KINDS: Final[Mapping[str, FieldKind]] = {
    "context_usage": _NUMBER,
    "internal_attempts": _NUMBER,
    "files": _NAMES,
    "files_touched": _NAMES,
    "tests": _CHECK,
    "lint": _CHECK,
    "build": _CHECK,
    "resume": _choice_kind("true", "false"),
}
"""Field -> how its value is typed; any other is a text."""


class LetterForm(Struct, frozen=True):
    """Fields of a letter type, and the function that composes it."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    compose: Callable[[str, dict[str, Any]], Draft]


def _fill_checks(compose_draft: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    def write(bead: str, fields: dict[str, Any]) -> Draft:
        checks = Checks(*(fields.pop(name) for name in ("tests", "lint", "build")))
        return compose_draft(bead, checks=checks, **fields)

    return write


def _compose_failed(bead: str, fields: dict[str, Any]) -> Draft:
    partial = (fields.pop("commit", ""), fields.pop("files", ()))
    return compose.failed(bead, partial=partial, **fields)


def _fill_fields(compose_draft: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    return lambda bead, given: compose_draft(bead, **given)


_COMPLETION_FIELDS: Final = ("commit", "files", "tests", "lint", "build", "summary")

LETTER_FORMS: Final[Mapping[str, LetterForm]] = {
    MessageType.BEAD_ACCEPTED: LetterForm(
        ("title", "started_at"), (), _fill_fields(compose.bead_accepted)
    ),
    MessageType.PROGRESS: LetterForm(
        ("step", "status", "context_usage"), ("files_touched",), _fill_fields(compose.progress)
    ),
    MessageType.HELP_REQUEST: LetterForm(
        ("issue_type", "problem", "what_tried", "question"),
        ("files_touched",),
        _fill_fields(compose.help_request),
    ),
    MessageType.HELP_RESPONSE: LetterForm(("guidance",), (), _fill_fields(compose.help_response)),
    MessageType.OFFERING_READY: LetterForm(
        _COMPLETION_FIELDS, (), _fill_checks(compose.offering_ready)
    ),
    MessageType.DONE: LetterForm(_COMPLETION_FIELDS, (), _fill_checks(compose.done)),
    MessageType.FAILED: LetterForm(
        ("failure_type", "reason", "internal_attempts"),
        ("commit", "files", "recommendation"),
        _compose_failed,
    ),
    MessageType.CHECKPOINT: LetterForm(
        ("reason", "commit", "progress", "context_usage", "next_steps"),
        (),
        _fill_fields(compose.checkpoint),
    ),
    MessageType.SPAWN_REQUEST: LetterForm(
        ("orchestrator", "resume"), ("checkpoint",), _fill_fields(compose.spawn_request)
    ),
    MessageType.SPAWN_ACK: LetterForm(("status",), ("session",), _fill_fields(compose.spawn_ack)),
}
"""Letter type -> its required and optional fields and its composer."""

LETTER_TYPES: Final = tuple(str(type) for type in LETTER_FORMS)


def make_subject(type: str, bead: str, typed: str = "") -> str:
    """Make the subject of a letter of this type; ends the call if it would name another type."""
    subject = _join_subject(type, bead, typed)
    others = ", ".join(parse_subject(subject).other_types)
    if others:
        raise_usage_error(
            f"--subject {typed[:60]!a} names {others} beside --type {type}: write it in small "
            "letters, or leave it out"
        )
    if is_reply(subject):
        raise_usage_error(
            f"--subject {typed[:60]!a} would make it a reply that only repeats a type: leave "
            "out Re: or Fwd:; --reply-to ID says what it replies to"
        )
    return subject


def _join_subject(type: str, bead: str, typed: str) -> str:
    """The typed subject, prefixed with bead and type unless it names them."""
    plain = f"[{bead}] {type}" if bead else type
    if not typed:
        return plain
    parsed = parse_subject(typed)
    if parsed.type != type or (bead and parsed.bead_id not in ("", bead)):
        return f"{plain}: {typed}"
    return f"[{bead}] {typed}" if bead and not parsed.bead_id else typed


def compose_letter(type: str, bead: str, assignments: tuple[str, ...]) -> Rendered:
    """Compose a letter from its fields; ends the call if they are wrong."""
    form, fields = LETTER_FORMS[type], dict[str, Any]()
    known = (*form.required, *form.optional)
    if not bead and type not in NO_BEAD_NEEDED:
        raise_usage_error(f"{type} is about a bead: name it with --bead ID")
    for one in assignments:
        name, sign, text = one.partition("=")
        if not sign or name not in known:
            raise_usage_error(f"--field {one[:60]!a}: {type} has {', '.join(known)}, as NAME=VALUE")
        if name in fields:
            raise_usage_error(f"--field {name} is given twice")
        fields[name] = _parse_field(name, text)
    missing = [name for name in form.required if name not in fields]
    if missing:
        raise_usage_error(f"{type} needs {', '.join(missing)}: add --field {missing[0]}=…")
    try:
        return compose.render(form.compose(bead, fields))
    except ValueError as error:
        raise_usage_error(f"{error}")


def _parse_field(name: str, text: str) -> Any:
    try:
        return FIELD_KINDS[name].parse(text) if name in FIELD_KINDS else text
    except ValueError as error:
        raise_usage_error(f"--field {name}: {error}")
