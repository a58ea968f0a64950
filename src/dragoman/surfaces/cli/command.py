"""Commands of the command line: their options and arguments, how values are parsed, and their run.

Values are texts, whole numbers, choices, paths and what a parser makes of a text; they are parsed
here, in our own sentences.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct

from dragoman.config.store_url import check_store_url
from dragoman.core.errors import SettingsError
from dragoman.core.limits import MAX_PAGE
from dragoman.core.timestamps import parse_duration, parse_rfc3339
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


def parse_choice(word: str, choices: Iterable[str]) -> str:
    """Parse one of some words."""
    choices = list(choices)
    if word in choices:
        return word
    raise ValueError(f"{word!a} is not one of {', '.join(choices)}{suggest(word, choices)}")


def parse_integer(word: str | int, minimum: float | None, maximum: float | None) -> int:
    """Parse a whole number within its bounds."""
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


class Declared(Struct, frozen=True):
    """An option or an argument, as the annotation of a function's parameter declares it."""

    flags: tuple[str, ...]
    """Spellings of the option; empty: a positional argument."""
    metavar: str
    text: str
    parser: Parse | None = None
    min: int | None = None
    max: int | None = None
    show_default: bool = False
    hidden: bool = False
    variable: str = ""
    """Environment variable that stands for it."""


def option(flags: str, metavar: str, text: str = "", **more: Any) -> Declared:
    """Declare an option, or with an empty `metavar` a flag; `flags` has its spellings."""
    return Declared(tuple(flags.split()), metavar, text, **more)


def argument(metavar: str, text: str, **more: Any) -> Declared:
    """Declare a positional argument."""
    return Declared((), metavar, text, **more)


class Parameter(Struct, frozen=True):
    """A parameter of a command's function, with its option or argument."""

    name: str
    declared: Declared
    shape: Any
    """Type of its value, or of one of its values: str, int, bool, Path or a Literal."""
    is_list: bool
    default: Any
    """inspect.Parameter.empty if it must be given."""

    def parse(self, word: Any) -> Any:
        """Parse a value; ValueError if it is none. A default is a value already."""
        if self.declared.parser is not None:
            return self.declared.parser(word) if isinstance(word, str) else word
        if get_origin(self.shape) is Literal:
            return parse_choice(word, get_args(self.shape))
        if self.shape is int:
            return parse_integer(word, self.declared.min, self.declared.max)
        if self.shape in (bool, Path):
            return self.shape(word)
        return parse_text(word) if isinstance(word, str) else word


def make_parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """Make a parameter from an annotation such as `Annotated[list[str] | None, option(…)]`."""
    shape, declared = get_args(annotation)
    if isinstance(shape, UnionType) or get_origin(shape) is Union:
        (shape,) = (one for one in get_args(shape) if one is not type(None))
    is_list = get_origin(shape) is list
    return Parameter(name, declared, get_args(shape)[0] if is_list else shape, is_list, default)


# --- options of every command -----------------------------------------------------------------

AsOption = Annotated[str, option("--as", "NAME", "Act as this agent, not as yourself.")]

HiddenAsOption = Annotated[str, option("--as", "TEXT", hidden=True)]

JsonOption = Annotated[bool, option("--json", "", "Answer in JSON, one object a line.")]

NowOption = Annotated[
    int | None,
    option(
        "--now", "RFC3339", "Take this as the time, e.g. 2026-02-09T14:30:00Z.", parser=parse_clock
    ),
]

HiddenNowOption = Annotated[int | None, option("--now", "RFC3339", parser=parse_clock, hidden=True)]

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

HiddenUrlOption = Annotated[str, option("--url", "TEXT", hidden=True)]

TokenFileOption = Annotated[
    str, option("--token-file", "FILE", "The file with the token for a hub elsewhere.")
]

HiddenTokenFileOption = Annotated[str, option("--token-file", "TEXT", hidden=True)]

SHARED_OPTIONS: dict[str, tuple[object, object]] = {
    "speaker": (AsOption, ""),
    "json": (JsonOption, False),
    "now": (NowOption, None),
    "data": (DataOption, None),
    "store": (StoreOption, ""),
    "url": (HiddenUrlOption, ""),
    "token_file": (HiddenTokenFileOption, ""),
}
"""Parameter -> its option and its default. --url and --token-file are read before a command is
chosen, and only accepted here."""

ROOT_OPTIONS: dict[str, tuple[object, object]] = {
    "data": (
        Annotated[
            Path | None,
            option(
                "--data",
                "DIR",
                "The data directory; else the nearest .dragoman, in this folder or above it.",
                variable="DRAGOMAN_DATA",
            ),
        ],
        None,
    ),
    "store": (StoreOption, ""),
    "url": (UrlOption, ""),
    "token_file": (TokenFileOption, ""),
    "speaker": (AsOption, ""),
    "json": (JsonOption, False),
    "now": (NowOption, None),
}
"""The same before a command."""


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


def with_wait_times(args: Iterable[str]) -> list[str]:
    """Arguments in which `--wait` always has a time; it may stand without one."""
    args = list(args)
    return [
        f"{word}={_WITHOUT_END}" if word == "--wait" and not following[:1].isdecimal() else word
        for word, following in zip(args, [*args[1:], ""], strict=False)
    ]


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


def shared_options(typed: Mapping[str, Any]) -> SharedOptions:
    """Shared options among what was typed."""
    return SharedOptions(**{name: typed[name] for name in SharedOptions.__struct_fields__})


class CliCommand(Struct, frozen=True):
    """A command: its name, its function, and which shared options it offers."""

    name: str
    run: Callable[..., CommandResult | int | None]
    """Called with the context and the command's own arguments; its docstring is the help. A number
    is the exit code of a command that has printed its results."""
    takes_as: bool = True
    """Offers --as; else --as is accepted, but hidden, as it makes no difference."""
    takes_now: bool = True
    """Offers --now; else --now is hidden and refused."""

    def signature(self) -> Iterator[inspect.Parameter]:
        """The function's own parameters, and the shared options."""
        _, *parameters = inspect.signature(self.run, eval_str=True).parameters.values()
        for own in parameters:
            yield own.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        shared = {
            **SHARED_OPTIONS,
            **({} if self.takes_as else {"speaker": (HiddenAsOption, "")}),
            **({} if self.takes_now else {"now": (HiddenNowOption, None)}),
        }
        for name, (annotation, default) in shared.items():
            yield inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )

    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name."""
        return {
            one.name: make_parameter(one.name, one.annotation, one.default)
            for one in self.signature()
        }

    def call(self, context: CommandContext, typed: Mapping[str, Any], path: str) -> int:
        """Run the command with what was typed; its exit code. `path`: what it was called as."""
        options = shared_options(typed)
        own = {name: value for name, value in typed.items() if name not in SHARED_OPTIONS}
        context = context.with_options(options)
        try:
            return context.run(lambda: self.run(context, **own))
        except UsageError as error:
            error.path = path
            raise
