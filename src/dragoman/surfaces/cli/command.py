"""Commands of the command line: their options, how values are parsed, and their registration.

Typer hands every value to pydantic, whose import takes longer than most of our commands run. Ours
are texts, whole numbers, choices, paths and what a parser makes of a text; they are parsed here,
in our own sentences.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from msgspec import Struct
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from dragoman.config.store_url import check_store_url
from dragoman.core.errors import SettingsError
from dragoman.core.limits import MAX_PAGE
from dragoman.core.timestamps import parse_duration, parse_rfc3339
from dragoman.surfaces.cli.caller import bearer, require_own_process
from dragoman.surfaces.cli.context import CommandContext, CommandResult, SharedOptions, UsageError
from dragoman.text.error_messages import suggest

# --- parsers ----------------------------------------------------------------------------------

Parse = Callable[[Any], Any]

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)

_MAX_DIGITS = 18


def parse_text(text: str) -> str:
    """Parse a text that can be stored; arguments that are not UTF-8 arrive with surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!a} is not valid UTF-8") from None
    return text


def parse_clock(text: str) -> int:
    """Parse a timestamp that the hub's clock may show; in milliseconds."""
    timestamp = parse_rfc3339(text)
    if timestamp < 0:
        raise ValueError(f"{text!a} is before 1970, where the hub's clock begins")
    return timestamp


def parse_store_url(text: str) -> str:
    """Parse the URL of a supported store."""
    try:
        check_store_url(text)
    except SettingsError as error:
        raise ValueError(error.detail) from None
    return parse_text(text)


# --- typer commands with fast parsing ---------------------------------------------------------


class FastCommand(TyperCommand):
    """A typer command whose values are parsed here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `--wait` may stand without a time."""
        return super().parse_args(ctx, list(_with_wait_times(args)))

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_with_fast_parser(parameter) for parameter in super().get_params(ctx)]


class FastGroup(TyperGroup):
    """A typer group whose values are parsed here."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_with_fast_parser(parameter) for parameter in super().get_params(ctx)]


def _with_wait_times(args: list[str]) -> Iterator[str]:
    for argument, following in zip(args, [*args[1:], ""], strict=False):
        is_alone = argument == "--wait" and not following[:1].isdecimal()
        yield f"{argument}={_WITHOUT_END}" if is_alone else argument


def _with_fast_parser(parameter: Any) -> Any:
    if isinstance(parameter, TyperOption | TyperArgument):
        coerce = partial(_parse_value, _select_parser(parameter))
        # Typer's own hook, which would build the slow parser on its first call.
        vars(parameter)["get_runtime_param"] = partial(SimpleNamespace, coerce=coerce)
    return parameter


def _parse_value(parse: Parse, value: Any, param: Any, ctx: Any) -> Any:
    """Parse a value or a list of values; an absent one stays absent."""
    is_list = param.multiple or param.nargs == -1
    if value is None:
        return () if is_list else None
    try:
        return [parse(word) for word in value] if is_list else parse(value)
    except ValueError as error:
        raise typer.BadParameter(f"{error}", ctx=ctx, param=param) from error


def _select_parser(parameter: TyperOption | TyperArgument) -> Parse:
    descriptor = parameter.type_descriptor
    if descriptor.parameter_info.parser is not None:
        return _parse_unless_default(descriptor.parameter_info.parser)
    if descriptor.choices is not None:
        return lambda word: _parse_choice(word, descriptor.choices or ())
    if descriptor.annotation is int:
        return lambda word: _parse_integer(word, parameter.min, parameter.max)
    return _PARSERS.get(descriptor.annotation, _parse_unless_default(parse_text))


def _parse_unless_default(parse: Callable[[str], Any]) -> Parse:
    """Parse strings; a default is a value already."""
    return lambda word: parse(word) if isinstance(word, str) else word


_PARSERS: dict[object, Parse] = {Path: Path, bool: bool}


def _parse_choice(word: str, choices: Iterable[str]) -> str:
    choices = list(choices)
    if word in choices:
        return word
    raise ValueError(f"{word!a} is not one of {', '.join(choices)}{suggest(word, choices)}")


def _parse_integer(word: str | int, minimum: float | None, maximum: float | None) -> int:
    if isinstance(word, str) and not _INTEGER.fullmatch(word):
        raise ValueError(f"{word!a} is not a whole number")
    if isinstance(word, str) and len(word.lstrip("-0")) > _MAX_DIGITS:
        raise ValueError(f"{word} has more digits than a number may have here, {_MAX_DIGITS}")
    number = int(word)
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        bounds = f"{minimum}" if maximum is None else f"{minimum} to {maximum}"
        raise ValueError(
            f"{number} is out of range: {bounds}{' or more' if maximum is None else ''}"
        )
    return number


# --- options and arguments --------------------------------------------------------------------


def option(flags: str, metavar: str, text: str, *, show_default: bool = False, **more: Any) -> Any:
    """Declare an option, or with an empty `metavar` a flag; `flags` has its spellings."""
    return typer.Option(
        *flags.split(), metavar=metavar or None, help=text, show_default=show_default, **more
    )


def argument(metavar: str, text: str, **more: Any) -> Any:
    """Declare a positional argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, **more)


# --- options of every command -----------------------------------------------------------------

AsOption = Annotated[str, option("--as", "NAME", "Act as this agent, not as yourself.")]

HiddenAsOption = Annotated[str, typer.Option("--as", hidden=True)]

JsonOption = Annotated[bool, option("--json", "", "Answer in JSON, one object a line.")]

NowOption = Annotated[
    int | None,
    option(
        "--now", "RFC3339", "Take this as the time, e.g. 2026-02-09T14:30:00Z.", parser=parse_clock
    ),
]

HiddenNowOption = Annotated[
    int | None, typer.Option("--now", metavar="RFC3339", parser=parse_clock, hidden=True)
]

DataOption = Annotated[
    Path | None,
    option("--data", "DIR", "The data directory: else $DRAGOMAN_DATA, else the nearest .dragoman."),
]

StoreOption = Annotated[
    str,
    option(
        "--store",
        "URL",
        "sqlite:///FILE or postgresql://…: else what dragoman.toml says.",
        parser=parse_store_url,
    ),
]

UrlOption = Annotated[
    str,
    option(
        "--url",
        "URL",
        "A hub elsewhere: else $DRAGOMAN_URL. Its token: $DRAGOMAN_TOKEN or --token-file.",
    ),
]

HiddenUrlOption = Annotated[str, typer.Option("--url", hidden=True)]

TokenFileOption = Annotated[
    str, option("--token-file", "FILE", "The file with the token for a hub elsewhere.")
]

HiddenTokenFileOption = Annotated[str, typer.Option("--token-file", hidden=True)]

READ_BY_THIN_CLIENT = ("url", "token_file")
"""Shared options that are read before a command is chosen; here they are accepted only."""

_SHARED_OPTIONS: dict[str, tuple[object, object]] = {
    "speaker": (AsOption, ""),
    "json": (JsonOption, False),
    "now": (NowOption, None),
    "data": (DataOption, None),
    "store": (StoreOption, ""),
    "url": (HiddenUrlOption, ""),
    "token_file": (HiddenTokenFileOption, ""),
}
"""Parameter -> its option and its default."""


# --- arguments and options of several commands ------------------------------------------------


SourceArgument = Annotated[str, argument("FILE|-", "The file; `-` or nothing: standard input.")]

TaskArgument = Annotated[str, argument("ID", "Any name of the task: its id, its AOF id, an alias.")]

AgentOption = Annotated[str, option("--agent", "NAME", "The agent; same as --as.")]

FenceOption = Annotated[
    int | None,
    option(
        "--fence",
        "N",
        "The token from the claim: refused as lease_lost if a newer attempt holds the task.",
        min=1,
    ),
]

ReasonOption = Annotated[str, option("--reason", "TEXT", "The reason, recorded in the ledger.")]

AsOfOption = Annotated[
    int | None, option("--as-of", "POSITION", "As it was at this position of the ledger.", min=0)
]

TtlOption = Annotated[
    int | None,
    option(
        "--ttl",
        "TIME",
        "How long the agent may be silent: seconds, or 90s, 5m, 2h.",
        parser=parse_duration,
    ),
]

_WITHOUT_END = "forever"

_FOREVER_MS = 1 << 62


def _parse_wait(text: str) -> int:
    return _FOREVER_MS if text == _WITHOUT_END else parse_duration(text)


WaitOption = Annotated[
    int | None,
    option(
        "--wait",
        "[TIME]",
        "Wait for it: seconds, or 90s, 5m; without a time as long as it takes.",
        parser=_parse_wait,
    ),
]

LimitOption = Annotated[
    int, option("--limit", "N", "How many at most.", min=1, max=MAX_PAGE, show_default=True)
]


# --- commands ---------------------------------------------------------------------------------


class CliCommand(Struct, frozen=True):
    """A command: its name, its function, and which shared options it offers."""

    name: str
    run: Callable[..., CommandResult | None]
    """Called with the context and the command's own arguments; its docstring is the help."""
    takes_as: bool = True
    """Offers --as; else --as is accepted, but hidden, as it makes no difference."""
    takes_now: bool = True
    """Offers --now; else --now is hidden and refused."""


def register_command(
    group: typer.Typer, command: CliCommand, *, runs_in_hub: bool, runs_from_elsewhere: bool
) -> None:
    """Register a command with a group; `runs_in_hub`: a running hub can run it for a caller beside
    it, `runs_from_elsewhere`: for the bearer of a token."""

    def entry(ctx: typer.Context, **arguments: Any) -> None:
        if not (runs_in_hub if bearer() is None else runs_from_elsewhere):
            require_own_process()
        for name in READ_BY_THIN_CLIENT:
            arguments.pop(name)
        options = SharedOptions(
            **{name: arguments.pop(name) for name in _SHARED_OPTIONS if name in arguments}
        )
        context: CommandContext = ctx.obj.with_options(options)
        try:
            code = context.run(lambda: command.run(context, **arguments))
        except UsageError as error:
            error.ctx = ctx
            raise
        raise typer.Exit(code)

    entry.__doc__ = command.run.__doc__
    entry.__dict__["__signature__"] = _signature(command, entry)
    group.command(command.name, cls=FastCommand)(entry)


def print_help_without_subcommand(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command; exit code 2."""
    if ctx.invoked_subcommand is None:
        require_own_process()
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


def _signature(command: CliCommand, entry: Callable[..., object]) -> inspect.Signature:
    """Signature for typer: the context, the function's own parameters, and the shared options."""
    _, *parameters = inspect.signature(command.run, eval_str=True).parameters.values()
    context, _ = inspect.signature(entry).parameters.values()
    shared = {
        **_SHARED_OPTIONS,
        **({} if command.takes_as else {"speaker": (HiddenAsOption, "")}),
        **({} if command.takes_now else {"now": (HiddenNowOption, None)}),
    }
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in shared.items()
    ]
    return inspect.Signature(
        [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters), *options]
    )
