"""Commands made of operations: a table says how the fields of an operation are typed and shown.

The operation itself checks what was typed; with --json its reply is printed as it is.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.engine.sentences import fill
from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import Column, Screen, print_fields

# --- tables -----------------------------------------------------------------------------------


class Field(Struct, frozen=True):
    """Field of an operation's input as it is typed: an option, or a positional argument."""

    path: str
    """Field of the input, or `outer.inner`; empty: only `complete` sees it."""
    flags: str
    """Spellings of the option; empty: positional."""
    metavar: str
    """Empty: a flag, or one of the choices."""
    text: str
    parse: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    """May be repeated."""
    required: bool = False
    range: tuple[int, int | None] | None = None
    """Bounds of a whole number; without them the value is a text."""
    default: Any = None

    @property
    def name(self) -> str:
        """Name among the typed values."""
        return re.sub(r"\W", "_", self.path or self.flags.strip("-") or self.metavar.lower())


Typed = Mapping[str, Any]
"""Name of a field -> what was typed for it."""


class OperationCommand(Struct, frozen=True):
    """A command that calls an operation."""

    name: str
    operation: str
    help: str
    """First a sentence, then further paragraphs."""
    example: str
    fields: tuple[Field, ...] = ()
    fixed: Mapping[str, Any] = {}
    """Input that the command always gives."""
    complete: Callable[[CommandContext, dict[str, Any], Typed], None] | None = None
    """Completes the input by what is no field of its own, such as a file."""
    writes: bool = True
    creates: bool = True
    """Makes a data directory that is missing."""
    shown_by: str = ""
    """Operation that shows the result, by the id that comes first in the reply; empty: the reply is
    the result."""
    headline: tuple[str, ...] = ()
    """Templates of lines about the reply; with neither them nor columns its fields are printed."""
    columns: Mapping[str, str] = {}
    """Heading -> template of a cell, for the list in the reply."""
    styles: Mapping[str, str] = {}
    """Cell -> its style."""
    show: Callable[[Screen, Any], None] | None = None
    """Prints the reply, where no template can."""
    refuse: Callable[[Any], Refusal | None] = lambda _: None
    """Refusal in a reply: what was asked for is on record, and was not granted."""


def make_command(table: OperationCommand) -> CliCommand:
    def run(context: CommandContext, **typed: Any) -> CommandResult:
        return run_operation(context, table, typed)

    run.__doc__ = f"{inspect.cleandoc(table.help)}\n\n\b\nExample:\n  {table.example}"
    parameters = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += map(parameter_of, table.fields)
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return CliCommand(table.name, run, takes_as=table.writes)


def make_commands(tables: Sequence[OperationCommand]) -> tuple[CliCommand, ...]:
    return tuple(map(make_command, tables))


def parameter_of(field: Field) -> inspect.Parameter:
    """Parameter of a field, from which typer makes its option or argument."""
    limits = {} if field.range is None else dict(zip(("min", "max"), field.range, strict=True))
    parser = {} if field.parse is None else {"parser": field.parse}
    if not field.flags:
        declared, shape = argument(field.metavar, field.text, **parser), str
    else:
        shown = field.default is not None
        declared = option(
            field.flags, field.metavar, field.text, show_default=shown, **limits, **parser
        )
        shape = str if field.metavar else bool
    if field.choices:
        shape = Literal[field.choices]
    elif field.range is not None:
        shape = int
    annotation: Any = list[shape] if field.many else shape
    default: Any = False if shape is bool else field.default
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[annotation if field.required else annotation | None, declared],
        default=inspect.Parameter.empty if field.required else default,
    )


# --- calls ------------------------------------------------------------------------------------


def run_operation(context: CommandContext, table: OperationCommand, typed: Typed) -> CommandResult:
    """Call the operation with what was typed."""
    from dragoman.engine.request import Rejected

    arguments = dict(table.fixed)
    for field in table.fields:
        value = typed[field.name]
        if field.path and value not in (None, "", [], ()) and value is not False:
            put(arguments, field.path, list(value) if field.many else value)
    if table.complete is not None:
        table.complete(context, arguments, typed)
    opened = (
        context.open_for_writing(create_missing=table.creates)
        if table.writes
        else context.open_for_reading()
    )
    with opened as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call(table.operation, arguments, actor)
        if isinstance(answer, Rejected):
            return context.rejection_result(answer)
        reply = answer.reply
        remark = reply.get("remark", "")
        directory.warnings.extend(one for one in answer.warnings if one not in remark)
        if table.shown_by:
            shown = dict([next(iter(reply.items()))])
            reply = directory.router.call(table.shown_by, shown, actor).reply
    refusal = table.refuse(reply)
    data = reply if refusal is None else {**reply, "code": refusal.code, "detail": refusal.detail}
    return CommandResult(
        data, lambda screen: print_reply(screen, table, reply), is_ok=refusal is None
    )


def put(values: dict[str, Any], path: str, value: Any) -> None:
    """Put a value at the path of a field."""
    outer, _, inner = path.rpartition(".")
    (values.setdefault(outer, {}) if outer else values)[inner] = value


# --- replies ----------------------------------------------------------------------------------


def print_reply(screen: Screen, table: OperationCommand, reply: dict[str, Any]) -> None:
    """Print a reply as its table says."""
    if table.show is not None:
        table.show(screen, reply)
        return
    if not (table.headline or table.columns):
        print_fields(screen, reply)
        return
    for line in filter(None, (fill(template, reply) for template in table.headline)):
        screen.line(line)
    if table.columns:
        rows = next(cast(Any, one) for one in reply.values() if isinstance(one, list | tuple))
        print_rows(screen, table.columns, rows, table.styles)
    next_page = reply.get("next") if "next" in reply else reply.get("cursor")
    if next_page is not None and reply.get("more", True):
        flag = next(f.flags for f in table.fields if f.path in ("after", "cursor", "before"))
        screen.line(f"There are more: add {flag} {next_page}")


def print_rows(
    screen: Screen, columns: Mapping[str, str], rows: Sequence[Any], styles: Mapping[str, str]
) -> None:
    """Print a table whose cells are templates."""
    if not rows:
        screen.line("none")
        return
    screen.table(
        [Column(heading, styles=styles) for heading in columns],
        [[fill(template, row) for template in columns.values()] for row in rows],
    )
