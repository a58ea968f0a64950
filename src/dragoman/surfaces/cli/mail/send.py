"""`dragoman mail send`: a letter from a file, or from what is typed."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.mail.asking import asked
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.reading import STANDARD_INPUT, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import read_duration, read_text
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.engine.plan import Taken


def send(
    call: Call,
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
            parser=read_duration,
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
) -> Answer:
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
            wrong_usage("--ack-within is about an ack: leave out --no-ack")
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
        wrong_usage("a letter comes from a file or from options: leave one of them out")
    if is_typed:
        return _send(call, letter | _written(type, bead, tuple(field or ()), text), "")
    from dragoman.text.strict_json import MOST_BYTES

    row = read_source(source or STANDARD_INPUT, MOST_BYTES)
    return _send(call, row, _sender_of(row))


def _written(type: str, bead: str, given: tuple[str, ...], text: dict[str, str]) -> dict[str, str]:
    """Subject and body from the options."""
    body = text["body_md"]
    if body == STANDARD_INPUT:
        body = _from_standard_input()
    if not type:
        if given or bead:
            wrong_usage("--field and --bead belong to a type: add --type TYPE")
        if not f"{text['subject']}{body}".strip():
            wrong_usage("the letter says nothing: add --subject TEXT, --body TEXT or --type TYPE")
        return {"subject": text["subject"], "body_md": body}
    from dragoman.surfaces.cli.mail.compose import TYPES, composed, subject_of

    if type.upper() not in TYPES:
        wrong_usage(f"{type!a} is not a type of letter; known: {', '.join(TYPES)}")
    if body and given:
        wrong_usage("the text comes from --body or from --field: leave one of them out")
    subject = subject_of(type.upper(), bead, text["subject"])
    return {"subject": subject, "body_md": body or composed(type.upper(), bead, given).body_md}


def _from_standard_input() -> str:
    from dragoman.text.strict_json import MOST_BYTES

    raw = read_source(STANDARD_INPUT, MOST_BYTES)
    try:
        return read_text(raw.decode())
    except UnicodeDecodeError:
        wrong_usage("what stands on standard input is not UTF-8")


def _sender_of(row: bytes) -> str:
    """Sender that a row names, if it is a valid agent name."""
    from dragoman.core.ids import check_agent
    from dragoman.engine.incoming import Incoming
    from dragoman.protocols.agentmail.row import OTHER_NAMES
    from dragoman.text.strict_json import field_of

    value = Incoming(row).value
    named = field_of(value, "from") or field_of(value, OTHER_NAMES["from"])
    return named if isinstance(named, str) and check_agent(named) is None else ""


def _send(call: Call, letter: "bytes | dict[str, Any]", sender: str) -> Answer:
    """Submit a letter as --as, else as the sender that it names, else as the person."""
    with call.writing() as place:
        actor = call.actor(place, call.speaker() or sender)
        answer = asked(place, "mail.send", letter, actor)
    reply = {**answer.reply, "warnings": answer.warnings, "repeated": answer.repeated}
    return Answer(reply, lambda screen: _print(answer, screen))


def _print(answer: "Taken", screen: Screen) -> None:
    reply, again = answer.reply, ", sent before: nothing was added" if answer.repeated else ""
    kind = "" if reply["type"] == "UNKNOWN" else f"{reply['type']} "
    screen.line((reply["id"], "bold"), f" {kind}from {answer.actor}{again}")
    screen.line(f"  in the thread {reply['thread_id']}")
    for task, status in {one.task: one.status for one in answer.receipts if one.task}.items():
        screen.line(f"  {task} is {status}")
    for warning in answer.warnings:
        screen.line("  ", ("warning: ", "yellow"), warning)


VERBS = (Verb("send", send),)
