"""Letters as people read them: a line in a list, or the whole of one behind a margin."""

import json
from collections.abc import Sequence

from dragoman.surfaces.cli.mail.asking import Letter
from dragoman.surfaces.cli.screen import Column, Screen, StyledText
from dragoman.surfaces.cli.words.phrases import truncate

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
        "Passed on": json.dumps(besides) if (besides := row.get("passed_on")) else "",
    }
