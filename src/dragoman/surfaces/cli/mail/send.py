"""`dragoman mail send`: a letter from a file, or from what is typed."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.mail.asking import call_operation
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.reading import STANDARD_INPUT, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import parse_text, parse_time_span
from dragoman.surfaces.cli.verb import CliCommand

if TYPE_CHECKING:
    from dragoman.engine.plan import Accepted


def send(
    context: CommandContext,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", show_default=False, help="A letter as a JSON object; `-`: stdin."
        ),
    ] = "",
    *,
    to: Annotated[list[str] | None, text_option("to", "NAME", "The recipient; repeatable.")] = None,
    cc: Annotated[
        list[str] | None, text_option("cc", "NAME", "Who gets a copy; repeatable.")
    ] = None,
    subject: Annotated[str, text_option("subject", "TEXT", "What it is about.")] = "",
    body: Annotated[str, text_option("body", "TEXT|-", "Its text; `-`: standard input.")] = "",
    type: Annotated[str, text_option("type", "TYPE", "A letter of this type, e.g. PROGRESS.")] = "",
    bead: Annotated[str, text_option("bead", "ID", "The bead that it is about.")] = "",
    field: Annotated[
        list[str] | None, text_option("field", "NAME=VALUE", "A field of its type; repeatable.")
    ] = None,
    thread: Annotated[str, text_option("thread", "ID", "Its thread; else the bead's.")] = "",
    reply_to: Annotated[str, text_option("reply-to", "ID", "The letter that it replies to.")] = "",
    importance: Annotated[
        Literal["low", "normal", "high", "urgent"],
        typer.Option("--importance", help="How important it is."),
    ] = "normal",
    ack: Annotated[
        bool | None,
        typer.Option("--ack/--no-ack", show_default=False, help="Whether an ack is wanted."),
    ] = None,
    ack_within: Annotated[
        int | None,
        typer.Option(
            "--ack-within",
            metavar="TIME",
            parser=parse_time_span,
            show_default=False,
            help="How long an ack may take, e.g. 10m; asks for one.",
        ),
    ] = None,
    attach: Annotated[
        list[str] | None, text_option("attach", "PATH", "A file, by reference.")
    ] = None,
    id: Annotated[
        str, text_option("id", "ID", "An id of your own, by which a repeated letter is recognized.")
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
    from dragoman.surfaces.cli.mail.compose import LETTER_TYPES, compose_letter, make_subject

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
    from dragoman.engine.incoming import RawMessage
    from dragoman.protocols.agentmail.row import FOREIGN_FIELD_NAMES
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


SEND_COMMANDS = (CliCommand("send", send),)
